"""Replays: which look-ups would have been made, against those that were made."""

import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_answers import found, hit, step, steps

from cartoolkit.errors import InvalidRequest
from cartoolkit.retrieval import (
    AnyTokenInSentence,
    ContentTokenBelow,
    Ended,
    EntropyTrend,
    Failed,
    Finish,
    Found,
    LookUp,
    Partial,
    Policy,
    Recording,
    RegenerateSentence,
    ResumeFrom,
    RollbackToWord,
    TookTooLong,
    drive,
    preset,
    retrieval_event,
    simulate,
)
from cartoolkit.trace import ModelInfo, Trace, TraceHeader

STEADY = settings(derandomize=True, deadline=None, database=None, max_examples=200)
MODEL = ModelInfo(
    name="tiny", engine="torch", device="cpu", dtype="float32", context_length=64, vocab_size=99
)
# Sixty-fourths: a trace keeps float32, which may lie on the other side of a threshold such as 0.4.
PIECES = st.tuples(
    st.sampled_from(["It", " is", " so", ".", " And", "ing", "\n", "。", " the"]),
    st.integers(4, 64).map(lambda n: n / 64),
)


def trace(recorded, events=(), stop_reason="stop"):
    bytes_of = {each.token_id: each.bytes for each in recorded}
    header = TraceHeader(model=MODEL, stop_reason=stop_reason, events=list(events))
    return Trace.from_steps(header, recorded, token_bytes=bytes_of.__getitem__)


def record(policy, write, look, question="Who?"):
    """A run as an engine would record it: all steps, dropped ones too, and an event a look-up.

    Returns the trace and the look-ups.
    """
    recorded, standing, events, look_ups = [], [], [], []
    pieces, controller, ended = list(write(())), drive(policy, question), ""
    decision = next(controller)
    while not isinstance(decision, Finish):
        if isinstance(decision, LookUp):
            look_up, report = decision, look(decision.query)
            decision = controller.send(report)
            look_ups.append(look_up)
            events.append(retrieval_event(look_up, report, decision, at=len(recorded), ended=ended, ms=1.5))
            continue
        if isinstance(decision, ResumeFrom):
            for index in standing[decision.keep :]:
                recorded[index] = _dropped(recorded[index])
            del standing[decision.keep :]
            pieces = list(write(tuple(each.id for each in decision.context)))
        if len(standing) < len(pieces):
            ended = ""
            recorded.append(step(len(recorded), pieces[len(standing)]))
            standing.append(len(recorded) - 1)
            decision = controller.send(recorded[-1])
        else:
            ended = "stop"
            decision = controller.send(Ended("stop"))
    return trace(recorded, events), look_ups


def _dropped(each):
    return replace(each, kept=False)


def asked(look_ups):
    return [(u.position, u.keep, u.query, u.trigger_steps) for u in look_ups]


def test_look_ups_over_a_text_by_hand():
    run = steps("It", " is", (" Bel", 0.5), "ize", (" City", 0.3), ".")
    simulation = simulate(run, preset("rollback", threshold=0.6, cooldown_tokens=0), "Capital?")
    assert asked(simulation.look_ups) == [
        (3, 2, "Capital? It is", (2,)),
        (5, 4, "Capital? It is Belize", (4,)),
    ]
    assert simulation.trigger_steps == (2, 4)
    assert simulation.finish.tally.decoded == 6
    assert asked(simulate(run, preset("rollback", threshold=0.4), "Capital?").look_ups) == [
        (5, 4, "Capital? It is Belize", (4,))
    ]
    assert simulate(run, preset("rollback", threshold=0.2), "Capital?").look_ups == ()


def test_a_replay_says_before_which_step_it_would_have_looked_something_up():
    run = steps("It", " is", (" Bel", 0.5), "ize", (" City", 0.3), ".")
    assert simulate(run, preset("rollback", threshold=0.6, cooldown_tokens=0), "Capital?").at == (3, 5)
    # The sentence has ended with the answer, after its last step.
    assert simulate(run, preset("flare", threshold=0.6), "Capital?").at == (6,)
    assert simulate(run, preset("upfront"), "Capital?").at == (0,)
    # Step 1 was dropped and nothing says where, so only its number is left out.
    standing = trace([run[0], _dropped(run[1]), run[2], run[3]])
    assert simulate(standing, preset("rollback", threshold=0.6), "Capital?").at == (3,)


def test_a_saved_trace_is_replayed_as_its_steps_are():
    run = steps("It", " is", (" Bel", 0.5), "ize", (" City", 0.3), ".")
    for name in ("seed", "flare", "rollback", "upfront"):
        assert simulate(trace(run), preset(name), "Q").look_ups == simulate(run, preset(name), "Q").look_ups


def test_the_budget_ends_a_replay():
    finish = simulate(steps("a", " b", " c"), preset("none", max_kept_tokens=2)).finish
    assert (finish.reason, finish.note, finish.tally.kept) == ("length", "max_kept_tokens=2", 2)


def test_a_run_s_own_end_is_taken_over():
    assert simulate(trace(steps("a"), stop_reason="stopped"), preset("none")).finish.reason == "stopped"
    stopped = trace(steps(("Paris", 0.1)), stop_reason="stopped")
    assert simulate(stopped, preset("flare")).look_ups == ()


def test_thinking_that_the_prompt_began_is_told():
    run = steps((" Hm", 0.1), "</think>", " b")
    assert simulate(run, preset("rollback"), "Q", thinking=True).look_ups == ()
    assert len(simulate(run, preset("rollback"), "Q").look_ups) == 1


def test_a_run_without_numbers_is_refused():
    with pytest.raises(InvalidRequest, match="inspect=False"):
        simulate(trace(steps({"text": "Paris"})), preset("rollback"))


def test_a_trace_that_dropped_tokens_without_saying_where_is_read_as_what_stands():
    run = [steps("It")[0], _dropped(step(1, (" no", 0.1))), step(2, " so")]
    assert Recording.of(trace(run)).steps[1].text == " so"
    assert simulate(trace(run), preset("rollback"), "Q").look_ups == ()


def test_another_policy_looks_at_what_was_written_after_a_recorded_rollback():
    recorded, _ = record(
        preset("rollback", threshold=0.2),
        lambda ids: ["It", " is", (" so", 0.5), "."] if ids else ["It", " is", (" Lyon", 0.1)],
        lambda _: found("1"),
    )
    assert [each.kept for each in recorded] == [True, True, False, True, True]
    (look_up,) = simulate(recorded, preset("flare", threshold=0.6), "Who?").look_ups
    assert (look_up.position, look_up.keep, look_up.trigger_steps) == (4, 0, (3,))


def test_tokens_dropped_at_the_very_end_are_dropped_in_the_replay():
    policy = preset("rollback")
    recorded, _ = record(
        policy, lambda ids: ["It", " is"] if ids else ["It", " is", (" Lyon", 0.1)], lambda _: found("1")
    )
    tally = simulate(recorded, policy, "Who?").finish.tally
    assert (tally.kept, tally.decoded) == (2, 3)


POLICIES = st.sampled_from(
    [
        preset("seed", threshold=0.5, window=2),
        preset("flare", threshold=0.5),
        preset("rollback", threshold=0.5),
        preset("rollback", threshold=0.5, cooldown_tokens=0, pre_retrieve=True),
        Policy(trigger=AnyTokenInSentence(0.5), query=Partial(), resume=RollbackToWord()),
        Policy(trigger=ContentTokenBelow(0.5), query=Partial(), resume=RegenerateSentence()),
    ]
)
OUTCOMES = st.sampled_from([found("1"), found("2", "3"), Found(), Failed("x"), TookTooLong(1.0)])


@STEADY
@given(
    POLICIES,
    st.lists(st.lists(PIECES, max_size=12), min_size=4, max_size=4),
    st.lists(OUTCOMES, max_size=8),
)
def test_a_run_s_own_policy_gives_its_own_look_ups_again(policy, texts, outcomes):
    coming = iter(outcomes)
    recorded, look_ups = record(policy, lambda ids: texts[len(ids)], lambda _: next(coming, Found()))
    again = simulate(recorded, policy, "Who?")
    assert asked(again.look_ups) == asked(look_ups)


@STEADY
@given(POLICIES, st.lists(PIECES, max_size=30))
def test_a_replay_gives_the_same_every_time(policy, pieces):
    recording = Recording.of(trace(steps(*pieces)))
    assert simulate(recording, policy, "Who?") == simulate(recording, policy, "Who?")


@STEADY
@given(st.lists(PIECES, max_size=30), st.floats(0, 1), st.floats(0, 1))
def test_a_higher_threshold_asks_at_the_first_doubt_or_before(pieces, low, high):
    low, high = sorted((low, high))
    first = [
        next(
            (u.position for u in simulate(steps(*pieces), preset("rollback", threshold=t), "Q").look_ups), 99
        )
        for t in (high, low)
    ]
    assert first[0] <= first[1]


def test_five_hundred_steps_are_replayed_while_a_finger_moves():
    random = np.random.default_rng(0)
    words = [" the", " cap", "ital", " of", " Paris", ".", " It", " 3", ".", "14", ","]
    pieces = [(str(random.choice(words)), float(random.random() ** 0.3)) for _ in range(500)]
    run = [replace(each, entropy=3 * (1 - each.max_prob)) for each in steps(*pieces)]
    recording = Recording.of(trace(run))
    for policy in (preset("seed"), preset("flare"), preset("rollback"), Policy(trigger=EntropyTrend())):
        seconds = []
        for _ in range(5):
            begun = time.process_time()
            simulate(recording, policy, "Who?")
            seconds.append(time.process_time() - begun)
        # About 3 ms on a laptop; the bound catches work that grows with the square of the length.
        assert min(seconds) < 0.04


def test_an_event_says_what_happened():
    look_up = LookUp("Who?", 2, "one low token", position=5, keep=2, trigger_steps=(4,))
    decision = ResumeFrom(2, 3, (hit("old"), hit("p1")), (hit("p1"),), "1 passage was there already")
    event = retrieval_event(look_up, found("old", "p1"), decision, at=9, prefill_tokens=12, ms=3.5)
    assert (event.kind, event.at) == ("retrieval", 9)
    assert event.text == (
        "Looked up 'Who?' (one low token): 1 new passage, 3 tokens dropped; 1 passage was there already."
    )
    assert event.data["outcome"] == "found"
    assert event.data["added"] == ["p1"]
    assert [each["id"] for each in event.data["hits"]] == ["old", "p1"]
    assert (event.data["keep"], event.data["dropped"], event.data["prefill_tokens"]) == (2, 3, 12)


@pytest.mark.parametrize(
    ("report", "outcome"), [(Found(), "nothing"), (Failed("x"), "failed"), (TookTooLong(1.0), "timeout")]
)
def test_an_event_of_a_look_up_in_vain(report, outcome):
    controller = drive(preset("upfront"), "Who?")
    look_up = next(controller)
    event = retrieval_event(look_up, report, controller.send(report), at=0)
    assert event.data["outcome"] == outcome
    assert event.data["dropped"] == 0
    assert event.text.endswith("the text goes on.")


def test_an_event_goes_through_a_file(tmp_path):
    policy = preset("rollback")
    recorded, look_ups = record(
        policy, lambda ids: ["a", (" b", 0.9 if ids else 0.1), " c"], lambda _: found("1")
    )
    loaded = Trace.load(recorded.save(tmp_path / "run.trace"))
    assert asked(simulate(loaded, policy, "Who?").look_ups) == asked(look_ups)
    assert len(look_ups) == 1
