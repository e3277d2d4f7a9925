"""`cartoolkit probe`, and the tables that measurements are shown in."""

import pandas as pd
import pytest
from model_rows import row
from probe_rows import MACHINE, probe_row
from typer.testing import CliRunner

from cartoolkit.cli import app
from cartoolkit.errors import InvalidRequest, ModelNotFound, ProbeFailed
from cartoolkit.routing.probing import probe as probing
from cartoolkit.routing.probing.measurements import MeasurementStore
from cartoolkit.routing.probing.probe import rows_to_probe
from cartoolkit.routing.probing.probe_table import probe_frame, probe_markdown, probe_text
from cartoolkit.routing.rows.registry import Registry


def figure(value, **about):
    return {"value": value, "basis": "measured", **about}


def graded(name, split, *, right):
    about = {"kind": "facts", "text": "Paris", "ms": 9.0, "completion_tokens": 2}
    return {"id": name, "split": split, "right": right} | about


FULL = probe_row(
    points=[
        {"aimed_at": 32, "prompt_tokens": 35, "ttft_ms": figure(81.4, low=80.0, high=90.0, n=6)},
        {"aimed_at": 512, "prompt_tokens": 512, "ttft_ms": figure(1042.0, n=6)},
    ],
    ttft_ms=figure(20.0), prefill_tokens_per_second=figure(500.0, low=480.0, high=510.0),
    tokens_per_second=figure(61.25), load_ms=figure(310.0), ram_mb=figure(329.7),
    quality=figure(0.5, low=0.39, high=0.61, n=82),
    items=[graded("capital:France", "choice", right=True), graded("capital:Japan", "held_out", right=False)],
)  # fmt: skip
BARE = probe_row("openai/large", engine="openai", versions={}, notes=("It counts nothing.",))


def test_markdown_has_medians_the_interval_of_what_is_right_and_dashes():
    assert probe_markdown([FULL, BARE]) == (
        "| model | first token after 32 tokens | first token after 512 tokens | tokens/s | memory | load "
        "| right |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        "| `gguf/small:q4` | 81 ms | 1,042 ms | 61.2 | 330 MB | 310 ms | 50% (39% to 61%) |\n"
        "| `openai/large` | – | – | – | – | – | – |\n"
        "\n"
        f"{MACHINE}; llama-cpp-python 0.3.36.\n"
        "gguf/small:q4: prompts of 32 tokens had 35.\n"
        "openai/large: It counts nothing."
    )


def test_a_terminal_gets_the_same_cells_in_columns():
    lines = probe_text([FULL, BARE]).splitlines()
    assert lines[1].split() == [
        "gguf/small:q4", "81", "ms", "1,042", "ms", "61.2", "330", "MB", "310", "ms", "50%", "(39%", "to",
        "61%)",
    ]  # fmt: skip
    assert len({line.rindex("MB") for line in lines if "MB" in line}) == 1
    assert lines[0].index("tokens/s") + len("tokens/s") == lines[1].index("61.2") + len("61.2")


def test_a_frame_has_every_interval_and_marks_what_is_unknown():
    table = probe_frame([FULL, BARE])
    assert table.loc["gguf/small:q4", "ttft_ms at 512"] == 1042
    assert table.loc["gguf/small:q4", "prefill_tokens_per_second low"] == 480
    assert table.loc["gguf/small:q4", ["facts"]].tolist() == [0.5]
    assert pd.isna(table.loc["gguf/small:q4", "arithmetic"])
    assert table.loc["openai/large"].isna().sum() == 2 + 3 * 6 + 2
    assert table.loc["openai/large", "notes"] == "It counts nothing."
    assert str(table.loc["openai/large", "measured_at"]) == "2023-11-14 22:13:20+00:00"


def test_no_measurement_is_an_empty_frame():
    assert probe_frame([]).empty


# -- which rows ------------------------------------------------------------------------------------

HERE = row("gguf/small", "catalog", source={"kind": "catalog", "location": "x", "engine": "gguf"})
TORCH = row("torch/small", "catalog", source={"kind": "catalog", "location": "x", "engine": "torch"})
BROKEN = row(
    "mlx/small", "catalog", available=False, unavailable_because="no mlx here.",
    source={"kind": "catalog", "location": "x", "engine": "mlx"},
)  # fmt: skip
ABSENT = row("gguf/other", "catalog", weights_ready=False)


@pytest.fixture
def registry(monkeypatch):
    monkeypatch.setattr(Registry, "at_hand", lambda: Registry([HERE, TORCH, BROKEN, ABSENT]))


def test_without_a_name_what_is_here_and_works_is_measured(registry):
    assert rows_to_probe() == [HERE, TORCH]
    assert rows_to_probe(engine="torch") == [TORCH]


def test_a_named_model_is_measured_also_if_it_must_be_fetched(registry):
    assert rows_to_probe(["gguf/other", "gguf/small", "gguf/other"]) == [ABSENT, HERE]


def test_a_catalog_name_means_its_rows_on_every_engine():
    ids = [row.id for row in rows_to_probe(["smollm2-135m-instruct"])]
    assert {each.partition("/")[0] for each in ids} == {"torch", "mlx", "gguf"}


def test_what_cannot_be_measured_says_why(registry):
    with pytest.raises(InvalidRequest, match=r"nothing that can be measured. mlx/small: no mlx here\.$"):
        rows_to_probe(["mlx/small"])
    with pytest.raises(ModelNotFound, match="smol"):
        rows_to_probe(["smol"])
    with pytest.raises(InvalidRequest, match="engine must be"):
        rows_to_probe(engine="abacus")


def test_an_empty_machine_says_how_to_fetch_a_model(monkeypatch):
    monkeypatch.setattr(Registry, "at_hand", lambda: Registry([ABSENT]))
    with pytest.raises(InvalidRequest, match="no model is on this machine yet") as caught:
        rows_to_probe()
    assert "cartoolkit probe smollm2-135m-instruct" in caught.value.hint


# -- the command -----------------------------------------------------------------------------------


@pytest.fixture
def measured(registry, monkeypatch, tmp_path):
    """Every model measures as FULL does, but for torch's, which fails."""
    monkeypatch.setenv("CARTOOLKIT_CACHE", str(tmp_path))

    def probe(model, *, quality, progress):
        progress("decoding", 0, 2)
        progress("decoding", 1, 2)
        if model.id.startswith("torch"):
            raise ProbeFailed("torch/small could not be measured: it crashed.", hint="Mend it.")
        return FULL.model_copy(update={"model_id": model.id} | ({} if quality else {"quality": None}))

    monkeypatch.setattr(probing, "probe", probe)
    return tmp_path / "measurements"


def test_the_table_goes_to_standard_output_and_what_is_going_on_to_standard_error(measured):
    done = CliRunner().invoke(app, ["probe", "--engine", "gguf"])
    assert done.exit_code == 0
    assert done.stdout.startswith("model")
    assert "gguf/small" in done.stdout
    assert done.stderr == "gguf/small: decoding\n"
    assert [probe.model_id for probe in MeasurementStore(measured).probes()] == ["gguf/small"]


def test_markdown_can_be_pasted_into_a_page(measured):
    done = CliRunner().invoke(app, ["probe", "gguf/small", "--markdown", "--no-quality"])
    assert done.stdout.startswith("| model |")
    assert "| 310 ms | – |" in done.stdout


def test_a_failure_is_told_and_the_others_are_measured_all_the_same(measured):
    done = CliRunner().invoke(app, ["probe"])
    assert done.exit_code == 1
    assert "gguf/small" in done.stdout
    assert "could not be measured: it crashed.\nMend it.\n" in done.stderr


def test_what_cannot_be_kept_is_shown_all_the_same(measured, monkeypatch):
    measured.write_text("a file where the folder should be")
    done = CliRunner().invoke(app, ["probe", "--engine", "gguf"])
    assert done.exit_code == 0
    assert "could not be kept" in done.stderr
    assert "gguf/small" in done.stdout


def test_a_name_that_is_not_known_ends_with_one_sentence(measured):
    done = CliRunner().invoke(app, ["probe", "smol"])
    assert done.exit_code == 1
    assert "There is no model 'smol'" in done.stderr
    assert not done.stdout
