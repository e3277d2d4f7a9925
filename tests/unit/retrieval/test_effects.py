"""What look-ups did to an answer: words counted by hand."""

import numpy as np
import pytest

from cartoolkit.retrieval import Found, GoOn, Hit, LookUp, ResumeFrom, retrieval_event
from cartoolkit.retrieval.effects import effects_of, look_up_effects, retrieved_steps
from cartoolkit.trace import Candidates, ModelInfo, Step, Trace, TraceHeader
from cartoolkit.trace.look_ups import look_ups_of

MODEL = ModelInfo(
    name="tiny", engine="torch", device="cpu", dtype="float32", context_length=64, vocab_size=99
)


def step(index, text, *, kept=True, prob=0.5, rival=None):
    """A step; `rival` is the text and probability of one more candidate."""
    names, probs = zip((text, prob), *([rival] if rival else []), strict=True)
    ids = np.array([number(name) for name in names], np.int32)
    logprobs = np.log(np.array(probs, np.float32))
    candidates = Candidates(ids, names, logprobs, logprobs, np.zeros(len(ids), np.uint8))
    return Step(
        index, number(text), text, text.encode(), logprob=float(logprobs[0]), candidates=candidates, kept=kept
    )


def number(text):
    return sum(text.encode())


def looked_up(at, *texts, keep=None, upfront=False):
    """A look-up before step `at` that found passages of these texts; ids are p0, p1 and so on."""
    hits = tuple(Hit(f"p{i}", text, 1.0) for i, text in enumerate(texts))
    keep = at if keep is None else keep
    look_up = LookUp("query", 2, "doubt", position=at, keep=keep, upfront=upfront)
    decision = ResumeFrom(keep, at - keep, hits, hits) if hits else GoOn("nothing was found")
    return retrieval_event(look_up, Found(hits), decision, at=at)


def trace(steps, *events, question="What is the capital of Australia?"):
    bytes_of = {each.token_id: each.bytes for each in steps}
    bytes_of |= {i: b"?" for each in steps for i in each.candidates.ids.tolist() if i not in bytes_of}
    header = TraceHeader(model=MODEL, prompt=question, events=list(events))
    return Trace.from_steps(header, steps, token_bytes=bytes_of.__getitem__)


def words(effect, *texts):
    """The used ranges as words, to be read."""
    by_id = {f"p{i}": text for i, text in enumerate(texts)}
    return [(name, by_id[name][start:end]) for name, start, end in effect.used]


PASSAGE = "Canberra is the capital of Australia; Canberra's lake was filled in 1964."


def test_words_of_a_passage_that_the_answer_took_over_are_found_in_both():
    run = trace(
        [
            step(0, "It"),
            step(1, " is"),
            step(2, " Sydney", kept=False, prob=0.375, rival=(" Can", 0.25)),
            step(3, " Can", prob=0.75, rival=(" Sydney", 0.125)),
            step(4, "berra"),
            step(5, ", since"),
            step(6, " 19"),
            step(7, "64"),
            step(8, "."),
        ],
        looked_up(3, PASSAGE, keep=2),
    )
    (effect,) = look_up_effects(run)
    # "capital" and "Australia" stand in the question; "is", "the" and "was" say nothing.
    assert effect.used == (("p0", 0, 8), ("p0", 38, 48), ("p0", 68, 72))
    assert words(effect, PASSAGE) == [("p0", "Canberra"), ("p0", "Canberra's"), ("p0", "1964")]
    assert retrieved_steps(run) == [3, 4, 6, 7]
    before, after = effect.before_after
    assert (before.text, before.before, before.after) == (
        " Sydney",
        pytest.approx(0.375),
        pytest.approx(0.125),
    )
    assert (after.text, after.before, after.after) == (" Can", pytest.approx(0.25), pytest.approx(0.75))


def test_only_whole_words_count_in_any_case():
    run = trace(
        [step(0, "gold"), step(1, " and"), step(2, " go"), step(3, " AU"), step(4, " 79")],
        looked_up(0, "Gold (Au) has 179 golden rules, go on, 79.", upfront=True),
        question="?",
    )
    (effect,) = look_up_effects(run)
    assert words(effect, "Gold (Au) has 179 golden rules, go on, 79.") == [
        ("p0", "Gold"), ("p0", "Au"), ("p0", "go"), ("p0", "79"),
    ]  # fmt: skip
    assert retrieved_steps(run) == [0, 2, 3, 4]


def test_a_word_that_the_answer_had_already_is_not_brought_by_a_later_look_up():
    run = trace(
        [step(0, "Canberra"), step(1, " or"), step(2, " Canberra"), step(3, " 1964")], looked_up(2, PASSAGE)
    )
    (effect,) = look_up_effects(run)
    assert words(effect, PASSAGE) == [("p0", "1964")]
    assert retrieved_steps(run) == [3]


def test_a_dropped_word_neither_counts_nor_hides_the_one_that_stands():
    steps = [step(0, " Canberra", kept=False), step(1, " 1964", kept=False), step(2, " Canberra")]
    run = trace(steps, looked_up(2, PASSAGE, keep=0))
    assert words(look_up_effects(run)[0], PASSAGE) == [("p0", "Canberra"), ("p0", "Canberra's")]
    assert retrieved_steps(run) == [2]


def test_each_look_up_has_its_own_words():
    lake = "The lake is Burley Griffin."
    run = trace(
        [step(0, "Canberra"), step(1, " has"), step(2, " Bur"), step(3, "ley"), step(4, " Griffin")],
        looked_up(0, PASSAGE, upfront=True),
        looked_up(1),
        looked_up(2, lake, PASSAGE),
    )
    first, nothing, second = look_up_effects(run)
    assert words(first, PASSAGE) == [("p0", "Canberra"), ("p0", "Canberra's")]
    assert (nothing.used, nothing.before_after) == ((), ())
    assert words(second, lake, PASSAGE) == [("p0", "Burley"), ("p0", "Griffin")]
    assert retrieved_steps(run) == [0, 2, 3, 4]


def test_a_word_that_begins_before_the_look_up_is_not_brought_by_it():
    run = trace([step(0, " Can"), step(1, "berra")], looked_up(1, PASSAGE))
    assert look_up_effects(run)[0].used == ()
    assert retrieved_steps(run) == []


def test_a_passage_that_was_found_but_not_added_brings_nothing():
    (hit,) = (Hit("p0", PASSAGE, 1.0),)
    look_up = LookUp("query", 2, "doubt", position=0, keep=0)
    event = retrieval_event(look_up, Found((hit,)), GoOn("nothing new was found"), at=0)
    run = trace([step(0, "Canberra")], event)
    assert (look_up_effects(run)[0].used, retrieved_steps(run)) == ((), [])


@pytest.mark.parametrize("text", ["", "?!", "\n", "the of and"])
def test_passages_and_answers_without_words_bring_nothing(text):
    run = trace([step(0, text), step(1, " so")], looked_up(0, text or " ", "so the", upfront=True))
    assert look_up_effects(run)[0].used == ()
    assert retrieved_steps(trace([])) == []


def test_a_run_that_goes_on_says_the_same_as_its_trace():
    steps = [step(0, "It"), step(1, " is"), step(2, " Canberra")]
    run = trace(steps, looked_up(2, PASSAGE))
    assert effects_of(steps, look_ups_of(run.events), run.header.prompt) == (
        look_up_effects(run),
        retrieved_steps(run),
    )
