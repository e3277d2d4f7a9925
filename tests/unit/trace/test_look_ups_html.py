"""Look-ups in the still view: marks, cards, words from passages; exact text, whatever a passage holds."""

import math
from dataclasses import replace

import pytest
from test_trace_html import Page, check_is_harmless
from trace_samples import header, step, trace

from cartoolkit.trace import Event
from cartoolkit.trace.policy_text import policy_name, retriever_name, threshold_of, trigger_in_words
from cartoolkit.trace.static_html import run_html, run_text

PASSAGE = "The sky is <b>blue</b>."
POLICY = {
    "name": "rollback",
    "pre_retrieve": False,
    "trigger": {"kind": "ContentTokenBelow", "threshold": 0.6, "skip_function_words": True},
}


def look_up(at=2, **data):
    """One that dropped the step before it and found the passage, or what `data` says."""
    known = {
        "query": "why <sky>", "reason": "' sky' at 0.250, below 0.6", "position": at,
        "trigger_steps": [at - 1], "upfront": False, "outcome": "found", "keep": at - 1, "dropped": 1,
        "ended": "", "note": "",
        "hits": [
            {"id": "p", "score": 7.25, "source": "sky.md:3", "text": PASSAGE},
            {"id": "q", "score": 1.5, "source": "", "text": "Else."},
        ],
        "added": ["p"], "ms": 4.5, "prefill_tokens": 30, "reused_tokens": 12, "prefill_ms": 62.5,
    }  # fmt: skip
    return Event(kind="retrieval", text="Looked up.", at=at, data={**known, **data})


def steps():
    """The, then half an emoji that is dropped, then another token in its place."""
    return [
        step(0, 1, "The", (1, 3), (0.75, 0.125), (1, 0)),
        step(1, 3, " sky", (3, 4), (0.25, 0.125), (1, 0), kept=False),
        step(2, 4, " <script>alert(1)</script>", (4, 3), (0.75, 0.0625), (1, 0)),
    ]


def run(*look_ups, **changes):
    return trace(steps(), events=list(look_ups), **changes)


def card(page, number=1):
    sign = f"▲{number} "
    return next(
        e for e in page.elements if e["tag"] == "div" and e["text"].startswith(sign) and "asked" in e["text"]
    )


def test_a_mark_stands_where_the_dropped_text_ends():
    page = check_is_harmless(run_html(run(look_up())))
    assert page.answer["text"] == "The sky▲1 <script>alert(1)</script>"
    mark = next(e for e in page.elements if e["tag"] == "sup")
    assert mark["title"] == "look-up 1: ' sky' at 0.250, below 0.6"
    assert [e["text"] for e in page.elements if e["tag"] == "del"] == ["rolled back", " sky"]


def test_marks_before_the_answer_and_behind_its_last_token_have_a_place():
    first, last = look_up(0, upfront=True, dropped=0, keep=0), look_up(9, dropped=0)
    page = Page(run_html(run(first, last)))
    assert page.answer["text"].startswith("▲1The")
    assert page.answer["text"].endswith("▲2")
    assert Page(run_html(trace([], events=[look_up(0)]))).answer["text"] == "▲1"


def test_a_card_says_why_what_was_asked_what_came_and_what_it_cost():
    text = card(check_is_harmless(run_html(run(look_up()))))["text"]
    assert text.startswith("▲1 before token 2 · ' sky' at 0.250, below 0.6asked: why <sky>")
    assert "2 passages, 1 new · 1 token dropped · 4.5 ms · 30 tokens read in 62 ms · 12 re-used" in text
    assert "sky.md:3 · score 7.25 · added to the promptThe sky is <b>blue</b>." in text
    assert "score 1.5 · not addedElse." in text


def test_a_card_shows_the_probabilities_before_and_after():
    text = card(Page(run_html(run(look_up()))))["text"]
    # The token that was dropped had 0.25 and then 0.0625; the one that came had 0.125 and then 0.75.
    assert "before → after: ␣sky 0.250 → 0.062 · ␣<script>alert(1)</script> 0.125 → 0.750" in text


def test_words_that_entered_the_answer_are_bold_in_text_and_passage():
    page = check_is_harmless(run_html(run(look_up()), retrieved=[2], used=[[("p", 4, 7), ("p", 14, 18)]]))
    bold = [e for e in page.elements if e["tag"] == "b" and "#0b6b3a" in e.get("style", "")]
    assert [e["text"] for e in bold] == ["from a passage", "▲1", "sky", "blue"]
    token = page.tokens()[2]
    assert "#0b6b3a" in token["style"]
    assert token["title"].endswith("from a passage")
    assert PASSAGE in card(page)["text"]


@pytest.mark.parametrize(
    ("outcome", "note", "said"),
    [
        ("nothing", "nothing new was found", "nothing new was found"),
        ("failed", "the look-up failed: <gone>", "the look-up failed: <gone>"),
        ("timeout", "", "the look-up took too long"),
        ("mystery", "", "mystery"),
        ("", "", "nothing is known of it"),
    ],
)
def test_a_look_up_in_vain_says_what_happened(outcome, note, said):
    event = look_up(outcome=outcome, note=note, hits=[], added=[], dropped=0, ms=None, prefill_tokens=None,
                    reused_tokens=None, prefill_ms=None)  # fmt: skip
    page = check_is_harmless(run_html(run(event)))
    assert card(page)["text"].endswith(f"asked: why <sky>{said}")


def test_look_ups_are_not_told_twice():
    notice = Event(kind="truncated", text="The prompt was cut.")
    page = Page(run_html(run(notice, look_up())))
    assert "The prompt was cut." in page.text
    assert "Looked up." not in page.text
    lines = run_text(run(notice, look_up())).splitlines()
    assert "! The prompt was cut." in lines
    assert (
        "▲1 before token 2: asked “why <sky>” (' sky' at 0.250, below 0.6): 2 passages, 1 new, "
        "1 token dropped, 4.5 ms, 30 tokens read in 62 ms, 12 re-used"
    ) in lines
    assert not any("Looked up." in line for line in lines)
    assert "The <script>alert(1)</script>" in lines


@pytest.mark.parametrize(
    "text", ["</div></details>", '" onmouseover="x', "\u202eabc", "\x00", "你好", "<!-- x"]
)
def test_whatever_a_passage_or_a_query_holds_the_page_is_whole(text):
    hits = [{"id": text, "score": math.nan, "source": text, "title": text, "text": text}]
    event = look_up(query=text, reason=text, note=text, hits=hits, added=[text])
    check_is_harmless(run_html(run(event, retrieval={"policy": {"name": text}, "retriever": text})))


def test_an_event_without_data_is_shown_as_one_of_which_nothing_is_known():
    page = check_is_harmless(run_html(run(Event(kind="retrieval", text="", at=1))))
    assert "nothing is known of it" in page.text


def test_look_ups_of_a_hostile_file_are_bounded():
    hits = [{"id": str(i), "score": 1.0, "source": '"' * 5000, "text": '"' * 100_000} for i in range(50)]
    huge = look_up(query='"' * 100_000, reason='"' * 100_000, note='"' * 100_000, hits=hits)
    page = run_html(run(*[huge] * 50))
    assert "and 30 more" in page
    assert "and 40 more" in page
    assert "(98,000 more characters)" in page
    # 20 cards of 10 passages of 2,000 characters and three lines of 500, each quote six characters.
    assert len(page) < 20 * (10 * (2000 + 500 + 200) + 4 * 500) * 6
    assert len(run_text(run(*[huge] * 50))) < 20 * 4 * 600


def test_the_policy_is_named_with_what_it_asks():
    retrieval = {"policy": POLICY, "retriever": "<FTSRetriever>", "passages": 1205}
    page = check_is_harmless(run_html(run(look_up(), retrieval=retrieval)))
    sentence = "look-ups: rollback, at a content word below 0.6 · asks <FTSRetriever>, 1,205 passages"
    assert sentence in page.text
    assert sentence in run_text(run(look_up(), retrieval=retrieval))
    nobody = {"policy": {"name": "none", "trigger": {"kind": "Never"}}, "retriever": "", "passages": None}
    assert "look-ups: none, never\n" in run_text(run(retrieval=nobody))


@pytest.mark.parametrize(
    ("trigger", "words"),
    [
        ({"kind": "Never"}, "never"),
        ({"kind": "EveryTokens", "n": 16}, "every 16 tokens"),
        ({"kind": "EverySentence"}, "after every sentence"),
        ({"kind": "WindowMaxProb", "threshold": 0.4, "window": 3}, "at 3 tokens running below 0.4"),
        ({"kind": "ContentTokenBelow", "threshold": 0.5}, "at a token below 0.5"),
        ({"kind": "AnyTokenInSentence", "threshold": 0.8}, "at a sentence with a token below 0.8"),
        ({"kind": "EntropyAbove", "threshold": 2.0}, "at a token above 2 nats of entropy"),
        ({"kind": "Own", "threshold": 1}, "where Own fires"),
        ({"kind": "EveryTokens"}, "every ? tokens"),
        ("none", "where ? fires"),
    ],
)
def test_a_trigger_is_said_in_words(trigger, words):
    known = header(retrieval={"policy": {"name": "p", "trigger": trigger}, "retriever": "r"})
    assert trigger_in_words(known) == words


def test_a_look_up_before_the_answer_is_said_first():
    policy = {**POLICY, "pre_retrieve": True}
    assert (
        trigger_in_words(header(retrieval={"policy": policy}))
        == "before the answer, and at a content word below 0.6"
    )
    upfront = {**policy, "trigger": {"kind": "Never"}}
    assert trigger_in_words(header(retrieval={"policy": upfront})) == "before the answer"


@pytest.mark.parametrize("retrieval", [None, {}, {"policy": None}, {"policy": "rollback"}])
def test_a_run_without_a_policy_has_no_words_for_it(retrieval):
    known = header(retrieval=retrieval)
    assert (policy_name(known), retriever_name(known), threshold_of(known)) == ("", "", None)
    assert trigger_in_words(known) == ""


@pytest.mark.parametrize(
    ("value", "read"), [(0.5, 0.5), (1, 1.0), (True, None), ("0.5", None), (math.nan, None)]
)
def test_a_threshold_is_a_number_or_none(value, read):
    assert (
        threshold_of(header(retrieval={"policy": {"trigger": {"threshold": value, "signal": "max_prob"}}}))
        == read
    )
    # Nats are no probability.
    assert threshold_of(header(retrieval={"policy": {"trigger": {"threshold": value}}})) is None


def test_tokens_that_were_rolled_back_are_counted_apart():
    assert "2 tokens · 1 more rolled back" in run_text(run(look_up()))
    assert "rolled back" not in run_text(trace([replace(each, kept=True) for each in steps()]))
