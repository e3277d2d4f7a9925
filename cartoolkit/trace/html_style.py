"""Colours and inline styles that the parts of a still page share; `static_html` says why they are inline."""

from __future__ import annotations

__all__ = [
    "BOX",
    "CHIP",
    "DIM",
    "INK",
    "LINE",
    "LOW",
    "MONO",
    "OTHER",
    "PAPER",
    "PROSE",
    "RETRIEVED",
    "SMALL",
    "SOFT",
]

INK, DIM, LINE, SOFT, PAPER = "#1b1f24", "#5b6570", "#d9dee3", "#f5f7f9", "#ffffff"
LOW, OTHER, RETRIEVED = "#b45309", "#b42318", "#0b6b3a"
MONO = "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace"
CHIP = f"{MONO};font-size:12px;color:{DIM};border:1px solid {LINE};border-radius:10px;padding:1px 8px"
BOX = f"background:{SOFT};border:1px solid {LINE};border-radius:3px"
SMALL = f"font-size:12px;line-height:1.5;color:{DIM}"
PROSE = "white-space:pre-wrap;overflow-wrap:break-word"
