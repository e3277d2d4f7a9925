"""The default model really probed, in a process of its own: llama.cpp, short prompts, few questions."""

import statistics
import time

import pytest

import cartoolkit as ct
from cartoolkit.routing.probing.measurements import MeasurementStore, with_measurements
from cartoolkit.routing.probing.probe import probe, rows_to_probe

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def row():
    (found,) = rows_to_probe(["smollm2-135m-instruct"], "gguf")
    return found


@pytest.fixture(scope="module")
def found(row):
    return probe(row, prompt_lengths=(16, 192), repeats=3, answer_tokens=12, items=8, loads=2, patience=None)


def test_a_longer_prompt_takes_longer(found):
    short, long = found.points
    # Every word of these texts is one token, so the length is met exactly.
    assert (short.prompt_tokens, long.prompt_tokens) == (16, 192)
    assert long.ttft_ms.value > short.ttft_ms.value
    assert (short.ttft_ms.n, long.ttft_ms.n) == (3, 3)
    assert found.ttft_ms.value <= short.ttft_ms.value
    assert found.prefill_tokens_per_second.value > 0


def test_memory_is_at_least_the_weights_and_their_cache(found):
    """98 MB of weights, and 8,192 tokens x 30 layers x 3 heads x 64 x (keys, values) x 2 bytes = 189 MB."""
    assert 98 + 189 <= found.ram_mb.value < 1000


def test_load_time_is_the_median_of_what_was_asked_for(found):
    assert found.load_ms.n == 2
    assert 0 < found.load_ms.value < 60_000


def test_the_questions_are_answered(found):
    assert len(found.items) == 8
    assert all(item.text for item in found.items)
    assert next(item for item in found.items if item.id == "capital:Japan").right
    assert found.quality.n == 4


def test_it_is_known_which_weights_they_are(found, row):
    assert found.weights_hash == "sha256:b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
    assert (found.engine, found.dtype, found.notes) == ("llama.cpp", "Q4_1", ())
    assert "llama-cpp-python" in found.versions


def test_it_holds_for_the_row_and_makes_its_figures_measured(found, row, tmp_path):
    store = MeasurementStore(tmp_path)
    store.save(found)
    assert store.latest(row) == found
    measured = with_measurements(row, store.latest(row))
    assert measured.performance.tokens_per_second.basis == "measured"
    assert measured.cost.ram_mb.value == found.ram_mb.value


def test_the_decoding_speed_is_about_what_a_clock_beside_it_says(row):
    """Timed from outside: two answers of one prompt length, and the time that the longer one took more.

    Both are taken in the same moments, so other work on the machine slows both down.
    """
    with ct.load("smollm2-135m-instruct", engine="gguf", quiet=True, fresh=True) as engine:
        speeds = []
        for _ in range(2):
            speeds.append(
                probe(row, engine=engine, prompt_lengths=(16,), repeats=1, answer_tokens=12, quality=False)
            )
            seconds = [_seconds(engine, tokens) for tokens in (4, 16)]
            speeds.append(12 / max(seconds[1] - seconds[0], 1e-6))
    told = statistics.mean(each.tokens_per_second.value for each in speeds[::2])
    timed = statistics.mean(speeds[1::2])
    assert timed / 5 < told < timed * 5


def _seconds(engine, tokens):
    began = time.perf_counter()
    engine.generate(
        "one two three four",
        chat_template=False,
        temperature=0,
        ignore_eos=True,
        inspect=False,
        max_tokens=tokens,
    )
    return time.perf_counter() - began
