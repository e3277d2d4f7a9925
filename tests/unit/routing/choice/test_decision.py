"""Decisions and the score table: every number computed again by hand from what the table shows."""

import math
import re

import pandas as pd
import pytest
from model_rows import local, remote, row

from cartoolkit.errors import InvalidRequest, ModelNotFound, NoEligibleModel
from cartoolkit.intents import WORKLOADS
from cartoolkit.routing.choice.decision import decide, score_table, weigh
from cartoolkit.routing.choice.decision_tables import COLUMNS
from cartoolkit.routing.choice.intent import PROFILES, Profile, plan
from cartoolkit.routing.choice.selection import Thompson
from cartoolkit.routing.choice.situation import Demand, Evidence, Machine
from cartoolkit.routing.rows.registry import Registry

BENCHMARKS = [{"name": "MMLU", "score": 0.8}, {"name": "GSM8K", "score": 0.6}]
GOOD = remote("acme/good", usd=(2.0, 8.0), ttft=600, speed=80, benchmarks=BENCHMARKS)
CHEAP = remote("acme/cheap", usd=(0.1, 0.4), ttft=300, speed=150, quality={"value": 0.6, "n": 20})
HERE = local("torch/here", ttft=80, speed=60, load=900, quality={"value": 0.4, "n": 40, "basis": "measured"})
UNKNOWN = row("acme/unknown")
SEES = remote("acme/sees", capabilities=["embed"])
REGISTRY = Registry([GOOD, CHEAP, HERE, UNKNOWN, SEES])
SEEN = {
    "acme/good": Evidence(successes=8, failures=2, quality=0.75, graded=4),
    "acme/cheap": Evidence(successes=1, failures=3),
}
DEMAND = Demand(prompt_tokens=2_000, output_tokens=400)


def table(**more):
    return score_table(REGISTRY, demand=DEMAND, evidence=SEEN, **more)


def computed(line):
    """The number that a line of arithmetic gives: notes in brackets, words and money signs left out."""
    plain = re.sub(r"\[.*?\]", "", line).replace("×", "*").replace(",", "")
    plain = re.sub(r"\bwithout \w+|\b[A-Za-z]+\b|\$", "", plain)
    assert re.fullmatch(r"[\d\s.()+*/e-]+", plain), plain
    return eval(plain)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_score_can_be_computed_from_the_columns(workload):
    shown = table()[workload]
    quality, latency, cost = PROFILES[workload].weights
    half = 500 if workload == "fastest" else 5_000
    for _, line in shown[shown["filtered"] == ""].iterrows():
        assert (line["quality_weight"], line["latency_weight"], line["cost_weight"]) == (
            quality,
            latency,
            cost,
        )
        by_hand = quality * line["quality"] + latency * line["latency"] + cost * line["cost"]
        assert line["score"] == pytest.approx(by_hand + line["local_bonus"])
        assert line["latency"] == pytest.approx(half / (half + line["latency_ms"]))
        if not math.isnan(line["usd"]):
            assert line["cost"] == pytest.approx(0.01 / (0.01 + line["usd"]))
        prior = min(line["score"], 1)
        mean = (4 * prior + line["successes"]) / (4 + line["successes"] + line["failures"])
        assert line["reliability"] == pytest.approx(mean, abs=0.003)  # alpha and beta are at least 0.01
        assert line["worth"] == pytest.approx(line["reliability"] * line["score"])


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_term_can_be_computed_from_the_line_that_it_shows(workload):
    shown = table()[workload]
    for _, line in shown[shown["filtered"] == ""].iterrows():
        for name in ("quality", "latency", "cost"):
            assert computed(line[f"{name}_from"]) == pytest.approx(line[name], abs=2e-3)


def test_the_notes_in_brackets_add_up():
    line = table()["interactive"].loc["acme/good"]
    # 600 + 400 tokens at 80 a second; 2,000 × $2 + 400 × $8 a million; 0.3 + 0.6 × 0.7.
    assert (
        line["latency_from"] == "5,000 / (5,000 + 5,600) [first token 600 declared + answer 5,000 declared]"
    )
    assert line["cost_from"] == "0.01 / (0.01 + $0.0072) [2,000 input × 2 + 400 output × 8, per million]"
    assert (
        line["quality_from"]
        == "(5 × 0.720 prior [0.3 + 0.6 × 0.700 in MMLU, GSM8K] + 4 × 0.750 verdicts) / 9"
    )
    assert (line["usd"], line["latency_ms"]) == (pytest.approx(0.0072), 5_600)


def test_ranks_follow_the_worth_and_shares_add_up_to_one():
    for workload in WORKLOADS:
        shown = table()[workload].dropna(subset="rank")
        by_rank = shown.sort_values("rank")
        assert list(by_rank["rank"]) == [1, 2, 3, 4]
        assert list(by_rank["worth"]) == sorted(shown["worth"], reverse=True)
        assert shown["wins"].sum() == pytest.approx(1)


def test_a_filtered_model_keeps_its_row_and_says_why():
    line = table()["batch"].loc["acme/sees"]
    assert line["filtered"] == "cannot generate"
    numbers = [name for name in COLUMNS if not name.endswith(("_from", "_basis")) and name != "filtered"]
    assert line[[name for name in numbers if name not in ("successes", "failures")]].isna().all()


def test_the_table_has_models_down_and_workloads_across():
    shown = table()
    assert list(shown.index) == [model.id for model in REGISTRY]
    assert list(shown.columns.unique("workload")) == list(WORKLOADS)
    assert tuple(shown["batch"].columns) == COLUMNS
    scores = shown.xs("score", axis=1, level="figure")
    assert scores.shape == (5, 5)
    assert scores.dtypes.eq(float).all()


def test_the_table_takes_some_models_and_workloads_or_weights_of_ones_own():
    mine = Profile("mine", 0.0, 0.0, 1.0)
    shown = score_table(REGISTRY, workloads=["batch", mine], models=["good", "torch/here"])
    assert list(shown.index) == ["acme/good", "torch/here"]
    assert shown.loc["torch/here", ("mine", "score")] == 1.0
    with pytest.raises(InvalidRequest, match="'bach' is no workload"):
        score_table(REGISTRY, workloads=["bach"])
    with pytest.raises(ModelNotFound, match="model not found: 'god'"):
        score_table(REGISTRY, models=["god"])


def test_a_table_of_no_models_is_empty_and_has_its_columns():
    shown = score_table(Registry())
    assert len(shown) == 0
    assert ("batch", "score") in shown.columns


def test_a_workload_changes_who_wins():
    winners = {
        workload: decide(REGISTRY, plan(REGISTRY, workload=workload), DEMAND).model_id
        for workload in ("interactive", "local_preferred")
    }
    assert winners == {"interactive": "acme/cheap", "local_preferred": "torch/here"}


def test_a_decision_names_the_first_and_the_others_in_order():
    decision = decide(REGISTRY, plan(REGISTRY), DEMAND, evidence=SEEN)
    frame = decision.to_frame()
    assert decision.model_id == frame.index[0]
    assert decision.fallbacks == tuple(frame.index[1:4])
    assert frame.index[4] == "acme/sees"
    assert decision.predicted_quality == frame["quality"].iloc[0]


def test_a_decision_is_the_same_each_time_and_with_a_seed_too():
    wanted = plan(REGISTRY)
    assert decide(REGISTRY, wanted).to_frame().equals(decide(REGISTRY, wanted).to_frame())
    chosen = [decide(REGISTRY, wanted, strategy=Thompson(seed=n)).model_id for n in range(40)]
    assert chosen == [decide(REGISTRY, wanted, strategy=Thompson(seed=n)).model_id for n in range(40)]
    assert len(set(chosen)) > 1


def test_a_drawn_choice_shows_the_draw_that_made_it():
    decision = decide(REGISTRY, plan(REGISTRY), DEMAND, strategy=Thompson(seed=5))
    first = decision.eligible[0]
    assert first.drawn == max(each.drawn for each in decision.eligible)
    drawn, total, worth = map(float, re.search(r"(\S+) × (\S+) = (\S+)\. Its", decision.reason).groups())
    assert (drawn * total, worth) == (pytest.approx(worth, abs=1e-3), pytest.approx(first.drawn, abs=5e-4))


def test_high_stakes_try_nothing_out():
    wanted = plan(REGISTRY, intent={"high_stakes": True})
    chosen = {decide(REGISTRY, wanted, strategy=Thompson(seed=n)).model_id for n in range(40)}
    assert chosen == {decide(REGISTRY, wanted).model_id}


def test_a_named_model_has_no_fallback_and_no_filter():
    wanted = plan(REGISTRY, model="acme/sees")
    decision = decide(REGISTRY, wanted, Demand(max_cost_usd=0))
    assert (decision.model_id, decision.fallbacks, decision.reason) == (
        "acme/sees",
        (),
        "acme/sees was named.",
    )


def test_where_nobody_may_answer_each_reason_is_told():
    wanted = plan(REGISTRY, intent={"require": ["vision"], "exclude_models": ["acme/good"]})
    with pytest.raises(NoEligibleModel) as failure:
        decide(REGISTRY, wanted)
    head, *lines = str(failure.value).splitlines()
    assert head == "No model may answer:"
    assert lines[0] == "  acme/good: excluded by the request; cannot vision"
    assert lines[4] == "  acme/sees: cannot generate or vision"
    with pytest.raises(NoEligibleModel, match="no model to choose from"):
        decide(Registry(), plan(Registry()))


def test_a_table_without_a_winner_is_still_shown():
    decision = weigh(REGISTRY, plan(REGISTRY, intent={"require": ["vision"]}))
    assert decision.reason == "No model may answer."
    assert decision.predicted_quality is None
    assert "cannot vision" in str(decision)
    with pytest.raises(NoEligibleModel):
        _ = decision.model_id


@pytest.mark.parametrize(
    ("prompt", "task", "said"),
    [
        (None, "chat", ""),
        ("Hello", "chat", "The prompt is simple"),
        ("Please refactor this.", "code", "The prompt is code: it says 'refactor'."),
    ],
)
def test_the_prompt_tells_the_task_where_nobody_did(prompt, task, said):
    decision = decide(REGISTRY, plan(REGISTRY), prompt=prompt)
    assert decision.task == task
    assert said in str(decision)
    spoken = decide(REGISTRY, plan(REGISTRY, intent={"task": "extract"}), prompt=prompt)
    assert spoken.task == "extract"


PRINTED = """\
interactive, chat: 100 tokens in, 400 out.
acme/a has the best expected worth, 0.575 × 0.575 = 0.331. \
Its score as interactive: 0.45 × 0.500 + 0.40 × 0.500 + 0.15 × 1.000 + 0.00 = 0.575.

model      rank  score  quality         latency         cost            bonus  reliability  worth  wins
acme/a     1     0.575  0.45 × 0.500 a  0.40 × 0.500 d  0.15 × 1.000 d  0.00   0.575        0.331  100%
acme/sees  cannot generate

m measured, d declared, a assumed; worth = reliability × score; wins: share of Thompson's draws."""


def test_a_decision_prints_as_a_small_table():
    one = Registry([remote("acme/a", usd=(0, 0), ttft=1_000, speed=100), SEES])
    decision = decide(one, plan(one), Demand(100, 400), machine=Machine())
    # 0.45 × 0.5 + 0.40 × 5,000 / (5,000 + 1,000 + 4,000) + 0.15 × 1
    assert str(decision) == PRINTED
    assert repr(decision) == "<Decision acme/a as interactive, 0 fallbacks>"


def test_a_notebook_sees_the_same_with_everything_escaped():
    odd = row("acme/odd", available=False, unavailable_because="<script>no & key</script>")
    shown = weigh([GOOD, odd], plan(REGISTRY), prompt="Hello")._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;no &amp; key&lt;/script&gt;" in shown
    assert shown.count("<tr>") == 3


def test_numbers_are_numbers_in_the_frame():
    frame = decide(REGISTRY, plan(REGISTRY), evidence=SEEN).to_frame()
    texts = {name for name in COLUMNS if not pd.api.types.is_float_dtype(frame[name])}
    terms = ("quality", "latency", "cost")
    assert texts == {"filtered", *(f"{term}_{part}" for term in terms for part in ("basis", "from"))}
    assert frame.loc["torch/here", "quality_basis"] == "measured"
    assert frame.loc["acme/unknown", "cost_basis"] == "assumed"
