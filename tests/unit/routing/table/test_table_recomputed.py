"""Whatever the rows are like, every number of the table follows from what the table shows beside it."""

import math
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_rows import row

from cartoolkit.intents import CAPABILITIES, TASKS
from cartoolkit.routing.choice.decision import weigh
from cartoolkit.routing.choice.intent import PROFILES, Plan, Profile
from cartoolkit.routing.choice.selection import Deterministic, Thompson
from cartoolkit.routing.choice.situation import Demand, Evidence, Machine

STEADY = settings(derandomize=True, deadline=None, database=None, max_examples=25)

SHARES = st.floats(0, 1)
RATES = st.none() | st.floats(0, 200)
TIMES = st.floats(0.1, 1e5)
SPEEDS = st.floats(0.1, 1e4)
TOKENS = st.integers(1, 50_000)
COUNTS = st.integers(0, 60)


def some(**fields):
    """Some of the fields, each with a value of its own."""
    return st.fixed_dictionaries({}, optional=fields)


def figure(values):
    about = {"value": values, "basis": st.sampled_from(["measured", "declared", "assumed"])}
    return st.fixed_dictionaries(about, optional={"n": st.integers(1, 300)})


RATE_FIELDS = {
    "input_per_mtok": RATES,
    "output_per_mtok": RATES,
    "cache_read_input_per_mtok": RATES,
}
TIERS = st.lists(
    st.fixed_dictionaries({"min_prompt_tokens": st.integers(0, 60_000)}, optional=RATE_FIELDS),
    max_size=2,
    unique_by=lambda tier: tier["min_prompt_tokens"],
)
ROWS = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["remote_api", "folder", "local_server", "hub"]),
        "cost": some(**RATE_FIELDS, pricing_tiers=TIERS, size_mb=figure(TIMES)),
        "performance": some(
            ttft_ms=figure(TIMES),
            latency_p50_ms=figure(TIMES),
            load_ms=figure(TIMES),
            prefill_tokens_per_second=figure(SPEEDS),
            tokens_per_second=figure(SPEEDS),
        ),
        "benchmarks": st.lists(st.fixed_dictionaries({"name": st.just("exam"), "score": SHARES}), max_size=3),
        "capabilities": st.sets(st.sampled_from(CAPABILITIES), max_size=4).map(
            lambda more: ["generate", *sorted(more - {"generate"})]
        ),
        "weights_ready": st.booleans(),
        "downloads_weights": st.booleans(),
    },
    optional={"quality": figure(SHARES)},
)
SEEN = st.builds(
    Evidence,
    successes=COUNTS,
    failures=COUNTS,
    quality=st.none() | SHARES,
    graded=COUNTS,
    ttft_ms=st.none() | TIMES,
    started=COUNTS,
    prompt_tokens=st.none() | st.floats(0, 60_000),
    ms_per_token=st.none() | st.floats(0.01, 1e3),
    paced=COUNTS,
)


@st.composite
def profiles(draw):
    """One of ours, or weights of the caller's own."""
    if draw(st.booleans()):
        return draw(st.sampled_from(sorted(PROFILES.values(), key=lambda each: each.name)))
    parts = [draw(st.integers(0, 100)) for _ in range(3)]
    whole = sum(parts) or 1
    quality, latency = (part / whole for part in parts[:2])
    rest = 1 - quality - latency
    return Profile("mine", quality, latency, max(rest, 0.0), draw(SHARES), first_token=draw(st.booleans()))


@st.composite
def decisions(draw):
    """A decision over a few rows of which anything may be known or not, with its prior strength."""
    given = draw(st.lists(ROWS, min_size=1, max_size=3))
    models = [row(f"any/m{number}", **fields) for number, fields in enumerate(given)]
    demand = Demand(draw(TOKENS), draw(TOKENS), cached_tokens=draw(TOKENS))
    loaded = frozenset(model.id for model in models if draw(st.booleans()))
    strength = draw(st.floats(0.01, 50))
    strategy = draw(st.sampled_from([Deterministic(strength), Thompson(3, strength)]))
    decision = weigh(
        models,
        Plan(draw(profiles()), draw(st.sampled_from(TASKS))),
        demand,
        machine=Machine(loaded=loaded),
        evidence={model.id: draw(SEEN) for model in models},
        strategy=strategy,
    )
    return decision, strength


def computed(words):
    """The number that a line gives, its words and notes left out."""
    plain = re.sub(r"\[.*?\]", "", words).replace("×", "*").replace(",", "").replace("$", "")
    plain = re.sub(r"\bwithout \w+", "", plain)
    plain = re.sub(r"(?<![\d.])[A-Za-z_]\w*|per million", "", plain)
    assert re.fullmatch(r"[\d\s.()+*/e-]+", plain), plain
    return eval(plain)


def notes(words):
    return re.search(r"\[(.*)\]", words)[1]


def lines(decision):
    frame = decision.to_frame()
    return [line for _, line in frame[frame["filtered"] == ""].iterrows()]


@STEADY
@given(decisions())
def test_the_score_is_what_its_terms_come_to(made):
    decision, _ = made
    for line in lines(decision):
        total = sum(line[f"{name}_weight"] * line[name] for name in ("quality", "latency", "cost"))
        assert line["score"] == pytest.approx(total + line["local_bonus"])


@STEADY
@given(decisions())
def test_a_term_is_what_its_line_comes_to(made):
    decision, _ = made
    for line in lines(decision):
        for name in ("quality", "latency", "cost"):
            assert computed(line[f"{name}_from"]) == pytest.approx(line[name], abs=2e-3), line[f"{name}_from"]


@STEADY
@given(decisions())
def test_time_and_price_are_what_their_notes_come_to(made):
    decision, _ = made
    half = 500 if decision.profile.first_token else 5_000
    for line in lines(decision):
        parts, *reckoned = notes(line["latency_from"]).split("; ")
        assert computed(parts) == pytest.approx(line["latency_ms"], rel=1e-2, abs=1)
        assert line["latency"] == pytest.approx(half / (half + line["latency_ms"]))
        for note in reckoned:
            result, terms = note.split(" = ")
            assert computed(terms) == pytest.approx(computed(result), rel=1e-2, abs=1)
        if "nobody bills" in line["cost_from"]:
            assert (line["usd"], line["cost"]) == (0.0, 1.0)
        elif not math.isnan(line["usd"]):
            shown = notes(line["cost_from"]).removesuffix(", per million")
            assert computed(shown) / 1e6 == pytest.approx(line["usd"], rel=1e-4, abs=1e-12)
            assert line["cost"] == pytest.approx(0.01 / (0.01 + line["usd"]))


@STEADY
@given(decisions())
def test_the_worth_is_what_the_score_and_the_outcomes_come_to(made):
    decision, strength = made
    for line in lines(decision):
        prior = min(line["score"], 1)
        alpha = max(strength * prior + line["successes"], 0.01)
        beta = max(strength * (1 - prior) + line["failures"], 0.01)
        assert line["reliability"] == pytest.approx(alpha / (alpha + beta))
        assert line["worth"] == pytest.approx(line["reliability"] * line["score"])


@STEADY
@given(decisions())
def test_the_order_is_that_of_the_worth_after_the_one_that_was_drawn(made):
    decision, _ = made
    if not decision.eligible:
        return
    first, *rest = sorted(lines(decision), key=lambda line: line["rank"])
    assert first["drawn"] == max(line["drawn"] for line in (first, *rest))
    worths = [line["worth"] for line in rest]
    assert worths == sorted(worths, reverse=True)
    assert sum(line["wins"] for line in (first, *rest)) == pytest.approx(1)


# -- a change for the better never costs a place ---------------------------------------------------

CHANGES = st.sampled_from(["probe", "benchmark", "verdicts", "price", "first token", "speed", "observed"])


def rank_of_the_first(fields, evidence, others, about):
    models = [row("any/m0", **fields), *others]
    wanted, demand, machine, seen = about
    decision = weigh(models, wanted, demand, machine=machine, evidence=seen | {"any/m0": evidence})
    return next(each.rank for each in decision.candidates if each.model.id == "any/m0")


def changed(fields, evidence, what, figure):
    """The row and its evidence with one figure set; a higher `figure` is for the better."""
    performance = fields["performance"]
    slow = 1 / max(figure, 1e-3)
    if what == "probe":
        return fields | {"quality": {"value": figure, "n": 30}}, evidence
    if what == "benchmark":
        return fields | {"benchmarks": [{"name": "exam", "score": figure}]}, evidence
    if what == "verdicts":
        return fields, replace(evidence, quality=figure, graded=9)
    if what == "price":
        rates = {"input_per_mtok": slow, "output_per_mtok": slow}
        return fields | {"cost": rates}, evidence
    if what == "observed":
        return fields, replace(evidence, ttft_ms=1_000 * slow, ms_per_token=slow)
    name, value = {
        "first token": ("ttft_ms", 1_000 * slow),
        "speed": ("tokens_per_second", 100 * max(figure, 1e-3)),
    }[what]
    return fields | {"performance": performance | {name: value}}, evidence


@STEADY
@given(ROWS, st.lists(ROWS, min_size=1, max_size=3), SEEN, SEEN, profiles(), TOKENS, SHARES, SHARES, CHANGES)
def test_a_better_figure_never_costs_a_model_a_place(
    fields, given, evidence, of_others, weights, tokens, one, other, what
):
    fields = fields | {"weights_ready": True}
    others = [row(f"any/m{n}", **each) for n, each in enumerate(given, start=1)]
    seen = {model.id: of_others for model in others}
    about = Plan(weights, "chat"), Demand(tokens, tokens), Machine(), seen
    worse, better = sorted((one, other))
    ranks = [
        rank_of_the_first(*changed(fields, evidence, what, each), others, about) for each in (worse, better)
    ]
    assert ranks[1] <= ranks[0]
