"""Look-ups read back from events: what they dropped and how they moved probabilities, by hand."""

import math

import numpy as np
import pytest

from cartoolkit.trace import Candidates, Event, Step
from cartoolkit.trace.look_ups import Chance, chances, dropped_rows, look_ups_of


def event(at, **data):
    return Event(kind="retrieval", text="", at=at, data=data)


def found(at, keep, dropped, **data):
    """A look-up before step `at` that found one passage."""
    hits = [{"id": "p", "score": 1.0, "source": "", "text": "A passage."}]
    return event(at, outcome="found", keep=keep, dropped=dropped, hits=hits, added=["p"], **data)


def step(index, token_id, prob, **others):
    """A step that took a token with this probability; `others` are candidates, ``t7=0.25``."""
    ids = [token_id, *(int(name[1:]) for name in others)]
    logprobs = np.log(np.array([prob, *others.values()], np.float32))
    candidates = Candidates(
        np.array(ids, np.int32), tuple(map(str, ids)), logprobs, logprobs, np.zeros(len(ids), np.uint8)
    )
    return Step(index, token_id, f" t{token_id}", b"", logprob=float(logprobs[0]), candidates=candidates)


def readable(moved):
    """Chances without the rounding of float32."""
    return [
        (chance.text, *(None if p is None else round(p, 6) for p in (chance.before, chance.after)))
        for chance in moved
    ]


def test_an_event_is_read_back():
    (look_up,) = look_ups_of(
        [
            Event(kind="truncated", text="The prompt was cut."),
            event(
                5, query="q", reason="r", position=4, trigger_steps=[3], upfront=False, outcome="found",
                hits=[
                    {"id": "a", "score": 2.5, "source": "s", "text": "A", "title": "T"},
                    {"id": "b", "score": 1, "source": "", "text": "B"},
                ],
                added=["b"], keep=3, dropped=1, note="n", ms=1.5, prefill_tokens=7.0, reused_tokens=2,
                prefill_ms=8.0,
            ),
        ]
    )  # fmt: skip
    assert (look_up.number, look_up.at, look_up.position, look_up.keep, look_up.dropped) == (1, 5, 4, 3, 1)
    assert (look_up.query, look_up.reason, look_up.outcome, look_up.note) == ("q", "r", "found", "n")
    assert [(hit.id, hit.title, hit.added) for hit in look_up.hits] == [("a", "T", False), ("b", "", True)]
    assert [hit.id for hit in look_up.added] == ["b"]
    assert (look_up.ms, look_up.prefill_tokens, look_up.reused_tokens, look_up.prefill_ms) == (1.5, 7, 2, 8.0)
    assert look_up.trigger_steps == (3,)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"hits": "all", "added": None, "trigger_steps": 3, "keep": -1, "dropped": "2", "position": True},
        {
            "hits": [None, {}, {"id": 3, "score": "high", "text": None}],
            "trigger_steps": [-1, "1", 2.5, 2**40],
        },
        {"ms": math.nan, "prefill_ms": math.inf, "prefill_tokens": 2.5, "query": 7, "upfront": "yes"},
    ],
)
def test_an_event_of_somebody_else_may_hold_anything(data):
    (look_up,) = look_ups_of([event(2, **data)])
    assert (look_up.keep, look_up.dropped, look_up.position, look_up.trigger_steps) == (0, 0, 0, ())
    assert (look_up.ms, look_up.prefill_ms, look_up.prefill_tokens, look_up.upfront) == (None,) * 3 + (False,)
    assert all(isinstance(part, str) for hit in look_up.hits for part in (hit.id, hit.text, hit.source))
    assert all(math.isnan(hit.score) for hit in look_up.hits)


def test_each_look_up_drops_what_stood_behind_what_it_kept():
    # 0 1 2 | keep 2 drops 2; 3 4 | 0 1 3 4 stand, keep 1 drops 1, 3 and 4; 5
    look_ups = look_ups_of([found(0, 0, 0, upfront=True), found(3, 2, 1), found(5, 1, 3), event(6)])
    assert dropped_rows(look_ups, 6) == [[], [2], [1, 3, 4], []]


def test_steps_that_the_policy_had_not_seen_are_dropped_too_and_the_text_goes_on_behind_them():
    # 0 1 2, and 3 and 4 that came with 2 | keep 1; 5 | keep 1 of 0 5
    look_ups = look_ups_of([found(3, 1, 2, unseen=2), found(6, 1, 1)])
    assert dropped_rows(look_ups, 7) == [[1, 2, 3, 4], [5]]
    assert [look_up.resumes_at for look_up in look_ups] == [5, 6]
    run = [step(0, 1, 0.5), step(1, 5, 0.25), step(2, 6, 0.5), step(3, 5, 0.75)]
    assert readable(chances(run, look_ups_of([found(2, 1, 1, unseen=1)]))[0]) == [(" t5", 0.25, 0.75)]


def test_look_ups_that_do_not_fit_the_run_drop_what_is_there():
    assert dropped_rows(look_ups_of([found(9, 1, 8), found(3, 0, 1)]), 3) == [[1, 2], [0]]


def test_the_dropped_token_and_the_one_in_its_place_are_compared_before_and_after():
    run = [
        step(0, 1, 0.5),
        step(1, 5, 0.375, t6=0.25),  # dropped
        step(2, 6, 0.75, t5=0.125),
    ]
    (moved,) = chances(run, look_ups_of([found(2, 1, 1, trigger_steps=[1])]))
    assert readable(moved) == [(" t5", 0.375, 0.125), (" t6", 0.25, 0.75)]


def test_the_first_difference_counts_not_the_place_of_the_rollback():
    run = [
        step(0, 1, 0.5),
        step(1, 5, 0.25),
        step(2, 1, 0.5),
        step(3, 6, 0.75),  # 5 was not among its candidates, nor 6 among those of step 1
    ]
    (moved,) = chances(run, look_ups_of([found(2, 0, 2, trigger_steps=[0])]))
    assert readable(moved) == [(" t5", 0.25, None), (" t6", None, 0.75)]


def test_where_nothing_differs_it_is_the_token_in_doubt():
    run = [step(0, 1, 0.75), step(1, 5, 0.25), step(2, 1, 0.75), step(3, 5, 0.875)]
    (moved,) = chances(run, look_ups_of([found(2, 0, 2, trigger_steps=[1])]))
    assert readable(moved) == [(" t5", 0.25, 0.875)]


def test_what_another_look_up_found_is_not_taken_for_the_work_of_this_one():
    run = [step(0, 1, 0.25), step(1, 1, 0.5), step(2, 2, 0.5)]
    first, second = chances(run, look_ups_of([found(1, 0, 1), found(1, 0, 0)]))
    assert (first, second) == ((), ())
    # One that found nothing changed nothing.
    first, _ = chances(run, look_ups_of([found(1, 0, 1), event(1, outcome="nothing")]))
    assert readable(first) == [(" t1", 0.25, 0.5)]


def test_nothing_is_compared_where_nothing_was_dropped_or_written_or_recorded():
    run = [step(0, 1, 0.5), step(1, 2, 0.5)]
    assert chances(run, look_ups_of([found(1, 1, 0)])) == [()]
    assert chances(run, look_ups_of([found(2, 1, 1)])) == [()]
    bare = [Step(0, 1, "a", b"a"), Step(1, 2, "b", b"b")]
    assert chances(bare, look_ups_of([found(1, 0, 1)])) == [
        (Chance("a", 1, None, None), Chance("b", 2, None, None))
    ]
