"""The doctor: what works is said, what does not is said with the reason, and a crash stays in the child."""

import importlib
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from cartoolkit.cli import app
from cartoolkit.engine import choosing, doctor, probing
from cartoolkit.engine.doctor import Examination
from cartoolkit.engine.probing import Probe, probe_engines
from cartoolkit.engine.tiny_gguf import tiny_gguf
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


def test_llama_cpp_computes_a_model_whose_logits_are_known(tmp_path):
    """Each token is the unit vector of its id, so the last norm leaves sqrt(32) of it."""
    path = tmp_path / "tiny.gguf"
    path.write_bytes(tiny_gguf())
    read = importlib.import_module("gguf").GGUFReader(path)
    assert read.get_field("llama.block_count").contents() == 1
    by_name = {tensor.name: tensor.data for tensor in read.tensors}
    np.testing.assert_array_equal(by_name["token_embd.weight"], np.eye(32))
    np.testing.assert_array_equal(by_name["output_norm.weight"], np.ones(32))
    assert not by_name["blk.0.ffn_down.weight"].any()
    llama_cpp = importlib.import_module("llama_cpp")
    logits = probing._llama_cpp_logits(llama_cpp, path, 7, on_gpu=False)
    np.testing.assert_allclose(logits, np.eye(32)[7] * 32**0.5, atol=0.01)


def test_llama_cpp_that_computes_wrongly_is_found_out(monkeypatch):
    monkeypatch.setattr(probing, "_llama_cpp_logits", lambda *_, **__: [0.0] * 32)
    with pytest.raises(ArithmeticError, match="the logits of a model of one layer came out as"):
        probing._gguf()


def test_the_kind_of_machine_is_asked_of_the_child_that_imported_torch(monkeypatch):
    """A torch that is broken in this process, or crashes it, must not take the report with it."""
    monkeypatch.setattr(choosing.sys, "platform", "linux")
    monkeypatch.setattr(choosing.os.path, "exists", lambda path: path == "/dev/nvidiactl")
    monkeypatch.setattr(choosing, "_torch_sees_cuda", lambda: pytest.fail("torch was imported here"))
    kinds = []
    for torch in (broken("torch", "libtorch.so is missing"), Probe(status("torch"), ("cuda:0 H200", "cpu"))):
        monkeypatch.setattr(doctor, "probe_engines", lambda torch=torch: [torch, working("gguf")])
        kinds.append(doctor.examine().kind)
    monkeypatch.undo()
    assert kinds == ["CPU", "CUDA"]


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
