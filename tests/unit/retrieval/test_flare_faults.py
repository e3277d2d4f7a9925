"""The seed's rule kept, and each of the nine faults of its function gone.

The nine: the confidence of the likeliest token alone; the first token never looked at; dropped tokens
eating the answer's budget; a look-up in vain burning an attempt; passages twice and without bound; a
monitor that is silently off; stop strings without effect; thinking that triggers; three low tokens as the
only sign of doubt.
"""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_answers import SURE, found, hit, play, steps

from cartoolkit.engine.stops import StopGate
from cartoolkit.errors import InvalidRequest
from cartoolkit.retrieval import (
    Continue,
    Ended,
    Failed,
    Finish,
    Found,
    GoOn,
    LookUp,
    QuestionAndAccepted,
    drive,
    preset,
)

STEADY = settings(derandomize=True, deadline=None, database=None, max_examples=300)


def seed_rule(texts, threshold=0.4, window=3, most=2):
    """The seed's rule over one text that look-ups do not change: (position, query) of each.

    At the distribution that token i is drawn from, the tokens before it have been written. The seed began
    at the second token; that the first one counts is one of its faults mended.
    """
    run, decisions = 0, []
    for i, (_, prob) in enumerate(texts):
        run = run + 1 if prob < threshold else 0
        if run >= window and len(decisions) < most:
            run = 0
            decisions.append((i, "".join(text for text, _ in texts[:i])))
    return decisions


PIECES = st.tuples(st.sampled_from([" a", " b", ",", ".", "c"]), st.floats(0.01, 0.99))


@STEADY
@given(st.lists(PIECES, max_size=40))
def test_the_seed_preset_decides_as_the_seed_s_rule(pieces):
    # Continue, so that the text stays the same and only the decisions are compared.
    policy = preset("seed", resume=Continue(), max_words=1000)
    played = play(policy, pieces, found)
    expected = [(i, " ".join(query.split())) for i, query in seed_rule(pieces)]
    assert [(look_up.position - 1, look_up.query) for look_up in played.look_ups] == expected


def test_the_seed_preset_restarts_with_what_was_found():
    low = [("The", 0.9), (" x", 0.3), (" y", 0.3), (" z", 0.3), (" end", 0.9)]
    played = play(preset("seed"), lambda ids: ["Better"] if ids else low, lambda _: found("p1"))
    assert [(u.query, u.position, u.keep) for u in played.look_ups] == [("The x y", 4, 0)]
    assert played.text == "Better"


def test_doubt_is_raw_and_may_be_that_of_the_taken_token():
    # Sampled against the odds: the likeliest token was nearly sure, another one was taken.
    drawn = [{"text": "Lyon", "max_prob": 0.9, "logprob": math.log(0.05), "processed_logprob": -0.1}]
    assert play(preset("rollback"), drawn).look_ups == []
    assert len(play(preset("rollback", signal="prob"), drawn).look_ups) == 1


def test_the_first_token_counts():
    assert [u.position for u in play(preset("rollback"), [("Lyon", 0.3)]).look_ups] == [1]
    low = [("a", 0.1), (" b", 0.1), (" c", 0.1)]
    assert [u.position for u in play(preset("seed"), low).look_ups] == [3]


def test_dropped_tokens_do_not_eat_the_answer_s_budget():
    low = [("a", 0.9), (" b", 0.1), (" c", 0.1), (" d", 0.1)]
    whole = [f" w{i}" for i in range(6)]
    policy = preset("seed", max_kept_tokens=6)
    played = play(policy, lambda ids: whole if ids else low, lambda _: found("p1"))
    assert len(played.steps) == 6
    tally = played.finish.tally
    assert (tally.kept, tally.decoded) == (6, 10)


@pytest.mark.parametrize("outcome", [Found(), Failed("x"), found("old")])
def test_a_look_up_in_vain_burns_no_attempt_and_drops_nothing(outcome):
    low = [("a", 0.9), *[(f" w{i}", 0.1) for i in range(6)]]
    outcomes = iter([outcome, found("new")])
    policy = preset("seed", max_retrievals=1)
    played = play(
        policy, lambda ids: ["ok"] if "new" in ids else low, lambda _: next(outcomes), context=[hit("old")]
    )
    assert [u.position for u in played.look_ups] == [4, 7]
    assert played.finish.tally.retrievals == 1
    assert played.text == "ok"


def test_a_passage_is_put_into_the_prompt_once_and_the_prompt_is_bounded():
    low = [(f" w{i}", 0.1) for i in range(9)]
    outcomes = iter([found("1", "2"), found("1", "3", "4", "5"), found("1")])
    policy = preset("seed", max_retrievals=9, max_context_tokens=12)
    played = play(policy, lambda ids: low if len(ids) < 3 else ["ok"], lambda _: next(outcomes))
    # Four tokens each ("Passage 1." has ten bytes), so three fit.
    assert [each.id for each in played.context] == ["1", "2", "3"]
    assert (
        played.decisions[-1].note == "1 passage was there already; 2 did not fit into max_context_tokens=12"
    )


@pytest.mark.parametrize("name", ["seed", "flare", "rollback"])
def test_a_monitor_without_numbers_says_so(name):
    with pytest.raises(InvalidRequest, match="carries no max_prob") as caught:
        play(preset(name), [{"text": "a"}, {"text": " b"}, {"text": " c"}])
    assert "inspect=True" in caught.value.hint


@pytest.mark.parametrize("name", ["none", "upfront"])
def test_policies_without_a_monitor_need_no_numbers(name):
    assert play(preset(name), [{"text": "a"}, {"text": " b"}]).text == "a b"


WITHOUT = [("It", 0.9), (" was", 0.9), (" Lyon", 0.2), (" STOP", 0.9)]
WITH = [("It", 0.9), (" was", 0.9), (" Paris", 0.9), (" ST", 0.9), ("OP more", 0.9)]


def released(gate, pieces):
    """What the loop's gate lets through, and the end when a stop string is complete."""
    for each in pieces:
        certain, stop = gate.push(each)
        yield from certain
        if stop:
            yield Ended("stop")
            return


def test_stop_strings_hold_after_a_look_up():
    """Played with the loop's own gate, which begins anew over the tokens that stand."""
    controller = drive(preset("rollback"), "Who?")
    assert next(controller) == GoOn()
    coming, kept = released(StopGate(["STOP"]), steps(*WITHOUT)), []
    while not isinstance(decision := controller.send(next(coming)), LookUp):
        kept.append(decision)
    resumed = controller.send(found("p1"))
    assert (len(kept), resumed.keep) == (2, 2)
    coming = released(StopGate(["STOP"]), steps(*WITH))
    standing = [next(coming) for _ in range(resumed.keep)]
    while not isinstance(decision, Finish):
        standing.append(next(coming))
        decision = controller.send(standing[-1])
    assert "".join(each.text for each in standing[:-1]) == "It was Paris "
    assert decision.reason == "stop"


def test_thinking_neither_triggers_nor_is_asked():
    thinking = ["<think>", *[(f" t{i}", 0.1) for i in range(8)], "</think>"]
    for name in ("seed", "flare", "rollback"):
        assert play(preset(name), [*thinking, "\n\n", "Paris", "."]).look_ups == []
    played = play(preset("seed"), [*thinking, ("It", 0.1), (" is", 0.1), (" so", 0.1)])
    assert played.queries == ["It is"]
    opened = [*[(f" t{i}", 0.1) for i in range(8)], "</think>", "Paris", "."]
    assert play(preset("rollback"), opened, thinking=True).look_ups == []


def test_control_tokens_do_not_trigger():
    end = {"text": "", "special": True, "bytes": b"<|im_end|>", "max_prob": 0.1, "logprob": -3.0}
    for name in ("seed", "flare", "rollback"):
        assert play(preset(name), [("Paris", SURE), end, end, end]).look_ups == []


def test_one_low_token_in_a_wrong_word_is_noticed():
    wrong = ["It", " is", (" Bel", 0.3), ("ize", 0.99), (" City", 0.97), "."]
    assert play(preset("seed"), wrong).look_ups == []
    assert [u.keep for u in play(preset("rollback"), wrong, lambda _: Found()).look_ups] == [2]
    assert [u.keep for u in play(preset("flare"), wrong, lambda _: Found()).look_ups] == [0]


def test_the_question_is_part_of_the_query_and_the_seed_s_partial_text_is_a_switch():
    low = [("It", 0.9), (" x", 0.3), (" y", 0.3), (" z", 0.3)]
    assert play(preset("rollback"), low, question="Who was it?").queries[0] == "Who was it? It"
    assert play(preset("seed"), low, question="Who was it?").queries == ["It x y"]
    asked = preset("seed", query=QuestionAndAccepted())
    assert play(asked, low, question="Who was it?").queries == ["Who was it? It"]
