"""The job: what is run, what is kept, what is run again, and what is read off a run."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock
from scripted_engine import MODEL, ScriptedEngine, look_up, question, said, step, trace
from talking_decoder import TalkingDecoder

from cartoolkit.engine import Engine
from cartoolkit.errors import EngineBusy, ForwardFailed, InvalidRequest, PromptTooLong
from cartoolkit.evaluation import Evaluation, evaluate
from cartoolkit.evaluation.journal import FILE
from cartoolkit.evaluation.runs import measured_run
from cartoolkit.retrieval import Corpus, Passage, preset

HERE = Path(__file__).parent
KABUL, LIMA = question("kabul"), question("lima")
TEXT = {KABUL.text: "It is Kabul.", LIMA.text: "It is Quito."}


def find(query):
    place = re.search(r"is (\w+)", query)[1]
    return f"{place.capitalize()} is there."


def run(engine, questions=(KABUL, LIMA), policies=("none", "upfront"), **options):
    return evaluate(engine, find, questions, policies, progress=False, **options)


def by_name(evaluation):
    return {(each.policy, each.question): each for each in evaluation.runs}


def lines(folder):
    return (folder / FILE).read_text().splitlines()


def test_every_policy_answers_every_question():
    evaluation = run(ScriptedEngine(TEXT))
    assert [(each.policy, each.question, each.match) for each in evaluation.runs] == [
        ("none", "single/kabul", True),
        ("upfront", "single/kabul", True),
        ("none", "single/lima", False),
        ("upfront", "single/lima", True),
    ]
    assert evaluation.missing == 0


def test_what_a_run_cost_is_read_off_its_trace():
    steps = [
        step(0, "It", forced=True),
        step(1, " is"),
        step(2, " Quito", kept=False),
        step(3, ".", kept=False),
        step(4, " Lima"),
        step(5, "", special=True),
    ]
    events = [
        look_up(1, upfront=True, prefill_tokens=30, reused_tokens=4),
        look_up(4, prefill_tokens=20, reused_tokens=9),
        look_up(5, outcome="nothing"),
        look_up(5, outcome="failed", prefill_tokens=None),
    ]
    row = measured_run("rollback", LIMA, trace(steps, events=events, prefill=10, reused=2), seconds=1.5)
    assert row.text == "It is Lima"
    assert row.match
    assert (row.decoded, row.kept) == (5, 3)
    assert (row.look_ups, row.retrievals, row.fired) == (4, 2, 3)
    assert (row.prefilled, row.reused) == (10 + 30 + 20, 2 + 4 + 9)
    assert (row.stop_reason, row.seconds, row.error) == ("stop", 1.5, "")


def test_questions_are_asked_greedily_under_the_instruction():
    engine = ScriptedEngine(TEXT)
    run(engine, [KABUL], ["none"], instruction="Be brief.", max_tokens=7, stop=["\n"])
    (asked,) = engine.requests
    assert [(each.role, each.text()) for each in asked.messages] == [
        ("system", "Be brief."),
        ("user", KABUL.text),
    ]
    params = asked.params
    assert (params.temperature, params.seed, params.max_tokens, params.stop) == (0, 0, 7, ["\n"])
    assert params.repeatable


def test_a_start_is_put_before_the_answer_and_names_the_kind():
    engine = ScriptedEngine({})
    begun = question("peru", "sol", kind="two-hop", start="Lima is the capital of")
    rows = run(engine, [begun, replace(begun, start="")], ["none"]).runs
    assert [each.answer_start for each in engine.requests] == ["Lima is the capital of", ""]
    assert [each.kind for each in rows] == ["two-hop", "two-hop, free"]


def test_what_is_done_is_not_done_again(tmp_path):
    first = run(ScriptedEngine(TEXT), folder=tmp_path)
    engine = ScriptedEngine(TEXT)
    again = run(engine, folder=tmp_path)
    assert engine.asked == []
    assert again == first


def test_more_questions_and_policies_run_only_what_is_new(tmp_path):
    run(ScriptedEngine(TEXT), [KABUL], ["none"], folder=tmp_path)
    engine = ScriptedEngine(TEXT)
    evaluation = run(engine, folder=tmp_path)
    assert engine.asked == [("upfront", KABUL.text), ("none", LIMA.text), ("upfront", LIMA.text)]
    assert len(evaluation.runs) == 4


@pytest.mark.parametrize(
    "changed",
    [
        {"instruction": "Be brief."},
        {"max_tokens": 9},
        {"stop": ["."]},
        {"temperature": 0.5},
        {"policies": [preset("upfront", passages_per_query=3)]},
        {"questions": [replace(KABUL, text="Where is kabul, then?")]},
        {"questions": [replace(KABUL, start="It is")]},
        {"engine": ScriptedEngine(TEXT, model=MODEL.model_copy(update={"dtype": "bfloat16"}))},
        {"engine": ScriptedEngine(TEXT, model=MODEL.model_copy(update={"weights_hash": "sha256:2"}))},
    ],
)
def test_whatever_matters_makes_it_another_run(tmp_path, changed):
    usual = {"engine": ScriptedEngine(TEXT), "questions": [KABUL], "policies": ["upfront"]}
    run(**usual, folder=tmp_path)
    engine = changed.get("engine") or ScriptedEngine(TEXT)
    run(**(usual | changed | {"engine": engine}), folder=tmp_path)
    assert len(engine.asked) == 1


def test_another_retriever_makes_it_another_run(tmp_path):
    evaluate(ScriptedEngine(TEXT), find, [KABUL], ["upfront"], folder=tmp_path, progress=False)
    engine = ScriptedEngine(TEXT)
    corpus = Corpus("cities", (Passage("kabul", "Kabul is there."),))
    evaluate(engine, corpus, [KABUL], ["upfront"], folder=tmp_path, progress=False)
    assert len(engine.asked) == 1


def test_a_retriever_is_told_by_what_it_holds_and_not_by_its_address(tmp_path):
    class Finder:
        def search(self, query, k=3):
            return []

    for expected in (1, 0):
        engine = ScriptedEngine(TEXT)
        evaluate(engine, Finder(), [KABUL], ["upfront"], folder=tmp_path, progress=False)
        assert len(engine.asked) == expected
    corpus = Corpus("cities", (Passage("kabul", "Kabul is there."),))
    row = evaluate(ScriptedEngine(TEXT), corpus, [KABUL], ["upfront"], progress=False)
    assert row.about["retriever"] == f"Corpus 'cities' {corpus.digest[:16]}"


def test_the_name_of_a_policy_does_not_matter_and_is_the_one_it_has_now(tmp_path):
    run(ScriptedEngine(TEXT), [KABUL], ["upfront"], folder=tmp_path)
    engine = ScriptedEngine(TEXT)
    evaluation = run(engine, [KABUL], [preset("upfront").changed(name="first")], folder=tmp_path)
    assert engine.asked == []
    assert [each.policy for each in evaluation.runs] == ["first"]


def test_answers_are_graded_anew_without_the_model(tmp_path):
    assert not run(ScriptedEngine(TEXT), [LIMA], ["none"], folder=tmp_path).runs[0].match
    other = replace(LIMA, answers=("Quito",))
    engine = ScriptedEngine(TEXT)
    assert run(engine, [other], ["none"], folder=tmp_path).runs[0].match
    assert engine.asked == []


def test_a_line_that_was_being_written_is_dropped_and_its_run_made_again(tmp_path):
    first = run(ScriptedEngine(TEXT), folder=tmp_path)
    path = tmp_path / FILE
    path.write_bytes(path.read_bytes()[:-20])
    engine = ScriptedEngine(TEXT)
    again = run(engine, folder=tmp_path)
    assert engine.asked == [("upfront", LIMA.text)]
    assert [replace(each, seconds=0) for each in again.runs] == [
        replace(each, seconds=0) for each in first.runs
    ]
    assert all(json.loads(line) for line in lines(tmp_path))


@pytest.mark.parametrize("damage", ["{", "[1]", "null", '{"key": "x"}', '{"setup": 1, "key": "x"}', "\xff"])
def test_a_damaged_line_is_said_and_its_run_made_again(tmp_path, capsys, damage):
    run(ScriptedEngine(TEXT), folder=tmp_path)
    written = lines(tmp_path)
    written[2] = damage
    (tmp_path / FILE).write_bytes("".join(f"{line}\n" for line in written).encode("latin-1"))
    engine = ScriptedEngine(TEXT)
    run(engine, folder=tmp_path)
    assert engine.asked == [("upfront", KABUL.text)]
    assert "1 damaged lines" in capsys.readouterr().out


def test_a_user_s_stop_ends_the_job_and_the_next_call_goes_on(tmp_path, capsys):
    stopped = TEXT | {LIMA.text: said("It", stop_reason="stopped")}
    partial = run(ScriptedEngine(stopped), folder=tmp_path)
    assert [each.question for each in partial.runs] == ["single/kabul"] * 2
    assert partial.missing == 2
    assert "2 still missing" in repr(partial)
    assert "Interrupted after 2 of 4 runs" in capsys.readouterr().out
    engine = ScriptedEngine(TEXT)
    assert run(engine, folder=tmp_path).missing == 0
    assert [text for _, text in engine.asked] == [LIMA.text] * 2


def test_an_interrupt_between_tokens_of_anybody_else_does_the_same(tmp_path):
    engine = ScriptedEngine(TEXT, raises={("upfront", KABUL.text): KeyboardInterrupt()})
    assert len(run(engine, folder=tmp_path).runs) == 1
    assert run(ScriptedEngine(TEXT), folder=tmp_path).missing == 0


KILLED = """
import os, signal, sys
sys.path[:0] = {here!r}
from test_evaluate import TEXT, ScriptedEngine, run
class Doomed(ScriptedEngine):
    def generate(self, *args, **settings):
        if len(self.asked) == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().generate(*args, **settings)
run(Doomed(TEXT), folder={folder!r})
"""


def test_a_process_that_is_killed_has_lost_one_run(tmp_path):
    code = KILLED.format(here=[str(HERE), str(HERE.parent / "engine")], folder=str(tmp_path))
    ended = subprocess.run([sys.executable, "-c", code], check=False, timeout=60)
    assert ended.returncode == -9
    engine = ScriptedEngine(TEXT)
    assert run(engine, folder=tmp_path).missing == 0
    assert engine.asked == [("upfront", LIMA.text)]


@pytest.mark.parametrize("error", [ForwardFailed("no memory"), PromptTooLong("900 tokens")])
def test_an_error_is_a_row_and_is_tried_again_by_the_next_call(tmp_path, error):
    engine = ScriptedEngine(TEXT, raises={("none", KABUL.text): error})
    row = by_name(run(engine, folder=tmp_path))["none", "single/kabul"]
    assert row.error == f"{type(error).__name__}: {error}"
    assert not row.match
    assert len(engine.asked) == 4
    again = ScriptedEngine(TEXT)
    assert by_name(run(again, folder=tmp_path))["none", "single/kabul"].match
    assert again.asked == [("none", KABUL.text)]


@pytest.mark.parametrize("error", [EngineBusy("busy"), InvalidRequest("no such thing")])
def test_an_error_of_the_call_itself_ends_it(tmp_path, error):
    engine = ScriptedEngine(TEXT, raises={("upfront", KABUL.text): error})
    with pytest.raises(type(error)):
        run(engine, folder=tmp_path)
    assert len(engine.asked) == 2
    assert len(run(ScriptedEngine(TEXT), folder=tmp_path).runs) == 4


def test_two_processes_do_not_write_into_one_folder(tmp_path):
    with FileLock(tmp_path / "runs.lock"), pytest.raises(InvalidRequest, match="another process"):
        run(ScriptedEngine(TEXT), folder=tmp_path)


def test_a_folder_that_cannot_be_one_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidRequest, match="runs cannot be kept in"):
        run(ScriptedEngine(TEXT), folder=tmp_path / "file")


def test_the_oracle_is_given_the_right_passages_in_their_order():
    corpus = Corpus("facts", tuple(Passage(name, f"Fact {name}.") for name in "abc"))
    engine = ScriptedEngine({})
    asked = question("x", "Fact c", passages=("c", "a"))
    row = evaluate(engine, corpus, [asked], ["oracle"], progress=False).runs[0]
    assert row.text == "Fact c. Fact a."


def test_an_oracle_needs_the_passages():
    with pytest.raises(InvalidRequest, match="oracle needs the passages") as caught:
        run(ScriptedEngine(TEXT), policies=["oracle"])
    assert "corpus=" in caught.value.hint


def test_a_preset_may_look_the_question_up_first():
    evaluation = run(ScriptedEngine(TEXT), [LIMA], ["rollback", "upfront+rollback"])
    assert [(each.policy, each.look_ups) for each in evaluation.runs] == [
        ("rollback", 0),
        ("upfront+rollback", 1),
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policies": ["rolback"]}, "no policy 'rolback'"),
        ({"policies": ["none", preset("seed").changed(name="none")]}, "two policies are called 'none'"),
        ({"policies": []}, "no policy to evaluate"),
        ({"questions": []}, "no question"),
        ({"top_q": 1}, "'top_q' is not a setting"),
    ],
)
def test_what_cannot_be_evaluated_is_refused_before_anything_runs(options, message):
    engine = ScriptedEngine(TEXT)
    with pytest.raises(InvalidRequest, match=message):
        run(engine, **options)
    assert engine.asked == []


def test_a_question_given_twice_is_asked_once():
    engine = ScriptedEngine(TEXT)
    assert len(run(engine, [KABUL, KABUL], ["none"]).runs) == len(engine.asked) == 1


def test_two_names_of_one_policy_are_one_run_and_two_rows():
    engine = ScriptedEngine(TEXT)
    evaluation = run(engine, [KABUL], ["upfront", preset("upfront").changed(name="again")])
    assert [each.policy for each in evaluation.runs] == ["upfront", "again"]
    assert len(engine.asked) == 1


def test_a_folder_can_be_read_without_a_model(tmp_path):
    evaluation = run(ScriptedEngine(TEXT), folder=tmp_path)
    loaded = Evaluation.load(tmp_path)
    assert loaded == evaluation


def test_of_several_setups_in_a_folder_the_last_is_read_or_the_one_that_is_named(tmp_path):
    first = run(ScriptedEngine(TEXT), folder=tmp_path)
    second = run(ScriptedEngine(TEXT), [KABUL], ["none"], folder=tmp_path, max_tokens=5)
    assert Evaluation.load(tmp_path) == second
    name = json.loads(lines(tmp_path)[0])["setup"]
    assert Evaluation.load(tmp_path, setup=name) == first
    with pytest.raises(InvalidRequest, match="holds no runs of 'x'") as caught:
        Evaluation.load(tmp_path, setup="x")
    assert name in caught.value.hint


def test_a_folder_without_runs_is_refused(tmp_path):
    with pytest.raises(InvalidRequest, match="holds no runs"):
        Evaluation.load(tmp_path)


# With a real engine

WORDS = ["It", " is", " Kabul", " Lima", " Quito", "."]


def reply(text):
    """Sure of Kabul; unsure of Lima unless a passage says so."""
    place = "Kabul" if "is kabul?" in text else "Lima" if "Lima is there" in text else "Quito"
    sure = 0.3 if place == "Quito" else 0.95
    answer = [("It", 0.95), (" is", 0.95), (f" {place}", sure), (".", 0.95), ("", 0.95)]
    said = text.rsplit("?", 1)[-1]
    return answer[sum(said.count(word) for word in WORDS)]


@pytest.fixture
def engine():
    with Engine(lambda: TalkingDecoder(WORDS, reply)) as engine:
        yield engine


def test_a_real_engine_is_evaluated(engine):
    evaluation = evaluate(engine, find, [KABUL, LIMA], ["none", "upfront", "rollback"], progress=False)
    rows = {
        key: (each.text, each.decoded, each.kept, each.fired) for key, each in by_name(evaluation).items()
    }
    assert rows == {
        ("none", "single/kabul"): ("It is Kabul.", 5, 5, 0),
        ("upfront", "single/kabul"): ("It is Kabul.", 5, 5, 0),
        ("rollback", "single/kabul"): ("It is Kabul.", 5, 5, 0),
        ("none", "single/lima"): ("It is Quito.", 5, 5, 0),
        ("upfront", "single/lima"): ("It is Lima.", 5, 5, 0),
        ("rollback", "single/lima"): ("It is Lima.", 6, 5, 1),
    }


def test_neither_answers_nor_costs_depend_on_the_order(engine):
    policies = ["none", "upfront", "rollback"]
    forth = evaluate(engine, find, [KABUL, LIMA], policies, progress=False)
    back = evaluate(engine, find, [LIMA, KABUL], policies[::-1], progress=False)
    there, again = (
        {name: replace(each, seconds=0) for name, each in by_name(evaluation).items()}
        for evaluation in (forth, back)
    )
    assert there == again
    # Nothing was in the cache but what the run itself had read.
    assert {each.reused for each in forth.runs if each.policy != "rollback"} == {0}
