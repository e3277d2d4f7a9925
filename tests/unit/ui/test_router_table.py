"""The RouterTable without a front end: what a browser would say is said by hand, what it hears is kept."""

import logging
import sys
import threading
from pathlib import Path

import pandas as pd
import pytest
from typed_shapes import faults

import cartoolkit as ct
from cartoolkit.errors import InvalidRequest
from cartoolkit.routing import Demand, Deterministic, ModelSchema, Profile, Registry, Router, SpendLimits
from cartoolkit.ui._router_protocol import RouterState
from cartoolkit.ui.router_view import RouterView

sys.path.append(str(Path(__file__).parents[1] / "routing"))

from scripted_engines import engine_called, ill, raising

ONE, TWO = "script/one", "script/two"


@pytest.fixture
def states(monkeypatch):
    """Every state that was sent, in order."""
    sent = []
    monkeypatch.setattr(RouterView, "send", lambda view, content: sent.append(content["state"]))
    return sent


@pytest.fixture
def engines():
    made = {name: engine_called(name) for name in ("one", "two")}
    yield made
    for engine in made.values():
        engine.close()


@pytest.fixture
def router(tmp_path, engines):
    with Router(Registry(), folder=tmp_path, strategy=Deterministic()) as made:
        for engine in engines.values():
            made.add(engine)
        yield made


@pytest.fixture
def table(states, front_end, eventually):
    """Make tables; what they have started is ended."""
    made = []

    def make(router, prompt="a", **settings):
        made.append(ct.RouterTable(router, prompt, **{"temperature": 0, "seed": 1, **settings}))
        return made[-1]

    yield make
    for each in made:
        each.stop()
        eventually(lambda each=each: not each._jobs.running)
        each.close()
    eventually(
        lambda: not {t.name for t in threading.enumerate()} & {"cartoolkit-score", "cartoolkit-router"}
    )


def say(table, **message):
    table.view._receive(None, {"v": 1, **message}, None)


def refusal(table):
    shown = table._refusal
    return "" if shown.layout.display == "none" else shown.value


def finished(job):
    assert job.wait(20)


# Before anything runs


def test_a_table_shows_every_model_under_every_workload_at_once(table, router, states):
    shown = table(router)
    assert faults(shown.state, RouterState) == []
    assert [model["id"] for model in shown.state["models"]] == [ONE, TWO]
    assert [len(row) for row in shown.state["cells"]] == [5, 5]
    assert shown.view.snapshot == shown.state == states[-1]
    assert shown.state["selected"]["workload"] == "interactive"
    assert shown.state["detail"]["changes"]


def test_scores_are_those_of_the_router(table, router):
    shown = table(router, demand=Demand(prompt_tokens=500, output_tokens=50))
    theirs = router.score_table(demand=Demand(prompt_tokens=500, output_tokens=50))
    for model, row in zip(shown.state["models"], shown.state["cells"], strict=True):
        for column, cell in zip(shown.state["workloads"], row, strict=True):
            figures = theirs.loc[model["id"]][column["name"]]
            assert cell["score"] == pytest.approx(figures["score"])
            assert cell["rank"] == figures["rank"]
            assert cell["wins"] == figures["wins"]


def test_the_prompt_sets_the_length_of_the_question(table, router, eventually):
    shown = table(router, "abcdefgh")
    assert shown.state["question"]["prompt_tokens"] == 2  # four letters a token
    shown.prompt.value = "a" * 400
    eventually(lambda: shown.state["question"]["prompt_tokens"] == 100)


def test_no_models_is_a_table_that_says_so(table, tmp_path, states):
    shown = table(Router(Registry(), folder=tmp_path))
    assert (shown.state["models"], shown.state["cells"]) == ([], [])
    assert "There is no model to choose from" in shown.state["notices"][0]
    shown.buttons.generate.click()
    shown._jobs.current.wait(20)
    assert "There is no model to choose from" in refusal(shown)


def test_where_no_model_is_ready_the_table_says_why_and_nothing_is_asked(table, tmp_path):
    gone = ModelSchema(
        id="acme/gone", capabilities=["generate"], source={"kind": "folder", "location": "/gone"}
    )
    shown = table(Router(Registry([gone]), folder=tmp_path))
    assert shown.state["cells"][0][0]["reasons"] == ["its weights are not at /gone"]
    with pytest.raises(InvalidRequest, match="No model of this machine may answer"):
        shown.ask_all()
    shown._ask_button.click()
    assert "No model of this machine may answer" in refusal(shown)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"workloads": ["batsh"]}, "'batsh' is no workload"),
        ({"workloads": []}, "at least one workload"),
        ({"workloads": ["batch", Profile("batch", 1, 0, 0)]}, "two workloads have the same name"),
        ({"task": "poetry"}, "'poetry' is no task"),
        ({"temprature": 1}, "temprature"),
        ({"max_tokens": 0}, "max_tokens"),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(router, arguments, said):
    with pytest.raises(InvalidRequest, match=said):
        ct.RouterTable(router, "a", **arguments)


def test_what_is_no_router_is_refused():
    with pytest.raises(InvalidRequest, match="takes a router; got 'smollm2'"):
        ct.RouterTable("smollm2")


# What a browser says


def test_a_weight_that_is_moved_scores_its_column_anew_and_reset_puts_it_back(table, router, eventually):
    shown = table(router)
    before = shown.state["cells"]
    say(shown, type="weight", workload="batch", name="latency", value=0.5)
    eventually(lambda: shown.state["workloads"][1]["changed"] and shown.state["detail"]["changes"])
    assert shown.state["workloads"][1]["latency"] == 0.5
    after = shown.state["cells"]
    assert after[0][1] != before[0][1]
    assert after[0][0] == before[0][0]
    say(shown, type="reset")
    eventually(lambda: not shown.state["workloads"][1]["changed"])
    assert shown.state["cells"] == before


def test_a_drag_ends_at_its_last_value_and_not_every_step_is_told(table, router, states, eventually):
    shown = table(router)
    told = len(states)
    for step in range(101):
        say(shown, type="weight", workload="fastest", name="quality", value=step / 100)
    eventually(lambda: shown.view.snapshot["workloads"][4]["quality"] == 1)
    assert len(states) - told < 101
    assert [state["seq"] for state in states] == sorted({state["seq"] for state in states})


def test_questions_and_bounds_score_anew(table, router, eventually):
    shown = table(router)
    say(shown, type="question", name="prompt_tokens", value=100_000)
    eventually(lambda: all(cell["kind"] == "filtered" for cell in shown.state["cells"][0]))
    assert shown.state["cells"][0][0]["filters"] == ["context"]
    say(shown, type="question", name="prompt_tokens", value=10)
    say(shown, type="question", name="max_latency_ms", value=1)
    eventually(lambda: shown.state["cells"][0][0].get("filters") == ["latency"])
    say(shown, type="question", name="max_latency_ms", value=None)
    say(shown, type="question", name="task", value="code")
    eventually(lambda: shown.state["question"]["task"] == "code" and shown.state["cells"][0][0].get("rank"))


def test_where_the_table_counts_on_more_than_route_does_it_says_so(table, router, eventually):
    shown = table(router)
    assert shown.state["notices"] == []
    say(shown, type="question", name="output_tokens", value=257)
    eventually(lambda: shown.state["notices"])
    assert shown.state["notices"][0].startswith("Route counts on at most 256 tokens")


def test_a_click_on_a_cell_tells_it_and_chooses_the_workload(table, router, eventually):
    shown = table(router)
    say(shown, type="select", workload="batch", model=TWO)
    eventually(lambda: shown.state["selected"] == {"workload": "batch", "model": TWO})
    assert TWO in shown.state["detail"]["title"]
    assert shown.workload.value == "batch"
    shown.workload.value = "fastest"
    eventually(lambda: shown.state["selected"]["workload"] == "fastest")


def test_a_view_that_appears_is_told_the_state_that_there_is(table, router, states):
    shown = table(router)
    told = len(states)
    say(shown, type="ready", seq=None)
    assert states[told:] == [shown.state]


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({"type": "weight", "workload": "mine", "name": "cost", "value": 0.5}, "no workload of this table"),
        ({"type": "select", "workload": "mine", "model": ONE}, "no workload of this table"),
        ({"type": "question", "name": "output_tokens", "value": 0}, "output_tokens must be"),
        ({"type": "verdict", "trace_id": "nobody", "accepted": True}, ""),
    ],
)
def test_what_cannot_be_followed_is_explained_in_the_widget(table, router, message, said):
    shown = table(router)
    before = shown.settings
    say(shown, **message)
    assert said in refusal(shown)
    assert shown.settings == before


def test_what_is_no_message_is_logged_and_changes_nothing(table, router, states, caplog):
    shown = table(router)
    told = len(states)
    with caplog.at_level(logging.WARNING):
        say(shown, type="shutdown")
    assert "a message from the browser was refused" in caplog.text
    assert len(states) == told


# Answers


def test_route_asks_one_model_and_shows_its_answer_and_its_story(table, router, eventually):
    shown = table(router)
    shown.buttons.generate.click()
    finished(shown._jobs.current)
    (answer,) = shown.answers
    assert (answer.model_id, answer.attempt.outcome) == (ONE, "success")
    eventually(lambda: shown.state["busy"] is None and shown.state["models"][0]["calls"] == 1)
    (row,) = shown.state["runs"]
    assert (row["text"], row["tokens"], row["outcome"]) == ("oneoneone", 3, "success")
    assert row["story"].startswith(f"{ONE} has the best expected worth")
    assert shown.run_views[0].trace.text == "oneoneone"
    eventually(lambda: shown.buttons.shown == ["Ask all", "Route"])


def test_a_model_that_fails_and_the_one_that_answers_stand_beside_each_other(table, router, engines):
    ill(engines, one=raising(RuntimeError("no memory")))
    shown = table(router)
    finished(shown.route())
    assert [(a.model_id, a.attempt.outcome) for a in shown.answers] == [(ONE, "failure"), (TWO, "success")]
    first, second = shown.state["runs"]
    assert "no memory" in first["story"]
    assert (second["text"], second["story"]) == ("twotwotwo", f"{TWO} was asked next.")
    assert len(shown.run_views) == 2


def test_where_every_model_fails_the_attempts_are_shown_and_the_error_explained(table, router, engines):
    ill(engines, one=raising(RuntimeError("first")), two=raising(RuntimeError("second")))
    shown = table(router)
    finished(shown.route())
    assert [row["outcome"] for row in shown.state["runs"]] == ["failure", "failure"]
    assert "first" in refusal(shown)
    assert "second" in refusal(shown)


def test_route_goes_by_the_weights_and_bounds_of_the_table(table, router, monkeypatch):
    asked = {}
    generate = Router.generate

    def recorded(self, prompt, **settings):
        asked.update(settings)
        return generate(self, prompt, **settings)

    monkeypatch.setattr(Router, "generate", recorded)
    shown = table(router)
    say(shown, type="weight", workload="batch", name="latency", value=0.5)
    say(shown, type="question", name="max_latency_ms", value=1e6)
    say(shown, type="question", name="output_tokens", value=2)
    say(shown, type="select", workload="batch", model=ONE)
    finished(shown.route())
    assert asked["workload"].latency == 0.5
    assert (asked["max_latency_ms"], asked["max_cost_usd"], asked["max_tokens"]) == (1e6, None, 2)
    assert (asked["temperature"], asked["seed"], asked["intent"]) == (0, 1, {"task": "chat"})
    assert shown.state["runs"][0]["tokens"] == 2


def test_ask_all_puts_the_prompt_to_every_model_in_order_of_rank(table, router, eventually):
    shown = table(router)
    shown._ask_button.click()
    finished(shown._jobs.current)
    assert [row["text"] for row in shown.state["runs"]] == ["oneoneone", "twotwotwo"]
    assert shown.state["runs"][1]["story"] == f"{TWO} was asked beside the others."
    eventually(lambda: [model["calls"] for model in shown.state["models"]] == [1, 1])


def test_ask_all_goes_on_after_a_model_that_fails(table, router, engines):
    ill(engines, one=raising(RuntimeError("no")))
    shown = table(router)
    finished(shown.ask_all())
    assert [row["outcome"] for row in shown.state["runs"]] == ["failure", "success"]
    assert refusal(shown) == ""


@pytest.fixture
def gate(engines):
    """While it is shut, the first model does not get past its next token."""
    opened = threading.Event()
    ill(engines, one=lambda: opened.wait(20))
    yield opened
    opened.set()


def test_stop_ends_the_answer_and_begins_no_other(table, router, gate, eventually):
    shown = table(router)
    job = shown.ask_all()
    eventually(lambda: job.session is not None)
    shown.buttons.stop.click()
    gate.set()
    finished(job)
    assert [answer.model_id for answer in shown.answers] == [ONE]
    assert shown.state["runs"][0]["outcome"] == "inconclusive"


def test_while_something_runs_nothing_else_is_begun(table, router, gate, eventually):
    shown = table(router)
    job = shown.route()
    for begin in (shown.route, shown.ask_all, shown.probe):
        with pytest.raises(InvalidRequest, match="going on already"):
            begin()
    eventually(lambda: "Stop" in shown.buttons.shown)
    say(shown, type="probe", model=None)
    assert "going on already" in refusal(shown)
    gate.set()
    finished(job)


def test_a_thumb_is_learnt_and_shown_and_counts_once(table, router, eventually):
    shown = table(router)
    finished(shown.route())
    trace_id = shown.state["runs"][0]["trace_id"]
    say(shown, type="verdict", trace_id=trace_id, accepted=False)
    eventually(lambda: shown.state["models"][0]["failures"] == 1)
    assert shown.state["runs"][0]["verdict"] is False
    say(shown, type="verdict", trace_id=trace_id, accepted=True)
    assert shown.state["runs"][0]["verdict"] is False


def test_a_new_prompt_takes_the_place_of_the_answers_to_the_last_one(table, router):
    shown = table(router)
    finished(shown.ask_all())
    old = shown.run_views
    finished(shown.route())
    assert len(shown.answers) == len(shown.run_views) == 1
    assert all(view.comm is None for view in old)


def test_an_empty_prompt_is_refused(table, router):
    shown = table(router, "")
    shown.buttons.generate.click()
    assert "There is no prompt yet" in refusal(shown)
    assert 'role="alert"' in refusal(shown)


def test_answers_can_be_awaited(table, router, run_async):
    shown = table(router)

    async def ask():
        return await shown.route()

    assert run_async(ask()).done
    assert shown.answers[0].trace.text == "oneoneone"


# Probing


def test_a_probe_runs_in_the_background_and_says_how_far_it_is(
    table, router, states, monkeypatch, eventually
):
    going_on, asked = threading.Event(), []

    def probe(self, *models, progress, **options):
        asked.append(models)
        progress("one", 3, 10)
        assert going_on.wait(20)
        return pd.DataFrame()

    monkeypatch.setattr(Router, "probe", probe)
    shown = table(router)
    say(shown, type="probe", model=ONE)
    eventually(lambda: shown.state["busy"] == {"what": "one", "done": 3, "total": 10})
    # The table stays alive meanwhile.
    say(shown, type="weight", workload="batch", name="latency", value=0.9)
    eventually(lambda: shown.state["workloads"][1]["latency"] == 0.9)
    going_on.set()
    eventually(lambda: shown.state["busy"] is None)
    eventually(lambda: not shown._jobs.running)
    say(shown, type="probe", model=None)
    eventually(lambda: asked == [(ONE,), ()])


def test_a_model_that_could_not_be_measured_is_told_of_in_the_table(table, router, monkeypatch):
    def probe(self, *models, progress, **options):
        frame = pd.DataFrame()
        frame.attrs["not_measured"] = {ONE: "its process <ended>"}
        return frame

    monkeypatch.setattr(Router, "probe", probe)
    shown = table(router)
    finished(shown.probe())
    assert shown._refusal.layout.display is None
    assert f"{ONE} was not measured: its process &lt;ended&gt;" in shown._refusal.value


# Showing it


def test_the_twin_holds_the_table_and_the_answers_as_html_and_as_text(table, router, eventually):
    shown = table(router)
    finished(shown.route())
    eventually(lambda: "oneoneone" in shown._still()["text/html"])
    bundle = shown._repr_mimebundle_()
    score = f"{shown.state['cells'][0][0]['score']:.3f}"
    assert score in bundle["text/html"]
    assert score in bundle["text/plain"]
    assert "<script" not in bundle["text/html"]


def test_a_closed_table_keeps_its_twin_and_nothing_of_the_router(table, router):
    shown = table(router)
    shown.close()
    assert shown.view.comm is None
    assert "Which model answers?" in shown._still()["text/plain"]
    finished(shown._jobs.route(shown._asked("a")))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"demand": {"prompt_tokens": 3}}, "demand must be a Demand; got {'prompt_tokens': 3}"),
        ({"workloads": "batch"}, "workloads must be a list, .*; got 'batch'"),
        ({"prompt": None}, "prompt must be a str; got None"),
        # What would be left out of every answer without a word.
        ({"context": "The sky is green."}, "context is no setting of the answers of a RouterTable"),
        ({"model": ONE}, "model is no setting of the answers"),
        ({"intent": {"prefer_fast": True}}, "intent is no setting of the answers"),
    ],
)
def test_what_a_table_has_no_use_for_is_refused_in_a_sentence(router, wrong, said):
    with pytest.raises(InvalidRequest, match=said):
        ct.RouterTable(router, **wrong)


def test_a_class_in_the_place_of_a_router_is_refused():
    with pytest.raises(InvalidRequest, match="the RouterTable takes a router; got <class"):
        ct.RouterTable(Router)


def test_a_setting_that_nobody_wrote_is_not_insisted_on(router, table):
    asked = []
    generate = router.generate
    router.generate = lambda prompt, **settings: asked.append(settings) or generate(prompt, **settings)
    table(router).route().wait()
    assert {"temperature", "seed", "max_tokens"} <= asked[0].keys()
    assert not {"top_p", "repeatable", "candidates"} & asked[0].keys()


def test_an_answer_that_changes_while_the_table_is_scored_is_shown_as_it_is(
    router, table, states, monkeypatch, eventually
):
    shown = table(router)
    finished(shown.route())
    eventually(lambda: "cartoolkit-score" not in {thread.name for thread in threading.enumerate()})
    before, seen = shown._scorer._around, len(states)

    def ended_meanwhile():
        around = before()
        shown._answers.judge(around.runs[0]["trace_id"], accepted=True)
        return around

    monkeypatch.setattr(shown._scorer, "_around", ended_meanwhile)
    shown._scorer.score()
    assert [state["runs"][0]["verdict"] for state in states[seen:]] == [True, True]


def test_a_spend_limit_is_held_against_the_length_that_the_table_is_set_to(table, tmp_path, eventually):
    priced = ModelSchema(
        id="acme/large",
        capabilities=["generate"],
        source={"kind": "remote_api"},
        cost={"input_per_mtok": 1.0, "output_per_mtok": 4.0},
    )
    router = Router(Registry([priced]), folder=tmp_path, limits=SpendLimits(per_call=0.002))
    shown = table(router, max_tokens=100)
    assert shown.state["cells"][0][0]["kind"] == "scored"
    # 1,000 tokens of an answer cost 4,000 millionths of a dollar, and reading comes on top.
    say(shown, type="question", name="output_tokens", value=1000)
    eventually(lambda: shown.state["cells"][0][0]["kind"] == "filtered")
    assert "is above the limit of $0.002 for one call" in shown.state["cells"][0][0]["reasons"][0]
    say(shown, type="question", name="output_tokens", value=100)
    eventually(lambda: shown.state["cells"][0][0]["kind"] == "scored")
