"""Tiny random models of transformers written as GGUF files, float32, with gguf-py's writer and name map.

What the two worlds store differently is written out here: Llama's query and key rows are interleaved for
llama.cpp's rotary embedding, Gemma's norms hold their one already, Mamba's decay is -exp(log).
"""

from pathlib import Path

import gguf
import numpy as np
import tiny_checkpoints
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import MambaConfig, MambaForCausalLM, PreTrainedTokenizerFast

WINDOW = 8
CONTEXT = tiny_checkpoints.CONTEXT
SPECIAL = ["<pad>", "<s>", "</s>", "<end>"]
TEMPLATE = "{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}"

# llama.cpp gives full attention to every sixth layer of Gemma 3.
GEMMA3_LAYERS = {"num_hidden_layers": 6, "layer_types": ["sliding_attention"] * 5 + ["full_attention"]}


def mamba():
    torch.manual_seed(0)
    config = MambaConfig(
        vocab_size=128, hidden_size=64, num_hidden_layers=4, state_size=16, time_step_rank=4, pad_token_id=0
    )
    return MambaForCausalLM(config).eval()


def calm(name: str, **settings: object) -> torch.nn.Module:
    """A model whose layers do not magnify what a float16 cache rounds away."""
    model = tiny_checkpoints.build(name, **settings)
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if parameter.ndim == 2 and ".layers." in key:
                parameter.mul_(0.25)
    return model


BUILDERS = {
    "llama": lambda: calm("llama"),
    "qwen3": lambda: calm("qwen3", head_dim=32),
    "gemma3": lambda: calm("gemma3", **GEMMA3_LAYERS),
    "mamba": mamba,
    "lfm2": lambda: calm("lfm2"),
}


def write(name: str, path: Path, *, vocabulary: str = "bpe", **metadata: object) -> torch.nn.Module:
    """Write the GGUF file and return transformers' model of the same weights; `metadata` replaces keys."""
    model = BUILDERS[name]()
    writer = gguf.GGUFWriter(path, name)
    _write_config(writer, name, model.config)
    {"bpe": write_bpe, "spm": write_spm}[vocabulary](writer)
    for key, value in metadata.items():
        writer.kv_data[0][f"{name}.{key}"].value = value
    _write_tensors(writer, name, model)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return model


def _write_config(writer: gguf.GGUFWriter, name: str, config) -> None:
    writer.add_name(f"tiny {name}")
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_vocab_size(config.vocab_size)
    if name == "mamba":
        writer.add_feed_forward_length(0)
        writer.add_head_count(0)
        writer.add_ssm_conv_kernel(config.conv_kernel)
        writer.add_ssm_inner_size(config.intermediate_size)
        writer.add_ssm_state_size(config.state_size)
        writer.add_ssm_time_step_rank(config.time_step_rank)
        writer.add_layer_norm_rms_eps(config.layer_norm_epsilon)
        return
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(_key_value_heads(name, config))
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_layer_norm_rms_eps(config.norm_eps if name == "lfm2" else config.rms_norm_eps)
    rope = config.rope_parameters
    writer.add_rope_freq_base(rope.get("full_attention", rope)["rope_theta"])
    if name == "gemma3":
        writer.add_sliding_window(WINDOW)
    if name == "lfm2":
        writer.add_shortconv_l_cache(config.conv_L_cache)


def _key_value_heads(name: str, config) -> int | list[int]:
    heads = config.num_key_value_heads
    if name != "lfm2":
        return heads
    return [heads if kind == "full_attention" else 0 for kind in config.layer_types]


def _write_tensors(writer: gguf.GGUFWriter, name: str, model: torch.nn.Module) -> None:
    architecture = next(a for a, word in gguf.MODEL_ARCH_NAMES.items() if word == name)
    names = gguf.get_tensor_name_map(architecture, model.config.num_hidden_layers)
    tied = model.config.tie_word_embeddings
    for key, tensor in model.state_dict().items():
        if not (tied and key == "lm_head.weight"):
            place = names.get_name(key, try_suffixes=(".weight", ".bias"))
            writer.add_tensor(place, _as_stored(name, key, tensor, model.config).numpy())


def _as_stored(name: str, key: str, tensor: torch.Tensor, config) -> torch.Tensor:
    if name == "llama" and ".q_proj." in key:
        tensor = interleaved(tensor, config.num_attention_heads)
    elif name == "llama" and ".k_proj." in key:
        tensor = interleaved(tensor, config.num_key_value_heads)
    elif name == "gemma3" and key.endswith("norm.weight"):
        tensor = tensor + 1
    elif key.endswith("A_log"):
        tensor = -torch.exp(tensor)
    elif ".conv" in key and tensor.ndim == 3:
        tensor = tensor[:, 0]
    return tensor.float().contiguous()


def interleaved(weight: torch.Tensor, heads: int) -> torch.Tensor:
    """Rows i and i + half of each head side by side: llama.cpp turns neighbours, transformers halves."""
    return weight.reshape(heads, 2, -1, weight.shape[-1]).transpose(1, 2).reshape(weight.shape)


# Vocabularies, each with its twin in transformers


MERGES = [("t", "h"), ("th", "e"), ("\u0120", "the")]


def bpe() -> PreTrainedTokenizerFast:
    # Printable ASCII, the space and the line break, as byte-level vocabularies write them.
    tokens = [
        *SPECIAL,
        *(chr(byte) for byte in range(0x21, 0x7F)),
        "\u0120",
        "\u010a",
        "th",
        "the",
        "\u0120the",
    ]
    tokens += [f"<unused{i}>" for i in range(128 - len(tokens))]
    backend = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, MERGES))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    return _twin(backend)


def _twin(backend: Tokenizer) -> PreTrainedTokenizerFast:
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    )
    tokenizer.add_special_tokens({"additional_special_tokens": ["<end>"]})
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def write_bpe(writer: gguf.GGUFWriter) -> None:
    tokens = bpe().convert_ids_to_tokens(range(128))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([_kind(token) for token in tokens])
    writer.add_token_merges([" ".join(pair) for pair in MERGES])
    _write_special(writer)


def spm() -> PreTrainedTokenizerFast:
    """As Llama 2: pieces with ▁ for a space, the rest of the bytes as <0x..>; here only a few of either."""
    pieces = ["\u2581", *"abcdehlmnorst", "th", "the", "\u2581the", "\u2581a", "an", "\u2581an"]
    merges = [("t", "h"), ("th", "e"), ("\u2581", "the"), ("\u2581", "a"), ("a", "n")]
    merges += [("\u2581a", "n"), ("\u2581", "an")]  # each way to the piece with the lowest score
    tokens = [*SPECIAL, *(f"<0x{byte:02X}>" for byte in SPM_BYTES), *pieces]
    tokens += [f"<unused{i}>" for i in range(128 - len(tokens))]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    backend = Tokenizer(models.BPE(vocabulary, merges, byte_fallback=True, unk_token="<pad>", fuse_unk=True))
    backend.normalizer = normalizers.Sequence(
        [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]
    )
    backend.decoder = decoders.Sequence(
        [
            decoders.Replace("\u2581", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    return _twin(backend)


# Of é, ñ, 日 and 🌙, a line break, a full stop and a question mark.
SPM_BYTES = sorted({*"é ñ 日 🌙 \n . ? !".encode()} - {0x20})


def write_spm(writer: gguf.GGUFWriter) -> None:
    tokens = spm().convert_ids_to_tokens(range(128))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    # Pieces that merge first have the higher scores; single characters and the rest the lowest.
    order = ["th", "the", "\u2581the", "\u2581a", "an", "\u2581an"]
    writer.add_token_scores([-float(order.index(t)) if t in order else -1000.0 for t in tokens])
    writer.add_token_types([_kind(token) for token in tokens])
    writer.add_unk_token_id(0)
    writer.add_add_space_prefix(True)
    _write_special(writer)


def _kind(token: str) -> int:
    if token in SPECIAL:
        return gguf.TokenType.CONTROL
    if token.startswith("<unused"):
        return gguf.TokenType.USER_DEFINED
    return gguf.TokenType.BYTE if token.startswith("<0x") else gguf.TokenType.NORMAL


def _write_special(writer: gguf.GGUFWriter) -> None:
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(0)
    writer.add_add_bos_token(True)
    writer.add_chat_template(TEMPLATE)


def write_encoder(path: Path) -> None:
    """A BERT of one layer, which makes embeddings and continues nothing."""
    writer = gguf.GGUFWriter(path, "bert")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(64)
    writer.add_block_count(1)
    writer.add_feed_forward_length(96)
    writer.add_head_count(4)
    writer.add_layer_norm_eps(1e-6)
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType.MEAN)
    write_bpe(writer)
    writer.add_token_type_count(2)
    shapes = {"token_embd": (128, 64), "position_embd": (CONTEXT, 64), "token_types": (2, 64)}
    shapes |= {f"blk.0.attn_{part}": (64, 64) for part in ("q", "k", "v", "output")}
    shapes |= {"blk.0.ffn_up": (96, 64), "blk.0.ffn_down": (64, 96)}
    shapes |= dict.fromkeys(("token_embd_norm", "blk.0.attn_output_norm", "blk.0.layer_output_norm"), (64,))
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", np.ones(shape, np.float32))
        if name.startswith("blk") or name.endswith("norm"):
            writer.add_tensor(f"{name}.bias", np.zeros(shape[0], np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
