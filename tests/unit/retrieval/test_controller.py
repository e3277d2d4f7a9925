"""What a controller decides over an answer, with outcomes of look-ups by hand."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_answers import found, hit, play, steps

from cartoolkit.errors import InvalidRequest
from cartoolkit.retrieval import (
    AnyTokenInSentence,
    Budget,
    ContentTokenBelow,
    Continue,
    Ended,
    EverySentence,
    EveryTokens,
    Failed,
    Finish,
    Found,
    GoOn,
    LookUp,
    MaskedLookahead,
    Never,
    Partial,
    Policy,
    Question,
    QuestionAndAccepted,
    RegenerateSentence,
    Restart,
    ResumeFrom,
    RollbackToWord,
    TookTooLong,
    WindowMaxProb,
    drive,
    preset,
)

STEADY = settings(derandomize=True, deadline=None, database=None, max_examples=300)
WRONG = ["It", " is", (" Belize", 0.3), (" City", 0.9), "."]
RIGHT = ["It", " is", " Bel", "mop", "an", "."]


def eager(**changes):
    return Policy(trigger=ContentTokenBelow(0.6), query=QuestionAndAccepted(), **changes)


def write_right_with_passages(ids):
    return RIGHT if ids else WRONG


# A look-up that brings something


def test_a_rollback_keeps_what_stands_before_the_word_in_doubt():
    played = play(eager(), write_right_with_passages, lambda _: found("p1"), question="Capital?")
    (look_up,) = played.look_ups
    assert (look_up.query, look_up.position, look_up.keep) == ("Capital? It is", 3, 2)
    assert look_up.trigger_steps == (2,)
    assert look_up.reason == "' Belize' at 0.300, below 0.6"
    assert played.decisions == [ResumeFrom(2, 1, (hit("p1"),), (hit("p1"),))]
    assert played.text == "It is Belmopan."
    tally = played.finish.tally
    assert (tally.kept, tally.decoded, tally.retrievals, tally.fruitless) == (6, 7, 1, 0)
    # "Passage p1." has 11 bytes, of which three are counted as a token.
    assert tally.context_tokens == 4


def test_a_sentence_in_doubt_is_written_anew_and_then_stands():
    policy = Policy(trigger=AnyTokenInSentence(0.8), query=MaskedLookahead(), resume=RegenerateSentence())
    first = ["He", " is", " old", "."]

    def write(ids):
        second = [" It", " is", (" so", 0.5), "."] if ids else [" It", " is", (" no", 0.3), "."]
        return [*first, *second, " So", " it", " is", "."]

    played = play(policy, write, lambda _: found("p1"))
    # The doubt in the sentence that was written anew is not asked about.
    (look_up,) = played.look_ups
    # " So" had to be decoded to know that the sentence had ended.
    assert (look_up.position, look_up.keep, look_up.query) == (9, 4, "Who? It is")
    assert played.text == "He is old. It is so. So it is."


def test_after_the_sentence_that_stands_unseen_the_next_is_looked_at():
    policy = Policy(
        trigger=AnyTokenInSentence(0.8), query=MaskedLookahead(), resume=RegenerateSentence(),
        budget=Budget(max_retrievals=5),
    )  # fmt: skip
    low = [("One", 0.5), ".", (" Two", 0.5), ".", (" Six", 0.5), "."]
    played = play(policy.changed(query=Partial()), lambda ids: low, found)
    # Each is asked about once and then written anew unseen.
    assert [look_up.keep for look_up in played.look_ups] == [0, 2, 4]
    assert played.queries == ["One.", "One. Two.", "One. Two. Six."]


def test_a_confident_look_ahead_is_accepted_without_a_second_pass():
    played = play(preset("flare"), ["It", " is", " so", ".", " And", " so", "."], lambda _: found("p1"))
    assert played.look_ups == []
    assert played.finish.tally.decoded == played.finish.tally.kept == 7


def test_the_last_sentence_is_looked_at_when_the_loop_has_ended():
    played = play(preset("flare"), write_right_with_passages, lambda _: found("p1"))
    assert [look_up.position for look_up in played.look_ups] == [5]
    assert played.text == "It is Belmopan."
    assert played.finish.reason == "stop"


@pytest.mark.parametrize("ended", ["stopped", "time_limit", "local_decode_timeout", "error"])
def test_nothing_is_looked_up_after_a_user_or_a_clock_ended_it(ended):
    played = play(preset("flare"), WRONG, lambda _: found("p1"), ended=ended)
    assert played.look_ups == []
    assert played.finish.reason == ended


def test_continue_drops_nothing():
    policy = eager(resume=Continue())
    played = play(policy, lambda ids: [*WRONG, " Or", " so"], lambda _: found("p1"))
    assert [(each.keep, each.dropped) for each in played.decisions] == [(3, 0)]
    assert played.text == "It is Belize City. Or so"


def test_the_passive_baselines_look_up_on_the_way_and_not_after_the_end():
    every = Policy(
        trigger=EverySentence(), query=Partial(), resume=Continue(), budget=Budget(max_retrievals=9)
    )
    played = play(every, ["One", ".", " Two", ".", " Six", "."], found)
    assert played.queries == ["One.", "One. Two."]
    stride = Policy(
        trigger=EveryTokens(2), query=Partial(), resume=Continue(), budget=Budget(max_retrievals=9)
    )
    played = play(stride, ["a", " b", " c", " d", " e"], found)
    assert played.queries == ["a b", "a b c d"]


def test_pre_retrieval_asks_the_question_before_the_first_token():
    played = play(preset("upfront"), write_right_with_passages, lambda _: found("p1"), question=" Capital? ")
    (look_up,) = played.look_ups
    assert (look_up.query, look_up.position, look_up.upfront) == ("Capital?", 0, True)
    assert played.text == "It is Belmopan."
    # It is not one of the answer's own.
    assert played.finish.tally.retrievals == 0


def test_what_the_caller_wrote_survives_a_restart():
    forced = [{"text": "X", "forced": True}, {"text": " is", "forced": True}]
    policy = eager(resume=Restart())
    played = play(policy, lambda ids: [*forced, *([" Y"] if ids else [(" Z", 0.1)])], lambda _: found("p1"))
    assert [look_up.keep for look_up in played.look_ups] == [2]
    assert played.text == "X is Y"


def test_passages_replace_the_old_ones_where_the_policy_says_so():
    answers = {(): ["a", (" b", 0.1)], ("1",): ["a", " b", (" c", 0.1)], ("2", "3"): ["a", " b", " c"]}
    outcomes = iter([found("1"), found("2", "3")])
    policy = eager(context="replace")
    played = play(policy, answers.__getitem__, lambda _: next(outcomes))
    assert [each.id for each in played.context] == ["2", "3"]


def test_what_was_replaced_may_be_asked_for_again():
    policy = Policy(
        trigger=AnyTokenInSentence(0.8),
        query=MaskedLookahead(ask_question=False),
        resume=Continue(),
        context="replace",
        budget=Budget(max_retrievals=9),
    )
    pieces = [each for word in ("Yes", "No", "Yes") for each in (word, (" so", 0.3), ".\n")]
    assert play(policy, [*pieces, "End"], found).queries == ["Yes", "No", "Yes"]
    assert play(policy.changed(context="append"), [*pieces, "End"], found).queries == ["Yes", "No"]


# One that brings nothing


@pytest.mark.parametrize(
    ("outcome", "note"),
    [
        (Found(), "nothing was found"),
        (Found((hit("p1", " \n"),)), "nothing was found"),
        (found("old"), "nothing new was found"),
        (Failed("no such file"), "the look-up failed: no such file"),
        (TookTooLong(2.0), "the look-up took more than 2 s"),
        (Found((hit("big", "x" * 1_000_000),)), "1 did not fit into max_context_tokens=1024"),
    ],
)
def test_a_look_up_in_vain_changes_nothing_and_burns_no_attempt(outcome, note):
    policy = eager(budget=Budget(max_retrievals=1))
    played = play(policy, WRONG, lambda _: outcome, context=[hit("old")])
    assert played.decisions == [GoOn(note)]
    assert played.text == "It is Belize City."
    tally = played.finish.tally
    assert (tally.retrievals, tally.fruitless, tally.decoded) == (0, 1, 5)


def test_after_one_in_vain_the_next_one_may_still_be_made():
    outcomes = iter([Found(), found("p1")])
    policy = eager(budget=Budget(max_retrievals=1))
    played = play(
        policy, lambda ids: ["a", (" b", 0.1), " d" if ids else (" c", 0.1)], lambda _: next(outcomes)
    )
    assert played.queries == ["Who? a", "Who? a b"]
    assert played.text == "a b d"


def test_the_reason_of_a_look_up_in_vain_at_the_end_is_in_the_finish():
    assert play(preset("flare"), WRONG).finish.note == "nothing was found"


def test_look_ups_in_vain_come_to_an_end():
    policy = eager(budget=Budget(max_fruitless=3))
    played = play(policy, [(f" w{i}", 0.1) for i in range(20)])
    assert len(played.look_ups) == 3


def test_what_was_answered_is_not_asked_again():
    policy = Policy(trigger=ContentTokenBelow(0.6), query=Question())
    played = play(policy, lambda ids: [("a", 0.1), (" b", 0.1), (" c", 0.1)], lambda _: found("p1"))
    assert played.queries == ["Who?"]


def test_what_failed_may_be_asked_again():
    policy = Policy(trigger=ContentTokenBelow(0.6), query=Question(), budget=Budget(max_fruitless=2))
    played = play(policy, [("a", 0.1), (" b", 0.1), (" c", 0.1)], lambda _: Failed("busy"))
    assert played.queries == ["Who?", "Who?"]


def test_an_empty_query_asks_the_question_and_without_one_nothing_is_asked():
    policy = Policy(trigger=ContentTokenBelow(0.6), query=Partial())
    assert play(policy, [("a", 0.1)]).queries == ["Who?"]
    assert play(policy, [("a", 0.1)], question=" ").queries == []
    assert play(preset("upfront"), ["a"], question="").queries == []


# Passages


def test_passages_are_held_once():
    outcomes = iter([found("1", "2", "1"), found("2", "3")])
    policy = eager()
    answers = {0: [("a", 0.1)], 2: ["a", (" b", 0.1)], 3: ["a", " b"]}
    played = play(policy, lambda ids: answers[len(ids)], lambda _: next(outcomes))
    assert [each.id for each in played.context] == ["1", "2", "3"]
    assert [each.id for each in played.decisions[1].added] == ["3"]
    assert played.decisions[1].note == "1 passage was there already"


def test_the_context_is_bounded_and_a_passage_is_taken_whole_or_not():
    policy = eager(budget=Budget(max_context_tokens=25))
    hits = (hit("a", "x" * 10), hit("b", "x" * 20), hit("c", "x" * 15))
    played = play(
        policy, lambda ids: [("a", 0.1 if not ids else 0.9)], lambda _: Found(hits), count_tokens=len
    )
    assert [each.id for each in played.context] == ["a", "c"]
    assert played.decisions[0].note == "1 did not fit into max_context_tokens=25"
    assert played.finish.tally.context_tokens == 25


# Budgets


def test_no_more_retrievals_than_the_budget():
    policy = eager(budget=Budget(max_retrievals=2))
    played = play(policy, [(f" w{i}", 0.1) for i in range(9)], found)
    assert len(played.look_ups) == played.finish.tally.retrievals == 2


def test_a_cool_down_counts_decoded_tokens():
    policy = eager(budget=Budget(max_retrievals=9, cooldown_tokens=3), resume=Continue())
    played = play(policy, [(f" w{i}", 0.1) for i in range(8)], found)
    # At positions 1, 4 and 7: three tokens are decoded after each before the next.
    assert [look_up.position for look_up in played.look_ups] == [1, 4, 7]


def test_the_look_up_before_the_answer_starts_no_cool_down():
    policy = eager(pre_retrieve=True, budget=Budget(cooldown_tokens=8))
    outcomes = iter([found("1"), found("2")])
    played = play(policy, lambda ids: [("a", 0.1 if len(ids) < 2 else 0.9), " b"], lambda _: next(outcomes))
    # At the first token the accepted text is empty and the query would be the same question again.
    assert played.queries == ["Who?"]
    played = play(policy.changed(query=Partial()), lambda ids: ["a", (" b", 0.1), " c"], found)
    assert played.queries == ["Who?", "a"]


def test_decoded_tokens_have_a_cap_of_their_own():
    policy = eager(budget=Budget(max_retrievals=9, max_decoded_tokens=4), resume=Restart())
    played = play(policy, lambda ids: ["a", (" b", 0.1), " c"], found)
    assert played.finish.tally.decoded == 4
    assert (played.finish.reason, played.finish.note) == ("length", "max_decoded_tokens=4")


def test_no_look_up_is_begun_after_the_deadline():
    policy = eager(budget=Budget(deadline_s=1.0, lookup_timeout_s=0.5))
    late = [{"text": "a", "max_prob": 0.9, "elapsed": 0.8}, {"text": " b", "max_prob": 0.1, "elapsed": 0.9}]
    (look_up,) = play(policy, late).look_ups
    assert look_up.timeout_s == pytest.approx(0.1)
    late[1]["elapsed"] = 1.0
    assert play(policy, late).look_ups == []


def test_a_token_taken_over_from_another_run_has_no_time():
    policy = eager(budget=Budget(deadline_s=1.0, lookup_timeout_s=None))
    pieces = [
        {"text": "a", "max_prob": 0.9, "elapsed": 0.25},
        {"text": " b", "max_prob": 0.1, "elapsed": float("nan")},
    ]
    assert [look_up.timeout_s for look_up in play(policy, pieces).look_ups] == [0.75]


def test_a_look_up_waits_as_long_as_the_budget_says():
    assert [look_up.timeout_s for look_up in play(eager(), WRONG).look_ups] == [10]
    forever = eager(budget=Budget(lookup_timeout_s=None))
    assert [look_up.timeout_s for look_up in play(forever, WRONG).look_ups] == [None]


# The protocol


def test_a_report_that_does_not_fit_is_refused():
    controller = drive(eager(), "Who?")
    assert next(controller) == GoOn()
    with pytest.raises(InvalidRequest, match="a Step or Ended was due"):
        controller.send(found("p1"))
    controller = drive(preset("upfront"), "Who?")
    assert isinstance(next(controller), LookUp)
    with pytest.raises(InvalidRequest, match="an outcome was due after a LookUp"):
        controller.send(Ended("stop"))


def test_nothing_comes_after_the_finish():
    controller = drive(preset("none"), "Who?")
    next(controller)
    assert isinstance(controller.send(Ended("stop")), Finish)
    with pytest.raises(StopIteration):
        controller.send(Ended("stop"))


def test_a_policy_serves_many_answers_at_once():
    policy = preset("seed")
    pieces = steps(*[(f" w{i}", 0.1) for i in range(3)])
    one, two = drive(policy, "Who?"), drive(policy, "Who?")
    next(one), next(two)
    decisions = [(one.send(each), two.send(each)) for each in pieces]
    assert [isinstance(a, LookUp) and isinstance(b, LookUp) for a, b in decisions] == [False, False, True]


# Whatever happens

PIECES = st.tuples(
    st.sampled_from(["It", " is", " so", ".", "\n", " the", "。", "ing", "<think>", "</think>", ","]),
    st.floats(0.01, 1),
)
TRIGGERS = st.sampled_from(
    [
        WindowMaxProb(0.5, 2),
        ContentTokenBelow(0.5),
        AnyTokenInSentence(0.5),
        EveryTokens(2),
        EverySentence(),
        Never(),
    ]
)
POLICIES = st.builds(
    Policy,
    pre_retrieve=st.booleans(),
    trigger=TRIGGERS,
    query=st.sampled_from([Partial(), Question(), QuestionAndAccepted(), MaskedLookahead()]),
    resume=st.sampled_from([Restart(), RollbackToWord(), RegenerateSentence(), Continue()]),
    budget=st.builds(
        Budget,
        max_retrievals=st.integers(0, 3),
        max_fruitless=st.integers(0, 3),
        max_kept_tokens=st.none() | st.integers(1, 12),
        max_decoded_tokens=st.none() | st.integers(1, 20),
        max_context_tokens=st.none() | st.integers(0, 12),
        cooldown_tokens=st.integers(0, 4),
    ),
    context=st.sampled_from(["append", "replace"]),
)
OUTCOMES = st.sampled_from([found("1"), found("2", "3"), Found(), Failed("x"), TookTooLong(1.0)])


@STEADY
@given(
    POLICIES, st.lists(st.lists(PIECES, max_size=15), min_size=4, max_size=4), st.lists(OUTCOMES, max_size=12)
)
def test_budgets_hold_whatever_is_written_and_found(policy, texts, outcomes):
    coming = iter(outcomes)
    played = play(policy, lambda ids: texts[len(ids)], lambda _: next(coming, Found()))
    tally, budget = played.finish.tally, policy.budget
    asked = [look_up for look_up in played.look_ups if not look_up.upfront]
    resumed = [d for d in played.decisions if isinstance(d, ResumeFrom)]
    assert tally.retrievals <= budget.max_retrievals
    assert len(asked) <= budget.max_retrievals + budget.max_fruitless
    assert tally.kept <= tally.decoded
    assert tally.kept <= (budget.max_kept_tokens or tally.kept)
    assert tally.decoded <= (budget.max_decoded_tokens or tally.decoded)
    assert tally.decoded == tally.kept + sum(d.dropped for d in resumed)
    assert all(0 <= look_up.keep <= look_up.position for look_up in played.look_ups)
    assert budget.max_context_tokens is None or tally.context_tokens <= budget.max_context_tokens
    assert len({each.id for each in played.context}) == len(played.context)


@STEADY
@given(POLICIES, st.lists(PIECES, max_size=20), st.sampled_from([Found(), Failed("x"), TookTooLong(1.0)]))
def test_a_retriever_that_brings_nothing_leaves_the_text_as_it_was(policy, pieces, outcome):
    plain = preset("none", max_kept_tokens=policy.budget.max_kept_tokens)
    plain = plain.changed(max_decoded_tokens=policy.budget.max_decoded_tokens)
    assert play(policy, pieces, lambda _: outcome).text == play(plain, pieces).text


@STEADY
@given(st.lists(PIECES, max_size=20))
def test_a_trigger_that_never_fires_gives_the_text_back(pieces):
    played = play(Policy(trigger=Never()), pieces, lambda _: found("1"))
    assert played.text == "".join(text for text, _ in pieces)
    assert played.look_ups == []
