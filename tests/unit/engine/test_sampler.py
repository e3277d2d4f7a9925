"""The sampler's stages: by hand, against plain float64 Python, and against transformers' own processors."""

import importlib
import math
import operator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cartoolkit.engine.sampler import (
    Sampler,
    apply_bias,
    apply_greedy,
    apply_min_p,
    apply_repeat_penalty,
    apply_temperature,
    apply_top_k,
    apply_top_p,
    draw_token,
)
from cartoolkit.errors import InvalidRequest
from cartoolkit.requests import GenerateParams
from cartoolkit.trace import STAGES

STEADY = settings(derandomize=True, deadline=None, database=None)
INF = math.inf
LAST_BELOW_ONE = math.nextafter(1, 0)
NOTHING = {"temperature": 1, "top_p": 1}


def frozen(values) -> np.ndarray:
    row = np.array(values, np.float64)
    row.flags.writeable = False
    return row


def kept(row: np.ndarray) -> list[int]:
    return np.flatnonzero(row > -INF).tolist()


def sampler(*, vocab_size: int, seed: int = 0, **params) -> Sampler:
    return Sampler(GenerateParams(**{**NOTHING, **params}), seed=seed, vocab_size=vocab_size)


def by_likelihood(row) -> list[int]:
    """Ids that are left, likeliest first, the lower id first among equals."""
    return sorted((i for i, x in enumerate(row) if x > -INF), key=lambda i: (-row[i], i))


def probabilities(row) -> list[float]:
    """Softmax in plain float64 Python."""
    top = max(row)
    weights = [math.exp(x - top) if x > -INF else 0.0 for x in row]
    total = math.fsum(weights)
    return [weight / total for weight in weights]


def drawn_with(logits, seen=(), **params) -> list[float]:
    """Probability of every token after all stages."""
    processed = sampler(vocab_size=len(logits), **params).process(np.array(logits, np.float32), seen)
    return np.exp(processed.logprobs(np.arange(len(logits)))).tolist()


def removed_by(logits, **params) -> list[str]:
    processed = sampler(vocab_size=len(logits), **params).process(np.array(logits, np.float32), [])
    return [STAGES[code] for code in processed.removed_by(np.arange(len(logits)))]


@st.composite
def rows(draw, sizes=(1, 2, 3, 30, 63, 65, 600, 1023, 1025, 5000)):
    """float64 rows of float32 logits: flat to steep, near zero or far off, with ties and removed tokens."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    row = rng.normal(0, draw(st.sampled_from([0, 1e-4, 1, 8, 300])), draw(st.sampled_from(sizes)))
    row = row.round(draw(st.sampled_from([0, 1, 9]))) + draw(st.sampled_from([0, -1e4, 1e4, 1e30]))
    removed = rng.random(len(row)) < draw(st.sampled_from([0, 0.1, 0.95]))
    removed[rng.integers(len(row))] = False
    return frozen(np.where(removed, -np.inf, row).astype(np.float32))


# Repeat penalty: Keskar et al. 2019, equation 8, for either sign


def test_the_penalty_divides_positive_logits_and_multiplies_negative_ones():
    row = frozen([3.0, -3.0, 0.0, 3.0, -3.0])
    assert apply_repeat_penalty(row, np.array([0, 1, 2]), 1.5).tolist() == [3 / 1.5, -3 * 1.5, 0, 3, -3]


@STEADY
@given(rows(sizes=(5, 50)), st.lists(st.integers(0, 4), max_size=9), st.floats(0.01, 100))
def test_the_penalty_equals_the_formula_written_out(row, seen, penalty):
    expected = row.tolist()
    for token in set(seen):
        expected[token] = expected[token] / penalty if expected[token] > 0 else expected[token] * penalty
    assert apply_repeat_penalty(row, np.unique(np.array(seen, np.int64)), penalty).tolist() == expected


def test_a_token_seen_twice_is_penalised_once():
    once, twice = (drawn_with([1.0, 1.0], seen=seen, repeat_penalty=2) for seen in ([0], [0, 0, 0]))
    assert once == twice


def test_a_penalty_below_one_makes_seen_tokens_likelier():
    assert drawn_with([1.0, 1.0], seen=[1], repeat_penalty=0.5)[1] > 0.5


def test_a_prompt_without_tokens_is_penalised_nowhere():
    assert drawn_with([0.0, 0.0], seen=[], repeat_penalty=2) == pytest.approx([1 / 2, 1 / 2])


# Bias


def test_bias_is_added_and_minus_infinity_removes():
    assert apply_bias(frozen([1.0, 2.0, 3.0]), {0: 0.25, 2: -INF}).tolist() == [1.25, 2.0, -INF]


def test_a_bias_of_minus_infinity_on_the_last_token_left_is_refused():
    with pytest.raises(InvalidRequest, match="forbids every token"):
        drawn_with([1.0, 2.0, -INF], logit_bias={0: -INF, 1: -INF})


def test_a_bias_on_the_first_id_beyond_the_vocabulary_is_refused_with_the_range():
    with pytest.raises(InvalidRequest, match="names token 4; this model's tokens go from 0 to 3"):
        sampler(vocab_size=4, logit_bias={3: 1.0, 4: 1.0})
    sampler(vocab_size=4, logit_bias={3: 1.0})


@pytest.mark.parametrize("bias", [100, 1e9, 1e100])
def test_a_large_bias_forces_its_token_and_keeps_every_number_finite(bias):
    logits, params = [5.0, -5.0, 1.0], {"temperature": 0.01, "logit_bias": {2: bias}}
    assert drawn_with(logits, **params) == [0, 0, 1]
    assert removed_by(logits, **params) == ["", "", ""]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("penalty", [1e-100, 1e100])
def test_the_strongest_penalties_leave_a_distribution(penalty):
    probs = drawn_with([3.4e38, -3.4e38, 1.0], seen=[0, 1], repeat_penalty=penalty, temperature=1e-5)
    assert sum(probs) == pytest.approx(1)


# Temperature


def test_a_temperature_of_one_half_squares_the_ratios():
    # Odds 3 : 1 become 9 : 1.
    assert drawn_with(np.log([3 / 4, 1 / 4]), temperature=0.5) == pytest.approx([9 / 10, 1 / 10])


def test_a_temperature_of_two_takes_roots_of_the_ratios():
    # Odds 9 : 1 become 3 : 1.
    assert drawn_with(np.log([9 / 10, 1 / 10]), temperature=2) == pytest.approx([3 / 4, 1 / 4])


@pytest.mark.parametrize("temperature", [1e-3, 1e-10, 1e-45, 1e-300, 5e-324])
def test_a_temperature_near_zero_is_greedy_and_removes_nothing(temperature):
    logits = [1.0, 4.0, 3.0, -1e30]
    assert drawn_with(logits, temperature=temperature) == [0, 1, 0, 0]
    assert removed_by(logits, temperature=temperature) == [""] * 4


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("temperature", [1e-2, 1e-40, 5e-324, 1e308])
def test_what_is_not_removed_has_a_logprob_that_float32_can_hold(temperature):
    row = np.array([1.0, 4.0, -3.4e38, -INF], np.float32)
    processed = sampler(vocab_size=4, temperature=temperature, logit_bias={3: -INF}).process(row, [])
    logprobs = processed.logprobs(np.arange(4)).astype(np.float32)
    assert np.isfinite(logprobs[:3]).all()
    assert logprobs[3] == -INF


@pytest.mark.parametrize("temperature", [1e-2, 1e-5, 1e-200])
def test_top_k_after_a_tiny_temperature_still_keeps_the_likeliest(temperature):
    assert kept(apply_top_k(apply_temperature(frozen([1.0, 3.0, 2.0]), temperature), 2)) == [1, 2]


@STEADY
@given(rows(), st.floats(1e-300, 1e300))
def test_temperature_keeps_the_order_and_what_was_removed(row, temperature):
    scaled = apply_temperature(row, temperature)
    assert kept(scaled) == kept(row)
    order = by_likelihood(row.tolist())
    assert all(a >= b for a, b in zip(scaled[order], scaled[order][1:], strict=False))


# Greedy


def test_greedy_gives_ties_to_the_lower_id():
    assert kept(apply_greedy(frozen([1.0, 3.0, 3.0]))) == [1]


@STEADY
@given(rows())
def test_greedy_is_the_likeliest_token_for_any_draw(row):
    params = {"temperature": 0, "top_k": 3, "top_p": 0.5, "min_p": 0.1}
    s = sampler(vocab_size=len(row), **params)
    token, _ = s.draw(s.process(row.astype(np.float32), []))
    assert token == by_likelihood(row.tolist())[0]


def test_greedy_uses_up_a_draw():
    greedy, warm = sampler(vocab_size=2, temperature=0), sampler(vocab_size=2)
    row = np.array([0.0, 1.0], np.float32)
    numbers = [[s.draw(s.process(row, []))[1] for _ in range(5)] for s in (greedy, warm)]
    assert numbers[0] == numbers[1]
    assert len(set(numbers[0])) == 5


# Top-k: Fan et al. 2018


@STEADY
@given(rows(), st.integers(1, 6000))
def test_top_k_keeps_exactly_k(row, k):
    assert len(kept(apply_top_k(row, k))) == min(k, len(kept(row)))


@STEADY
@given(rows(), st.integers(1, 6000))
def test_top_k_keeps_the_likeliest_and_lower_ids_among_equals(row, k):
    survivors = apply_top_k(row, k)
    assert kept(survivors) == sorted(by_likelihood(row.tolist())[:k])
    assert survivors[kept(survivors)].tolist() == row[kept(survivors)].tolist()


# Top-p: Holtzman et al. 2020


def test_the_nucleus_keeps_the_token_that_crosses_p():
    row = frozen(np.log([1 / 2, 1 / 4, 1 / 8, 1 / 8]))
    assert kept(apply_top_p(row, 0.6)) == [0, 1]  # 1/2 < 0.6 ≤ 3/4
    assert kept(apply_top_p(row, 0.8)) == [0, 1, 2]  # 3/4 < 0.8 ≤ 7/8
    assert kept(apply_top_p(row, 0.9)) == [0, 1, 2, 3]


def test_a_nucleus_that_is_reached_exactly_is_not_crossed():
    row = frozen([7.0, 7.0, 7.0, 7.0])  # 1/4 each, without rounding
    assert [kept(apply_top_p(row, p)) for p in (1 / 4, 1 / 2, 3 / 4)] == [[0], [0, 1], [0, 1, 2]]


@STEADY
@given(rows(), st.floats(1e-6, 1, exclude_max=True))
def test_the_nucleus_is_a_head_of_the_order_reaches_p_and_is_minimal(row, p):
    survivors = kept(apply_top_p(row, p))
    order = by_likelihood(row.tolist())
    assert survivors == sorted(order[: len(survivors)])
    probs = probabilities(row.tolist())
    assert math.fsum(probs[i] for i in survivors) >= p - 1e-9
    assert math.fsum(probs[i] for i in order[: len(survivors) - 1]) < p + 1e-9


def test_a_tiny_p_keeps_one_token():
    assert kept(apply_top_p(frozen([1.0, 1.0, 0.0]), 1e-300)) == [0]


@pytest.mark.parametrize("n", [64, 65, 1024, 1025, 4000])
def test_a_flat_nucleus_is_as_long_as_p_asks(n):
    # n equal tokens of mass 1/n: half of the mass takes half of them.
    assert len(kept(apply_top_p(np.zeros(n), 0.5 - 1 / (4 * n)))) == math.ceil(n / 2)


# Min-p: Nguyen et al. 2024


def test_min_p_compares_with_the_likeliest():
    # The bar is 1/4 of 1/2: 1/8 stays, 1/16 goes.
    row = frozen([math.log(2) * x for x in (-1, -2, -3, -4, -4)])
    assert kept(apply_min_p(row, 0.24)) == [0, 1, 2]
    assert kept(apply_min_p(row, 0.26)) == [0, 1]


def test_min_p_of_one_keeps_every_token_as_likely_as_the_likeliest():
    assert kept(apply_min_p(frozen([2.0, 1.0, 2.0]), 1)) == [0, 2]


@STEADY
@given(rows(), st.floats(1e-6, 1))
def test_min_p_drops_what_is_below_its_share_of_the_likeliest(row, min_p):
    survivors = set(kept(apply_min_p(row, min_p)))
    top = max(row)
    for i in kept(row):
        share = math.exp(row[i] - top)
        if abs(share - min_p) > 1e-9:
            assert (i in survivors) == (share > min_p)


# The same as transformers, on rows without ties

SEEDS = range(8)


def transformers_result(processor, row, seen=()):
    import torch

    scores = torch.tensor(row, dtype=torch.float64)[None]
    return processor(torch.tensor([list(seen)], dtype=torch.long), scores)[0].numpy()


def steep_row(seed: int) -> np.ndarray:
    return frozen(np.random.default_rng(seed).normal(0, 3, 2000))


@pytest.mark.parametrize("seed", SEEDS)
def test_stages_equal_those_of_transformers(seed):
    processors = importlib.import_module("transformers.generation.logits_process")
    row, seen = steep_row(seed), np.array([3, 5, 8, 1999])
    for mine, theirs in [
        (apply_top_k(row, 40), processors.TopKLogitsWarper(40)),
        (apply_top_p(row, 0.9), processors.TopPLogitsWarper(0.9)),
        (apply_top_p(row, 0.999), processors.TopPLogitsWarper(0.999)),
        (apply_min_p(row, 0.05), processors.MinPLogitsWarper(0.05)),
        (apply_temperature(row, 0.7), processors.TemperatureLogitsWarper(0.7)),
        (apply_repeat_penalty(row, seen, 1.3), processors.RepetitionPenaltyLogitsProcessor(1.3)),
    ]:
        expected = transformers_result(theirs, row, seen)
        assert kept(mine) == kept(expected)
        np.testing.assert_allclose(mine, expected, rtol=1e-12)


# Stages are pure


@pytest.mark.parametrize(
    "stage",
    [
        lambda row: apply_repeat_penalty(row, np.array([0, 2]), 1.5),
        lambda row: apply_bias(row, {0: -INF, 1: 3.0}),
        lambda row: apply_temperature(row, 0.7),
        lambda row: apply_temperature(row, 1e-5),
        apply_greedy,
        lambda row: apply_top_k(row, 2),
        lambda row: apply_top_p(row, 0.5),
        lambda row: apply_min_p(row, 0.5),
    ],
    ids=["penalty", "bias", "temperature", "cold", "greedy", "top_k", "top_p", "min_p"],
)
def test_a_stage_leaves_its_input_alone_and_returns_a_new_row(stage):
    row = frozen([1.0, 2.0, -1.0, -INF])
    result = stage(row)
    assert row.tolist() == [1.0, 2.0, -1.0, -INF]
    assert not np.shares_memory(result, row)
    assert result[3] == -INF


def test_processing_leaves_the_raw_logits_alone():
    row = np.array([1.0, 2.0, -1.0], np.float32)
    row.flags.writeable = False
    params = {"repeat_penalty": 1.2, "logit_bias": {0: 1}, "temperature": 0.5, "top_k": 2, "min_p": 0.1}
    sampler(vocab_size=3, top_p=0.8, **params).process(row, [0, 1])
    assert row.tolist() == [1.0, 2.0, -1.0]


# The whole chain


L = math.log(2)
CHAIN = {
    "repeat_penalty": 2, "logit_bias": {2: 2 * L}, "temperature": 0.5, "top_k": 3, "top_p": 0.8,
}  # fmt: skip


def test_the_chain_worked_out_by_hand():
    # Exponents of two: raw 2, 1, 0, -1. Penalty 2 on tokens 0 and 3: 1, 1, 0, -2. Bias: 1, 1, 2, -2.
    # Temperature 1/2 doubles: 2, 2, 4, -4. Top-k 3 drops token 3. Weights 4, 4, 16 of 24 are 1/6, 1/6, 2/3.
    # Top-p 0.8: 2/3 + 1/6 = 5/6 crosses, tokens 2 and 0 stay: 4 of 20 and 16 of 20.
    expected = [Fraction(4, 20), 0, Fraction(16, 20), 0]
    assert drawn_with([2 * L, L, 0, -L], seen=[0, 3], **CHAIN) == pytest.approx([float(x) for x in expected])


def test_the_last_stage_of_the_chain_sees_what_the_others_left():
    # As above: 1/5 is a quarter of 4/5, so the bar is put on either side of a quarter.
    logits = [2 * L, L, 0, -L]
    stays, goes = (drawn_with(logits, seen=[0, 3], min_p=bar, **CHAIN) for bar in (0.24, 0.26))
    assert stays == pytest.approx([1 / 5, 0, 4 / 5, 0])
    assert goes == [0, 0, 1, 0]


def test_each_candidate_names_the_stage_that_removed_it():
    processed = sampler(vocab_size=4, min_p=0.26, **CHAIN).process(
        np.array([2 * L, L, 0, -L], np.float32), [0, 3]
    )
    assert [STAGES[i] for i in processed.removed_by(np.arange(4))] == ["min_p", "top_p", "", "top_k"]
    assert [STAGES[i] for i in processed.removed_by(np.array([2, 1]))] == ["", "top_p"]


def test_greedy_and_bias_are_named_too():
    assert removed_by([1.0, 3.0, 2.0], temperature=0) == ["greedy", "", "greedy"]
    assert removed_by([1.0, 3.0, 2.0], logit_bias={1: -INF}) == ["", "bias", ""]
    assert removed_by([1.0, 3.0, 2.0], logit_bias={1: -INF}, temperature=0) == ["greedy", "bias", ""]


def test_without_settings_the_processed_distribution_is_the_raw_one():
    row = steep_row(0).astype(np.float32)
    assert drawn_with(row) == pytest.approx(probabilities(row.astype(np.float64).tolist()), rel=1e-9)


def nucleus_of(row, p):
    ids, mass = set(), 0.0
    probs = probabilities(row)
    for i in by_likelihood(row):
        ids.add(i)
        mass = math.fsum([mass, probs[i]])
        assume(abs(mass - p) > 1e-9 or p == 1)
        if mass >= p and p < 1:
            break
    return ids


def reference(row, seen, params):
    """The chain in plain Python: the stage that removed each token, and the probability of each."""
    row = [float(x) for x in row]
    gone = {}

    def keep(survivors, stage):
        for i, x in enumerate(row):
            if i not in survivors and x > -INF:
                row[i], gone[i] = -INF, stage

    for i in set(seen):
        row[i] = row[i] / params["repeat_penalty"] if row[i] > 0 else row[i] * params["repeat_penalty"]
    for i, bias in params["logit_bias"].items():
        if bias == -INF:
            keep(set(range(len(row))) - {i}, "bias")
        else:
            row[i] += bias
    assume(max(row) > -INF)
    if params["temperature"] == 0:
        keep(set(by_likelihood(row)[:1]), "greedy")
        return gone, probabilities(row)
    row = [x / params["temperature"] for x in row]
    if params["top_k"]:
        keep(set(by_likelihood(row)[: params["top_k"]]), "top_k")
    keep(nucleus_of(row, params["top_p"]), "top_p")
    probs = probabilities(row)
    bar = params["min_p"] * max(probs)
    assume(all(abs(p - bar) > 1e-12 or p == max(probs) for p in probs))
    keep({i for i, p in enumerate(probs) if p >= bar}, "min_p")
    return gone, probabilities(row)


def some_params(size: int):
    ids = st.integers(0, size - 1)
    return st.fixed_dictionaries(
        {
            "repeat_penalty": st.sampled_from([1, 0.8, 1.3]),
            "logit_bias": st.dictionaries(ids, st.sampled_from([-INF, -2.5, 7.0]), max_size=2),
            "temperature": st.sampled_from([0, 0.3, 1, 1.7]),
            "top_k": st.sampled_from([0, 1, 3, 20, 100]),
            "top_p": st.sampled_from([1, 0.35, 0.87]),
            "min_p": st.sampled_from([0, 0.02, 0.4]),
        }
    )


@settings(STEADY, max_examples=150)
@given(st.data(), rows(sizes=(1, 2, 4, 40)))
def test_the_chain_equals_plain_python(data, row):
    params = data.draw(some_params(len(row)))
    seen = data.draw(st.lists(st.integers(0, len(row) - 1), max_size=4))
    gone, probs = reference(row, seen, params)
    processed = sampler(vocab_size=len(row), **params).process(row.astype(np.float32), seen)
    ids = np.array(sorted({*gone, *kept(processed.logits)}))
    assert [STAGES[c] for c in processed.removed_by(ids)] == [gone.get(i, "") for i in ids]
    np.testing.assert_allclose(np.exp(processed.logprobs(np.arange(len(row)))), probs, rtol=1e-9, atol=1e-12)


@STEADY
@given(st.data(), rows())
def test_processed_probabilities_sum_to_one_and_the_drawn_token_has_one(data, row):
    params = data.draw(some_params(len(row)))
    assume(not params["logit_bias"])
    s = sampler(vocab_size=len(row), **params)
    processed = s.process(row.astype(np.float32), [])
    logprobs = processed.logprobs(np.arange(len(row)))
    assert math.fsum(np.exp(logprobs)) == pytest.approx(1, abs=1e-9)
    assert np.exp(logprobs[s.draw(processed)[0]]) > 0


# Drawing


def test_each_token_has_its_stretch_likeliest_first_and_closed_below():
    row = frozen([5.0, 5.0, 5.0, 5.0])  # 1/4 each, without rounding
    cases = {0.0: 0, 0.2499: 0, 0.25: 1, 0.4999: 1, 0.5: 2, 0.75: 3, LAST_BELOW_ONE: 3}
    assert {u: draw_token(row, u) for u in cases} == cases


def test_the_first_stretch_belongs_to_the_likeliest_not_to_the_first_id():
    row = frozen(np.log([1 / 8, 1 / 8, 1 / 2, 1 / 4]))
    assert [draw_token(row, u) for u in (0.0, 0.49, 0.51, 0.74, 0.76, 0.87, 0.88)] == [2, 2, 3, 3, 0, 0, 1]


def test_frequencies_over_a_grid_are_the_probabilities():
    row = frozen(np.log([1 / 8, 1 / 2, 1 / 4, 1 / 8]))
    drawn = [draw_token(row, (i + 0.5) / 1024) for i in range(1024)]
    assert np.bincount(drawn).tolist() == [128, 512, 256, 128]


@settings(STEADY, max_examples=30)
@given(rows(sizes=(3, 70, 1100)))
def test_frequencies_over_a_grid_equal_the_probabilities_of_any_row(row):
    n = 2000
    counts = np.bincount([draw_token(row, (i + 0.5) / n) for i in range(n)], minlength=len(row))
    # A stretch of length p holds between np - 1 and np + 1 points of the grid.
    assert np.abs(counts - n * np.array(probabilities(row.tolist()))).max() <= 1 + 1e-6


@STEADY
@given(rows(), st.floats(0, 1, exclude_max=True))
def test_the_draw_falls_into_its_token_s_stretch(row, u):
    token = draw_token(row, u)
    order, probs = by_likelihood(row.tolist()), probabilities(row.tolist())
    before = math.fsum(probs[i] for i in order[: order.index(token)])
    assert before - 1e-9 <= u <= before + probs[token] + 1e-9


@STEADY
@given(rows())
def test_the_ends_of_the_interval_are_drawn_from(row):
    assert draw_token(row, 0.0) == by_likelihood(row.tolist())[0]
    assert probabilities(row.tolist())[draw_token(row, LAST_BELOW_ONE)] > 0


def test_a_sum_that_ends_below_one_never_draws_an_impossible_token():
    # Ten times 0.1 adds up to 0.9999999999999999 in float64; the eleventh token has exp(-800) = 0.
    assert math.exp(-800) == 0
    assert draw_token(frozen([0.0] * 10 + [-800.0]), LAST_BELOW_ONE) == 9


def test_the_stream_of_draws_is_numpy_s_pcg64():
    # The first number of seed 12345 stands in numpy's manual, "Random Generator".
    s = sampler(vocab_size=1, seed=12345)
    assert s.draw(s.process(np.zeros(1, np.float32), []))[1] == 0.22733602246716966


def tokens(rows_, **params):
    s = sampler(vocab_size=rows_.shape[1], **params)
    return [s.draw(s.process(row, [])) for row in rows_]


def test_the_same_seed_gives_the_same_tokens_bit_for_bit_and_another_seed_others():
    many = np.random.default_rng(1).normal(0, 2, (100, 300)).astype(np.float32)
    settings_ = {"temperature": 0.8, "top_p": 0.9}
    assert tokens(many, seed=7, **settings_) == tokens(many, seed=7, **settings_)
    assert tokens(many, seed=7, **settings_) != tokens(many, seed=8, **settings_)


def test_other_settings_share_the_draws():
    many = np.random.default_rng(1).normal(0, 2, (50, 30)).astype(np.float32)
    runs = [{"temperature": 0.2}, {"temperature": 2, "top_k": 3}, {"temperature": 0}, {"logit_bias": {3: 4}}]
    draws = [list(map(operator.itemgetter(1), tokens(many, seed=3, **run))) for run in runs]
    assert all(each == draws[0] for each in draws)


@pytest.mark.parametrize("seed", [0, 2**63 - 1])
def test_the_smallest_and_the_largest_seed_work(seed):
    assert 0 <= tokens(np.zeros((1, 2), np.float32), seed=seed)[0][1] < 1
