"""Text and numbers as they are shown: the unseen gets a glyph, what could disturb a page is spelt out."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["bars", "clip", "nats", "printable", "probability", "visible", "visible_line"]

# Controls but tab and newline, marks that reorder or split the text around them, surrogates and
# noncharacters. Joiners and variation selectors stay: emoji and several scripts need them.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff"
    "\ufdd0-\ufdef\ufeff\ufff9-\ufffb\ufffe\uffff"
    + "".join(f"{chr(plane * 0x10000 + 0xFFFE)}{chr(plane * 0x10000 + 0xFFFF)}" for plane in range(1, 17))
    + "]"
)
_SPACES = str.maketrans({" ": "␣", "\n": "⏎", "\t": "⇥", "\xa0": "⍽"})
_BARS = "▁▂▃▄▅▆▇█"


def printable(text: str) -> str:
    r"""The text for a page: spaces and newlines as they are, control characters spelt out.

    >>> printable("a\x00\u202e b")
    'a\\u0000\\u202E b'
    """
    return _UNPRINTABLE.sub(_spell, text)


def _spell(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


def visible(text: str) -> str:
    r"""The text as a name for a token: on one line, with a glyph for each space, newline and tab.

    >>> visible(" a\n"), visible("\u0301")
    ('␣a⏎', '◌́')
    """
    text = printable(text).translate(_SPACES)
    return "◌" + text if text and unicodedata.combining(text[0]) else text


def visible_line(text: str) -> str:
    """The text on one line: as `visible`, but spaces stay spaces."""
    return visible(text).replace("␣", " ")


def clip(text: str, limit: int) -> str:
    """The text, or its start and an ellipsis, at most `limit` characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def probability(value: float) -> str:
    """Three decimals; what would round to zero is ``<.001``, NaN is a dash.

    >>> probability(0.25), probability(0.0004), probability(0.0), probability(float("nan"))
    ('0.250', '<.001', '0', '–')
    """
    if np.isnan(value):
        return "–"
    return "0" if value == 0 else "<.001" if value < 0.0005 else f"{value:.3f}"


def nats(value: float) -> str:
    """Two decimals; NaN is a dash.

    >>> nats(2.2689), nats(float("nan"))
    ('2.27', '–')
    """
    return "–" if np.isnan(value) else f"{value:.2f}"


def bars(values: ArrayLike, width: int = 120) -> list[tuple[str, float]]:
    """Values in [0, 1] as a row of at most `width` block characters, each with the lowest value in it.

    values: float [n]; a NaN is left out of its block, a block of NaN is a space.

    >>> bars([1.0, 0.0, 0.5, float("nan")], width=4)
    [('█', 1.0), ('▁', 0.0), ('▅', 0.5), (' ', nan)]
    """
    row = []
    numbers = np.asarray(values, np.float64)
    for block in np.array_split(numbers, min(width, len(numbers)) or 1):
        known = block[~np.isnan(block)]
        low = float(known.min()) if known.size else float("nan")
        row.append((_BARS[round(min(max(low, 0), 1) * 7)] if known.size else " ", low))
    return row if len(numbers) else []
