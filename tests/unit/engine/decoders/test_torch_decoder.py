"""The torch decoder on tiny random models: the cache may save work, never change an answer."""

import dataclasses

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedTokenizerFast,
    Qwen3NextConfig,
    Qwen3NextForCausalLM,
)

from cartoolkit.engine import Engine, load
from cartoolkit.engine.decoders import torch_layers
from cartoolkit.engine.decoders.torch_decoder import TorchDecoder
from cartoolkit.errors import EngineClosed, EngineError, InvalidCheckpoint, OutOfMemory
from cartoolkit.models import Quantization, inspect_checkpoint

SMALL = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 128,
    "eos_token_id": [2, 3],
    "bos_token_id": 1,
    "pad_token_id": 0,
}


def llama():
    return LlamaForCausalLM(LlamaConfig(**SMALL))


def mistral_with_a_short_window():
    return MistralForCausalLM(MistralConfig(**SMALL, sliding_window=8))


def gemma_with_mixed_windows():
    layers = ["sliding_attention", "full_attention"] * 2
    return Gemma3ForCausalLM(Gemma3TextConfig(**SMALL, sliding_window=8, layer_types=layers))


def hybrid_with_recurrent_layers():
    layers = ["linear_attention", "full_attention"] * 2
    return Qwen3NextForCausalLM(
        Qwen3NextConfig(
            **SMALL,
            layer_types=layers,
            linear_num_key_heads=2,
            linear_num_value_heads=2,
            linear_key_head_dim=8,
            linear_value_head_dim=8,
            num_experts=2,
            num_experts_per_tok=1,
            moe_intermediate_size=16,
            shared_expert_intermediate_size=16,
        )
    )


FAMILIES = [llama, mistral_with_a_short_window, gemma_with_mixed_windows, hybrid_with_recurrent_layers]


def tokenizer():
    alphabet = ["<pad>", "<s>", "</s>", "<end>", *sorted(pre_tokenizers.ByteLevel.alphabet())[:60]]
    backend = Tokenizer(models.BPE({token: i for i, token in enumerate(alphabet)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token="</s>", bos_token="<s>", pad_token="<pad>"
    )


@pytest.fixture(params=FAMILIES, ids=lambda build: build.__name__)
def model(request):
    torch.manual_seed(0)
    return request.param().eval()


def reference(model, ids):
    """Logits after the last id by one forward of the whole text without a cache, float32 [vocab]."""
    with torch.inference_mode():
        return model(input_ids=torch.tensor([list(ids)]), use_cache=False).logits[0, -1].numpy()


def read(decoder, ids, chunk=5):
    """Logits after the last id the way the loop reads a prompt; also how many tokens were re-used."""
    start = done = decoder.begin_prompt(ids)
    logits = None
    while done < len(ids):
        logits = decoder.forward(ids[done : done + chunk], done)
        done += len(ids[done : done + chunk])
    return logits, start


IDS = [int(i) for i in np.random.default_rng(0).integers(4, 64, 30)]


def test_reading_in_chunks_gives_the_logits_of_one_forward(model):
    logits, reused = read(TorchDecoder(model, tokenizer()), IDS)
    assert logits.dtype == np.float32
    assert reused == 0
    np.testing.assert_allclose(logits, reference(model, IDS), atol=1e-4)


@pytest.mark.parametrize("shared", range(0, 30, 3))
def test_a_shared_prefix_of_any_length_gives_the_logits_of_an_empty_cache(model, shared):
    decoder = TorchDecoder(model, tokenizer())
    read(decoder, IDS)
    other = [*IDS[:shared], *reversed(IDS[shared:])]
    logits, _ = read(decoder, other)
    np.testing.assert_allclose(logits, reference(model, other), atol=1e-4)


def test_going_back_within_an_answer_gives_the_same_logits_again(model):
    decoder = TorchDecoder(model, tokenizer())
    read(decoder, IDS)
    first = decoder.forward([7], len(IDS))
    for length in (len(IDS), 20, 12, 6):
        branch = [*IDS[:length], 9]
        np.testing.assert_allclose(read(decoder, branch)[0], reference(model, branch), atol=1e-4)
    np.testing.assert_allclose(read(decoder, [*IDS, 7])[0], first, atol=1e-4)


def test_the_same_prompt_again_reads_one_token_only_where_the_cache_can_be_cropped():
    torch.manual_seed(0)
    decoder = TorchDecoder(llama(), tokenizer())
    read(decoder, IDS)
    assert read(decoder, IDS)[1] == len(IDS) - 1
    assert decoder.begin_prompt([*IDS[:10], 5, 5]) == 10


def test_a_window_that_has_moved_on_can_still_go_back():
    torch.manual_seed(0)
    decoder = TorchDecoder(mistral_with_a_short_window(), tokenizer())
    read(decoder, IDS)
    assert decoder.begin_prompt([*IDS[:20], 5, 5]) == 20
    assert decoder.begin_prompt([*IDS[:3], 5, 5]) == 3


def test_a_window_that_has_let_go_of_its_tokens_is_read_again_from_the_start(monkeypatch):
    monkeypatch.setattr(torch_layers, "_REACH", 4)
    torch.manual_seed(0)
    model = mistral_with_a_short_window().eval()
    decoder = TorchDecoder(model, tokenizer())
    read(decoder, IDS)
    # 30 tokens in fives, window 8: beyond 8 + 2 * 4 it keeps 8 + 4, at the end the last 12. The token after
    # the first 25 sees 7 of them, from the 18th on, which is the first one held.
    for length, kept in ((29, 29), (25, 25), (24, 0)):
        read(decoder, IDS)
        other = [*IDS[:length], 5, 5]
        logits, reused = read(decoder, other)
        assert reused == kept
        np.testing.assert_allclose(logits, reference(model, other), atol=1e-4)
        decoder.clear_kv_cache()


def test_a_prompt_that_goes_on_from_the_cache_is_not_read_again(model):
    decoder = TorchDecoder(model, tokenizer())
    read(decoder, IDS[:20])
    logits, reused = read(decoder, IDS)
    assert reused == 20
    np.testing.assert_allclose(logits, reference(model, IDS), atol=1e-4)


def test_a_repeatable_read_keeps_only_whole_chunks_that_were_read_in_one_go():
    torch.manual_seed(0)
    decoder = TorchDecoder(llama(), tokenizer())
    decoder._cache._chunk = 8
    read(decoder, IDS, chunk=8)
    assert decoder.begin_prompt(IDS, repeatable=True) == 24
    read(decoder, IDS, chunk=8)
    # Cropped inside the second chunk, the first is left; what is decoded after it counts for nothing.
    assert decoder.begin_prompt([*IDS[:12], 5, 5], repeatable=True) == 8
    for n in range(8, 20):
        decoder.forward([IDS[n]], n)
    assert decoder.begin_prompt(IDS, repeatable=True) == 8
    assert decoder.begin_prompt(IDS) == 8


def test_a_repeatable_read_gives_the_bits_of_a_fresh_one(model):
    decoder = TorchDecoder(model, tokenizer())
    decoder._cache._chunk = 8
    fresh, _ = read(decoder, IDS, chunk=8)
    decoder.forward([7], len(IDS))
    start = done = decoder.begin_prompt(IDS, repeatable=True)
    while done < len(IDS):
        logits = decoder.forward(IDS[done : done + 8], done)
        done += len(IDS[done : done + 8])
    assert start % 8 == 0
    assert logits.tobytes() == fresh.tobytes()


def test_a_forward_away_from_the_end_of_the_cache_is_refused():
    decoder = TorchDecoder(llama(), tokenizer())
    decoder.forward(IDS[:4], 0)
    with pytest.raises(ValueError, match="position 9, but the cache ends at 4"):
        decoder.forward([5], 9)


def test_every_end_token_of_config_and_tokenizer_is_known():
    assert TorchDecoder(llama(), tokenizer()).eos_ids == {2, 3}


def test_the_decoder_says_what_it_runs():
    info = TorchDecoder(llama(), tokenizer(), name="tiny").info
    assert (info.name, info.engine, info.device, info.dtype) == ("tiny", "torch", "cpu", "float32")
    assert (info.context_length, info.vocab_size) == (128, 64)


def test_an_exception_inside_the_models_forward_is_reported_and_the_next_call_works():
    torch.manual_seed(0)
    engine = Engine(lambda: TorchDecoder(llama(), tokenizer(), name="tiny"))
    broken = engine.decoder._model.model.layers[2]
    original, calls = broken.forward, []

    def fail(*args, **kwargs):
        calls.append(1)
        if len(calls) > 3:
            raise torch.OutOfMemoryError("tried to allocate 20 GiB")
        return original(*args, **kwargs)

    broken.forward = fail
    with pytest.raises(
        OutOfMemory,
        match=r"cpu ran out of memory .* at \d+ tokens: 21,475 MB more were needed, [\d,]+ MB are free",
    ) as caught:
        engine.generate("!", temperature=0, max_tokens=8, ignore_eos=True)
    assert len(caught.value.trace) == 3
    assert len(engine.generate("!", temperature=0, max_tokens=8, ignore_eos=True).trace) == 8
    engine.close()


def test_a_closed_decoder_says_so():
    decoder = TorchDecoder(llama(), tokenizer(), name="tiny")
    decoder.close()
    with pytest.raises(EngineClosed, match="tiny was closed"):
        decoder.forward([5], 0)


def test_weights_that_do_not_fit_are_told_with_their_size(tmp_path, monkeypatch):
    checkpoint = tiny_checkpoint(tmp_path)

    def refuse(_self, _device):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB")

    monkeypatch.setattr(torch.nn.Module, "to", refuse)
    with pytest.raises(EngineError, match=r"does not fit into the memory of cpu: its weights need [\d,]+ MB"):
        TorchDecoder.load(checkpoint, device=torch.device("cpu"), dtype=torch.float32)


def test_a_model_that_is_loaded_is_used_again_and_a_closed_one_is_not(tmp_path, capsys):
    folder = tiny_checkpoint(tmp_path).path
    first = load(folder, dtype="float32")
    assert load(folder, dtype="float32") is first
    assert "used again" in capsys.readouterr().out
    assert load(folder, dtype="bfloat16", quiet=True) is not first
    assert load(folder, dtype="float32", fresh=True, quiet=True) is not first
    first.close()
    again = load(folder, dtype="float32", quiet=True)
    assert again is not first
    assert again.generate("!", max_tokens=2, ignore_eos=True).usage.completion_tokens == 2


def test_weights_packed_for_another_engine_are_refused(tmp_path):
    packed = dataclasses.replace(
        tiny_checkpoint(tmp_path), quantization=Quantization.from_mlx_config(4, 64, "affine")
    )
    with pytest.raises(InvalidCheckpoint, match=r"packed for MLX .*; torch would read them as garbage"):
        TorchDecoder.load(packed, device=torch.device("cpu"), dtype=torch.float32)


def tiny_checkpoint(folder):
    """A random Llama with its tokenizer, saved as a folder."""
    torch.manual_seed(0)
    llama().save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return inspect_checkpoint(folder)
