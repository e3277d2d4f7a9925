"""The still view: exact text, nothing that runs or is fetched, doubt that does not need colour."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_samples import VOCAB, empty, events, plain, sky, step, trace

from cartoolkit.errors import InvalidRequest
from cartoolkit.trace import Trace
from cartoolkit.trace.static_html import METRICS, run_html, run_text

# What JupyterLab 4.6 lets through for a notebook that is not trusted (apputils, sanitizer.ts), as far
# as it is needed here; `dir`, `style` and `title` on any element.
TAGS = {
    "b",
    "br",
    "del",
    "details",
    "div",
    "ins",
    "mark",
    "s",
    "span",
    "summary",
    "sup",
    "table",
    "td",
    "th",
    "tr",
}
ATTRIBUTES = {"dir", "style", "title", "colspan"}
PROPERTIES = {
    "background", "border", "border-bottom", "border-collapse", "border-left", "border-radius", "border-top",
    "color", "font-family", "font-size", "font-weight", "line-height", "margin", "margin-top", "max-width",
    "overflow-wrap", "overflow-x", "padding", "padding-bottom", "padding-left", "text-align",
    "text-decoration", "vertical-align", "white-space",
}  # fmt: skip
VOID = {"br"}


class Page(HTMLParser):
    """Elements with their attributes and text, in order of opening; complains about what does not close."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.elements, self.open = [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append({"tag": tag, "text": "", **dict(attrs)})
        if tag not in VOID:
            self.open.append((tag, self.elements[-1]))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        for _, element in self.open:
            element["text"] += data

    def handle_comment(self, data):
        pytest.fail(f"a comment: {data}")

    def handle_decl(self, decl):
        pytest.fail(f"a declaration: {decl}")

    @property
    def text(self):
        return self.elements[0]["text"]

    @property
    def answer(self):
        return next(e for e in self.elements if "font-size:15px" in e.get("style", "") and e.get("dir"))

    def tokens(self):
        return [e for e in self.elements if e.get("title", "").startswith("token ")]


def check_is_harmless(html):
    page = Page(html)
    for element in page.elements:
        tag, attributes = element["tag"], set(element) - {"tag", "text"}
        assert tag in TAGS
        assert attributes <= ATTRIBUTES
        for declaration in filter(None, element.get("style", "").split(";")):
            name, value = declaration.split(":")
            assert name in PROPERTIES
            assert not re.search(r"url|hsl|rgb|var\(|expression|@|\\", value)
            assert all(re.fullmatch("#[0-9a-f]{6}", colour) for colour in re.findall(r"#\w+", value))
    return page


def said(text):
    """A step that says this, whatever its token's bytes are."""
    return step(0, 1, text, (1, 3), (0.25, 0.125), (1, 0), (0, 4))


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>", "</textarea>", "</div></span></mark>", "&amp;", "&lt;", "<!-- x", "]]>",
        '" onmouseover="alert(1)', "' x='", " leading", "trailing ", "\n\n", "a\nb", "  ", "\t", "你好",
        "e\u0301", "\u0301", "👩\u200d💻", "שלום", "العربية", "`${x}`", "{{x}}", "$x_1$", "a\u00a0b",
    ],
)  # fmt: skip
def test_a_token_reads_on_the_page_exactly_as_it_is(text):
    page = check_is_harmless(run_html(trace([said("A"), said(text), said("Z")])))
    assert page.answer["text"] == f"A{text}Z"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\u2028", "\\u2028"),
        ("\u202e\u200f", "\\u202E\\u200F"),
        ("\x00\x1b[31m", "\\u0000\\u001B[31m"),
        ("a\rb", "a\\u000Db"),
        ("\ufffe", "\\uFFFE"),
    ],
)
def test_what_cannot_be_seen_is_spelt_out(text, shown):
    page = check_is_harmless(run_html(trace([said(text)])))
    assert page.answer["text"] == shown
    assert shown in run_text(trace([said(text)]))


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    st.lists(st.text(max_size=12), max_size=4),
    st.text(max_size=20),
    st.text(max_size=20),
    st.text(max_size=20),
)
def test_no_text_of_anybody_becomes_markup(texts, name, prompt, notice):
    run = trace([said(text) for text in texts], prompt=prompt, params={name: prompt}, events=events(notice))
    run.header = run.header.model_copy(update={"model": run.header.model.model_copy(update={"name": name})})
    run.header = run.header.model_copy(update={"stop_reason": prompt, "stop_detail": name})
    check_is_harmless(run_html(run))
    run_text(run)


floats = st.floats(width=32)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.lists(st.tuples(floats, floats, floats, floats), max_size=4), st.sampled_from(sorted(METRICS)))
def test_no_number_breaks_the_page(rows, metric):
    steps = [
        replace(said("x"), max_prob=a, entropy=b, logprob=c, margin=d, elapsed=a, processed_logprob=b)
        for a, b, c, d in rows
    ]
    check_is_harmless(run_html(trace(steps), metric=metric))
    run_text(trace(steps))


def test_the_page_says_what_ran_and_how_it_went():
    text = check_is_harmless(run_html(sky(events=events("The prompt was cut <b>.")))).text
    for part in (
        "tiny <model>", "torch", "cpu · float32", "64 ctx", "temperature 0.5 · seed 3", "Why?",
        "4 tokens · 4.0 tok/s · first after 0.25 s · perplexity 3.69 · mean entropy 1.50 nats",
        "below 0.4: 3 tokens, 1 run of 3 or more · prompt 2 tokens · ended by end token <|im_end|>",
        "The prompt was cut <b>.", "colour: max probability (raw)",
    ):  # fmt: skip
        assert part in text


def test_a_token_has_its_figures_as_title():
    titles = [e["title"] for e in Page(run_html(sky())).tokens()]
    assert titles == [
        "token 0 “The” · raw 0.750, rank 1 · max 0.750 · entropy 1.50 nats · drawn with 1.000",
        (
            "token 1 “␣<script>alert(1)</script>” · raw 0.125, rank 2 · max 0.250 · entropy 1.50 nats"
            " · drawn with 0.500"
        ),
        "token 3 “🙂” · raw 0.125, rank 2 · max 0.250 · entropy 1.50 nats · drawn with 1.000",
        "token 4 “<|im_end|>” · raw 0.500, rank 1 · max 0.500 · entropy 1.50 nats · drawn with 0.750",
    ]


def test_doubt_is_markup_and_not_only_colour():
    page = Page(run_html(sky()))
    assert [(e["tag"], e["text"]) for e in page.tokens()] == [
        ("span", "The"),
        ("mark", "<script>alert(1)</script>"),
        ("mark", "🙂"),
        ("span", "<|im_end|>"),
    ]
    others = [e["text"] for e in page.elements if e["tag"] == "ins"]
    assert others == ["not the likeliest", "<script>alert(1)</script>", "🙂"]
    low = [e["text"] for e in page.elements if e["tag"] == "mark" and "dotted" in e["style"]]
    assert low == ["below 0.4", "<script>alert(1)</script>", "🙂"]


def test_the_threshold_is_the_callers():
    page = Page(run_html(sky(), threshold=0.6))
    assert [e["text"] for e in page.tokens() if e["tag"] == "mark"] == ["<script>alert(1)</script>", "🙂"]
    page = Page(run_html(sky(), threshold=0.8))
    assert [e["tag"] for e in page.tokens()] == ["mark", "mark", "mark", "span"]
    assert "below 0.8" in page.text


def background(html):
    return [re.search("background:(#......)", e["style"])[1] for e in Page(html).tokens()][:3]


def test_a_sure_token_has_no_colour_and_doubt_has_more_of_it():
    steps = [replace(said("x"), max_prob=p, entropy=h) for p, h in [(0.9, 0.01), (0.5, 1.0), (0.0, 50.0)]]
    colours = background(run_html(trace(steps)))
    # White under 72 % of the amber d97706 for complete doubt.
    assert colours[0] == "#ffffff"
    assert colours[2] == "#{:02x}{:02x}{:02x}".format(*(round(255 + (a - 255) * 0.72) for a in (217, 119, 6)))
    assert "#ffffff" > colours[1] > colours[2]
    assert background(run_html(trace(steps), metric="entropy"))[0] == "#ffffff"


def test_every_coloured_token_names_its_ink():
    for element in Page(run_html(sky())).tokens():
        assert "background:#" in element["style"]
        assert re.search("(^|;)color:#", element["style"])


def test_the_leading_space_stands_outside_the_colour():
    page = Page(run_html(trace([said("A"), said(" b")])))
    assert [e["text"] for e in page.tokens()] == ["A", "b"]
    assert page.answer["text"] == "A b"


def test_a_token_of_newlines_has_a_stub_to_be_seen():
    tokens = Page(run_html(trace([said("\n\n")]))).tokens()
    assert tokens[0]["text"] == "\n\n"
    assert "padding-left" in tokens[0]["style"]


def test_what_was_rolled_back_is_struck_and_what_was_forced_says_so():
    run = trace([said("A"), replace(said(" b"), kept=False), replace(said(" c"), forced=True)])
    page = Page(run_html(run))
    assert [e["text"] for e in page.elements if e["tag"] == "del"] == ["rolled back", " b"]  # legend, text
    assert page.tokens()[1]["title"].endswith(" · rolled back later")
    assert page.tokens()[2]["title"].endswith(" · put there by the caller")
    assert "A c" in run_text(run)


def test_the_least_sure_tokens_stand_in_a_table_with_their_candidates():
    page = Page(run_html(sky()))
    rows = [e["text"] for e in page.elements if e["tag"] == "tr"]
    assert len(rows) == 6
    first = ("1", "␣<script>alert(1)</script>", "0.250", "0.125", "2", "1.50")
    assert rows[1] == "".join([*first, "␣sky0.250 → 0.500", "␣<script>alert(1)</script>0.125 → 0.500"])
    second = ("2", "\\xF0\\x9F", "0.250", "0.250", "1", "1.50")
    candidates = ("\\xF0\\x9F0.250 → 1.000", "</textarea>0.125 top-k", "␣&amp;0.062 min-p")
    assert rows[2] == "".join([*second, *candidates])
    assert [e["text"] for e in page.elements if e["tag"] == "s"] == ["</textarea>", "␣&amp;", "😀", "␣sky"]


def test_the_table_has_at_most_twelve_tokens_and_five_candidates():
    ids = (1, 3, 4, 5, 6, 7, 9)
    many = [step(i, 1, "The", ids, (0.25,) + (0.1,) * 6, (1,) + (0,) * 6) for i in range(30)]
    page = Page(run_html(trace(many)))
    rows = [e for e in page.elements if e["tag"] == "tr"]
    assert len(rows) == 13
    assert len([e for e in page.elements if e["tag"] == "td"]) == 12 * (6 + 5)


def test_a_long_prompt_is_folded_and_a_very_long_one_is_cut():
    assert "<details" in run_html(plain_with("word " * 100))
    assert "Prompt, 500 characters" in Page(run_html(plain_with("word " * 100))).text
    assert "<details" not in run_html(plain_with("word"))
    assert "<details" in run_html(plain_with("a\nb\nc\nd\ne"))
    assert "(88,000 more characters)" in Page(run_html(plain_with("x" * 100_000))).text


def plain_with(prompt):
    return trace([step(0, 1, "The")], prompt=prompt)


def test_without_the_callers_prompt_the_models_is_shown():
    assert "The sky" in Page(run_html(plain_with(""))).text


def test_an_empty_run_says_so():
    page = check_is_harmless(run_html(empty()))
    assert "No tokens yet." in page.text
    assert "not ended yet" in page.text
    assert "colour" not in page.text
    assert "No tokens yet." in run_text(empty())


def test_a_run_that_was_not_inspected_says_so_and_has_no_doubt():
    page = check_is_harmless(run_html(plain()))
    assert "Decoded with inspect=False: no probabilities were recorded." in page.text
    assert page.answer["text"] == "The sky"
    assert {"mark", "ins", "table"} & {e["tag"] for e in page.elements} == set()
    assert "perplexity" not in page.text


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        ("", "not ended yet"),
        ("stop", "ended by the model"),
        ("length", "ended at the limit of tokens"),
        ("stopped", "stopped by the user"),
        ("local_decode_timeout", "ended at the time limit"),
        ("error", "ended by an error: the model"),
        ("new<kind>", "ended by new<kind>"),
    ],
)
def test_every_ending_has_a_sentence(reason, sentence):
    run = trace([said("A")], stop_reason=reason)
    assert sentence in Page(run_html(run)).text
    assert sentence in run_text(run)


def test_settings_that_change_nothing_are_left_out():
    params = {
        "temperature": 0.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repeat_penalty": 1.0, "max_tokens": 200,
        "stop": ["\n", "END"], "logit_bias": {3: 1.0}, "seed": 0, "ignore_eos": False, "inspect": True,
        "truncate": True, "candidates": 20, "time_limit": 300.0,
    }  # fmt: skip
    line = "temperature 0 · max-tokens 200 · stop “⏎”, “END” · logit-bias for 1 token · seed 0"
    assert line in Page(run_html(trace([], params=params))).text


def test_an_unknown_metric_is_refused_with_those_there_are():
    with pytest.raises(InvalidRequest, match=r"metric must be one of max_prob, prob, .*; got 'colour'"):
        run_html(sky(), metric="colour")


def test_the_curve_is_a_row_of_blocks_with_the_low_ones_in_bold():
    page = Page(run_html(sky()))
    row = next(e for e in page.elements if e.get("title", "").startswith("raw max probability of each token"))
    # Heights of 3/4, 1/4, 1/4, 1/4 and 1/2 in steps of a seventh: 5, 2, 2, 2, 4 (3.5 rounds to even).
    assert row["text"] == "▆▃▃▃▅"
    assert "▃▃▃" in [e["text"] for e in page.elements if e["tag"] == "b"]


def test_a_long_curve_is_gathered():
    page = Page(run_html(long_run(500)))
    row = next(
        e for e in page.elements if e.get("title", "").startswith("raw max probability of the least sure of")
    )
    assert len(row["text"]) == 120


def long_run(count):
    steps = [replace(one, index=i) for i, one in enumerate((sky()[:4] * (count // 4 + 1))[:count])]
    return Trace.from_steps(sky().header, steps, token_bytes=VOCAB.__getitem__)


def test_four_thousand_tokens_stay_below_two_megabytes():
    size = len(run_html(long_run(4000)).encode())
    assert size < 2_000_000


def test_what_is_not_tokens_is_bounded_whatever_the_header_holds():
    run = trace(
        [],
        prompt='"' * 1_000_000,
        params={f"{i}" + '"' * 5000: '"' * 5000 for i in range(100)},
        events=events(*['"' * 5000] * 100),
        stop_reason="stop",
        stop_detail='"' * 100_000,
    )
    assert len(run_html(run).encode()) < 200_000
    assert "and 80 more" in Page(run_html(run)).text


def test_a_token_costs_a_bounded_number_of_bytes():
    nasty = [replace(said('"' * 60), index=i, rank=2, kept=False, forced=True) for i in range(100)]
    grown = len(run_html(trace(nasty + nasty)).encode()) - len(run_html(trace(nasty)).encode())
    assert grown / 100 < 1000 + 6 * 60


def test_a_notebook_shows_the_page():
    assert sky()._repr_html_() == run_html(sky())


def test_the_text_form_is_short_and_has_no_colours():
    assert run_text(sky(events=events("The prompt\nwas cut."))).splitlines() == [
        "tiny <model> · torch · cpu · float32 · 64 ctx",
        "temperature 0.5, seed 3",
        "Prompt: Why?",
        "",
        "The <script>alert(1)</script>🙂",
        "",
        "▆▃▃▃▅",
        (
            "4 tokens · 4.0 tok/s · first after 0.25 s · perplexity 3.69 · mean entropy 1.50 nats"
            " · below 0.4: 3 tokens, 1 run of 3 or more · prompt 2 tokens · ended by end token <|im_end|>"
        ),
        "! The prompt⏎was cut.",
        (
            "Least sure (raw max probability): ␣<script>alert(1)</script> 0.250, \\xF0\\x9F 0.250, 🙂 0.250"
            ", <|im_end|> 0.500, The 0.750"
        ),
    ]


def test_re_used_prompt_tokens_and_prompt_perplexity_are_told_when_there_are_any():
    run = sky(reused_tokens=1, prompt_logprobs=np.array([np.nan, np.log(0.25)], np.float32))
    assert "prompt 2 tokens, 1 re-used · prompt perplexity 4.00" in run_text(run)
