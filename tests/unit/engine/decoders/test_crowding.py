"""How many threads compute while other programs want the same cores."""

import contextlib
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cartoolkit.engine.decoders.cores import usable_cores
from cartoolkit.engine.decoders.crowding import CrowdedThreads
from cartoolkit.engine.decoders.llama_cpp_decoder import LlamaCppDecoder
from cartoolkit.models import resolve

ALONE, BESIDE_ANOTHER = 1.0, 0.5


def compute(threads, share, *, begin=0.0, stretches=1):
    """Stretches of a tenth of a second; what `count` was after each."""
    counts = []
    for n in range(1, stretches + 1):
        threads.note(0.1, 0.1 * share, begin + 0.1 * n)
        counts.append(threads.count)
    return counts


def test_all_threads_stay_while_nobody_else_is_there():
    assert compute(CrowdedThreads(8), ALONE, stretches=50) == [8] * 50


def test_threads_are_halved_down_to_one_while_the_machine_is_crowded():
    assert compute(CrowdedThreads(8), BESIDE_ANOTHER, stretches=5) == [4, 2, 1, 1, 1]
    assert compute(CrowdedThreads(6), BESIDE_ANOTHER, stretches=3) == [3, 1, 1]


def test_a_moment_is_not_judged():
    threads = CrowdedThreads(2)
    for n in range(9):
        threads.note(0.01, 0.0, 0.01 * n)
    assert threads.count == 2
    threads.note(0.02, 0.0, 0.11)
    assert threads.count == 1


def test_no_more_threads_are_tried_while_even_one_has_to_share_its_core():
    threads = CrowdedThreads(2)
    assert compute(threads, BESIDE_ANOTHER, stretches=100) == [1] * 100
    assert compute(threads, ALONE, begin=10) == [2]


def test_more_threads_are_tried_again_after_a_second():
    threads = CrowdedThreads(2)
    compute(threads, BESIDE_ANOTHER)
    # Left at 0.1 s, so not before 1.1 s; the stretches end at 0.2, 0.3 and so on.
    assert compute(threads, ALONE, begin=0.1, stretches=11) == [1] * 9 + [2, 2]


def test_trials_that_fail_become_rarer_until_one_succeeds():
    threads = CrowdedThreads(2)
    lefts, now = [], 0.0
    for _ in range(9):
        compute(threads, BESIDE_ANOTHER, begin=now)
        left = now = now + 0.1
        while threads.count == 1:
            threads.note(0.1, 0.1, now := now + 0.1)
        lefts.append(now - left)
    assert lefts == pytest.approx([1, 2, 4, 8, 16, 32, 60, 60, 60], abs=0.11)
    compute(threads, ALONE, begin=now)
    compute(threads, BESIDE_ANOTHER, begin=now + 0.1)
    assert compute(threads, ALONE, begin=now + 0.2, stretches=11)[-1] == 2


@given(
    most=st.integers(1, 64),
    stretches=st.lists(st.tuples(st.floats(1e-6, 100), st.floats(0, 1), st.floats(0, 100)), max_size=200),
)
def test_there_are_always_from_one_to_the_most_threads(most, stretches):
    threads, now = CrowdedThreads(most), 0.0
    for wall, share, pause in stretches:
        now += wall + pause
        threads.note(wall, share * wall, now)
        assert 1 <= threads.count <= most


@pytest.mark.model
def test_the_number_of_threads_changes_no_bit():
    """Thus it may change in the middle of an answer."""
    path = resolve(None, formats=("gguf",)).path
    ids = [int(i) for i in np.random.default_rng(3).integers(1000, 40_000, 100)]

    def read(*counts):
        with contextlib.closing(LlamaCppDecoder(path, context_length=256, threads=max(counts))) as decoder:
            rows = []
            for n, count in enumerate(counts):
                decoder._threads.count = count
                rows += [decoder.forward(ids[:64], 0).copy()] if n == 0 else []
                rows += [decoder.forward([i], len(decoder._cache.token_ids)).copy() for i in ids[64:74]]
            return np.stack(rows)

    alone = read(1, 1)
    for counts in ((1, 2), (2, 1), (3, 2)):
        np.testing.assert_array_equal(read(*counts), alone)


@pytest.mark.model
def test_a_crowded_machine_makes_llama_cpp_take_fewer_threads():
    path = resolve(None, formats=("gguf",)).path
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * usable_cores())]
    try:
        most = max(2, usable_cores())
        with contextlib.closing(LlamaCppDecoder(path, context_length=512, threads=most)) as decoder:
            for pos in range(300):
                decoder.forward([1000 + pos], pos)
                if decoder._threads.count < most:
                    break
            assert decoder._threads.count < most
    finally:
        for process in busy:
            process.kill()
            process.wait()
