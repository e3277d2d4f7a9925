"""The router with real sessions over scripted decoders: it chooses, asks, falls back and tells."""

import time

import pytest
from model_rows import local
from scripted_engines import ask, ill, out_of_memory, raising

from cartoolkit.errors import (
    AllModelsFailed,
    ContentRefused,
    EngineBusy,
    ForwardFailed,
    InvalidRequest,
    ModelNotFound,
    NoEligibleModel,
)
from cartoolkit.requests import GenerateRequest
from cartoolkit.routing import Profile, Registry, Router, Thompson

# Choosing


def test_the_best_model_answers_and_the_trace_says_why(router):
    answer = ask(router)
    assert (answer.text, answer.model_id) == ("aaa", "script/a")
    assert str(answer) == "aaa"
    assert answer.usd == 0.0
    (event,) = answer.trace.events
    assert (event.kind, event.at) == ("routed", 0)
    assert event.text == answer.decision.reason == answer.story
    assert event.data["trace_id"] == answer.trace_id
    assert router.runs == (answer,)


def test_a_named_model_answers_by_id_or_name(router):
    assert ask(router, model="script/c").text == "ccc"
    assert ask(router, model="b (script)").text == "bbb"
    assert ask(router, GenerateRequest(prompt="a", model="script/b")).story == "script/b was named."


def test_excluded_models_do_not_answer(router):
    answer = ask(router, intent={"exclude_models": ["script/a", "b (script)"]})
    assert answer.model_id == "script/c"


def test_the_weights_of_the_caller_s_own_decide(router):
    profile = Profile("mine", 0.2, 0.3, 0.5)
    assert router.decide("a", workload=profile).profile is profile
    assert ask(router, workload=profile).decision.profile is profile
    assert ask(router, GenerateRequest(prompt="a", workload="batch")).decision.profile.name == "batch"


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"model": "script/d"}, ModelNotFound, "model not found: 'script/d'"),
        ({"workload": "urgent"}, InvalidRequest, "workload must be one of interactive"),
        ({"intent": {"task": "sing"}}, InvalidRequest, "'sing' is no task"),
        ({"intent": {"require": ["fly"]}}, InvalidRequest, "'fly' is no capability"),
        ({"intent": {"exclude_models": ["nobody"]}}, ModelNotFound, "model not found: 'nobody'"),
        ({"temprature": 1}, InvalidRequest, "'temprature' is not a setting of a request"),
        ({"temperature": -1}, InvalidRequest, "temperature must be a number ≥ 0"),
        ({"max_cost_usd": -1}, InvalidRequest, "max_cost_usd must be a number of at least 0"),
        ({"intent": {"require": ["vision"]}}, NoEligibleModel, "script/a: cannot vision"),
        ({"max_latency_ms": 1}, NoEligibleModel, "at most 1 ms are allowed"),
    ],
)
def test_what_is_not_known_or_not_possible_is_refused_before_anything_runs(router, settings, error, said):
    with pytest.raises(error, match=said):
        ask(router, **settings)
    assert router.history.tracker.profiles == {}


def test_a_named_model_is_not_held_to_a_bound_and_the_decision_says_so(router):
    answer = ask(router, model="script/b", max_latency_ms=1)
    assert answer.decision.set_aside == ("max_latency_ms, since a model is named",)


def test_what_a_request_asks_for_is_read_off_it(router):
    request = GenerateRequest(
        messages=[{"role": "user", "content": "x" * 40}], context="y" * 8, params={"max_tokens": 100}
    )
    demand = router.demand(request, max_cost_usd=0.5)
    # Four letters a token: ten for the message, two for the context.
    assert (demand.prompt_tokens, demand.output_tokens, demand.max_cost_usd) == (12, 100, 0.5)
    assert router.demand("a").output_tokens == 256
    with pytest.raises(InvalidRequest, match="'budget' is no field of a demand"):
        router.demand("a", budget=1)


def test_a_table_s_weighing_draws_nothing_and_raises_nothing(router):
    decision = router.weigh(workload="batch", demand=router.demand("a", max_latency_ms=1))
    assert decision.eligible == ()
    assert router.weigh(workload="fastest").model_id == "script/a"


def test_a_seed_repeats_the_sequence_of_choices_and_not_one_choice(engines, tmp_path):
    def choices(folder):
        router = Router(Registry(), strategy=Thompson(seed=5), folder=folder)
        for engine in engines.values():
            router.add(engine)
        return [router.decide("a").model_id for _ in range(12)]

    first = choices(tmp_path / "1")
    assert first == choices(tmp_path / "2")
    assert len(set(first)) == 3


# Falling back


def test_a_model_that_raises_hands_over_and_the_trace_tells_it(router, engines):
    ill(engines, a=raising(RuntimeError("the device is gone")))
    answer = ask(router)
    assert (answer.text, answer.model_id) == ("bbb", "script/b")
    first, second = answer.attempts
    assert (first.outcome, first.reason, second.outcome) == ("failure", "error", "success")
    assert isinstance(first.error, ForwardFailed)
    assert [event.data["model_id"] for event in answer.trace.events] == ["script/a", "script/b"]
    assert "the model's forward raised RuntimeError: the device is gone." in answer.story
    assert answer.story.endswith("script/b was asked next.")


def test_running_out_of_memory_hands_over(router, engines):
    ill(engines, a=out_of_memory)
    answer = ask(router)
    assert answer.model_id == "script/b"
    assert answer.attempts[0].reason == "out_of_memory"
    assert "It ran out of memory after" in answer.story


def test_running_out_of_time_hands_over_and_half_an_answer_is_not_lost(router, engines):
    ill(engines, a=lambda: time.sleep(0.4), b=raising(RuntimeError("gone")))
    ill(engines, c=raising(RuntimeError("gone as well")))
    slow = ask(router, time_limit=1.0, max_tokens=50, ignore_eos=True)
    assert slow.model_id == "script/a"
    assert slow.result.stop_reason == "local_decode_timeout"
    assert slow.text.startswith("a")
    assert [attempt.reason for attempt in slow.attempts] == ["timeout", "error", "error"]
    assert slow.story.count("What it had written is the answer, since there is no other.") == 1
    ill(engines, b=None)
    assert ask(router, time_limit=1.0).model_id != "script/a"


def test_a_busy_engine_hands_over_and_that_is_not_held_against_its_model(router, engines):
    session = engines["a"].start("a", paused=True)
    answer = ask(router)
    session.stop()
    assert answer.model_id == "script/b"
    assert isinstance(answer.attempts[0].error, EngineBusy)
    assert (answer.attempts[0].outcome, answer.attempts[0].reason) == ("inconclusive", "refused")
    assert router.history.tracker.profile("script/a").total.fail_count == 0


def test_refused_content_is_raised_and_nobody_else_is_asked(router, engines):
    ill(engines, a=raising(ContentRefused("the provider will not answer this")))
    with pytest.raises(ContentRefused, match="the provider will not answer this"):
        ask(router)
    tracker = router.history.tracker
    assert tracker.profile("script/a").total.inconclusive_count == 1
    assert list(tracker.profiles) == ["script/a"]


def test_an_error_that_cannot_say_itself_still_has_its_place_in_the_story(router, engines):
    class Speechless(BaseException):
        def __str__(self):
            raise ValueError("no words")

    ill(engines, a=raising(Speechless()), b=raising(SystemExit(3)))
    answer = ask(router)
    assert answer.model_id == "script/c"
    assert "Speechless, whose message cannot be shown" in answer.story
    assert "raised SystemExit: 3" in answer.story


def test_when_all_fail_the_error_says_it_of_each(router, engines):
    ill(engines, a=out_of_memory, b=raising(RuntimeError("gone")), c=raising(RuntimeError("gone too")))
    with pytest.raises(AllModelsFailed) as caught:
        ask(router)
    assert [attempt.model_id for attempt in caught.value.attempts] == ["script/a", "script/b", "script/c"]
    lines = str(caught.value).splitlines()
    assert lines[0] == "No model answered:"
    assert lines[1].startswith("  script/a: ran out of memory after ")


def test_a_named_model_has_no_fallback_and_its_error_is_raised(router, engines):
    ill(engines, a=raising(RuntimeError("gone")))
    with pytest.raises(ForwardFailed, match="gone"):
        ask(router, model="script/a")
    assert list(router.history.tracker.profiles) == ["script/a"]


def test_a_stop_by_the_user_returns_what_there_is_and_asks_nobody_else(router, engines):
    ill(engines, a=lambda: time.sleep(0.02))
    answer = ask(router, max_tokens=50, ignore_eos=True, on_start=lambda _, session: session.stop())
    assert answer.result.stop_reason == "stopped"
    assert [attempt.reason for attempt in answer.attempts] == ["cancelled"]
    assert router.history.tracker.profile("script/a").total.inconclusive_count == 1


def test_an_interrupt_while_a_model_is_loading_is_raised_and_written_down(tmp_path):
    router = Router(
        Registry([local("torch/a", source={"kind": "folder", "location": "/m"})]), folder=tmp_path
    )

    def interrupted(model, *, patience):
        raise KeyboardInterrupt

    router._shelf.take = interrupted
    with pytest.raises(KeyboardInterrupt):
        ask(router)
    assert router.history.tracker.profile("torch/a").total.inconclusive_count == 1


def test_a_view_that_breaks_costs_no_answer(router):
    def broken(model, session):
        raise RuntimeError("the view is gone")

    assert ask(router, on_start=broken).model_id == "script/a"


def test_each_attempt_s_session_can_be_watched(router, engines):
    ill(engines, a=raising(RuntimeError("gone")))
    seen = []
    ask(router, on_start=lambda model, session: seen.append((model.id, session.done)))
    assert [model_id for model_id, _ in seen] == ["script/a", "script/b"]


def test_a_model_that_was_removed_is_neither_asked_nor_kept_in_memory(router):
    ask(router, model="script/a")
    router.registry.remove("script/a")
    assert ask(router).model_id == "script/b"
    assert router.machine().loaded == {"script/b", "script/c"}
