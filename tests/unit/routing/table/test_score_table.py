"""The table of scores: figures to compute with, and a view in which they can all be read."""

import html
import re

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from model_rows import local, remote, row

from cartoolkit.errors import InvalidRequest, ModelNotFound
from cartoolkit.routing.choice.decision import weigh
from cartoolkit.routing.choice.intent import PROFILES, Plan, Profile
from cartoolkit.routing.choice.situation import Demand, Machine
from cartoolkit.routing.rows.registry import Registry
from cartoolkit.routing.table.score_table import ScoreTable, score_table_of
from cartoolkit.routing.table.table_html import wins_text

mpl.use("agg")

LOCAL, REMOTE, SHUT = "torch/small", "acme/large", "acme/shut"
REASON = "not available here: no key <b>set</b> ($12)"


class Weighing:
    """Three models, of which one may not answer."""

    def __init__(self, *models):
        shut = row(SHUT, available=False, unavailable_because="no key <b>set</b> ($12)")
        self.registry = Registry(models or (local(quality=0.5), remote(quality=0.8), shut))

    def weigh(self, *, workload="interactive", demand=None, task="chat"):
        weights = workload if isinstance(workload, Profile) else PROFILES[workload]
        return weigh(self.registry, Plan(weights, task), demand, machine=Machine(loaded=frozenset({LOCAL})))


@pytest.fixture(autouse=True)
def no_figures_are_left():
    yield
    plt.close("all")


@pytest.fixture
def table():
    return score_table_of(Weighing(), demand=Demand(prompt_tokens=1000, output_tokens=500))


def test_scores_are_those_worked_out_by_hand(table):
    # quality (5 · 0.5 + 5 · 0.5) / 10, latency 5000 / (5000 + 400 + 5000), cost 1: nobody bills
    assert table.loc[LOCAL]["batch"]["score"] == pytest.approx(0.6 * 0.5 + 0.15 * 5000 / 10400 + 0.25 + 0.08)
    # 1,000 tokens at 1 dollar and 500 at 4 dollars a million cost 0.003 dollars: 0.01 / 0.013
    by_hand = 0.45 * (5 * 0.5 + 5 * 0.8) / 10 + 0.4 * 5000 / 10400 + 0.15 * 0.01 / 0.013
    assert table.loc[REMOTE]["interactive"]["score"] == pytest.approx(by_hand)


def test_rows_are_models_and_columns_are_workloads_in_the_order_asked_for():
    own = Profile("mine", 1, 0, 0)
    table = score_table_of(Weighing(), ["batch", own], ["large", LOCAL])
    assert list(table.index) == [REMOTE, LOCAL]
    assert table.workloads == ["batch", "mine"]
    # The third model is ranked, or left out, though it is not shown.
    assert table["mine"]["rank"].tolist() == [1, 2]


def test_what_is_cut_out_is_a_plain_frame(table):
    assert type(table["batch"]) is pd.DataFrame
    assert type(table.head(1)) is pd.DataFrame
    assert isinstance(table, ScoreTable)
    assert table["batch"]["score"].dtype == np.float64


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"workloads": ["batsh"]}, InvalidRequest, "'batsh' is no workload"),
        ({"workloads": []}, InvalidRequest, "at least one workload"),
        ({"workloads": ["batch", Profile("batch", 1, 0, 0)]}, InvalidRequest, "two workloads have"),
        ({"models": ["nobody"]}, ModelNotFound, "model not found: 'nobody'"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_refused(arguments, error, said):
    with pytest.raises(error, match=said):
        score_table_of(Weighing(), **arguments)


def shown_numbers(page):
    """The text of each cell of the page, a list a row."""
    rows = re.findall(r"<tr>(.*?)</tr>", page)
    cells = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", each) for each in rows]
    return [[html.unescape(re.sub(r"<[^>]+>", " ", cell)).split() for cell in row] for row in cells]


def test_the_page_says_score_rank_and_wins_of_each_cell_and_why_one_is_left_out(table):
    page = table._repr_html_()
    head, *rows = shown_numbers(page)
    assert head[1] == ["interactive", "0.45", "/", "0.40", "/", "0.15", "+", "0.00"]
    for line, model_id in zip(rows[:2], table.index, strict=False):
        for words, workload in zip(line[1:], table.workloads, strict=True):
            figures = table.loc[model_id][workload]
            assert words[:2] == [f"{figures['score']:.3f}", f"#{figures['rank']:.0f}"]
            assert words[2:] == ["·", "wins", wins_text(figures["wins"])]
    assert " ".join(rows[2][1]) == f"left out {REASON}"
    assert "<b>set" not in page


def test_titles_of_the_cells_can_be_added_up(table):
    titles = re.findall(r'title="([^"]+)"', table._repr_html_())
    assert len(titles) == 10
    for title in titles:
        *terms, total = (float(number) for number in re.findall(r"\d+\.\d+", title))
        assert sum(terms) == pytest.approx(total, abs=0.0021)  # four numbers of three decimals


def test_bars_are_as_long_as_the_terms_on_one_scale(table):
    cell = table.cell(LOCAL, "batch")
    page = re.search(rf'title="{re.escape(cell.spelt_out)}".*?</td>', table._repr_html_()).group()
    widths = [int(width) for width in re.findall(r"width:(\d+)px", page)]
    # Scores lie below 1, so 136 pixels are 1.
    assert widths[:4] == [round(136 * points) for _, points in cell.parts]
    assert sum(widths) == pytest.approx(136, abs=2)


def test_the_page_needs_no_style_sheet_and_no_colour_that_is_stripped(table):
    page = table._repr_html_()
    assert not re.search(r"<style|class=|hsl\(|rgb\(|<svg|<script|http", page)


def test_as_text_every_figure_is_there(table):
    lines = repr(table).splitlines()
    assert lines[0].startswith("Task chat: 1,000 tokens in, 500 out.")
    assert f"  batch: left out: {REASON}" in lines
    figures = table.loc[LOCAL]["batch"]
    assert (
        f"  batch: {figures['score']:.3f} #{figures['rank']:.0f}, wins {wins_text(figures['wins'])}" in lines
    )


def test_the_styler_says_the_same_with_the_terms_as_a_strip(table):
    page = table.style.to_html()
    assert f"{table.loc[LOCAL]['batch']['score']:.3f} #" in page
    assert page.count("linear-gradient") >= 2


def test_a_table_of_no_models_shows_itself():
    table = score_table_of(Weighing(), models=[])
    assert table.shape[0] == 0
    assert "<table" in table._repr_html_()
    assert table.plot_scores().texts[0].get_text() == "no models"


# The heat map


def test_the_map_has_a_number_and_a_rank_in_each_cell_and_says_why_one_is_left_out(table):
    axes = table.plot_scores()
    axes.figure.canvas.draw()
    texts = {tuple(round(v) for v in text.get_position()): text.get_text() for text in axes.texts}
    for y, model_id in enumerate(table.index[:2]):
        for x, workload in enumerate(table.workloads):
            figures = table.loc[model_id][workload]
            assert texts[x, y] == f"{figures['score']:.3f}  #{figures['rank']:.0f}"
    # Line breaks apart, the reason; a dollar sign does not start a formula.
    assert texts[0, 2].replace("\n", " ") == REASON.replace("$", r"\$")
    assert [label.get_text() for label in axes.get_yticklabels()] == list(table.index)
    hatched = [patch for patch in axes.patches if patch.get_hatch()]
    assert len(hatched) == 5
    assert len(axes.patches) == 10  # and a frame around each first choice


def test_the_map_can_be_read_in_black_and_white(table):
    axes = table.plot_scores()
    axes.figure.canvas.draw()
    image = axes.images[0]
    for y, x in np.ndindex(2, 5):
        red, green, blue, _ = image.cmap(image.norm(image.get_array()[y, x]))
        paper = 0.299 * red + 0.587 * green + 0.114 * blue
        ink = next(t.get_color() for t in axes.texts if t.get_position() == (x, y))
        assert abs((ink == "white") - paper) > 0.45


def test_the_map_draws_on_the_axes_given(table):
    axes = plt.subplots()[1]
    assert table.plot_scores(axes) is axes
    labels = [each.get_ylabel() for each in axes.figure.axes]
    assert "score (0 to 1, plus the local bonus)" in labels
