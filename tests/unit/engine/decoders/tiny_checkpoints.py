"""Tiny random checkpoints of many architectures, made and saved by transformers itself.

The weights are large enough that tokens get visibly different logits: a comparison of nearly constant
rows could not fail.
"""

import json
import shutil
import tempfile
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

VOCABULARY = 128
CONTEXT = 128
WINDOW = 8

SMALL = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": CONTEXT,
    "bos_token_id": 1,
    "eos_token_id": [2, 3],
    "pad_token_id": 0,
}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
MAMBA = {"mamba_n_heads": 8, "mamba_d_head": 16, "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_n_groups": 1}
ALTERNATING = ["sliding_attention", "full_attention"] * 2
LLAMA_3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 5000.0,
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}

# name: (model type in transformers, what differs from SMALL)
ARCHITECTURES = {
    "llama": ("llama", {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0}}),
    "llama_tied": ("llama", {"tie_word_embeddings": True, "attention_bias": True}),
    "llama_3_rope": ("llama", {"rope_parameters": LLAMA_3_ROPE}),
    "qwen2": ("qwen2", {}),
    "qwen3": ("qwen3", {}),
    "qwen3_moe": ("qwen3_moe", EXPERTS),
    "gemma2": ("gemma2", {"query_pre_attn_scalar": 16, "sliding_window": CONTEXT}),
    "gemma3": (
        "gemma3_text",
        {"query_pre_attn_scalar": 16, "sliding_window": WINDOW, "layer_types": ALTERNATING},
    ),
    "phi3": ("phi3", {}),
    "phi3_with_a_window": ("phi3", {"sliding_window": WINDOW}),
    "mistral": ("mistral", {"sliding_window": None}),
    "mistral_with_a_window": ("mistral", {"sliding_window": WINDOW}),
    "qwen3_next": (
        "qwen3_next",
        {
            **EXPERTS,
            "layer_types": ["linear_attention", "full_attention"] * 2,
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 2,
            "linear_key_head_dim": 32,
            "linear_value_head_dim": 32,
            "shared_expert_intermediate_size": 32,
        },
    ),
    "lfm2": ("lfm2", {"layer_types": ["conv", "full_attention"] * 2, "block_auto_adjust_ff_dim": False}),
    "falcon_h1": ("falcon_h1", {**MAMBA, "mamba_d_ssm": 128, "mamba_chunk_size": 8}),
}


def build(name: str, *, seed: int = 0, **settings: object) -> torch.nn.Module:
    """A random model of transformers; `settings` go into its config."""
    model_type, differing = ARCHITECTURES[name]
    torch.manual_seed(seed)
    config = AutoConfig.for_model(model_type, **{**SMALL, **differing, **settings})
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.copy_(torch.randn_like(parameter) * 2 / parameter.shape[-1] ** 0.5)
            else:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    return model


def tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level, one token a character, as many as the models have rows."""
    special = ["<pad>", "<s>", "</s>", "<end>"]
    alphabet = [*special, *sorted(pre_tokenizers.ByteLevel.alphabet())[: VOCABULARY - len(special)]]
    backend = Tokenizer(models.BPE({token: i for i, token in enumerate(alphabet)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    )


def save(name: str, folder: Path, *, dtype: torch.dtype = torch.float32, **settings: object) -> Path:
    """Write the model and its tokenizer as a folder in the Hugging Face layout."""
    build(name, **settings).to(dtype).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


_SAVED: dict[str, Path] = {}
_PLACE = tempfile.TemporaryDirectory(prefix="tiny-checkpoints-")


def saved(name: str, **settings: object) -> Path:
    """As `save`, in a folder that all tests of this run share; nobody may write into it."""
    key = f"{name} {settings}"
    if key not in _SAVED:
        _SAVED[key] = save(name, Path(_PLACE.name) / str(len(_SAVED)), **settings)
    return _SAVED[key]


def edited(folder: Path, target: Path, **changes: object) -> Path:
    """A copy of a checkpoint whose config.json says something else; None takes a setting out."""
    shutil.copytree(folder, target)
    config = json.loads((target / "config.json").read_text()) | changes
    (target / "config.json").write_text(json.dumps({k: v for k, v in config.items() if v is not None}))
    return target
