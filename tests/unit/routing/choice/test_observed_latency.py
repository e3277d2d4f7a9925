"""What earlier answers took: counted from a ledger, joined to the row's figures by hand, and shown."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_rows import local, remote, row
from pydantic import ValidationError

from cartoolkit.errors import InvalidRequest
from cartoolkit.routing.choice.decision import weigh
from cartoolkit.routing.choice.filters import refusals
from cartoolkit.routing.choice.intent import PROFILES, plan
from cartoolkit.routing.choice.latency import expected_latency
from cartoolkit.routing.choice.scores import score
from cartoolkit.routing.choice.situation import NO_EVIDENCE, Demand, Evidence, Machine
from cartoolkit.routing.outcomes.records import Completion, OutcomeTracker
from cartoolkit.routing.rows.registry import Registry

STEADY = settings(derandomize=True, deadline=None, database=None, max_examples=80)
DEMAND = Demand(prompt_tokens=1_000, output_tokens=500)
READS = {"ttft_ms": 100, "prefill_tokens_per_second": 2_000, "tokens_per_second": 50}


def expected(model, evidence, demand=DEMAND, machine=None, *, first_token=True):
    machine = machine or Machine(loaded=frozenset([model.id]))
    return expected_latency(model, demand, machine, first_token=first_token, evidence=evidence)


def answered(trace_id, **about):
    given = {"trace_id": trace_id, "model_id": "acme/large", "task": "chat", "time": 1.0}
    return Completion(**given | about)


def evidence_of(*rows):
    return Evidence.of(OutcomeTracker.replay(rows).profile("acme/large").total)


# -- counting --------------------------------------------------------------------------------------


def test_answers_whose_first_token_was_timed_are_evidence():
    seen = evidence_of(
        answered("a", latency_ms=1_200, ttft_ms=200, prompt_tokens=100, completion_tokens=11),
        answered("b", latency_ms=5_400, ttft_ms=400, prompt_tokens=300, completion_tokens=91),
    )
    assert (seen.ttft_ms, seen.started, seen.prompt_tokens) == (300, 2, 200)
    # 1,000 ms for the 10 tokens after the first, 5,000 ms for 90.
    assert (seen.ms_per_token, seen.paced) == (60, 2)


def test_only_recent_answers_are_timed_so_a_slow_hour_is_forgotten():
    slow = [answered(f"s{n}", ttft_ms=9_000, prompt_tokens=10) for n in range(500)]
    soon = [answered(f"q{n}", ttft_ms=100, prompt_tokens=10) for n in range(50)]
    seen = evidence_of(*slow, *soon[:49])
    assert (seen.ttft_ms, seen.started) == ((49 * 100 + 9_000) / 50, 50)
    assert evidence_of(*slow, *soon).ttft_ms == 100


def test_tokens_that_lay_in_a_cache_are_no_part_of_what_was_read():
    # Else a second turn would look as if a long prompt took no time.
    seen = evidence_of(answered("a", ttft_ms=50, prompt_tokens=1_000, cached_tokens=960))
    assert (seen.ttft_ms, seen.prompt_tokens) == (50, 40)


def test_what_cannot_be_divided_says_nothing():
    seen = evidence_of(
        answered("untimed", latency_ms=900, prompt_tokens=100, completion_tokens=10),
        answered("one-token", latency_ms=200, ttft_ms=200, prompt_tokens=100, completion_tokens=1),
        answered("no-length", latency_ms=200, ttft_ms=100),
        answered("failed", latency_ms=9, ttft_ms=8, prompt_tokens=1, completion_tokens=9, outcome="failure",
                 reason="error"),
    )  # fmt: skip
    assert (seen.ttft_ms, seen.started) == (200, 1)
    assert (seen.ms_per_token, seen.paced) == (None, 0)


def test_a_row_of_an_older_ledger_is_still_read():
    line = (
        '{"kind":"completion","trace_id":"a","model_id":"acme/large","task":"chat","time":1,"latency_ms":9}'
    )
    old = Completion.model_validate_json(line)
    assert (old.ttft_ms, old.latency_ms) == (None, 9)
    with pytest.raises(ValidationError, match="ttft_ms 20 is above latency_ms 10"):
        answered("a", latency_ms=10, ttft_ms=20)


def test_impossible_times_are_refused():
    with pytest.raises(InvalidRequest, match=r"ms_per_token must be a number of at least 0; got -1"):
        Evidence(ms_per_token=-1)


# -- joining ---------------------------------------------------------------------------------------


def test_a_declared_figure_counts_as_five_answers():
    found = expected(remote(ttft=400), Evidence(ttft_ms=300, started=20))
    assert (found.ms, found.basis) == (320, "measured")  # (5 × 400 + 20 × 300) / 25
    assert expected(remote(ttft=400), Evidence(ttft_ms=300, started=5)).basis == "declared"


def test_an_assumed_figure_counts_as_one():
    found = expected(row(), Evidence(ttft_ms=200, started=3))
    assert (found.ms, found.basis) == (400, "measured")  # (1,000 + 3 × 200) / 4


def test_a_measured_figure_counts_as_often_as_it_was_measured():
    model = remote(ttft={"value": 400, "basis": "measured", "n": 60})
    assert expected(model, Evidence(ttft_ms=300, started=20)).ms == 375  # (60 × 400 + 20 × 300) / 80


def test_the_pace_counts_for_the_length_of_the_answer():
    seen = Evidence(ms_per_token=20, paced=15)
    # 500 tokens: 5,000 ms by the row, 10,000 as observed; (5 × 5,000 + 15 × 10,000) / 20, and 400 before.
    assert expected(remote(), seen, first_token=False).ms == 400 + 8_750
    assert expected(remote(), seen).ms == 400


def test_a_longer_prompt_than_those_observed_adds_what_the_row_says():
    # The row: 100 + 500. Observed on 600 tokens: 240, and 400 tokens more at 2,000 a second: 440.
    seen = Evidence(ttft_ms=240, started=5, prompt_tokens=600)
    assert expected(row(performance=READS), seen).ms == 520


def test_a_shorter_prompt_than_those_observed_takes_a_part_of_their_time():
    # 2,000 × (128 + 1,000) / (128 + 4,384) = 500, and the row's 600.
    seen = Evidence(ttft_ms=2_000, started=5, prompt_tokens=4_384)
    assert expected(row(performance=READS), seen).ms == 550


def test_where_the_row_knows_no_reading_speed_the_prompts_length_tells_nothing():
    seen = [Evidence(ttft_ms=300, started=5, prompt_tokens=p) for p in (10, 1_000, 9_000)]
    assert {expected(remote(ttft=500), each).ms for each in seen} == {400}


def test_loading_comes_before_what_was_observed():
    model = local(ttft=400, load=1_000)
    assert expected(model, Evidence(ttft_ms=400, started=9), machine=Machine()).ms == 1_400


def test_an_observed_time_changes_the_choice():
    # Twins by their rows; one turned out to be five times slower.
    twins = Registry([remote("acme/a"), remote("acme/b")])
    slow = {"acme/a": Evidence(ttft_ms=2_000, started=20, ms_per_token=50, paced=20)}
    assert weigh(twins, plan(twins), DEMAND).model_id == "acme/a"
    assert weigh(twins, plan(twins), DEMAND, evidence=slow).model_id == "acme/b"


def test_the_filter_believes_what_was_observed():
    model, asked = remote(), replace(DEMAND, max_latency_ms=6_000)
    slow = Evidence(ms_per_token=20, paced=15)
    wanted = plan(Registry([model]))
    assert refusals(model, wanted, asked, Machine()) == ()
    (refused,) = refusals(model, wanted, asked, Machine(), slow)
    assert refused.reason == (
        "expected to take 9,150 ms (first token 400 declared + answer (5 × 5,000 declared + 15 × 10,000 "
        "observed) / 20; 10,000 = 500 × 20), and at most 6,000 ms are allowed"
    )
    (by_decision,) = weigh([model], wanted, asked, evidence={model.id: slow}).candidates
    assert by_decision.refused == (refused,)


# -- showing ---------------------------------------------------------------------------------------

COUNTS = st.integers(0, 200)
TIMES = st.floats(0.1, 1e5)
SPEEDS = st.floats(0.1, 1e4)
TOKENS = st.integers(1, 20_000)
KINDS = st.sampled_from(["remote_api", "folder", "local_server"])
WORKLOAD = st.sampled_from(sorted(PROFILES))
SEEN = st.builds(
    Evidence,
    ttft_ms=st.none() | TIMES,
    started=COUNTS,
    prompt_tokens=st.none() | st.floats(0, 20_000),
    ms_per_token=st.none() | st.floats(0.01, 1e4),
    paced=COUNTS,
)
FIGURES = st.fixed_dictionaries(
    {},
    optional={
        "ttft_ms": TIMES,
        "load_ms": TIMES,
        "prefill_tokens_per_second": SPEEDS,
        "tokens_per_second": SPEEDS,
        "latency_p50_ms": TIMES,
    },
)
DEMANDS = st.builds(Demand, prompt_tokens=TOKENS, output_tokens=TOKENS)


def computed(sum_in_words):
    plain = re.sub(r"[A-Za-z]+", "", sum_in_words.replace("×", "*").replace(",", ""))
    assert re.fullmatch(r"[\d\s.()+*/e-]+", plain), plain
    return eval(plain)


def test_the_line_shows_where_an_observed_time_comes_from():
    seen = Evidence(ttft_ms=240, started=20, prompt_tokens=600, ms_per_token=12.5, paced=20)
    found = score(row(performance=READS), PROFILES["interactive"], DEMAND, evidence=seen).latency
    assert found.arithmetic == (
        "5,000 / (5,000 + 7,472) [first token (5 × 600 declared + 20 × 440 observed) / 25 + "
        "answer (5 × 10,000 declared + 20 × 6,250 observed) / 25; "
        "440 = 240 + 1,000 × 400 more tokens / 2,000; 6,250 = 500 × 12.5]"
    )
    assert found.value == pytest.approx(5_000 / 12_472)


@STEADY
@given(FIGURES, KINDS, DEMANDS, SEEN, WORKLOAD)
def test_every_shown_time_can_be_computed_by_hand(figures, kind, demand, seen, workload):
    found = score(row(kind=kind, performance=figures), PROFILES[workload], demand, evidence=seen)
    whole, notes = found.latency.arithmetic.removesuffix("]").split(" [")
    parts, *reckoned = notes.split("; ")
    assert computed(whole) == pytest.approx(found.latency.value, rel=1e-2, abs=1e-3)
    assert computed(parts) == pytest.approx(found.latency_ms, rel=1e-2, abs=0.5)
    for note in reckoned:
        result, terms = note.split(" = ")
        assert f" × {result} observed" in parts
        assert computed(terms) == pytest.approx(computed(result), rel=1e-2, abs=0.5)


# -- never the wrong way ---------------------------------------------------------------------------


def total(figures, kind, demand, seen, workload):
    return score(row(kind=kind, performance=figures), PROFILES[workload], demand, evidence=seen).total


@STEADY
@given(FIGURES, KINDS, DEMANDS, SEEN, WORKLOAD, TIMES, TIMES, st.sampled_from(["ttft_ms", "ms_per_token"]))
def test_a_slower_observation_never_raises_a_score(figures, kind, demand, seen, workload, one, other, name):
    soon, late = (
        total(figures, kind, demand, replace(seen, **{name: ms}), workload) for ms in sorted((one, other))
    )
    assert late <= soon + 1e-12


@STEADY
@given(FIGURES, KINDS, DEMANDS, SEEN, WORKLOAD, TIMES, TIMES, st.sampled_from(["ttft_ms", "load_ms"]))
def test_whatever_was_observed_a_later_row_never_scores_more(
    figures, kind, demand, seen, workload, one, other, name
):
    soon, late = (total(figures | {name: ms}, kind, demand, seen, workload) for ms in sorted((one, other)))
    assert late <= soon + 1e-12


@STEADY
@given(
    FIGURES, KINDS, DEMANDS, SEEN, WORKLOAD, SPEEDS, SPEEDS,
    st.sampled_from(["prefill_tokens_per_second", "tokens_per_second"]),
)  # fmt: skip
def test_whatever_was_observed_a_slower_row_never_scores_more(
    figures, kind, demand, seen, workload, one, other, name
):
    slow, fast = (total(figures | {name: s}, kind, demand, seen, workload) for s in sorted((one, other)))
    assert slow <= fast + 1e-12


@STEADY
@given(FIGURES, KINDS, SEEN, TOKENS, TOKENS, st.booleans(), st.sampled_from(["prompt", "output"]))
def test_longer_texts_are_never_expected_sooner(figures, kind, seen, one, other, first_token, name):
    model, (short, long) = row(kind=kind, performance=figures), sorted((one, other))
    times = [
        expected(model, seen, Demand(**{f"{name}_tokens": n}), first_token=first_token).ms
        for n in (short, long)
    ]
    assert times[0] <= times[1] * (1 + 1e-12)


@STEADY
@given(FIGURES, KINDS, DEMANDS, WORKLOAD, COUNTS, COUNTS)
def test_outcomes_without_times_change_no_time(figures, kind, demand, workload, successes, failures):
    model = row(kind=kind, performance=figures)
    seen = Evidence(successes=successes, failures=failures)
    one, other = (
        score(model, PROFILES[workload], demand, evidence=each).latency for each in (NO_EVIDENCE, seen)
    )
    assert one == other
    assert "observed" not in one.arithmetic
