"""Tables and figures of runs made by hand: every expected number is a fraction of a few questions."""

import math
import warnings

import matplotlib as mpl
import pytest
from matplotlib import pyplot as plt

from cartoolkit.evaluation import Evaluation, Run
from cartoolkit.evaluation.summary import Settings, summary, verdict

mpl.use("Agg")
ABOUT = {
    "model": {"name": "tiny", "engine": "torch", "device": "cpu", "dtype": "float32"},
    "retriever": "Corpus x",
    "request": {"params": {"temperature": 0.0, "max_tokens": 48}},
}


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    plt.close("all")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
    plt.close("all")


def runs(policy, matches, kind="single", **fields):
    return [Run(policy, f"q{i}", kind, "capital", match=match, **fields) for i, match in enumerate(matches)]


def evaluation(*rows, wanted=None):
    policies = tuple(dict.fromkeys(row.policy for row in rows))
    return Evaluation(rows, policies, ABOUT, wanted=wanted or len(rows))


# 12 questions: upfront right on 2, rollback on 9, none on none; rollback has 8 that upfront lacks, lacks 1.
UPFRONT = [1, 1, *[0] * 10]
ROLLBACK = [1, 0, *[1] * 8, 0, 0]
BOTH = [
    *runs("upfront", map(bool, UPFRONT), decoded=10, kept=10, prefilled=50, look_ups=1),
    *runs("rollback", map(bool, ROLLBACK), decoded=14, kept=10, prefilled=80, look_ups=2, fired=2),
    *runs("none", [False] * 12, decoded=20, kept=20, prefilled=30),
]


def test_means_are_means():
    table = evaluation(*BOTH).table()
    assert table["match"]["value"].to_dict() == {"upfront": 2 / 12, "rollback": 9 / 12, "none": 0}
    assert table["decoded"]["value"].to_dict() == {"upfront": 10, "rollback": 14, "none": 20}
    assert table["fired"]["value"].to_dict() == {"upfront": 0, "rollback": 1, "none": 0}
    assert table["questions"].tolist() == [12, 12, 12]
    # Every rollback run looked up two: no doubt about the mean.
    assert table.loc["rollback", "look_ups"].tolist() == [2, 2, 2]


def test_intervals_lie_around_the_mean():
    low, high = evaluation(*BOTH).table().loc["rollback", "match"][["low", "high"]]
    # Binomial with n = 12, p = 3/4: 2.5 % and 97.5 % quantiles are 6 and 12 (scipy.stats.binom.ppf).
    assert (low, high) == (6 / 12, 12 / 12)


def test_relations_of_few_questions_are_drawn_together():
    rows = [Run("none", f"q{i}", "single", f"relation {i}", match=i < 6) for i in range(12)]
    low, high = evaluation(*rows).table().loc["none", "match"][["low", "high"]]
    # Binomial with n = 12, p = 1/2: 3 to 9 (scipy.stats.binom.ppf).
    assert (low, high) == (3 / 12, 9 / 12)


def test_relations_of_many_questions_are_drawn_apart():
    rows = [Run("none", f"q{i}", "single", f"relation {i < 8}", match=i < 8) for i in range(16)]
    assert evaluation(*rows).table().loc["none", "match"].tolist() == [0.5, 0.5, 0.5]


def test_policies_are_compared_with_the_baseline_pair_by_pair():
    row = evaluation(*BOTH).table().loc["rollback"]
    assert (row["better"].item(), row["worse"].item()) == (8, 1)
    # Two-sided sign test: 2 (1 + 9) / 2**9.
    assert row["p"].item() == 20 / 512
    assert row["difference"]["value"] == pytest.approx(7 / 12)


def test_the_baseline_is_not_compared_with_itself_and_may_be_another_or_missing():
    assert math.isnan(evaluation(*BOTH).table().loc["upfront"]["p"].item())
    other = evaluation(*BOTH).table(baseline="none")
    assert (other.loc["upfront"]["better"].item(), other.loc["upfront"]["worse"].item()) == (2, 0)
    missing = evaluation(*BOTH).table(baseline="always")
    assert missing["p"].isna().all()


def test_only_questions_that_both_answered_are_paired():
    rows = [*runs("upfront", [False, False]), *runs("rollback", [True, True, True])]
    row = evaluation(*rows).table().loc["rollback"]
    assert (row["better"].item(), row["worse"].item()) == (2, 0)


def test_groups_are_tables_of_their_own():
    rows = [*runs("upfront", [True, False]), *runs("upfront", [True, True, True], kind="two-hop")]
    table = evaluation(*rows).table("kind")
    assert table["match"]["value"].to_dict() == {("single", "upfront"): 0.5, ("two-hop", "upfront"): 1}
    assert evaluation(*rows).table(["kind", "relation"]).index.names == ["kind", "relation", "policy"]


def test_inventions_are_counted_among_questions_without_an_answer_alone():
    rows = [
        *runs("none", [True, False]),
        Run("none", "u1", "unanswerable", "capital", made_up=True),
        Run("none", "u2", "unanswerable", "capital", abstained=True),
        Run("none", "u3", "unanswerable", "capital", match=True),
        Run("none", "u4", "unanswerable", "capital", made_up=True),
    ]
    row = evaluation(*rows).table().loc["none"]
    assert row["match"]["value"] == 0.5
    assert row["made_up"]["value"] == 0.5


def test_a_run_that_failed_is_not_right_and_has_no_cost():
    rows = [
        Run("none", "q0", "single", "capital", error="OutOfMemory: none left"),
        *runs("none", [True], decoded=8),
    ]
    rows[1] = Run("none", "q1", "single", "capital", match=True, decoded=8)
    row = evaluation(*rows).table().loc["none"]
    assert row["match"]["value"] == 0.5
    assert row["decoded"]["value"] == 8
    assert row["errors"].item() == 1


def test_the_verdict_names_who_is_clearly_better_and_who_is_not():
    lines = summary(BOTH, ("none", "upfront", "rollback"), None, Settings("upfront"))
    assert (
        verdict(lines, "upfront")
        == "Better than upfront: rollback; not clearly different from upfront: none."
    )
    alone = summary(BOTH[:12], ("upfront",), None, Settings("upfront"))
    assert verdict(alone, "upfront") == ""


def test_a_policy_that_loses_is_named_too():
    rows = [*runs("upfront", [True] * 8), *runs("none", [False] * 8)]
    lines = summary(rows, ("upfront", "none"), None, Settings("upfront"))
    assert verdict(lines, "upfront") == "Worse than upfront: none."


def test_markdown_says_what_was_measured_and_how():
    text = evaluation(*BOTH, Run("none", "u", "unanswerable", "x", made_up=True), wanted=40).to_markdown()
    assert "tiny on torch (cpu, float32), retriever Corpus x, temperature 0.0, at most 48 tokens." in text
    assert "3 runs are still missing" in text
    assert "**single**, 12 questions" in text
    assert "| rollback | 75% [50, 100] | 0.039 | 0% | 100% | 2.00 | 14.0 | 80 | 0 | 0.00 |" in text
    assert "| none | 100% [100, 100] | 0% | 0.00 | 0.0 | 0 | 0 | 0.00 |" in text
    assert "Better than upfront: rollback" in text
    assert "exact McNemar" in text


def test_a_table_marks_policies_whose_runs_failed():
    rows = [Run("none", "q0", "single", "capital", error="OutOfMemory: none left")]
    assert "| none (1 failed) |" in evaluation(*rows).to_markdown()


def test_names_are_text_in_a_notebook():
    page = evaluation(*runs("<script>", [True]))._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_the_frame_has_a_row_a_run():
    frame = evaluation(*BOTH).to_frame()
    assert len(frame) == 36
    assert frame.groupby("policy")["match"].sum().to_dict() == {"none": 0, "rollback": 9, "upfront": 2}
    assert evaluation().to_frame().empty


def test_the_figure_shows_shares_and_tokens():
    figure = evaluation(*BOTH).plot()
    quality, cost = figure.axes
    assert [text.get_text() for text in quality.get_yticklabels()] == ["upfront", "rollback", "none"]
    assert [text.get_text() for text in quality.texts] == ["17%", "75%", "0%"]
    assert quality.get_title(loc="left") == "single (12)"
    widths = [[bar.get_width() for bar in bars] for bars in cost.containers]
    assert widths == [[50, 80, 30], [10, 10, 20], [0, 4, 0]]
    figure.canvas.draw()


def test_the_figure_of_questions_without_an_answer_shows_inventions():
    figure = evaluation(Run("$no^ne", "u", "unanswerable", "x", made_up=True)).plot()
    assert "invented answers" in figure.axes[0].get_xlabel()
    figure.canvas.draw()


def test_nothing_run_yet_is_said():
    figure = evaluation().plot()
    assert figure.axes[0].texts[0].get_text() == "no runs yet"
    assert "0 policies" in repr(evaluation())
    assert evaluation().table().empty
    assert evaluation()._repr_html_()
