"""Steps, columns and the figures over them, against numbers worked out by hand or in float64."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from trace_samples import empty, plain, sky, sky_steps, step, trace

from cartoolkit.trace import CANDIDATE_COLUMNS, STAGES, STEP_COLUMNS, Candidates, Step, low_runs, perplexity
from cartoolkit.trace import tokens_per_second as speed
from cartoolkit.trace.columns import columns_of

ARRAYS = ("ids", "logprobs", "processed_logprobs", "removed_by")


def same(a: Step, b: Step) -> bool:
    names = [n for n in Step.__dataclass_fields__ if n != "candidates"]
    pairs = [(getattr(a, n), getattr(b, n)) for n in names]
    equal = all(repr(x) == repr(y) for x, y in pairs)
    return equal and all(np.array_equal(getattr(a.candidates, n), getattr(b.candidates, n)) for n in ARRAYS)


def test_columns_have_the_promised_types_and_shapes():
    columns = columns_of(list(sky()))
    assert {name: array.dtype for name, array in columns.items()} == {**STEP_COLUMNS, **CANDIDATE_COLUMNS}
    assert {array.shape for name, array in columns.items() if name in STEP_COLUMNS} == {(5,)}
    assert {array.shape for name, array in columns.items() if name in CANDIDATE_COLUMNS} == {(5, 3)}


def test_a_missing_candidate_has_id_minus_one_and_no_numbers():
    columns = columns_of(list(sky()))
    assert columns["candidate_id"].tolist() == [[1, 3, -1], [3, 4, -1], [8, 5, 6], [10, 9, -1], [2, 7, -1]]
    assert np.isnan(columns["candidate_logprob"][0, 2])
    assert columns["candidate_removed_by"].tolist() == [[0, 4, 0], [0, 0, 0], [0, 3, 5], [1, 0, 0], [0, 0, 0]]


def test_flags_are_bits():
    columns = columns_of(list(sky()))
    assert columns["flags"].tolist() == [8, 8, 9, 8, 10]  # kept 8, incomplete 1, special 2
    forced = columns_of([step(0, 1, "The", forced=True, kept=False)])
    assert forced["flags"].tolist() == [4]


def test_no_steps_make_empty_columns():
    columns = columns_of([])
    assert columns["token_id"].shape == (0,)
    assert columns["candidate_id"].shape == (0, 0)


def test_steps_come_back_from_columns_as_they_went_in():
    # Candidates' texts are views of their bytes, so the half emoji shows as what it is.
    for given_step, back in zip(sky_steps(), sky(), strict=True):
        texts = {2: ("\\xF0\\x9F", "</textarea>", " &amp;"), 3: ("😀", "🙂")}
        expected = texts.get(given_step.index, given_step.candidates.texts)
        assert same(given_step, back)
        assert back.candidates.texts == expected


def test_a_step_by_hand():
    second = sky()[1]
    assert (second.index, second.token_id, second.text, second.rank) == (
        1,
        4,
        " <script>alert(1)</script>",
        2,
    )
    assert second.prob == pytest.approx(0.125, rel=1e-6)
    assert second.surprisal == pytest.approx(math.log(8), rel=1e-6)
    assert (second.max_prob, second.margin, second.draw, second.elapsed) == (0.25, 0.125, 0.125, 0.5)
    assert [c.removed_by for c in sky()[2].candidates] == ["", "top_k", "min_p"]
    assert [c.processed_prob for c in sky()[2].candidates] == [1, 0, 0]
    assert [c.prob for c in sky()[2].candidates] == pytest.approx([0.25, 0.125, 0.0625], rel=1e-6)


@pytest.mark.parametrize("i", range(5))
def test_candidates_and_the_rest_sum_to_one(i):
    one = sky()[i]
    assert sum(c.prob for c in one.candidates) + one.rest_mass == pytest.approx(1, abs=1e-6)
    assert sum(c.processed_prob for c in one.candidates) + one.processed_rest_mass == pytest.approx(
        1, abs=1e-6
    )


def test_a_label_names_a_token_that_added_nothing():
    assert [one.label for one in sky()] == [
        "The",
        " <script>alert(1)</script>",
        "\\xF0\\x9F",
        "🙂",
        "<|im_end|>",
    ]


def test_indexing_works_like_a_list():
    run = sky()
    assert run[-1].index == 4
    assert [one.index for one in run[1:3]] == [1, 2]
    assert len(run) == 5
    with pytest.raises(IndexError, match="step 5 of a trace of 5 steps"):
        run[5]


def test_texts_leave_out_what_was_rolled_back_and_the_prompt_is_decoded_whole():
    run = trace(
        [step(0, 1, "The"), step(1, 3, " sky", kept=False), step(2, 6, " &amp;")], prompt_ids=[8, 9, 3]
    )
    assert run.text == "The &amp;"
    assert run.prompt_text == "🙂 sky"


def test_the_figures_of_a_run_by_hand():
    run = sky()
    # Chosen with 3/4, 1/8, 1/4, 1/8, 1/2: the product is 3/2048 over five tokens.
    assert run.perplexity == pytest.approx((2048 / 3) ** (1 / 5), rel=1e-6)
    assert run.mean_entropy == 1.5
    assert run.ttft_ms == 250
    assert run.tokens_per_second == 4
    assert run.completion_tokens == 4  # the end token is not part of the answer


def test_a_run_without_numbers_says_so_in_its_figures():
    assert math.isnan(plain().perplexity)
    assert math.isnan(plain().mean_entropy)
    assert plain().completion_tokens == 2
    nothing = empty()
    assert (nothing.ttft_ms, nothing.tokens_per_second, nothing.completion_tokens) == (None, None, 0)
    assert math.isnan(nothing.perplexity)


def test_the_repr_is_one_sentence():
    assert repr(sky()) == "<Trace: 5 steps of tiny <model> (torch, float32), perplexity 3.69, ended by stop>"
    assert repr(empty()).endswith("ended by nothing yet>")


def test_speed_needs_two_tokens_and_time_between_them():
    assert speed([2.0, 2.25, 2.5, 3.0]) == 3.0
    assert math.isnan(speed([]))
    assert math.isnan(speed([1.0]))
    assert math.isnan(speed([1.0, 1.0]))


def test_runs_by_hand():
    values = [0.1, 0.1, 0.1, 0.5, 0.1, 0.1, float("nan"), 0.39, 0.0, 0.4, 0.2, 0.1, 0.1, 0.1]
    assert low_runs(values, 0.4) == [(0, 3), (10, 14)]
    assert low_runs(values, 0.4, window=2) == [(0, 3), (4, 6), (7, 9), (10, 14)]
    assert low_runs([], 0.4) == []
    assert low_runs([0.4] * 5, 0.4) == []


@settings(derandomize=True, deadline=None)
@given(st.lists(st.sampled_from([0.1, 0.9, float("nan")]), max_size=30), st.integers(1, 4))
def test_runs_agree_with_counting_one_by_one(values, window):
    expected, start = [], None
    for i, value in enumerate([*values, 1.0]):
        if value < 0.5:
            start = i if start is None else start
        elif start is not None:
            expected += [(start, i)] if i - start >= window else []
            start = None
    assert low_runs(values, 0.5, window) == expected


@settings(derandomize=True, deadline=None)
@given(arrays(np.float32, st.integers(1, 50), elements=st.floats(-20, 0, width=32)))
def test_perplexity_agrees_with_a_float64_product(logprobs):
    expected = math.prod(math.exp(-x) ** (1 / len(logprobs)) for x in logprobs.tolist())
    assert perplexity(logprobs) == pytest.approx(expected, rel=1e-9)


def test_stages_are_in_the_order_of_the_sampler_and_none_means_not_removed():
    assert STAGES == ("", "bias", "greedy", "top_k", "top_p", "min_p")
    assert len(Candidates.none()) == 0
