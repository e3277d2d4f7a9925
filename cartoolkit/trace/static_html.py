"""A run as a still page fragment and as plain text, for places where no widget runs.

Requirements it exists to satisfy: a saved notebook shows it on GitHub, in nbconvert and in a JupyterLab
that does not trust the notebook. Those strip style sheets, classes, scripts, SVG and colours other than
``#hex``; so there are only inline styles, and marking up doubt survives without any: below the threshold
is ``<mark>``, not the likeliest ``<ins>``, rolled back ``<del>``, from a passage ``<b>``, and every token's
figures are its title.
The fragment brings its own paper and ink and so reads the same on a light and on a dark page.
"""

from __future__ import annotations

from html import escape
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from cartoolkit.errors import InvalidRequest
from cartoolkit.trace.glyphs import bars, clip, nats, printable, probability, visible, visible_line
from cartoolkit.trace.html_style import (
    BOX,
    CHIP,
    DIM,
    INK,
    LINE,
    LOW,
    MONO,
    OTHER,
    PAPER,
    PROSE,
    RETRIEVED,
    SMALL,
)
from cartoolkit.trace.look_ups import RETRIEVAL, look_ups_of
from cartoolkit.trace.look_ups_html import look_up_cards, look_up_lines, look_up_mark
from cartoolkit.trace.policy_text import policy_name, retriever_name, trigger_in_words
from cartoolkit.trace.summary import ending, figures, least_sure, settings, where, why_uninspected
from cartoolkit.trace.text import token_label

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from cartoolkit.trace.columns import Columns
    from cartoolkit.trace.look_ups import PastLookUp
    from cartoolkit.trace.step import Candidate
    from cartoolkit.trace.trace import Trace

__all__ = ["METRICS", "run_html", "run_text"]

METRICS: Mapping[str, tuple[str, Callable[[Columns], np.ndarray]]] = {
    "max_prob": ("max probability (raw)", lambda c: 1 - c["max_prob"]),
    "prob": ("probability of the token (raw)", lambda c: 1 - np.exp(c["logprob"])),
    "surprisal": ("surprisal of the token (raw)", lambda c: 1 - np.exp(c["logprob"])),
    "entropy": ("entropy (raw)", lambda c: 1 - np.exp(-c["entropy"])),
    "margin": ("margin of first to second (raw)", lambda c: 1 - c["margin"]),
}
"""What tokens can be coloured by: name -> (title, doubt of each step from 0 to 1, float32 [n])."""

_AMBER = (217, 119, 6)
_TINTS = 16
_TOKEN = f"{MONO};font-size:12px;color:{INK};{BOX};padding:0 4px"
_CARD = (
    f"background:{PAPER};color:{INK};border:1px solid {LINE};border-radius:8px;padding:10px 14px;"
    "max-width:1000px;font-family:system-ui,sans-serif;font-size:13px;line-height:1.45;text-align:left"
)
# JupyterLab tints table rows with its theme's colour, so every cell brings its paper along.
_CELL = (
    f"background:{PAPER};border-top:1px solid {LINE};padding:3px 6px;vertical-align:top;white-space:nowrap"
)

_PROMPT_INLINE, _PROMPT_MOST = 300, 12_000
_NOTICES, _ROWS, _CANDIDATES, _LABEL = 20, 12, 5, 40


def run_html(
    trace: Trace,
    *,
    metric: str = "max_prob",
    threshold: float = 0.4,
    retrieved: Collection[int] = (),
    used: Sequence[Sequence[tuple[str, int, int]]] = (),
) -> str:
    """The run as an HTML fragment: what ran, the text with its doubts, its figures, the least sure tokens.

    Args:
        trace: also one that is not finished, empty, or decoded with `inspect=False`.
        metric: what the background of a token shows, one of `METRICS`.
        threshold: a token is marked where the raw max probability is below it.
        retrieved: indices of the steps whose word came from a passage; `cartoolkit.retrieval.effects` knows.
        used: for each look-up the words of its passages that entered the answer, as (id, start, end).

    Raises:
        InvalidRequest: there is no such metric.
    """
    if metric not in METRICS:
        raise InvalidRequest(f"metric must be one of {', '.join(METRICS)}; got {metric!r}.")
    # A file from somebody else may hold numbers that no softmax makes; they are shown, not warned about.
    look_ups = look_ups_of(trace.events)
    with np.errstate(all="ignore"):
        parts = [
            _head(trace),
            _prompt(trace),
            _legend(trace, metric, threshold, from_passages=bool(retrieved)),
            _answer(_Tokens(trace, metric, threshold, look_ups, retrieved)),
            _confidence(trace, threshold),
            _foot(trace, threshold),
            look_up_cards(trace, look_ups, used),
            _doubts(trace),
        ]
    return f'<div style="{_CARD}">{"".join(parts)}</div>'


def run_text(trace: Trace, *, threshold: float = 0.4) -> str:
    """The run as plain text without colours, for a terminal."""
    with np.errstate(all="ignore"):
        return "\n".join(_lines(trace, threshold))


def _lines(trace: Trace, threshold: float) -> list[str]:
    name = clip(visible_line(trace.header.model.name), 200)
    lines = [
        " · ".join([name, *where(trace.header)]),
        ", ".join(settings(trace.header)),
        " · ".join(_policy(trace)),
        f"Prompt: {clip(visible_line(trace.header.prompt), 200)}" if trace.header.prompt else "",
        "",
        printable(trace.text) or "No tokens yet.",
        "",
        "".join(bar for bar, _ in bars(trace.columns["max_prob"], 100)).rstrip(),
        " · ".join([*figures(trace, threshold), ending(trace.header)]),
        *look_up_lines(look_ups_of(trace.events)),
        *(f"! {text}" for text in _notice_texts(trace)[:_NOTICES]),
    ]
    doubts = [f"{_short(_label(trace, i))} {_number(trace, 'max_prob', i)}" for i in least_sure(trace, 5)]
    if doubts:
        lines.append(f"Least sure (raw max probability): {', '.join(doubts)}")
    return [line for i, line in enumerate(lines) if line or i in (4, 6)]


# What ran, and what was asked


def _head(trace: Trace) -> str:
    name = escape(clip(visible_line(trace.header.model.name), 200))
    chips = " ".join(f'<span style="{CHIP}">{escape(part)}</span>' for part in where(trace.header))
    lines = (escape(" · ".join(parts)) for parts in (settings(trace.header), _policy(trace)))
    how = "".join(f'<div style="{SMALL};margin-top:4px">{line}</div>' for line in lines if line)
    return f"<div><b>{name}</b> {chips}</div>{how}"


def _policy(trace: Trace) -> list[str]:
    """When the run looks something up, and where; empty if it could not."""
    header = trace.header
    if not (name := policy_name(header)):
        return []
    asked = retriever_name(header)
    parts = [f"look-ups: {name}, {trigger_in_words(header)}", f"asks {asked}" if asked else ""]
    return [clip(visible_line(part[:201]), 200) for part in parts if part]


def _prompt(trace: Trace) -> str:
    prompt = trace.header.prompt or trace.prompt_text
    if not prompt:
        return ""
    shown = escape(printable(prompt[:_PROMPT_MOST]))
    if len(prompt) > _PROMPT_MOST:
        shown += f" … ({len(prompt) - _PROMPT_MOST:,} more characters)"
    body = f'<div dir="auto" style="{PROSE};{BOX};padding:6px 8px;margin-top:8px">{shown}</div>'
    if len(prompt) <= _PROMPT_INLINE and prompt.count("\n") < 4:
        return body
    start = escape(clip(visible_line(prompt[:200]), 100))
    return (
        f'<details style="margin-top:8px"><summary>Prompt, {len(prompt):,} characters: '
        f'<span style="color:{DIM}">{start}</span></summary>{body}</details>'
    )


def _legend(trace: Trace, metric: str, threshold: float, *, from_passages: bool) -> str:
    if not len(trace):
        return ""
    if not _inspected(trace):
        reason = why_uninspected(trace.header)
        sentence = f"{reason[0].upper()}{reason[1:]}: no probabilities were recorded."
        return f'<div style="{SMALL};margin-top:8px">{sentence}</div>'
    scale = "".join(
        f'<span style="background:{_tint(doubt)};color:{INK};padding:0 7px">&nbsp;</span>'
        for doubt in (0.25, 0.4, 0.6, 0.8, 1.0)
    )
    dotted = f"background:{PAPER};color:{DIM};border-bottom:2px dotted {LOW}"
    low = f'<mark style="{dotted}">below {threshold:g}</mark>'
    other = f'<ins style="text-decoration:none;border-bottom:2px solid {OTHER}">not the likeliest</ins>'
    marks = [f"sure {scale} unsure", low, other]
    if not trace.flag("kept").all():
        marks.append(f'<del style="color:{DIM}">rolled back</del>')
    if from_passages:
        marks.append(f'<b style="color:{RETRIEVED}">from a passage</b>')
    title = f"colour: <b>{escape(METRICS[metric][0])}</b>"
    return f'<div style="{SMALL};margin-top:8px">{title} {" &nbsp; ".join(marks)}</div>'


def _inspected(trace: Trace) -> bool:
    return not bool(np.isnan(trace.columns["max_prob"]).all())


# The text


def _answer(tokens: _Tokens) -> str:
    style = f"{PROSE};font-size:15px;line-height:1.9;margin:4px 0"
    if not len(tokens.trace) and not tokens.marks:
        return f'<div style="{style};color:{DIM}">No tokens yet.</div>'
    body = "".join(tokens.mark(i) + tokens.html(i) for i in range(len(tokens.trace)))
    return f'<div dir="auto" style="{style}">{body}{tokens.mark(len(tokens.trace))}</div>'


class _Tokens:
    """The columns of a trace as lists, read once, and each token as HTML."""

    def __init__(
        self,
        trace: Trace,
        metric: str,
        threshold: float,
        look_ups: Sequence[PastLookUp],
        retrieved: Collection[int],
    ) -> None:
        columns = trace.columns
        self.trace = trace
        self.threshold = threshold
        self.doubt = np.nan_to_num(METRICS[metric][1](columns), nan=0.0).tolist()
        self.prob = np.exp(columns["logprob"].astype(np.float64)).tolist()
        self.drawn = np.exp(columns["processed_logprob"].astype(np.float64)).tolist()
        self.max_prob, self.rank, self.entropy = (
            columns[name].tolist() for name in ("max_prob", "rank", "entropy")
        )
        self.special, self.kept, self.forced = (
            trace.flag(name).tolist() for name in ("special", "kept", "forced")
        )
        self.retrieved = frozenset(retrieved)
        self.marks: dict[int, str] = {}
        for look_up in look_ups:
            at = min(look_up.resumes_at, len(trace))
            self.marks[at] = self.marks.get(at, "") + look_up_mark(look_up)

    def mark(self, i: int) -> str:
        """The marks of the look-ups after which the text goes on with this token."""
        return self.marks.get(i, "")

    def html(self, i: int) -> str:
        """The token; its leading space stands outside, where no colour can hang at the end of a line."""
        if self.special[i]:
            return f'<span title="{self.title(i)}" style="{_TOKEN}">{_clipped_label(self.trace, i)}</span>'
        text = printable(self.trace.texts[i])
        body = text.lstrip() or text
        if not text:
            return ""
        lead = text[: len(text) - len(body)]
        token = self.marked(i, escape(body), f'title="{self.title(i)}" style="{self.style(i, body)}"')
        token = f"<b>{token}</b>" if i in self.retrieved else token
        return lead + token if self.kept[i] else f'<del style="color:{DIM}">{lead}{token}</del>'

    def marked(self, i: int, body: str, attributes: str) -> str:
        tag = "mark" if self.max_prob[i] < self.threshold else "span"
        token = f"<{tag} {attributes}>{body}</{tag}>"
        if self.rank[i] <= 1:
            return token
        # Padding, so that the outer line does not cover the inner, dotted one.
        pad = "padding-bottom:3px;" if tag == "mark" else ""
        return f'<ins style="text-decoration:none;{pad}border-bottom:2px solid {OTHER}">{token}</ins>'

    def style(self, i: int, body: str) -> str:
        low = f"border-bottom:2px dotted {LOW};" if self.max_prob[i] < self.threshold else ""
        # A newline has no width of its own to be coloured.
        stub = "padding-left:8px;" if "\n" in body and body.isspace() else ""
        ink, tint = (INK, _tint(self.doubt[i])) if self.kept[i] else (DIM, PAPER)
        ink = RETRIEVED if i in self.retrieved else ink
        return f"{low}{stub}background:{tint};color:{ink}"

    def title(self, i: int) -> str:
        parts = [f"token {i} “{_clipped_label(self.trace, i)}”"]
        if self.rank[i]:
            parts += [
                f"raw {escape(probability(self.prob[i]))}, rank {self.rank[i]}",
                f"max {escape(probability(self.max_prob[i]))}",
                f"entropy {nats(self.entropy[i])} nats",
                f"drawn with {escape(probability(self.drawn[i]))}",
            ]
        parts += ["put there by the caller"] if self.forced[i] else []
        parts += ["from a passage"] if i in self.retrieved else []
        parts += [] if self.kept[i] else ["rolled back later"]
        return " · ".join(parts)


def _label(trace: Trace, i: int) -> str:
    return trace.texts[i] or token_label(trace.token_bytes[int(trace.columns["token_id"][i])])


def _clipped_label(trace: Trace, i: int) -> str:
    return escape(_short(_label(trace, i)))


def _short(text: str) -> str:
    return clip(visible(text[: _LABEL + 1]), _LABEL)


def _tint(doubt: float) -> str:
    share = round(max(0.0, min(doubt, 1.0) - 0.15) / 0.85 * _TINTS) / _TINTS * 0.72
    return "#" + "".join(f"{round(255 + (amber - 255) * share):02x}" for amber in _AMBER)


# The curve and the figures


def _confidence(trace: Trace, threshold: float) -> str:
    row = bars(trace.columns["max_prob"]) if _inspected(trace) and len(trace) else []
    if not row:
        return ""
    each = -(-len(trace) // len(row))
    pieces = []
    for low, group in groupby(row, key=lambda bar: bar[1] < threshold):
        text = "".join(bar for bar, _ in group)
        pieces.append(f'<b style="color:{LOW}">{text}</b>' if low else text)
    of = "each token" if each == 1 else f"the least sure of each {each} tokens"
    title = f"raw max probability of {of}, from ▁ (0) to █ (1); below {threshold:g} in bold"
    style = f"{MONO};font-size:15px;line-height:1.2;color:#0b5cad;white-space:pre-wrap;margin:6px 0 2px"
    return f'<div title="{title}" style="{style}">{"".join(pieces)}</div>'


def _foot(trace: Trace, threshold: float) -> str:
    line = escape(" · ".join([*figures(trace, threshold), ending(trace.header)]))
    style = f"{SMALL};border-top:1px solid {LINE};margin-top:6px;padding:6px 0 0"
    return f'<div style="{style}">{line}</div>{_notices(trace)}'


def _notices(trace: Trace) -> str:
    style = f"border-left:3px solid {LOW};padding:0 8px;margin-top:6px"
    every = _notice_texts(trace)
    texts = [escape(text) for text in every[:_NOTICES]]
    more = len(every) - _NOTICES
    texts += [f"and {more:,} more"] if more > 0 else []
    return "".join(f'<div style="{style}">{text}</div>' for text in texts)


def _notice_texts(trace: Trace) -> list[str]:
    """What there is to say besides the look-ups, which have cards of their own."""
    return [visible_line(clip(event.text, 500)) for event in trace.events if event.kind != RETRIEVAL]


# The least sure tokens


def _doubts(trace: Trace) -> str:
    rows = [f"<tr>{''.join(_doubt_cells(trace, i))}</tr>" for i in least_sure(trace, _ROWS)]
    if not rows:
        return ""
    titles = ("", "token", "max", "raw", "rank", "entropy")
    head = "".join(_cell(title, tag="th", align="left" if title == "token" else "right") for title in titles)
    head += _cell("likeliest candidates: raw → drawn with", tag="th", attributes=f' colspan="{_CANDIDATES}"')
    return (
        f'<details style="margin-top:6px"><summary>The least sure tokens ({len(rows)})</summary>'
        f'<div style="overflow-x:auto"><table style="border-collapse:collapse;margin:6px 0 0;font-size:12px">'
        f"<tr>{head}</tr>{''.join(rows)}</table></div>"
        f'<div style="{SMALL}">raw: before the sampler; max: raw, of the likeliest; drawn with: what the '
        "sampler made of it. Entropy is raw, in nats.</div></details>"
    )


def _cell(content: str, *, tag: str = "td", align: str = "left", attributes: str = "") -> str:
    ink = f"color:{DIM};font-weight:normal" if tag == "th" else f"color:{INK}"
    return f'<{tag}{attributes} style="{_CELL};{ink};text-align:{align}">{content}</{tag}>'


def _number(trace: Trace, column: str, i: int) -> str:
    return probability(float(trace.columns[column][i]))


def _doubt_cells(trace: Trace, i: int) -> list[str]:
    step = trace[i]
    numbers = (_number(trace, "max_prob", i), probability(step.prob), str(step.rank), nats(step.entropy))
    return [
        _cell(f'<span style="{MONO}">{i}</span>', align="right"),
        _cell(f'<span style="{_TOKEN}">{_clipped_label(trace, i)}</span>'),
        *(_cell(f'<span style="{MONO}">{escape(number)}</span>', align="right") for number in numbers),
        *(_cell(_candidate(c, step.token_id)) for c in list(step.candidates)[:_CANDIDATES]),
    ]


def _candidate(candidate: Candidate, chosen: int) -> str:
    name = escape(_short(candidate.text))
    if candidate.removed_by:
        name, after = f"<s>{name}</s>", candidate.removed_by.replace("_", "-")
    else:
        after = f"→ {escape(probability(candidate.processed_prob))}"
    name = f"<b>{name}</b>" if candidate.token_id == chosen else name
    numbers = f"{escape(probability(candidate.prob))} {after}"
    small = f"{MONO};font-size:11px;color:{DIM}"
    return f'<span style="{MONO}">{name}</span><br><span style="{small}">{numbers}</span>'
