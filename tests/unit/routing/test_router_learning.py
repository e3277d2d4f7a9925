"""What a router makes of its answers, of others at the same time, and of models that come and go."""

import gc
import json
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
from model_rows import local, remote
from scripted_engines import ask, engine_called, ill, raising

from cartoolkit.errors import (
    EngineBusy,
    EngineClosed,
    ForwardFailed,
    InvalidRequest,
    ModelNotFound,
    SpendLimitExceeded,
)
from cartoolkit.routing import BreakerRules, Deterministic, Profile, Registry, Router, SpendLimits

# Learning


def test_a_dead_model_is_left_after_three_failures_and_is_back_after_one_probe(router, engines, clock):
    ill(engines, a=raising(RuntimeError("gone")))
    for _ in range(BreakerRules().failures):
        with pytest.raises(ForwardFailed):
            ask(router, model="script/a")
    assert router.machine().resting == {"script/a": "failed repeatedly; is tried again in 60 s"}
    assert [attempt.model_id for attempt in ask(router).attempts] == ["script/b"]
    assert router.decide("a").candidates[-1].refused[0].reason.startswith("failed repeatedly")
    clock.now += BreakerRules().cooldown_s
    ill(engines, a=None)
    assert router.machine().resting == {}
    assert ask(router, intent={"exclude_models": ["script/b", "script/c"]}).model_id == "script/a"
    assert router.breakers.circuit("script/a").state(clock()) == "closed"


def test_a_dead_model_costs_at_most_three_requests_their_first_answer(router, engines):
    ill(engines, a=raising(RuntimeError("gone")))
    firsts = [ask(router).attempts[0].model_id for _ in range(8)]
    assert 1 <= firsts.count("script/a") <= BreakerRules().failures


def test_a_verdict_may_be_given_on_an_answer_its_result_its_trace_or_its_id(router, tmp_path):
    answers = [ask(router) for _ in range(4)]
    answers[2].trace.save(tmp_path / "run.trace")
    loaded = type(answers[2].trace).load(tmp_path / "run.trace")
    given = [answers[0], answers[1].result, loaded, answers[3].trace_id]
    assert [router.feedback(each, accepted=False) for each in given] == ["booked"] * 4
    assert router.history.tracker.profile("script/a").total.fail_count == 4


def test_a_verdict_that_changes_nothing_says_why(router, engines, capsys):
    ill(engines, a=raising(RuntimeError("gone")))
    answer = ask(router)
    assert router.feedback(answer, accepted=True) == "booked"
    assert router.feedback(answer, accepted=False) == "judged before"
    assert router.feedback("nosuchid", accepted=True) == "unknown trace"
    assert router.feedback(answer.attempts[0].trace_id, accepted=True) == "no answer to judge"
    assert capsys.readouterr().out.splitlines() == [
        "This answer was judged before; the first verdict counts.",
        "No attempt of this id is known, so nothing was judged.",
        "This attempt brought no answer, and counts as failed or as nothing already.",
    ]


def test_only_what_a_router_gave_can_be_judged(router, engines):
    with pytest.raises(InvalidRequest, match="no router gave this answer"):
        router.feedback(engines["a"].generate("a", temperature=0), accepted=True)
    with pytest.raises(InvalidRequest, match="can be judged; got int"):
        router.feedback(3, accepted=True)


def test_rejected_answers_move_the_choice_to_another_model(router):
    for _ in range(6):
        router.feedback(ask(router, model="script/a"), accepted=False)
    assert ask(router, workload=Profile("loyal", 1.0, 0.0, 0.0)).model_id != "script/a"


def test_another_router_on_the_same_folder_has_learnt_the_same(router, tmp_path):
    for _ in range(3):
        ask(router, model="script/b")
    other = Router(Registry(), folder=tmp_path)
    assert other.evidence()["script/b"].successes == 3
    ask(router, model="script/b")
    assert other.evidence()["script/b"].successes == 4
    assert list(other.scoreboard()["calls"]) == [4]


def test_nothing_of_a_prompt_or_an_answer_is_in_the_ledger(router, tmp_path, engines):
    ill(engines, a=raising(RuntimeError("secret words")))
    ask(router, "a secret a")
    text = (tmp_path / "outcomes.jsonl").read_text()
    assert "secret" not in text
    assert all(len(str(value)) <= 40 for line in text.splitlines() for value in json.loads(line).values())
    assert text.count('"kind":"completion"') == 2


def test_spend_limits_leave_out_what_is_billed(engines, tmp_path):
    dear = remote("acme/large", usd=(100.0, 400.0), quality=1.0, ttft=1.0, speed=1e6)
    router = Router(Registry([dear]), folder=tmp_path, limits=SpendLimits(per_call=0.01))
    router.add(engines["a"])
    assert "for one call" in router.machine().resting["acme/large"]
    assert ask(router).model_id == "script/a"
    with pytest.raises(SpendLimitExceeded):
        ask(router, model="acme/large")
    assert list(router.history.tracker.profiles) == ["script/a"]


# Several at once


def test_two_requests_to_one_engine_wait_for_each_other(router, engines):
    ill(engines, a=lambda: time.sleep(0.01))
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: ask(router, model="script/a"), range(8)))
    assert [answer.text for answer in answers] == ["aaa"] * 8
    assert router.history.tracker.profile("script/a").total.success_count == 8


def test_two_routers_of_one_process_take_turns_at_an_engine_too(router, engines, tmp_path):
    other = Router(Registry(), folder=tmp_path)
    other.add(engines["a"])
    started, may_end = threading.Event(), threading.Event()
    ill(engines, a=lambda: (started.set(), may_end.wait(5)))
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(ask, router, model="script/a")
        started.wait(5)
        second = pool.submit(ask, other, model="script/a")
        time.sleep(0.05)
        assert not second.done()
        may_end.set()
        assert (first.result().text, second.result().text) == ("aaa", "aaa")


# Adding and showing


def test_an_engine_is_added_once_and_answers_for_its_row(router, engines):
    assert router.add(engines["a"]).id == "script/a"
    assert len(router.models) == 3
    twin = engine_called("a")
    assert router.add(twin).id == "script/a:float32"
    twin.close()


def test_an_engine_that_its_owner_closed_is_shown_and_not_asked(router, engines):
    engines["a"].close()
    row = router.models.to_frame().loc["script/a"]
    assert (row["available"], row["because"]) == (False, "its engine was closed")
    assert ask(router).model_id == "script/b"


def test_a_closed_engine_is_not_added(router):
    engine = engine_called("d")
    engine.close()
    with pytest.raises(EngineClosed, match="the engine of d was closed"):
        router.add(engine)


def test_an_attempt_that_failed_keeps_no_engine_in_memory(tmp_path):
    router = Router(Registry(), strategy=Deterministic(), folder=tmp_path)
    engine, other = engine_called("a"), engine_called("b")
    router.add(engine)
    router.add(other)
    session = engine.start("a", paused=True)
    answer = ask(router)
    session.stop()
    session.wait()
    router._shelf._slots.clear()
    gone = weakref.ref(engine)
    del engine, session
    gc.collect()
    assert gone() is None
    assert isinstance(answer.attempts[0].error, EngineBusy)
    other.close()


def test_rows_come_from_a_file(router, tmp_path):
    (tmp_path / "mine.toml").write_text(
        '[[models]]\nid = "acme/large"\ncapabilities = ["generate"]\nsource = { kind = "remote_api" }\n'
    )
    assert [row.id for row in router.add(tmp_path / "mine.toml")] == ["acme/large"]
    with pytest.raises(InvalidRequest, match="there is a model 'acme/large' already"):
        router.add(tmp_path / "mine.toml")
    router.add(str(tmp_path / "mine.toml"), replace=True)


def test_what_is_no_model_is_refused_in_words(router):
    with pytest.raises(InvalidRequest, match="takes rows, engines, files and folders; got int"):
        router.add(3)
    with pytest.raises(ModelNotFound, match="There is no model 'smolm2'"):
        router.add("smolm2")


def test_a_model_that_has_to_be_downloaded_is_left_to_who_names_it(tmp_path, engines):
    far = local("torch/far", source={"kind": "catalog", "location": "far", "engine": "torch"},
                weights_ready=False, downloads_weights=True, cost={"size_mb": 700})  # fmt: skip
    router = Router(Registry([far]), folder=tmp_path)
    assert router.weigh().model_id == "torch/far"  # there is no other
    router.add(engines["a"])
    assert router.machine().resting == {"torch/far": "not downloaded yet, 700 MB"}
    assert router.decide("a", model="torch/far").model_id == "torch/far"
    router.fetch = True
    assert router.machine().resting == {}


def test_a_router_shows_itself(router):
    ask(router)
    assert repr(router) == (
        "<Router: 3 models, of which 3 can be used here and 3 need no download; 3 loaded; 1 calls so far; "
        "takes the best expected worth>"
    )
    html = router._repr_html_()
    assert "script/a" in html
    assert "weights_ready" in html


def test_an_answer_shows_who_gave_it_its_trace_and_the_decision(router, engines):
    ill(engines, a=raising(RuntimeError("<b>gone</b>")))
    answer = ask(router)
    assert repr(answer) == "<Routed to script/b, after 1 other: 'bbb'>"
    html = answer._repr_html_()
    assert "&lt;b&gt;gone&lt;/b&gt;" in html
    assert "<b>gone</b>" not in html
    assert html.startswith("<p><b>script/b</b> answered; script/a failed.</p>")
    assert "How it was decided" in html
    assert answer.trace.to_html() in html
