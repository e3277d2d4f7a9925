"""The look-ups of a run in a still page and as lines of text: what was asked, what came, what it did."""

from __future__ import annotations

import math
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING

from cartoolkit.trace.glyphs import clip, printable, probability, visible, visible_line
from cartoolkit.trace.html_style import BOX, DIM, LINE, LOW, MONO, OTHER, PROSE, RETRIEVED, SMALL
from cartoolkit.trace.look_ups import chances

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartoolkit.trace.look_ups import Chance, FoundPassage, PastLookUp
    from cartoolkit.trace.trace import Trace

    Used = tuple[str, int, int]

__all__ = ["figures_of", "look_up_cards", "look_up_lines", "look_up_mark"]

_CARDS, _HITS, _PASSAGE, _QUERY = 20, 10, 2000, 500
_OUTCOMES = {
    "nothing": "nothing was found",
    "failed": "the look-up failed",
    "timeout": "the look-up took too long",
}


def look_up_mark(look_up: PastLookUp) -> str:
    """The numbered mark in the text, where a look-up was made."""
    title = escape(f"look-up {look_up.number}: {clip(visible_line(look_up.reason), 200)}")
    style = f"color:{_colour(look_up)};font-weight:bold"
    return f'<sup title="{title}" style="{style}">▲{look_up.number}</sup>'


def look_up_cards(trace: Trace, look_ups: Sequence[PastLookUp], used: Sequence[Sequence[Used]] = ()) -> str:
    """A card for each look-up, the first 20 of them.

    Args:
        trace: the run.
        look_ups: those of the run.
        used: for each look-up the words of its passages that entered the answer, as (id, start, end).
    """
    if not look_ups:
        return ""
    moved = chances(trace, look_ups)
    cards = [
        _card(look_up, moved[i], used[i] if i < len(used) else ())
        for i, look_up in enumerate(look_ups[:_CARDS])
    ]
    more = len(look_ups) - _CARDS
    rest = f'<div style="{SMALL}">and {more:,} more</div>' if more > 0 else ""
    return f'<div style="margin-top:8px"><b>Look-ups</b></div>{"".join(cards)}{rest}'


def look_up_lines(look_ups: Sequence[PastLookUp]) -> list[str]:
    """The look-ups as lines of text, the first 20 of them."""
    lines = [
        f"▲{each.number} before token {each.resumes_at}: asked “{_line(each.query)}” ({_line(each.reason)}): "
        f"{', '.join(figures_of(each))}"
        for each in look_ups[:_CARDS]
    ]
    more = len(look_ups) - _CARDS
    return [*lines, f"▲ and {more:,} more"] if more > 0 else lines


def figures_of(look_up: PastLookUp) -> list[str]:
    """What came of a look-up, and what it cost."""
    return [*_came(look_up), *_cost(look_up)]


def _came(look_up: PastLookUp) -> list[str]:
    if look_up.outcome != "found":
        said = look_up.note or _OUTCOMES.get(look_up.outcome, look_up.outcome)
        return [_line(said) or "nothing is known of it"]
    new = f"{_count(len(look_up.hits), 'passage')}, {len(look_up.added)} new"
    dropped = f"{_count(look_up.dropped, 'token')} dropped" if look_up.dropped else "nothing dropped"
    return [new, dropped, *([_line(look_up.note)] if look_up.note else [])]


def _cost(look_up: PastLookUp) -> list[str]:
    parts = [] if look_up.ms is None else [f"{look_up.ms:,.1f} ms"]
    if look_up.prefill_tokens is not None:
        took = "" if look_up.prefill_ms is None else f" in {look_up.prefill_ms:,.0f} ms"
        parts.append(f"{_count(look_up.prefill_tokens, 'token')} read{took}")
    if look_up.reused_tokens is not None:
        parts.append(f"{look_up.reused_tokens:,} re-used")
    return parts


def _line(text: str) -> str:
    return clip(visible_line(text[: _QUERY + 1]), _QUERY)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


# Cards


def _colour(look_up: PastLookUp) -> str:
    return {"found": RETRIEVED, "nothing": LOW}.get(look_up.outcome, OTHER)


def _card(look_up: PastLookUp, moved: tuple[Chance, ...], used: Sequence[Used]) -> str:
    colour = _colour(look_up)
    where = "before the answer" if look_up.upfront else f"before token {look_up.resumes_at}"
    why = "" if look_up.upfront else f" · {escape(_line(look_up.reason))}"
    query = f'<span style="{MONO};font-size:12px">{escape(_line(look_up.query))}</span>'
    parts = [
        f'<div><b style="color:{colour}">▲{look_up.number}</b> {where}{why}</div>',
        f"<div>asked: {query}</div>",
        f'<div style="{SMALL}">{escape(" · ".join(figures_of(look_up)))}</div>',
        _moved(moved),
        _passages(look_up, used),
    ]
    style = f"border-left:3px solid {colour};padding:1px 0 1px 10px;margin:6px 0"
    return f'<div style="{style}">{"".join(parts)}</div>'


def _moved(moved: tuple[Chance, ...]) -> str:
    if not moved:
        return ""
    texts = [
        f'<span style="{MONO}">{escape(clip(visible(chance.text), 40))} {_prob(chance.before)} → '
        f"{_prob(chance.after)}</span>"
        for chance in moved
    ]
    return f'<div style="{SMALL}">raw probability before → after: {" · ".join(texts)}</div>'


def _prob(value: float | None) -> str:
    return escape(probability(math.nan if value is None else value))


def _passages(look_up: PastLookUp, used: Sequence[Used]) -> str:
    hits = look_up.hits[:_HITS]
    if not hits:
        return ""
    body = "".join(
        _passage(hit, [(start, end) for name, start, end in used if name == hit.id]) for hit in hits
    )
    more = len(look_up.hits) - len(hits)
    body += f'<div style="{SMALL}">and {more:,} more</div>' if more > 0 else ""
    return (
        f'<details><summary style="{SMALL}">{_count(len(look_up.hits), "passage")}</summary>{body}</details>'
    )


def _passage(hit: FoundPassage, used: list[tuple[int, int]]) -> str:
    facts = [_line(part) for part in (hit.title, hit.source) if part]
    facts += [] if math.isnan(hit.score) else [f"score {hit.score:.3g}"]
    facts += ["added to the prompt" if hit.added else "not added"]
    ink = "" if hit.added else f";color:{DIM}"
    head = f'<div style="{SMALL}">{escape(" · ".join(facts))}</div>'
    style = f"{PROSE};border-top:1px solid {LINE}{ink}"
    body = f'<div dir="auto" style="{style}">{_marked(hit.text, used)}</div>'
    return f'<div style="{BOX};padding:4px 8px;margin:4px 0">{head}{body}</div>'


def _marked(text: str, used: list[tuple[int, int]]) -> str:
    """The passage, with the words that entered the answer marked."""
    shown = text[:_PASSAGE]
    edges = [0, *(edge for pair in sorted(used) if pair[1] <= len(shown) for edge in pair), len(shown)]
    pieces = [escape(printable(shown[start:end])) for start, end in pairwise(edges)]
    green = f'<b style="color:{RETRIEVED}">'
    body = "".join(f"{green}{piece}</b>" if i % 2 else piece for i, piece in enumerate(pieces))
    cut = len(text) - len(shown)
    return body + (f" … ({cut:,} more characters)" if cut else "")
