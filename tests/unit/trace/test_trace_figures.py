"""The figures hold the numbers of the trace, and leave the reader's matplotlib as it was."""

import warnings
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex
from trace_samples import VOCAB, empty, header, plain, sky, step, trace

from cartoolkit.trace import Event, Trace

mpl.use("Agg")
AMBER, DASHED = "#d97706", "#b42318"


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    plt.close("all")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
    plt.close("all")


def draw(ax):
    ax.figure.canvas.draw()
    return ax


def curve(ax):
    return next(line for line in ax.lines if line.get_linestyle() == "-")


def names(ax):
    return [label.get_text() for label in ax.get_xticklabels()]


def spans(ax):
    return [(p.get_x(), p.get_x() + p.get_width()) for p in ax.patches]


def test_the_curve_is_the_raw_max_probability():
    ax = draw(sky().plot_confidence())
    assert curve(ax).get_ydata().tolist() == [0.75, 0.25, 0.25, 0.25, 0.5]
    assert curve(ax).get_xdata().tolist() == [0, 1, 2, 3, 4]
    assert ax.get_ylabel() == "raw max probability"
    assert ax.get_title(loc="left") == "tiny <model>, perplexity 3.69"


def test_the_threshold_is_dashed_and_low_points_are_amber():
    ax = draw(sky().plot_confidence(threshold=0.3))
    dashed = next(line for line in ax.lines if line.get_linestyle() == "--")
    assert dashed.get_ydata() == [0.3, 0.3]
    assert to_hex(dashed.get_color()) == DASHED
    amber = next(line for line in ax.lines if line.get_color() == AMBER)
    assert amber.get_xdata().tolist() == [1, 2, 3]
    assert amber.get_ydata().tolist() == [0.25, 0.25, 0.25]


def test_runs_of_the_window_are_shaded_and_shorter_ones_are_not():
    assert spans(sky().plot_confidence(window=3)) == [(0.5, 3.5)]
    assert spans(sky().plot_confidence(window=4)) == []
    assert spans(sky().plot_confidence(window=1, threshold=0.6)) == [(0.5, 4.5)]


def test_a_chosen_token_that_was_not_the_likeliest_hangs_below_the_curve():
    ax = sky().plot_confidence()
    (hanging,) = ax.collections
    segments = np.array(hanging.get_segments())
    assert segments[:, 0, 0].tolist() == [1, 3]
    assert segments[:, :, 1] == pytest.approx(np.array([[0.125, 0.25], [0.125, 0.25]]), rel=1e-6)


def test_few_steps_are_named_and_many_are_numbered():
    assert names(draw(sky().plot_confidence())) == [
        "The",
        "␣<script>alert(…",
        "\\xF0\\x9F",
        "▯",
        "<|im_end|>",
    ]
    many = Trace.from_steps(header(), [sky()[0]] * 61, token_bytes=VOCAB.__getitem__)
    ax = draw(many.plot_confidence())
    assert ax.get_xlabel() == "token"
    assert all(label.lstrip("−").isdigit() for label in names(ax))


def test_names_with_dollars_underscores_and_newlines_are_taken_literally():
    steps = [
        replace(sky()[0], index=i, text=text)
        for i, text in enumerate([" $x_1$", "_y", "\n\n", "$", "\\frac{"])
    ]
    ax = draw(trace(steps).plot_confidence())
    assert names(ax) == ["␣$x_1$", "_y", "⏎⏎", "$", "\\frac{"]


def test_characters_without_a_glyph_are_boxes_and_not_warnings():
    ax = draw(trace([replace(sky()[0], text="a\U0001f9ff\U00030000")]).plot_confidence())
    assert names(ax) == ["a▯▯"]


def test_the_curve_joins_what_stands_and_stretches_that_were_rolled_back_are_dashed():
    gone = {1, 3, 4}
    run = trace([replace(one, kept=one.index not in gone) for one in [*sky(), replace(sky()[0], index=5)]])
    ax = run.plot_confidence()
    assert curve(ax).get_xdata().tolist() == [0, 2, 5]
    crossed = [line for line in ax.lines if line.get_marker() == "x"]
    # Each hangs on the step before it, which has no cross.
    assert [line.get_xdata().tolist() for line in crossed] == [[0, 1], [2, 3, 4]]
    assert [line.get_markevery() for line in crossed] == [[1], [1, 2]]
    assert {line.get_linestyle() for line in crossed} == {"--"}
    assert crossed[0].get_label() == "rolled back"
    assert len(draw(ax).get_legend().get_texts()) == 4


def test_a_run_that_begins_with_what_was_rolled_back_is_drawn():
    ax = draw(trace([replace(sky()[0], kept=False), sky()[1]]).plot_confidence())
    (crossed,) = (line for line in ax.lines if line.get_marker() == "x")
    assert (crossed.get_xdata().tolist(), crossed.get_markevery()) == ([0], [0])


def test_look_ups_are_marked_where_they_were_made():
    events = [
        Event(kind="retrieval", text="", at=0, data={"outcome": "found"}),
        Event(kind="truncated", text="The prompt was cut."),
        Event(kind="retrieval", text="", at=3, data={"outcome": "failed"}),
        Event(kind="retrieval", text="", at=99),
    ]
    ax = draw(sky(events=events).plot_confidence())
    marks = [(text.get_text(), text.xy[0], to_hex(text.get_color())) for text in ax.texts]
    assert marks == [("▲1", -0.5, "#0b6b3a"), ("▲2", 2.5, "#5b6570"), ("▲3", 4.5, "#5b6570")]
    assert ax.get_xlim() == (-0.6, 4.6)


def test_it_draws_on_the_axes_that_it_is_given():
    figure, (left, right) = plt.subplots(1, 2)
    assert sky().plot_confidence(right) is right
    assert sky().plot_candidates(1, left) is left
    assert plt.get_fignums() == [figure.number]


def test_it_changes_no_style_and_shows_nothing(monkeypatch):
    monkeypatch.setattr(plt, "show", lambda: pytest.fail("shown"))
    before = dict(mpl.rcParams)
    draw(sky().plot_confidence())
    draw(sky().plot_candidates(1))
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        (empty(), "no tokens yet"),
        (plain(), "decoded with inspect=False: no probabilities were recorded"),
    ],
)
def test_nothing_to_show_is_said_on_the_axes(run, sentence):
    ax = draw(run.plot_confidence())
    assert [text.get_text() for text in ax.texts] == [sentence]
    assert len(ax.lines) == 0
    assert ax.get_title(loc="left") == "tiny <model>"


def bars(ax):
    return [[bar.get_width() for bar in container] for container in ax.containers]


def test_candidates_are_raw_over_processed_with_the_rest_last():
    ax = draw(sky().plot_candidates(2))
    raw, drawn = bars(ax)
    assert raw == pytest.approx([1 / 4, 1 / 8, 1 / 16, 9 / 16], rel=1e-6)
    assert drawn == pytest.approx([1, 0, 0, 0], abs=1e-6)
    labels = [label.get_text().replace("\u0336", "") for label in ax.get_yticklabels()]
    assert labels == ["\\xF0\\x9F", "</textarea>", "␣&amp;", "997 others"]
    assert ax.get_title(loc="left") == "step 2: \\xF0\\x9F"
    assert ax.get_xlabel() == "probability"


def test_removed_candidates_are_struck_and_name_their_stage():
    ax = draw(sky().plot_candidates(2))
    struck = ["\u0336" in label.get_text() for label in ax.get_yticklabels()]
    assert struck == [False, True, True, False]
    assert [text.get_text() for text in ax.texts] == [
        "0.250 → 1.000  chosen",
        "0.125, removed by top-k",
        "0.062, removed by min-p",
    ]


def test_the_chosen_candidate_is_shown_however_unlikely():
    ids = (1, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16)
    one = step(0, 16, "\x00", ids, (0.25,) + (0.01,) * 13, (0.25,) + (0.01,) * 13)
    ax = draw(trace([one]).plot_candidates(-1))
    assert len(ax.get_yticklabels()) == 12 + 1 + 1
    assert ax.texts[-1].get_text() == "0.010 → 0.010  chosen"


def test_a_step_without_candidates_says_so():
    ax = draw(plain().plot_candidates(0))
    assert [text.get_text() for text in ax.texts] == ["no candidates were recorded at this step"]


def test_a_step_that_is_not_there_is_an_index_error():
    with pytest.raises(IndexError, match="step 9 of a trace of 5 steps"):
        sky().plot_candidates(9)
    assert plt.get_fignums() == []
