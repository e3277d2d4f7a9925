"""The default model against transformers itself: the same logits, the same greedy text."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from cartoolkit.engine import load
from cartoolkit.requests import GenerateParams

pytestmark = pytest.mark.model

PROMPTS = [
    "What is the capital of France?",
    "Why is the sky blue? Answer in two sentences.",
    "Write a haiku about autumn.",
    "List three prime numbers.",
    "Translate 'good morning' into Spanish.",
    "Who wrote Hamlet?",
    "Explain photosynthesis to a child.",
    "What is 12 times 12?",
    "Name a mammal that can fly.",
    "Give me a short joke.",
    "Write a Python function that adds two numbers.",
    "What do bees make?",
    "Continue: Once upon a time",
    "Summarise the water cycle.",
    "What is the opposite of hot?",
    "¿Cuál es la capital de España?",
    "日本の首都はどこですか？",
    "Tell me about the moon 🌙.",
    "How many legs does a spider have?",
    "Write a sentence with the word 'whisper'.",
]


def hf_model(engine):
    return engine.decoder._model


def hf_logits(engine, ids):
    """Logits at every position by one forward without a cache, float32 [n, vocab]."""
    with torch.inference_mode():
        return (
            hf_model(engine)(input_ids=torch.tensor([[int(i) for i in ids]]), use_cache=False)
            .logits[0]
            .numpy()
        )


def check_against_hf(engine, trace):
    """Raw numbers of every step equal those of transformers' own forward on the same ids."""
    answer = trace.columns["token_id"]
    rows = hf_logits(engine, [*trace.prompt_ids, *answer])[len(trace.prompt_ids) - 1 : -1]
    logprobs = torch.log_softmax(torch.tensor(rows, dtype=torch.float64), -1).numpy()
    for step, row in zip(trace, logprobs, strict=True):
        np.testing.assert_allclose(step.candidates.logprobs, row[step.candidates.ids], atol=1e-4)
        assert step.logprob == pytest.approx(row[step.token_id], abs=1e-4)
        assert step.max_prob == pytest.approx(np.exp(row.max()), abs=1e-4)
        assert step.entropy == pytest.approx(-(np.exp(row) * row).sum(), abs=1e-3)
        assert step.rank == 1 + np.count_nonzero(row > row[step.token_id])


def test_raw_numbers_equal_transformers_without_and_with_a_reused_cache(fresh32):
    first = fresh32.generate(PROMPTS[1], seed=1, max_tokens=24)
    assert first.usage.reused_tokens == 0
    check_against_hf(fresh32, first.trace)
    # The same beginning and another end: the cache is cropped in the middle of the prompt.
    second = fresh32.generate(PROMPTS[1].replace("two", "three"), seed=1, max_tokens=24, repeatable=False)
    assert 0 < second.usage.reused_tokens < second.usage.prompt_tokens
    check_against_hf(fresh32, second.trace)


def test_raw_logits_of_the_decoder_equal_transformers(fresh32):
    decoder = fresh32.decoder
    ids = decoder.encode("The quick brown fox jumps over the lazy dog, and then it sleeps.")
    rows = hf_logits(fresh32, ids)
    for length in (len(ids), 5, 9, len(ids) - 1):
        start = decoder.begin_prompt(ids[:length])
        np.testing.assert_allclose(decoder.forward(ids[start:length], start), rows[length - 1], atol=1e-4)


@pytest.mark.parametrize("prompt", PROMPTS)
def test_greedy_text_equals_generate_token_for_token(engine32, prompt):
    result = engine32.generate(prompt, temperature=0, max_tokens=24)
    ids = torch.tensor([result.trace.prompt_ids.tolist()])
    expected = hf_model(engine32).generate(
        ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=24
    )[0, ids.shape[1] :]
    assert result.trace.columns["token_id"].tolist() == expected.tolist()
    assert result.text == engine32.decoder.decode(expected.tolist())


def test_prompt_logprobs_equal_transformers_at_every_position(fresh32):
    """Over several chunks, with a warm cache that must not be used."""
    prompt = "One fish, two fish, red fish, blue fish. " * 20
    fresh32.generate(prompt, max_tokens=1)
    result = fresh32.generate(prompt, max_tokens=3, temperature=0, prompt_logprobs=True)
    frame = result.trace.prompt_frame()
    assert result.usage.reused_tokens == 0
    assert len(frame) > fresh32.decoder.prefill_chunk
    rows = torch.log_softmax(torch.tensor(hf_logits(fresh32, result.trace.prompt_ids)).double(), -1)
    expected = rows[:-1].gather(1, torch.tensor(result.trace.prompt_ids[1:]).long()[:, None])[:, 0]
    assert np.isnan(frame["logprob"][0])
    np.testing.assert_allclose(frame["logprob"][1:], expected.numpy(), atol=1e-4)
    check_against_hf(fresh32, result.trace)


@pytest.fixture(scope="module", params=["float32", "bfloat16"])
def any_precision(request):
    # The engine of another test may be the same one, so it is not closed here.
    return load(dtype=request.param, quiet=True)


def check_bits(one, other):
    assert one.columns["token_id"].tolist() == other.columns["token_id"].tolist()
    for name, column in one.columns.items():
        if name != "elapsed":
            assert column.tobytes() == other.columns[name].tobytes(), name


def test_a_seed_repeats_bit_for_bit_whatever_ran_before(any_precision):
    settings = {"seed": 7, "max_tokens": 20, "temperature": 1.2}
    any_precision.decoder.clear_kv_cache()
    first = any_precision.generate(PROMPTS[2], **settings).trace
    check_bits(first, any_precision.generate(PROMPTS[2], **settings).trace)
    any_precision.generate(PROMPTS[2] + " Make it sad.", max_tokens=5)
    check_bits(first, any_precision.generate(PROMPTS[2], **settings).trace)


def test_a_long_prompt_is_reused_in_whole_chunks_and_repeats_bit_for_bit(any_precision):
    prompt = "One fish, two fish, red fish, blue fish. " * 30
    any_precision.decoder.clear_kv_cache()
    first = any_precision.generate(prompt, seed=1, max_tokens=8)
    again = any_precision.generate(prompt, seed=1, max_tokens=8)
    chunk = any_precision.decoder.prefill_chunk
    assert again.usage.reused_tokens == first.usage.prompt_tokens // chunk * chunk > 0
    check_bits(first.trace, again.trace)


def test_raw_numbers_do_not_move_with_the_sampler(fresh32):
    """The same place in the same text, under two samplers."""
    greedy = fresh32.generate(PROMPTS[0], temperature=0, max_tokens=6).trace
    forced = dict.fromkeys(range(fresh32.info.vocab_size), -np.inf)
    first = int(greedy.columns["token_id"][0])
    del forced[first]
    other = fresh32.generate(
        PROMPTS[0], max_tokens=1, temperature=1.7, top_k=5, top_p=0.3, min_p=0.2, logit_bias=forced
    ).trace
    for name in ("logprob", "max_prob", "entropy", "varentropy", "margin", "rank"):
        # The last prompt token is read alone the second time, which moves float32 sums by a few 1e-6.
        assert other.columns[name][0] == pytest.approx(greedy.columns[name][0], abs=1e-5), name
    np.testing.assert_allclose(other[0].candidates.logprobs, greedy[0].candidates.logprobs, atol=1e-4)


def test_every_step_keeps_the_fixed_rules_on_the_real_model(fresh32):
    trace = fresh32.generate(
        "Write three words with emoji: 🙂 你好", seed=5, temperature=1.5, max_tokens=40
    ).trace
    for step in trace:
        ids = step.candidates.ids.tolist()
        assert step.token_id in ids
        assert np.exp(step.candidates.logprobs.astype(float)).sum() + step.rest_mass == pytest.approx(
            1, abs=1e-6
        )
        drawn = np.exp(step.candidates.processed_logprobs.astype(float)).sum()
        assert drawn + step.processed_rest_mass == pytest.approx(1, abs=1e-6)
        assert step.processed_logprob > -np.inf
    joined = "".join(step.text for step in trace)
    assert joined == fresh32.decoder.decode(trace.columns["token_id"].tolist())


def test_the_prompt_is_what_the_models_own_template_makes_of_it(fresh32):
    trace = fresh32.generate("Hi", max_tokens=1).trace
    expected = fresh32.decoder._tokenizer._tokenizer.apply_chat_template(
        [{"role": "user", "content": "Hi"}], add_generation_prompt=True, return_dict=False
    )
    assert trace.prompt_ids.tolist() == list(expected)


def test_a_prompt_longer_than_the_window_is_cut_at_its_start(fresh32, capsys):
    params = GenerateParams(max_tokens=4, temperature=0)
    room = fresh32.info.context_length - 4
    # Reading eight thousand tokens takes half a minute here, so the run is stopped after the first chunk.
    session = fresh32.start("word " * 9000 + "end", params=params)
    session.stop()
    trace = session.result().trace
    assert len(trace.prompt_ids) == room
    assert trace.prompt_text.endswith("end<|im_end|>\n<|im_start|>assistant\n")
    assert "tokens were cut" in capsys.readouterr().out


LEAVE = """
import time
import cartoolkit as ct

engine = ct.load(quiet=True)
session = engine.start("Tell me a long story.", max_tokens=400)
while len(session.steps) < 3:
    time.sleep(0.01)
print("leaving")
"""


def test_leaving_python_while_the_model_is_at_work_ends_cleanly():
    done = subprocess.run(
        [sys.executable, "-c", LEAVE], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (0, "leaving\n"), done.stderr
