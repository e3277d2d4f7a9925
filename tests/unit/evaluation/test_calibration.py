"""Calibration on answers made by hand: what fires at which threshold can be counted on the fingers."""

import json
import math
import warnings
from dataclasses import replace

import matplotlib as mpl
import pytest
from matplotlib import pyplot as plt
from scripted_engine import MODEL, ScriptedEngine, question, said, step, trace

from cartoolkit.errors import InvalidRequest
from cartoolkit.evaluation import Calibration, calibrate
from cartoolkit.retrieval import AnyTokenInSentence, Corpus, EntropyAbove, Policy, preset

mpl.use("Agg")

# The least sure content word of each answer, and whether it is right.
DOUBTS = [
    (0.22, False),
    (0.32, False),
    (0.42, False),
    (0.52, True),
    (0.72, False),
    (0.82, True),
    (0.92, True),
]
CITIES = [question(f"city{i}", "Right") for i in range(len(DOUBTS))]
ANSWERS = [said(f"Perhaps {'Right' if right else 'Wrong'}", 0.99, low) for low, right in DOUBTS]
THRESHOLDS = [0.3, 0.4, 0.5, 0.6, 0.8]


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    plt.close("all")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
    plt.close("all")


def calibrated(policy="rollback", **options):
    return calibrate(ANSWERS, CITIES, policy, progress=False, **({"thresholds": THRESHOLDS} | options))


def test_the_sweep_counts_on_what_the_trigger_fires():
    calibration = calibrated()
    rows = [(line.threshold, line.fired, line.recall, line.false_alarms) for line in calibration.sweep]
    # Wrong ones at .22 .32 .42 .72, right ones at .52 .82 .92.
    assert rows == [
        (0.3, 1 / 7, 1 / 4, 0),
        (0.4, 2 / 7, 2 / 4, 0),
        (0.5, 3 / 7, 3 / 4, 0),
        (0.6, 4 / 7, 3 / 4, 1 / 3),
        (0.8, 5 / 7, 1, 1 / 3),
    ]
    assert [line.precision for line in calibration.sweep] == [1, 1, 1, 3 / 4, 4 / 5]
    assert [line.look_ups for line in calibration.sweep] == [line.fired for line in calibration.sweep]
    assert (calibration.count, calibration.right) == (7, 3 / 7)


@pytest.mark.parametrize(
    ("options", "threshold"),
    [
        ({}, 0.8),  # 95 % of the wrong answers are all four
        ({"recall": 0.75}, 0.5),
        ({"recall": 0.1}, 0.3),
        ({"rule": "youden"}, 0.5),  # .25 .5 .75 .42 .67
        ({"rule": "f1"}, 0.8),  # .4 .67 .857 .75 .889
    ],
)
def test_each_rule_picks_the_line_it_says(options, threshold):
    calibration = calibrated(**options)
    assert calibration.threshold == threshold
    assert calibration.chosen.threshold == threshold


def test_of_equally_good_thresholds_the_strictest_is_taken():
    assert calibrated(rule="youden", thresholds=[0.45, 0.5]).threshold == 0.45


def test_a_threshold_that_does_not_exist_is_not_made_up():
    calibration = calibrated(thresholds=[0.3], recall=0.9)
    assert math.isnan(calibration.threshold)
    assert calibration.chosen is None
    with pytest.raises(InvalidRequest, match="no threshold was found that is the strictest that fires on at"):
        calibration.apply("rollback", MODEL)
    assert "No threshold does that" in calibration._repr_html_()


def test_an_entropy_is_strict_when_it_is_high():
    answers = [trace([step(0, "Wrong", entropy=e)]) for e in (3.0, 2.0)] + [
        trace([step(0, "Right", entropy=1.0)])
    ]
    policy = Policy(name="entropy", trigger=EntropyAbove())
    calibration = calibrate(answers, CITIES[:3], policy, progress=False)
    # From 1.0 on the right answer is spared, below 2.0 both wrong ones are found.
    assert calibration.threshold == 1.75
    assert calibration.chosen.false_alarms == 0
    assert [line.threshold for line in calibration.sweep][:2] == [0.25, 0.5]


def test_the_scores_are_compared_with_the_length_of_the_answer():
    calibration = calibrated()
    lines = {line.name: line for line in calibration.scores}
    # Of 4 x 3 pairs only .72 (wrong) is above .52 (right).
    assert lines["1 - lowest probability"].auroc == 11 / 12
    assert lines["answer length"].auroc == 0.5
    assert lines["1 - lowest probability"].within_length == 11 / 12
    assert lines["1 - lowest probability"].low < 11 / 12 <= lines["1 - lowest probability"].high


def test_scores_that_are_only_length_show_within_equal_lengths():
    answers = [said("Wrong a b c", 0.5), said("Wrong a b d", 0.9), said("Right", 0.6), said("Right", 0.95)]
    scores = {line.name: line for line in calibrate(answers, CITIES[:4], progress=False).scores}
    assert scores["answer length"].auroc == 1
    assert math.isnan(scores["answer length"].within_length)


def test_scores_within_relations_leave_out_what_relations_differ_in():
    relations = ["easy", "hard", "hard", "easy", "hard", "easy", "easy"]
    asked = [replace(each, relation=name) for each, name in zip(CITIES, relations, strict=True)]
    scores = {line.name: line for line in calibrate(ANSWERS, asked, progress=False).scores}
    # easy: .22 wrong against .52 .82 .92 right; hard has no right one.
    assert scores["1 - lowest probability"].within_relation == 1


def test_the_reliability_curve_is_that_of_the_answers():
    calibration = calibrated()
    assert sum(each.count for each in calibration.reliability) == 7
    first, last = calibration.reliability[0], calibration.reliability[-1]
    assert (first.probability, first.right) == (pytest.approx((0.99 + 0.22) / 2), 0)
    assert (last.probability, last.right) == (pytest.approx((0.99 + 0.92) / 2), 1)
    claimed = [(0.99 + low) / 2 for low, _ in DOUBTS]
    gaps = [abs(c - right) for c, (_, right) in zip(claimed, DOUBTS, strict=True)]
    assert calibration.calibration_error == pytest.approx(sum(gaps) / 7)


def test_labels_may_come_from_the_caller():
    right = [right for _, right in DOUBTS]
    plain = calibrate(ANSWERS, ["Where?"] * 7, right=right, thresholds=THRESHOLDS, progress=False)
    assert plain.sweep == calibrated().sweep


# With an engine


def test_an_engine_answers_a_stratified_sample_without_looking_anything_up():
    cities = [question(f"{r}{i}", "Right", relation=r) for i in range(5) for r in ("a", "b")]
    engine = ScriptedEngine({each.text: said("Wrong", 0.5) for each in cities})
    calibration = calibrate(engine, cities, size=4, instruction="Be brief.", max_tokens=7, progress=False)
    assert calibration.count == len(engine.asked) == 4
    assert {name for name, _ in engine.asked} == {""}
    assert sorted(each.split("/")[1][0] for each in calibration.about["questions"]) == ["a", "a", "b", "b"]
    assert calibration.about["instruction"] == "Be brief."
    assert engine.requests[0].params.max_tokens == 7
    assert engine.requests[0].params.temperature == 0


def test_the_corpus_is_kept_with_it():
    corpus = Corpus("facts", ())
    assert calibrated(corpus=corpus).about["corpus"] == {"name": "facts", "digest": corpus.digest}


def test_a_user_s_stop_is_no_calibration():
    engine = ScriptedEngine({each.text: said("Wrong", stop_reason="stopped") for each in CITIES})
    with pytest.raises(KeyboardInterrupt):
        calibrate(engine, CITIES, progress=False)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: calibrated("none"), "'none' has no threshold"),
        (lambda: calibrated(rule="best"), "rule must be .*got 'best'"),
        (lambda: calibrated(recall=0), "recall must be"),
        (lambda: calibrate(ANSWERS, CITIES[:2], progress=False), "7 traces do not go with 2"),
        (lambda: calibrate([], [], progress=False), "at least one Trace"),
        (lambda: calibrate(ANSWERS, ["Where?"] * 7, progress=False), "known answers are needed"),
        (lambda: calibrate(ANSWERS, CITIES, right=[True], progress=False), "1 labels do not go with 7"),
        (lambda: calibrate(ScriptedEngine({}), CITIES, right=[True] * 7, progress=False), "right goes with"),
        (lambda: calibrate(ScriptedEngine({}), CITIES, size=99, progress=False), "99 questions were asked"),
    ],
)
def test_what_cannot_be_calibrated_is_refused(call, message):
    with pytest.raises(InvalidRequest, match=message):
        call()


def test_answers_of_two_models_are_refused():
    other = MODEL.model_copy(update={"dtype": "bfloat16"})
    mixed = [*ANSWERS[:-1], said("Right", model=other)]
    with pytest.raises(InvalidRequest, match="the traces are of 2 models"):
        calibrate(mixed, CITIES, progress=False)


# Using it


def test_the_threshold_is_put_into_a_policy():
    calibration = calibrated()
    assert calibration.apply("rollback", MODEL).trigger.threshold == 0.8
    wide = calibration.apply(preset("rollback", max_retrievals=9), ScriptedEngine({}))
    assert (wide.trigger.threshold, wide.budget.max_retrievals) == (0.8, 9)
    assert calibration.apply("rollback", ANSWERS[0]).trigger.threshold == 0.8


@pytest.mark.parametrize(
    ("field", "value"),
    [("name", "other"), ("engine", "mlx"), ("dtype", "bfloat16"), ("weights_hash", "sha256:2")],
)
def test_another_model_is_refused_unless_one_insists(field, value):
    calibration, other = calibrated(), MODEL.model_copy(update={field: value})
    with pytest.raises(InvalidRequest, match=f"{field} is '{value}' here") as caught:
        calibration.apply("rollback", other)
    assert "anyway=True" in caught.value.hint
    assert calibration.apply("rollback", other, anyway=True).trigger.threshold == 0.8


def test_the_device_does_not_matter():
    assert calibrated().apply("rollback", MODEL.model_copy(update={"device": "cuda:0"}))


def test_another_trigger_is_refused_and_other_settings_of_it_unless_one_insists():
    calibration = calibrated()
    with pytest.raises(InvalidRequest, match=r"measured for ContentTokenBelow; .*'flare' has"):
        calibration.apply("flare", MODEL, anyway=True)
    strict = preset("rollback", skip_function_words=True)
    with pytest.raises(InvalidRequest, match="skip_function_words=False; the policy has True"):
        calibration.apply(strict, MODEL)
    assert calibration.apply(strict, MODEL, anyway=True).trigger.threshold == 0.8


# Keeping and showing it


def test_what_is_loaded_equals_what_was_saved(tmp_path):
    calibration = calibrated(corpus=Corpus("facts", ()))
    path = calibration.save(tmp_path / "rollback.json")
    assert Calibration.load(path) == calibration
    assert [each.name for each in tmp_path.iterdir()] == ["rollback.json"]


def test_numbers_that_are_none_survive_as_such(tmp_path):
    calibration = calibrated(thresholds=[0.1], recall=0.9)
    loaded = Calibration.load(calibration.save(tmp_path / "a.json"))
    assert math.isnan(loaded.threshold)
    assert math.isnan(loaded.sweep[0].precision)
    assert "NaN" not in (tmp_path / "a.json").read_text()


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"format": "x", "version": 1}',
     '{"format": "cartoolkit calibration", "version": 2}',
     '{"format": "cartoolkit calibration", "version": 1}'],
)  # fmt: skip
def test_what_is_no_calibration_is_refused(tmp_path, text):
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(InvalidRequest, match="cannot be read as a calibration"):
        Calibration.load(path)


def test_a_file_that_is_not_there_or_cannot_be_is_said(tmp_path):
    with pytest.raises(InvalidRequest, match="cannot be read"):
        Calibration.load(tmp_path / "missing.json")
    with pytest.raises(InvalidRequest, match="was not saved"):
        calibrated().save(tmp_path / "no folder" / "a.json")


def test_a_file_may_come_from_a_reader_of_json(tmp_path):
    path = calibrated().save(tmp_path / "a.json")
    content = json.loads(path.read_text())
    assert content["model"]["dtype"] == "float32"
    assert content["policy"]["trigger"]["kind"] == "ContentTokenBelow"


def test_the_tables_and_the_figure_show_the_numbers():
    calibration = calibrated()
    assert calibration.table().loc[0.5, "recall"] == 0.75
    assert calibration.scores_table().loc["answer length", "auroc"] == 0.5
    sweep, scores, curve = calibration.plot().axes
    recall = next(line for line in sweep.lines if line.get_label().startswith("recall"))
    assert recall.get_ydata().tolist() == [0.25, 0.5, 0.75, 0.75, 1]
    assert any(line.get_label() == "chosen: 0.8" for line in sweep.lines)
    assert [text.get_text() for text in scores.get_yticklabels()][-1] == "answer length"
    assert any("7 answers" in line.get_label() for line in curve.lines)
    sweep.figure.canvas.draw()


def test_a_calibration_says_what_it_is():
    calibration = calibrated()
    assert repr(calibration) == "<Calibration: rollback at 0.8 on tiny (torch, float32), 7 questions>"
    page = calibration._repr_html_()
    assert "fires on 100% of the wrong answers, 33% of the right" in page
    assert "answer length" in page


def test_flare_is_calibrated_by_its_sentences():
    policy = Policy(name="flare", trigger=AnyTokenInSentence(0.8))
    assert calibrated(policy).sweep == calibrated("flare").sweep
