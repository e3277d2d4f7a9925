"""The doctor: what works is said, what does not is said with the reason, and a crash stays in the child."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from cartoolkit.cli import app
from cartoolkit.engine import doctor, probing
from cartoolkit.engine.doctor import Examination
from cartoolkit.engine.probing import Probe, probe_engines
from cartoolkit.models.engines import EngineStatus


def status(engine, *, usable=True, why_not="", hint=None):
    return EngineStatus(engine, usable, "1.0" if usable else None, why_not, hint, {f"lib-{engine}": "1.0"})


def working(engine):
    return Probe(status(engine), ("cpu",))


def broken(engine, why, hint=None):
    return Probe(status(engine), (), why, hint)


def run_instead(monkeypatch, code):
    """Let every engine's question be this Python code; the engines count as installed."""
    monkeypatch.setattr(probing, "engine_status", lambda engine, try_import: status(engine))

    def start(_):
        command = [sys.executable, "-c", code]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    monkeypatch.setattr(probing, "_start", start)


def test_the_engines_of_this_environment_work():
    found = {probe.status.engine: probe for probe in probe_engines()}
    assert [found[engine].why_not for engine in ("torch", "mlx", "gguf")] == ["", "", ""]
    assert all("cpu" in probe.devices for probe in found.values())


def test_a_library_that_crashes_the_process_is_reported(monkeypatch):
    run_instead(monkeypatch, "import os, signal; os.kill(os.getpid(), signal.SIGILL)")
    for probe in probe_engines():
        assert not probe.works
        assert "crashed (SIGILL)" in probe.why_not
        assert "force-reinstall" in probe.hint


def test_a_library_that_raises_is_reported_with_its_own_words(monkeypatch):
    run_instead(monkeypatch, "raise OSError('libgomp.so.1: cannot open shared object file')")
    assert probe_engines()[0].why_not == "OSError: libgomp.so.1: cannot open shared object file"


def test_a_library_that_does_not_answer_is_given_up(monkeypatch):
    monkeypatch.setattr(probing, "_PATIENCE", 0.2)
    run_instead(monkeypatch, "import time; time.sleep(60)")
    assert "within 0.2 s" in probe_engines()[0].why_not


def test_what_a_library_prints_before_the_answer_does_not_matter(monkeypatch):
    run_instead(monkeypatch, "print('loading backend'); print('[\"gpu\", \"cpu\"]')")
    assert probe_engines()[0].devices == ("gpu", "cpu")


def test_an_engine_that_is_not_installed_is_not_started(monkeypatch):
    absent = status("mlx", usable=False, why_not="not there", hint="pip install")
    monkeypatch.setattr(probing, "engine_status", lambda engine, try_import: absent)
    monkeypatch.setattr(probing.subprocess, "Popen", lambda *_, **__: pytest.fail("it was started"))
    assert [(probe.why_not, probe.hint) for probe in probe_engines()] == [("not there", "pip install")] * 3


def test_the_report_names_what_would_be_taken_and_why_not_the_others():
    report = str(
        Examination((working("torch"), broken("mlx", "no Metal", "Update it."), working("gguf")), "CPU")
    )
    assert "mlx        does not work: no Metal\n           Update it." in report
    assert "torch      works on cpu; lib-torch 1.0" in report
    assert report.endswith(
        "load()     takes gguf, the fastest on CPU; not torch (slower here), mlx (does not work)"
    )


def test_a_machine_without_an_engine_is_not_healthy(monkeypatch):
    sick = Examination(tuple(broken(engine, "gone") for engine in ("torch", "mlx", "gguf")), "CPU")
    assert not sick.healthy
    assert str(sick).endswith("load()     would fail: no engine works here")
    monkeypatch.setattr(doctor, "examine", lambda: sick)
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 1
    assert "gone" in result.output


def test_the_command_prints_the_report(monkeypatch):
    well = Examination((working("torch"), working("mlx"), working("gguf")), "Apple GPU")
    monkeypatch.setattr(doctor, "examine", lambda: well)
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 0
    assert "takes mlx, the fastest on Apple GPU" in result.output
