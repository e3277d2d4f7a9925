"""The state of a `RouterTable`: of the shape that the protocol states, and recomputable from what it says."""

import dataclasses
import json
import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typed_shapes import faults

from cartoolkit.errors import InvalidRequest
from cartoolkit.intents import WORKLOADS
from cartoolkit.routing.choice.intent import PROFILES, Profile
from cartoolkit.routing.choice.selection import Deterministic, Thompson
from cartoolkit.routing.choice.situation import Demand, Evidence, Machine
from cartoolkit.routing.rows.schema import ModelSchema
from cartoolkit.ui._router_protocol import RouterState
from cartoolkit.ui.router_html import state_html, state_text
from cartoolkit.ui.router_state import Around, Known, Settings, decisions_of, router_state, titles_of

FIRST = tuple(PROFILES[name] for name in WORKLOADS)
LARGE, SMALL, BLIND = "acme/large", "torch/small:q8", "acme/blind"


def model(model_id, kind="remote_api", **fields):
    given = {"id": model_id, "capabilities": ["generate"], "source": {"kind": kind}, "weights_ready": True}
    return ModelSchema.model_validate(given | fields)


MODELS = (
    model(
        LARGE,
        parameters=8 * 10**9,
        benchmarks=[{"name": "exam", "score": 0.8}],
        performance={"ttft_ms": 250, "tokens_per_second": 90},
        cost={"input_per_mtok": 12.0, "output_per_mtok": 19.5},
    ),
    model(
        SMALL,
        "folder",
        quantization="Q8_0",
        capabilities=["generate", "code"],
        quality={"value": 0.45, "basis": "measured", "n": 60},
        performance={
            "ttft_ms": {"value": 60, "basis": "measured"},
            "tokens_per_second": {"value": 70, "basis": "measured"},
            "prefill_tokens_per_second": {"value": 700, "basis": "measured"},
        },
    ),
    model(BLIND, available=False, unavailable_because="no key set: ACME_KEY"),
)
KNOWN = Known(
    MODELS,
    Machine(loaded=frozenset({SMALL})),
    {LARGE: Evidence(88, 4), SMALL: Evidence(3, 1, 0.25, 2)},
    Thompson(seed=7),
    {SMALL: "probed 2026-11-30"},
)
SETTINGS = Settings(FIRST, FIRST, Demand(prompt_tokens=300, output_tokens=128), selected=("batch", LARGE))


def state_of(wanted=SETTINGS, known=KNOWN, **rest):
    return router_state(wanted, known, decisions_of(wanted, known), seq=3, **rest)


# What the reader sets


def test_a_moved_weight_belongs_to_one_workload_and_is_marked():
    moved = SETTINGS.moved("batch", "cost", 0.5)
    columns = state_of(moved)["workloads"]
    assert [column["changed"] for column in columns] == [name == "batch" for name in WORKLOADS]
    assert columns[1]["cost"] == 0.5
    assert math.fsum(columns[1][name] for name in ("quality", "latency", "cost")) == 1
    assert state_of(moved.reset())["workloads"] == state_of()["workloads"]


@given(st.lists(st.tuples(st.sampled_from(("quality", "latency", "cost", "local_bonus")), st.floats(0, 1))))
def test_weights_sum_to_one_whatever_is_dragged_and_in_whatever_order(moves):
    wanted = SETTINGS
    for name, value in moves:
        wanted = wanted.moved("fastest", name, value)
        assert getattr(wanted.profile("fastest"), name) == value
        assert math.fsum(wanted.profile("fastest").weights) == 1


@pytest.mark.parametrize(
    ("name", "value", "field"),
    [
        ("prompt_tokens", 4096, 4096),
        ("prompt_tokens", 4096.0, 4096),
        ("output_tokens", 1.0, 1),
        ("max_cost_usd", 0.002, 0.002),
        ("max_cost_usd", None, None),
        ("max_latency_ms", 0, 0),
    ],
)
def test_lengths_and_bounds_are_taken_over(name, value, field):
    assert getattr(SETTINGS.asked(name, value).demand, name) == field


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("prompt_tokens", 1.5, "prompt_tokens must be a whole number"),
        ("prompt_tokens", None, "prompt_tokens must be a whole number"),
        ("output_tokens", 0, "output_tokens must be a whole number of at least 1"),
        ("max_latency_ms", -1, "max_latency_ms must be"),
        ("task", "poetry", "'poetry' is no task"),
        ("task", None, "None is no task"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(name, value, said):
    with pytest.raises(InvalidRequest, match=said):
        SETTINGS.asked(name, value)


def test_a_workload_that_the_table_has_not_is_refused():
    with pytest.raises(InvalidRequest, match="'mine' is no workload of this table"):
        SETTINGS.moved("mine", "cost", 0.5)


# What is shown


def test_the_state_is_of_the_shape_of_the_protocol_and_plain_json():
    state = state_of(beside=Around(busy={"what": "x", "done": 0, "total": 1}, notices=("a",)))
    assert faults(state, RouterState) == []
    assert json.loads(json.dumps(state, allow_nan=False)) == state


def test_models_are_told_with_what_is_known_of_them():
    large, small, blind = state_of()["models"]
    assert (large["title"], large["where"], large["note"]) == ("large", "remote", "8B")
    assert (large["calls"], large["successes"], large["failures"], large["loaded"]) == (92, 88, 4, False)
    assert (small["title"], small["basis"], small["loaded"]) == ("small · q8", "measured", True)
    assert small["note"] == "Q8_0 · probed 2026-11-30"
    assert blind["basis"] == "assumed"


def test_one_that_may_not_answer_says_why_and_which_filter_said_so():
    cell = state_of()["cells"][2][0]
    assert cell == {
        "kind": "filtered",
        "reasons": ["not available here: no key set: ACME_KEY"],
        "filters": ["availability"],
    }


def test_where_nobody_bills_the_price_is_zero_and_where_nobody_knows_it_is_none():
    cells = state_of(known=dataclasses.replace(KNOWN, models=(*MODELS[:2], model("acme/odd"))))["cells"]
    # 300 tokens at 12 and 128 at 19.5 dollars a million
    assert cells[0][0]["usd"] == pytest.approx(300 * 12e-6 + 128 * 19.5e-6)
    assert (cells[1][0]["usd"], cells[2][0]["usd"]) == (0.0, None)


def test_models_of_one_name_are_told_apart_by_their_ids():
    assert titles_of((model("a/x"), model("b/x"), model("b/x:q4"))) == {
        "a/x": "a/x",
        "b/x": "b/x",
        "b/x:q4": "x · q4",
    }


@pytest.mark.parametrize(
    ("strategy", "text"),
    [(Thompson(), "Thompson"), (Thompson(seed=7), "Thompson, seed 7"), (Deterministic(), "best mean worth")],
)
def test_the_strategy_is_named(strategy, text):
    assert state_of(known=dataclasses.replace(KNOWN, strategy=strategy))["strategy"]["text"] == text


def test_without_models_there_is_a_table_without_rows():
    state = state_of(known=Known())
    assert (state["models"], state["cells"], state["selected"], state["detail"]) == ([], [], None, None)
    assert faults(state, RouterState) == []
    assert "There is no model to choose from." in state_text(state)
    assert "There is no model to choose from." in state_html(state)


def test_a_cell_that_is_gone_is_not_told():
    assert state_of(dataclasses.replace(SETTINGS, selected=("batch", "acme/gone")))["detail"] is None


# Every number can be recomputed from what is shown. A line's text is computed as it stands: the remarks in
# brackets and the words are taken out, what is left is arithmetic.

ROUNDED = 0.0011


def computed(text):
    text = re.sub(r"\[.*?\]", "", text)
    text = re.sub(r"(?<=\d),(?=\d)", "", text).replace("×", "*").replace("$", "")
    text = re.sub(r"[A-Za-z_α-ω]+", "", text)
    assert re.fullmatch(r"[\d\s.()*/+-]+", text), text
    return eval(text)  # digits and operators alone


def check_detail(detail, cell):
    by_name = {line["name"]: line for line in detail["lines"]}
    for term in cell["terms"]:
        product, value = by_name[term["name"]]["arithmetic"].split(", where ", 1)
        shown_product, points = product.split(" = ")
        assert computed(shown_product) == pytest.approx(float(points), abs=ROUNDED / 2)
        assert float(points) == pytest.approx(term["points"], abs=0.00006)
        shown_value, formula = value.split(" = ", 1)
        assert float(shown_value) == pytest.approx(term["value"], abs=ROUNDED / 2)
        assert computed(formula) == pytest.approx(float(shown_value), abs=ROUNDED)
    total, score = detail["sum"].split(" = ")
    assert computed(total) == pytest.approx(float(score), abs=0.0008)  # three times 0.00005, and the rounding
    assert float(score) == pytest.approx(cell["score"], abs=ROUNDED / 2)
    check_worth(detail["worth"], cell)


def check_worth(line, cell):
    counts, reliability, worth = line.split("; ")
    for count in counts.split(", β"):
        formula, result = count.split(" = ", 2)[-2:]
        assert computed(formula) == pytest.approx(float(result.split(",")[0]), rel=1e-2, abs=0.02)
    formula, shown = reliability.removeprefix("reliability ").split(" = ")
    assert computed(formula) == pytest.approx(float(shown), abs=ROUNDED)
    assert float(shown) == pytest.approx(cell["reliability"], abs=ROUNDED / 2)
    formula, shown = worth.removeprefix("worth ").split(" = ")
    assert computed(formula) == pytest.approx(float(shown), abs=2 * ROUNDED)
    assert float(shown) == pytest.approx(cell["worth"], abs=ROUNDED / 2)


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("row", [0, 1])
def test_every_line_of_a_cell_can_be_computed_by_hand(workload, row):
    wanted = dataclasses.replace(SETTINGS, selected=(workload, MODELS[row].id))
    state = state_of(wanted, with_changes=False)
    check_detail(state["detail"], state["cells"][row][WORKLOADS.index(workload)])


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(("quality", "latency", "cost", "local_bonus")),
    st.floats(0, 1),
    st.integers(0, 100_000),
    st.integers(1, 10_000),
    st.builds(Evidence, st.integers(0, 10**6), st.integers(0, 10**6)),
    st.sampled_from(("chat", "code", "extract")),
)
def test_also_with_weights_and_lengths_that_are_not_round(name, value, prompt, answer, seen, task):
    profiles = (Profile("mine", 1 / 3, 1 / 3, 1 / 3, 0.15),)
    wanted = Settings(profiles, profiles, Demand(prompt, answer), task, ("mine", SMALL))
    wanted = wanted.moved("mine", name, value)
    known = dataclasses.replace(KNOWN, evidence={SMALL: seen})
    state = state_of(wanted, known, with_changes=False)
    check_detail(state["detail"], state["cells"][1][0])


def test_cells_agree_with_their_detail_about_rank_and_fallbacks():
    state = state_of()
    # With 88 of 92 calls right, large has a reliability of 0.95; small has 0.7 at most.
    assert [row[1].get("rank") for row in state["cells"]] == [1, 2, None]
    assert state["detail"]["fallbacks"] == ["small · q8"]
    assert state["detail"]["title"] == f"Batch → {LARGE}"


def test_a_long_chain_of_fallbacks_is_cut():
    many = tuple(model(f"acme/m{i}") for i in range(30))
    detail = state_of(dataclasses.replace(SETTINGS, selected=("batch", "acme/m0")), Known(many))["detail"]
    assert len(detail["fallbacks"]) == 6
    assert detail["fallbacks"][-1] == "24 more"


def test_what_would_change_the_choice_is_told_by_titles():
    texts = [change["text"] for change in state_of()["detail"]["changes"]]
    assert any(text.endswith(("→ small · q8.", "→ large.")) for text in texts)
    assert not any(SMALL in text for text in texts)


# The still page


def test_the_still_page_holds_what_the_state_holds():
    state = state_of()
    page, text = state_html(state), state_text(state)
    for told in (page, text):
        assert "large" in told
        assert f"{state['cells'][0][1]['score']:.3f}" in told
        assert "no key set: ACME_KEY" in told
        assert state["detail"]["sum"] in told
    assert not re.search(r"<style|class=|hsl\(|rgb\(|<svg|<script|http", page)
