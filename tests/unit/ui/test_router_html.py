"""The still copy of a `RouterTable`: all that the live one shows, and nothing that a page would run."""

import re

import pytest
from test_router_protocol import STATES, example

from cartoolkit.ui.router_html import state_html, state_text


def words(page):
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


@pytest.mark.parametrize("name", STATES)
def test_names_and_texts_are_text_whatever_they_hold(name):
    page = state_html(example(name))
    assert "<img" not in page
    assert "</script" not in page
    assert not re.search(r"<style|class=|hsl\(|rgb\(|<svg|<script|http", page)
    assert "\u202e" not in page


def test_the_page_tells_scores_reasons_baselines_the_chosen_cell_and_the_answers():
    state = example("table")
    page = words(state_html(state))
    for row in state["cells"]:
        for cell in row:
            told = f"{cell['score']:.3f} #{cell['rank']}" if cell["kind"] == "scored" else cell["reasons"][0]
            assert told in page
    assert "qwen3-8b · 77% right" in page
    assert state["detail"]["worth"] in page
    assert "Latency weight above 0.58 (now 0.40) → smollm2-135m · gguf." in page
    assert "success, 4,012 ms, 6 tokens, found right" in page
    assert "at most 2,000 ms" in page
    assert "running, 1 token" in page


def test_the_text_tells_the_same():
    state = example("filtered")
    text = state_text(state)
    assert "  smollm2-135m · mlx: left out: expected to take 2,500 ms" in text
    assert state["detail"]["sum"] in text
    assert "Fastest (0.10 / 0.85 / 0.05 + 0.20)" in text


def test_changed_weights_are_marked_and_shown_in_full():
    state = example("hostile")
    assert "0.3333 / 0.3333 / 0.3333 + 0.00 (changed)" in words(state_html(state))
