"""Where a model looks, taken token by token, against transformers' own weights over the whole text."""

import numpy as np
import pytest
import torch
from tiny_checkpoints import ARCHITECTURES, CONTEXT, build, saved, tokenizer

from cartoolkit.engine import Engine, load
from cartoolkit.engine.decoders.torch_decoder import TorchDecoder
from cartoolkit.errors import InvalidRequest
from cartoolkit.models import inspect_checkpoint
from cartoolkit.retrieval import EveryTokens, Policy, Question, Resume

IDS = [int(i) for i in np.random.default_rng(5).integers(4, 100, 40)]
WINDOWED = ["phi3_with_a_window", "mistral_with_a_window"]


def told(name, ids):
    """The last layer's weights of one eager forward over the whole text, mean over heads, [n, n]."""
    model = build(name)
    model.set_attn_implementation("eager")
    with torch.inference_mode():
        output = model(input_ids=torch.tensor([list(ids)]), output_attentions=True, use_cache=False)
    return output.attentions[-1][0].mean(dim=0).numpy()


def decoder(name="llama", **options):
    return TorchDecoder(build(name), tokenizer(), **{"attention": "eager"} | options)


@pytest.fixture
def engine():
    made = Engine(decoder)
    yield made
    made.close()


@pytest.mark.parametrize("name", [name for name in ARCHITECTURES if name not in WINDOWED])
def test_each_token_s_row_is_that_of_one_forward_over_the_whole_text(name):
    reader, expected = decoder(name), told(name, IDS)
    reader.begin_prompt(IDS)
    reader.prefill(IDS[:7], 0)
    for end in (20, *range(21, len(IDS) + 1)):
        start = 7 if end == 20 else end - 1
        reader.forward(IDS[start:end], start)
        row = reader.attention()
        assert (row.dtype, row.shape) == (np.float32, (end,))
        np.testing.assert_allclose(row, expected[end - 1, :end], atol=1e-5)
        assert row.sum() == pytest.approx(1, abs=1e-5)


def test_a_row_stays_as_it_was_when_more_is_read():
    reader = decoder()
    reader.forward(IDS[:9], 0)
    row = reader.attention()
    before = row.copy()
    reader.forward(IDS[9:12], 9)
    np.testing.assert_array_equal(row, before)


def test_after_going_back_the_row_is_that_of_the_new_text():
    reader = decoder()
    reader.forward(IDS, 0)
    other = [*IDS[:15], *reversed(IDS[15:])]
    assert reader.begin_prompt(other) == 15
    reader.forward(other[15:], 15)
    np.testing.assert_allclose(reader.attention(), told("llama", other)[-1], atol=1e-5)


def test_the_logits_are_those_of_the_model():
    reader, model = decoder("qwen3"), build("qwen3")
    with torch.inference_mode():
        expected = model(input_ids=torch.tensor([IDS]), use_cache=False).logits[0, -1].numpy()
    np.testing.assert_allclose(reader.forward(IDS, 0), expected, atol=1e-4)


@pytest.mark.parametrize("name", WINDOWED)
def test_a_last_layer_that_sees_a_window_only_is_refused(name):
    with pytest.raises(
        InvalidRequest, match="its last layer sees 8 tokens only, not the whole text"
    ) as caught:
        decoder(name)
    assert caught.value.hint.startswith("Leave attention out")


def test_a_window_as_long_as_the_longest_text_is_none():
    model = build("mistral_with_a_window", sliding_window=CONTEXT)
    assert TorchDecoder(model, tokenizer(), attention="eager").info.attention == "eager"


def test_a_model_that_gives_no_attention_is_refused():
    from transformers import MambaConfig, MambaForCausalLM

    mamba = MambaForCausalLM(MambaConfig(vocab_size=128, hidden_size=32, num_hidden_layers=2, state_size=8))
    with pytest.raises(
        InvalidRequest, match=r"go with MambaForCausalLM: transformers gives no attention weights for it"
    ):
        TorchDecoder(mamba, tokenizer(), attention="eager")


def test_a_decoder_that_was_not_asked_for_it_keeps_nothing():
    model = build("llama")
    reader = TorchDecoder(model, tokenizer())
    assert reader.info.attention == ""
    assert not any(module._forward_hooks for module in model.modules())
    with pytest.raises(ValueError, match="loaded without attention='eager'"):
        reader.attention()


def test_a_closed_decoder_leaves_no_hook_on_somebody_s_model():
    model = build("llama")
    reader = TorchDecoder(model, tokenizer(), attention="eager")
    # transformers leaves hooks of its own once it was asked for attentions.
    hooks = sum(len(module._forward_hooks) for module in model.modules())
    reader.close()
    assert sum(len(module._forward_hooks) for module in model.modules()) == hooks - 1


# Through load and generate


def test_load_asks_for_it_and_takes_no_engine_that_was_loaded_without():
    folder = saved("llama")
    with load(folder, engine="torch", device="cpu", attention="eager") as attentive:
        assert attentive.info.attention == "eager"
        assert load(folder, engine="torch", device="cpu", attention="eager") is attentive
        with load(folder, engine="torch", device="cpu") as plain:
            assert plain is not attentive
            assert plain.info.attention == ""


def test_a_refusal_at_load_keeps_its_own_words():
    checkpoint = inspect_checkpoint(saved("mistral_with_a_window"))
    options = {"device": torch.device("cpu"), "dtype": torch.float32}
    with pytest.raises(InvalidRequest, match="its last layer sees 8 tokens only"):
        TorchDecoder.load(checkpoint, **options, attention="eager")


def rows_agree(steps, prompt, *, first=0):
    """Whether the rows of the `steps` that stand, from place `first` on, are those of one forward."""
    expected = told("llama", [*prompt, *(step.token_id for step in steps)])
    for place, step in enumerate(steps[first:], first):
        end = len(prompt) + place
        assert len(step.attention.prompt) == len(prompt)
        assert len(step.attention.on_answer) == place
        np.testing.assert_allclose(step.attention.weights, expected[end - 1, :end], atol=1e-5)


def test_every_step_says_where_the_model_looked(engine):
    trace = engine.generate("hello", max_tokens=12, seed=1, ignore_eos=True, answer_start="so").trace
    assert len(trace) == 12
    assert b"".join(trace[0].attention.prompt) == trace.prompt_text.encode()
    rows_agree(list(trace), trace.prompt_ids.tolist())


def test_without_inspection_nothing_is_recorded(engine):
    trace = engine.generate("hello", max_tokens=3, seed=1, ignore_eos=True, inspect=False).trace
    assert trace.attentions == [None] * 3


class KeepFour(Resume):
    def keep(self, tokens, fire):
        return 4


def test_after_a_rollback_the_rows_are_those_of_the_answer_as_it_stands(engine):
    """The first four tokens keep their rows of the first prompt; what follows has those of the second."""
    policy = Policy(
        trigger=EveryTokens(9), query=Question(), resume=KeepFour(), passages_per_query=1
    ).changed(max_retrievals=1)
    run = engine.generate(
        "hello", max_tokens=12, seed=2, ignore_eos=True, retrieval=policy, retriever=lambda _: "abcdef"
    )
    (event,) = [event for event in run.trace.events if event.kind == "retrieval"]
    assert (event.data["outcome"], event.data["keep"], event.data["dropped"]) == ("found", 4, 5)
    steps = list(run.trace)
    kept, dropped = [s for s in steps if s.kept], [s for s in steps if not s.kept]
    assert (len(kept), len(dropped)) == (12, 5)
    first = engine.decoder.encode(b"".join(kept[0].attention.prompt).decode())
    assert len(first) < len(run.trace.prompt_ids)
    rows_agree([*kept[:4], *dropped], first)
    rows_agree(kept, run.trace.prompt_ids.tolist(), first=4)
