"""The torch decoder on architectures that keep what they have read in different ways, each tiny and random.

The reference is the model's own forward over the whole text without a cache.
"""

import numpy as np
import pytest
import torch
import transformers as hf

from cartoolkit.engine import Engine
from cartoolkit.engine.decoders.torch_decoder import TorchDecoder
from tests.unit.engine.decoders.test_torch_decoder import SMALL, read, reference, tokenizer

IDS = [int(i) for i in np.random.default_rng(3).integers(4, 64, 17)]
PLAIN = {k: v for k, v in SMALL.items() if k not in ("head_dim", "num_key_value_heads")}
MAMBA = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8, "pad_token_id": 0}


def gpt2():
    """Learned positions, and layers that keep their matrices the other way round."""
    return hf.GPT2LMHeadModel(hf.GPT2Config(vocab_size=64, n_embd=32, n_layer=2, n_head=4, n_positions=32))


def opt():
    """Learned positions that begin at two."""
    config = hf.OPTConfig(**PLAIN | {"ffn_dim": 48, "word_embed_proj_dim": 32})
    return hf.OPTForCausalLM(config)


def bloom():
    """ALiBi instead of positions."""
    return hf.BloomForCausalLM(hf.BloomConfig(vocab_size=64, hidden_size=32, n_layer=2, n_head=4))


def mpt():
    return hf.MptForCausalLM(hf.MptConfig(vocab_size=64, d_model=32, n_layers=2, n_heads=4, max_seq_len=40))


def gpt_neox():
    return hf.GPTNeoXForCausalLM(hf.GPTNeoXConfig(**PLAIN))


def deepseek_v3():
    """Latent attention: keys and values of other widths than the heads, and experts."""
    sizes = {"q_lora_rank": 16, "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8}
    experts = {"n_routed_experts": 4, "n_group": 2, "topk_group": 1, "num_experts_per_tok": 2}
    more = {
        "v_head_dim": 8,
        "moe_intermediate_size": 16,
        "first_k_dense_replace": 1,
        "num_key_value_heads": 4,
    }
    return hf.DeepseekV3ForCausalLM(hf.DeepseekV3Config(**PLAIN | sizes | experts | more))


def qwen3_moe():
    experts = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
    return hf.Qwen3MoeForCausalLM(hf.Qwen3MoeConfig(**SMALL, **experts))


def gemma3_with_images():
    """A multimodal model, whose text part has a config of its own."""
    vision = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 4}
    text = SMALL | {"sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"] * 2}
    config = hf.Gemma3Config(
        text_config=text, vision_config=vision | {"image_size": 28, "patch_size": 14}, mm_tokens_per_image=4
    )
    return hf.Gemma3ForConditionalGeneration(config)


def mamba():
    """A recurrent state that transformers drops when several tokens follow at once."""
    return hf.MambaForCausalLM(hf.MambaConfig(**MAMBA))


def jamba():
    """The same beside attention."""
    layers = {"attn_layer_period": 2, "attn_layer_offset": 1, "num_experts": 2, "mamba_d_state": 8}
    return hf.JambaForCausalLM(hf.JambaConfig(**PLAIN | layers | {"num_key_value_heads": 2}))


def lfm2():
    """Short convolutions beside attention."""
    layers = ["conv", "full_attention"] * 2
    return hf.Lfm2ForCausalLM(hf.Lfm2Config(**PLAIN | {"num_key_value_heads": 2, "layer_types": layers}))


def rwkv():
    """A state under a name of its own."""
    sizes = {"attention_hidden_size": 32, "context_length": 128, "num_hidden_layers": 2}
    return hf.RwkvForCausalLM(hf.RwkvConfig(vocab_size=64, hidden_size=32, **sizes))


def openai_gpt():
    """No cache at all."""
    config = hf.OpenAIGPTConfig(vocab_size=64, n_embd=32, n_layer=2, n_head=4, n_positions=32)
    return hf.OpenAIGPTLMHeadModel(config)


KEPT = [gpt2, opt, bloom, mpt, gpt_neox, deepseek_v3, qwen3_moe, gemma3_with_images]
NOT_CROPPED = [mamba, jamba, lfm2, rwkv]
NOT_CACHED = [openai_gpt]


def built(build):
    """A model whose logits depend on every token: the usual tiny initial weights would hide mistakes."""
    torch.manual_seed(0)
    model = build().eval()
    with torch.no_grad():
        for weights in model.parameters():
            if weights.dim() == 2:
                weights.normal_(std=0.6 / weights.shape[1] ** 0.5)
    return model


@pytest.mark.parametrize("build", KEPT + NOT_CROPPED + NOT_CACHED, ids=lambda build: build.__name__)
def test_a_shared_prefix_of_every_length_gives_the_logits_of_the_librarys_own_forward(build):
    model = built(build)
    decoder = TorchDecoder(model, tokenizer())
    np.testing.assert_allclose(read(decoder, IDS)[0], reference(model, IDS), atol=1e-4)
    for shared in range(1, len(IDS)):
        other = [*IDS[:shared], (IDS[shared] + 1) % 60 + 4, *reversed(IDS[shared + 1 :])]
        logits, reused = read(decoder, other)
        np.testing.assert_allclose(logits, reference(model, other), atol=1e-4)
        assert reused == (0 if build in NOT_CROPPED else min(shared, len(IDS) - 1))
        read(decoder, IDS)


@pytest.mark.parametrize("build", NOT_CROPPED + NOT_CACHED, ids=lambda build: build.__name__)
def test_an_answer_goes_on_from_what_was_read(build):
    model = built(build)
    decoder = TorchDecoder(model, tokenizer())
    decoder.prefill(IDS[:6], 0)
    for position in range(6, 12):
        logits = decoder.forward([IDS[position]], position)
        np.testing.assert_allclose(logits, reference(model, IDS[: position + 1]), atol=1e-4)
    assert decoder.begin_prompt(IDS) == 12
    rows = decoder.forward_all(IDS[12:], 12)
    with torch.inference_mode():
        expected = model(input_ids=torch.tensor([IDS]), use_cache=False).logits[0, 12:].numpy()
    np.testing.assert_allclose(rows, expected, atol=1e-4)


def test_a_model_without_a_cache_is_said_to_be_slow(capsys):
    TorchDecoder(built(openai_gpt), tokenizer(), name="tiny")
    assert "tiny: transformers has no cache for it" in capsys.readouterr().out


@pytest.mark.parametrize(("build", "length"), [(gpt2, 32), (mpt, 40), (opt, 128)])
def test_the_context_is_what_the_config_calls_it_in_this_architecture(build, length):
    assert TorchDecoder(built(build), tokenizer()).info.context_length == length


def test_learned_positions_end_an_answer_where_the_table_of_positions_ends():
    with Engine(lambda: TorchDecoder(built(gpt2), tokenizer())) as engine:
        result = engine.generate("!" * 20, temperature=0, max_tokens=100, ignore_eos=True)
    assert result.stop_reason == "length"
    assert result.usage.prompt_tokens + result.usage.completion_tokens == 32


def test_a_row_of_logits_is_as_long_as_the_model_makes_it():
    model = built(gpt2)
    model.resize_token_embeddings(72)
    model.config.vocab_size = 64
    assert TorchDecoder(model, tokenizer()).info.vocab_size == 72


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_reduced_precision_stays_near_the_librarys_own_forward(dtype):
    model = built(deepseek_v3).to(dtype)
    decoder = TorchDecoder(model, tokenizer())
    read(decoder, IDS)
    other = [*IDS[:9], *reversed(IDS[9:])]
    expected = reference(model.float(), other)
    model.to(dtype)
    logits, reused = read(decoder, other)
    assert reused == 9
    assert np.abs(logits - expected).max() < 0.05 * np.abs(expected).max()
