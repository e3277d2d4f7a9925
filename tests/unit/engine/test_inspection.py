"""What is recorded about a row, against float64 numpy; and the numbers of a step as the loop writes them."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_decoder import ScriptedDecoder

from cartoolkit.engine.inspection import inspect_row
from cartoolkit.engine.writer import Writer
from cartoolkit.requests import GenerateParams

STEADY = settings(derandomize=True, deadline=None, database=None)
INF = math.inf
RAW = (
    "logprob", "rank", "max_prob", "entropy", "varentropy", "margin", "rest_mass",
)  # fmt: skip


@st.composite
def rows(draw, sizes=(1, 2, 3, 50, 1025, 5000)):
    """float32 logits: flat to steep, near zero or far off, with ties and -inf."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    row = rng.normal(0, draw(st.sampled_from([0, 1e-3, 1, 5, 60])), draw(st.sampled_from(sizes)))
    row = row.round(draw(st.sampled_from([0, 1, 9]))) + draw(st.sampled_from([0, -300, 1000]))
    removed = rng.random(len(row)) < draw(st.sampled_from([0, 0.1, 0.95]))
    removed[rng.integers(len(row))] = False
    return np.where(removed, -np.inf, row).astype(np.float32)


def reference(row):
    """log Z, logprobs, entropy and varentropy in float64, each by its definition."""
    x = row.astype(np.float64)
    log_z = x.max() + math.log(math.fsum(np.exp(x - x.max())))
    logprobs = x - log_z
    possible = logprobs[logprobs > -INF]
    probs = np.exp(possible)
    entropy = math.fsum(-probs * possible)
    return log_z, logprobs, entropy, math.fsum(probs * (-possible - entropy) ** 2)


@STEADY
@given(rows(), st.integers(1, 30))
def test_every_number_equals_its_definition_in_float64(row, k):
    log_z, logprobs, entropy, varentropy = reference(row)
    summary = inspect_row(row, k)
    assert summary.log_normaliser == pytest.approx(log_z, abs=1e-5)
    assert summary.entropy == pytest.approx(entropy, abs=1e-5)
    assert summary.varentropy == pytest.approx(varentropy, abs=1e-5)
    np.testing.assert_allclose(summary.logprobs(np.arange(len(row))), logprobs, atol=1e-5)
    best = sorted(np.exp(logprobs), reverse=True)
    assert summary.max_prob == pytest.approx(best[0], abs=1e-6)
    assert summary.margin == pytest.approx(best[0] - (best[1] if len(best) > 1 else 0), abs=1e-6)


@STEADY
@given(rows())
def test_ranks_are_places_in_a_stable_sort(row):
    order = np.argsort(-row, kind="stable").tolist()
    summary = inspect_row(row, 5)
    for token in {0, len(row) // 2, len(row) - 1, *order[:3]}:
        assert summary.rank(token) == order.index(token) + 1


@STEADY
@given(rows(), st.integers(1, 30))
def test_the_top_is_the_head_of_a_stable_sort_without_the_impossible(row, k):
    order = np.argsort(-row, kind="stable")
    possible = order[row[order] > -INF]
    assert inspect_row(row, k).top.tolist() == possible[: max(k, 2)].tolist()


def test_a_coin_has_one_bit_and_no_variance():
    summary = inspect_row(np.array([3.0, 3.0], np.float32), 2)
    assert summary.entropy == pytest.approx(math.log(2))
    assert summary.varentropy == 0
    assert summary.margin == 0
    assert [summary.rank(0), summary.rank(1)] == [1, 2]


def test_entropy_and_varentropy_worked_out_by_hand():
    # 1/2, 1/4, 1/4: surprisals L, 2L, 2L with L = ln 2; mean 3/2 L; mean square (1/2 + 2·1/4·4) L² = 5/2 L²;
    # variance (5/2 - 9/4) L² = 1/4 L².
    summary = inspect_row(np.log([1 / 2, 1 / 4, 1 / 4]).astype(np.float32), 3)
    mean, variance = Fraction(3, 2), Fraction(5, 2) - Fraction(3, 2) ** 2
    assert summary.entropy == pytest.approx(float(mean) * math.log(2), abs=1e-6)
    assert summary.varentropy == pytest.approx(float(variance) * math.log(2) ** 2, abs=1e-6)
    assert summary.margin == pytest.approx(1 / 4, abs=1e-6)


@pytest.mark.parametrize("row", [[0.0], [-1000.0], [5.0, -INF], [-INF, 5.0, -INF]])
def test_one_possible_token_is_certain(row):
    row = np.array(row, np.float32)
    summary, only = inspect_row(row, 3), int(row.argmax())
    assert (summary.entropy, summary.varentropy, summary.max_prob, summary.margin) == (0, 0, 1, 1)
    assert summary.top.tolist() == [only]
    assert summary.rank(only) == 1


@pytest.mark.parametrize("size", [49_152, 152_000, 262_144])
@pytest.mark.parametrize("gap", [3, 5, 8])
def test_sums_over_a_whole_vocabulary_keep_five_digits(size, gap):
    # One token `gap` above size - 1 equal ones; the sums have a closed form.
    row = np.full(size, -gap, np.float32)
    row[7] = 0
    top = 1 / (1 + (size - 1) * math.exp(-gap))
    summary = inspect_row(row, 20)
    assert summary.entropy == pytest.approx((1 - top) * gap - math.log(top), abs=1e-5)
    assert summary.varentropy == pytest.approx(top * (1 - top) * gap**2, abs=1e-5)


@pytest.mark.filterwarnings("error")
def test_masks_at_the_ends_of_float32_are_impossible_tokens():
    row = np.array([1.0, np.finfo(np.float32).min, 1.0, -INF], np.float32)
    assert inspect_row(row, 4).entropy == pytest.approx(math.log(2), abs=1e-6)
    row[0] = np.finfo(np.float32).max
    assert inspect_row(row, 4).entropy == 0


def test_inspection_leaves_the_row_alone():
    row = np.array([1.0, 2.0, -INF], np.float32)
    row.flags.writeable = False
    inspect_row(row, 2)
    assert row.tolist() == [1.0, 2.0, -INF]


# The numbers of a step


def write(row, *, prompt=(0,), last=False, **params):
    """One step of the loop over one row of logits."""
    row = np.asarray(row, np.float32)
    decoder = ScriptedDecoder([b"a%d" % i for i in range(len(row) - 1)], [])
    writer = Writer(decoder, list(prompt), GenerateParams(**params), seed=params.pop("seed", 3))
    assert decoder.info.vocab_size == len(row)
    (step, *_), _ = writer.write(row, elapsed=0.0, last=last)
    return step


def some_settings():
    return st.fixed_dictionaries(
        {
            "temperature": st.sampled_from([0, 0.3, 1, 3]),
            "top_k": st.sampled_from([0, 1, 7, 100]),
            "top_p": st.sampled_from([1, 0.3, 0.9]),
            "min_p": st.sampled_from([0, 0.1]),
            "repeat_penalty": st.sampled_from([1, 1.5]),
            "candidates": st.sampled_from([1, 2, 20, 1000]),
        }
    )


@STEADY
@given(rows(sizes=(2, 3, 50, 1025)), some_settings())
def test_candidates_and_rest_sum_to_one_raw_and_processed(row, params):
    step = write(row, **params)
    for logprobs, rest in [
        (step.candidates.logprobs, step.rest_mass),
        (step.candidates.processed_logprobs, step.processed_rest_mass),
    ]:
        assert math.fsum(np.exp(logprobs.astype(np.float64))) + rest == pytest.approx(1, abs=1e-6)
        assert 0 <= rest <= 1


@STEADY
@given(rows(sizes=(2, 3, 50, 1025)), some_settings(), st.integers(0, 99))
def test_the_chosen_token_is_among_the_candidates_with_its_true_rank(row, params, seed):
    step = write(row, seed=seed, **params)
    chosen = [c for c in step.candidates if c.token_id == step.token_id]
    assert len(chosen) == 1
    assert chosen[0].logprob == pytest.approx(step.logprob)
    assert chosen[0].processed_logprob == pytest.approx(step.processed_logprob)
    assert chosen[0].removed_by == ""
    assert chosen[0].processed_prob > 0
    assert step.rank == np.argsort(-row, kind="stable").tolist().index(step.token_id) + 1


@STEADY
@given(rows(sizes=(2, 50, 1025)), some_settings())
def test_candidates_are_the_likeliest_first_and_as_many_as_asked(row, params):
    step = write(row, **params)
    order = np.argsort(-row, kind="stable")
    head = order[row[order] > -INF][: params["candidates"]].tolist()
    extra = [] if step.token_id in head else [step.token_id]
    assert step.candidates.ids.tolist() == head + extra


@STEADY
@given(rows(sizes=(2, 50, 1025)), some_settings())
def test_a_removed_candidate_has_probability_zero_and_no_other_has(row, params):
    for candidate in write(row, **params).candidates:
        assert (candidate.removed_by != "") == (candidate.processed_logprob == -INF)


@STEADY
@given(rows(sizes=(2, 50, 1025)), some_settings(), some_settings())
def test_raw_numbers_do_not_move_with_the_settings(row, one, other):
    other["candidates"] = one["candidates"]
    a, b = write(row, **one), write(row, **other)
    for name in ("max_prob", "entropy", "varentropy", "margin"):
        assert getattr(a, name) == getattr(b, name)
    raw = [dict(zip(s.candidates.ids.tolist(), s.candidates.logprobs.tolist(), strict=True)) for s in (a, b)]
    assert all(raw[0][i] == raw[1][i] for i in raw[0].keys() & raw[1].keys())
    if a.token_id == b.token_id:
        assert [getattr(a, name) for name in RAW] == [getattr(b, name) for name in RAW]


def test_a_token_chosen_outside_the_recorded_ones_is_added_with_its_rank():
    # Logits 9 … 0; the bias forces the last token, which is tenth of ten.
    step = write(range(9, -1, -1), candidates=3, logit_bias={9: 100}, temperature=1)
    assert step.candidates.ids.tolist() == [0, 1, 2, 9]
    assert (step.token_id, step.rank) == (9, 10)
    probs = np.exp(np.arange(9, -1, -1)) / math.fsum(np.exp(np.arange(10)))
    assert step.rest_mass == pytest.approx(math.fsum(probs[3:9]), abs=1e-6)


def test_without_inspection_only_the_token_is_recorded():
    step = write([0.0, 1.0, 2.0], inspect=False, temperature=0)
    assert (step.token_id, len(step.candidates), step.rank) == (2, 0, 0)
    assert math.isnan(step.entropy)
    assert math.isnan(step.logprob)
