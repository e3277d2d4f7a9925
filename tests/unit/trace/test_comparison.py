"""Two runs beside each other, against values by hand."""

import math

import numpy as np
import pytest
from trace_samples import empty, plain, sky, step, trace

import cartoolkit as ct
from cartoolkit.errors import TraceError
from cartoolkit.trace.comparison import COMPARISON_FRAME, compare

THE, SKY, BREAK = 1, 3, 7


def run(*steps, **changes):
    return trace(list(steps), **changes)


def one(raw, ids=(THE, SKY, BREAK), chosen=THE):
    return run(step(0, chosen, "x", ids, raw, raw))


def test_a_run_equals_itself():
    comparison = compare(sky(), sky())
    assert (comparison.steps, comparison.parted) == (5, None)
    assert comparison.frame["kl"].tolist() == [0] * 5
    assert comparison.frame["total_variation"].tolist() == [0] * 5
    assert comparison.same_top == 1
    assert comparison.frame["logprob_a"].tolist() == comparison.frame["logprob_b"].tolist()


def test_divergences_by_hand_with_the_rest_as_one():
    a, b = one((1 / 2, 1 / 4, 1 / 8)), one((1 / 4, 1 / 2, 1 / 8))
    row = compare(a, b).frame.iloc[0]
    # 1/2 ln 2 + 1/4 ln 1/2 + 1/8 ln 1 + 1/8 ln 1, and half of the absolute differences.
    assert row["kl"] == pytest.approx(math.log(2) / 4)
    assert row["total_variation"] == pytest.approx(1 / 4)


def test_tokens_that_only_one_run_recorded_count_with_the_rest():
    a = one((1 / 2, 1 / 4), ids=(THE, SKY))
    b = one((1 / 2, 3 / 8), ids=(THE, BREAK))
    row = compare(a, b).frame.iloc[0]
    # Shared is THE only: 1/2 and 1/2, and the rests are equal, so nothing can be said against equality.
    assert row["kl"] == pytest.approx(0)
    assert row["total_variation"] == pytest.approx(0)


def test_the_bound_never_exceeds_the_true_divergence():
    random = np.random.default_rng(7)
    for _ in range(200):
        p, q = (random.dirichlet(np.ones(3)) for _ in range(2))
        order_p, order_q = np.argsort(-p), np.argsort(-q)
        ids = np.array([THE, SKY, BREAK])
        kept = [(ids[order][:2], dist[order][:2]) for order, dist in ((order_p, p), (order_q, q))]
        runs = [
            run(step(0, int(i[0]), "x", tuple(map(int, i)), tuple(map(float, v)), tuple(map(float, v))))
            for i, v in kept
        ]
        true = float((p * np.log(p / q)).sum())
        assert compare(*runs).frame["kl"].iloc[0] <= true + 1e-6


def test_free_runs_are_compared_up_to_where_they_part():
    first = step(0, THE, "The", (THE, SKY), (0.5, 0.25), (0.5, 0.25))
    a = run(first, step(1, SKY, " sky", (SKY, BREAK), (0.5, 0.25), (1, 0)), step(2, THE, "The"))
    b = run(first, step(1, BREAK, "\n\n", (BREAK, SKY), (0.5, 0.25), (1, 0)))
    a.columns["entropy"][2] = 1.0
    comparison = compare(a, b)
    assert (comparison.steps, comparison.parted) == (2, 1)
    row = comparison.frame.iloc[1]
    assert (row["label"], row["label_b"]) == (" sky", "\n\n")
    # What the first run chose has one quarter and the second place in the second run.
    assert row["logprob_b"] == pytest.approx(math.log(1 / 4))
    assert (row["rank_a"], row["rank_b"]) == (1, 2)
    assert "part at step 1" in str(comparison)


def test_a_token_unknown_to_the_other_run_has_no_rank_there():
    a = one((0.5, 0.25), ids=(THE, SKY))
    b = one((0.5, 0.25), ids=(SKY, BREAK), chosen=SKY)
    row = compare(a, b).frame.iloc[0]
    assert math.isnan(row["logprob_b"])
    assert row["rank_b"] == 0


def test_every_column_is_explained():
    frame = compare(sky(), sky()).to_frame()
    assert list(frame.columns) == list(COMPARISON_FRAME) == list(frame.attrs)


def test_runs_of_different_prompts_are_refused():
    with pytest.raises(TraceError, match=r"different prompts \(2 and 3 tokens\)"):
        compare(sky(), trace([], prompt_ids=[1, 3, 3]))


def test_a_run_without_inspection_is_refused():
    with pytest.raises(TraceError, match="second run was decoded with inspect=False"):
        compare(sky(), plain())


def test_nothing_to_compare_is_said():
    comparison = compare(empty(), empty())
    assert "no step to compare" in str(comparison)
    assert math.isnan(comparison.mean_kl)
    assert comparison.max_kl_step is None


def test_hostile_tokens_are_escaped_in_the_notebook():
    page = compare(sky(), sky())._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_the_figure_shows_both_runs_and_the_parting():
    first = step(0, THE, "The", (THE, SKY), (0.5, 0.25), (0.5, 0.25))
    a = run(first, step(1, SKY, " sky", (SKY, BREAK), (0.5, 0.25), (1, 0)))
    b = run(first, step(1, BREAK, "\n\n", (BREAK, SKY), (0.5, 0.25), (1, 0)))
    ax = compare(a, b).plot()
    curves = {line.get_label(): line for line in ax.get_lines()}
    assert curves["first: torch float32"].get_ydata().tolist() == pytest.approx([0.5, 0.5])
    assert curves["second: torch float32"].get_ydata().tolist() == pytest.approx([0.5, 0.25])
    assert "they part" in curves
    assert next(text.get_text() for text in ax.get_xticklabels()) == "The"


def test_a_result_or_session_stands_for_its_trace():
    class Holder:
        trace = sky()

    assert compare(Holder(), sky()).steps == 5


def test_a_run_that_ends_earlier_is_not_called_the_same_to_the_end():
    shorter = trace([step(0, 1, "The", (1, 3), (0.75, 0.125), (1, 0), (0, 4), elapsed=0.25)])
    assert "the same tokens until one ends" in str(compare(sky(), shorter))


def test_two_models_are_told_apart_by_name():
    a, b = sky(), sky()
    b.header = b.header.model_copy(update={"model": b.header.model.model_copy(update={"name": "other"})})
    assert str(compare(a, b)).startswith("tiny <model> torch float32 and other torch float32: 5 steps")


def test_compare_is_a_public_name():
    assert ct.compare is compare
