"""The head of a long row, against numpy's stable sort of the whole row."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cartoolkit.engine.ordering import descending_prefixes, top_ids

STEADY = settings(derandomize=True, deadline=None, database=None)
SIZES = (1, 2, 3, 15, 16, 17, 63, 64, 65, 160, 1023, 1024, 1025, 5000)


def sorted_whole(values: np.ndarray) -> np.ndarray:
    """All ids with a value above -inf, largest first, the lower id first among equals."""
    order = np.argsort(-values, kind="stable")
    return order[values[order] > -np.inf]


@st.composite
def rows(draw):
    """Rows of every size class, from all different to all equal, with some or nearly all removed."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    row = rng.normal(0, draw(st.sampled_from([0, 1e-3, 1, 30])), draw(st.sampled_from(SIZES)))
    row = row.round(draw(st.sampled_from([0, 1, 12])))
    removed = rng.random(len(row)) < draw(st.sampled_from([0, 0.1, 0.9, 0.999]))
    return np.where(removed, -np.inf, row)


@STEADY
@given(rows(), st.integers(0, 6000))
def test_top_ids_are_the_head_of_a_stable_sort(row, n):
    assert top_ids(row, n).tolist() == sorted_whole(row)[:n].tolist()


@STEADY
@given(
    arrays(np.float32, st.integers(1, 40), elements=st.floats(width=32, allow_nan=False)), st.integers(0, 50)
)
def test_top_ids_agree_on_any_float32_values(row, n):
    assert top_ids(row, n).tolist() == sorted_whole(row)[:n].tolist()


@pytest.mark.parametrize("n", [1, 2, 7, 64, 100, 312, 313, 5000, 10**30])
def test_the_largest_values_may_stand_in_one_block_or_behind_the_last(n):
    at_the_start, at_the_end = np.zeros(5000), np.zeros(5000)
    at_the_start[:100] = np.arange(100)
    at_the_end[-100:] = np.arange(100)
    for row in (at_the_start, at_the_end):
        assert top_ids(row, n).tolist() == sorted_whole(row)[:n].tolist()


def test_a_row_without_a_finite_value_has_no_top():
    assert top_ids(np.full(3000, -np.inf), 5).tolist() == []


def test_an_empty_row_has_no_top():
    assert top_ids(np.empty(0), 5).tolist() == []


def test_ties_across_the_cut_go_to_the_lower_ids():
    assert top_ids(np.zeros(5000), 3).tolist() == [0, 1, 2]


def test_top_ids_reads_a_row_that_must_not_be_written():
    row = np.arange(5000.0)
    row.flags.writeable = False
    assert top_ids(row, 2).tolist() == [4999, 4998]


@STEADY
@given(rows())
def test_each_prefix_continues_the_one_before_and_the_last_is_everything(row):
    whole = sorted_whole(row).tolist()
    prefixes = [prefix.tolist() for prefix in descending_prefixes(row)]
    assert prefixes[-1] == whole
    assert prefixes[:-1] == [whole[:n] for n in (64, 1024) if n < len(row)]
