"""What a machine is told by: nothing of its owner, and the same at every look."""

import getpass
import os
import platform
import socket
import subprocess

import psutil
import pytest

from cartoolkit.routing.probing import machine
from cartoolkit.routing.probing.machine import machine_identity, machine_now

INTEL = (
    "processor\t: 0\nmodel name\t: Loom 3000 @ 2GHz\nflags\t\t: a: b\n\n"
    "processor\t: 1\nmodel name\t: Loom 2\n"
)
ARM = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"


@pytest.fixture
def asked_anew():
    machine._processor.cache_clear()
    machine._nvidia_cards.cache_clear()
    yield
    machine._processor.cache_clear()
    machine._nvidia_cards.cache_clear()


def test_a_machine_is_the_same_at_every_look():
    assert machine_identity() == machine_identity()
    assert len(machine_identity().key) == 12


def test_it_says_what_speed_depends_on():
    found = machine_identity()
    assert found.architecture == platform.machine()
    assert found.system == platform.system()
    assert found.memory_gib == pytest.approx(psutil.virtual_memory().total / 2**30, abs=0.51)
    assert 1 <= found.cores <= os.cpu_count()


def test_it_names_neither_the_machine_nor_its_user():
    said = machine_identity().model_dump_json()
    assert socket.gethostname() not in said
    assert f'"{getpass.getuser()}"' not in said


def test_fewer_cores_make_another_machine(monkeypatch):
    monkeypatch.setattr(machine, "usable_cores", lambda: 64)
    many = machine_identity()
    monkeypatch.setattr(machine, "usable_cores", lambda: 1)
    assert many.key != machine_identity().key
    assert "64 cores," in str(many)
    assert "1 core," in str(machine_identity())


@pytest.mark.parametrize(
    ("told", "name"),
    [(INTEL, "Loom 3000 @ 2GHz"), (ARM, "CPU 0x41 0xd0c"), ("", "")],
    ids=["x86", "arm", "empty"],
)
def test_linux_tells_its_processor(tmp_path, monkeypatch, told, name):
    (tmp_path / "cpuinfo").write_text(told)
    monkeypatch.setattr(machine, "_CPU_INFO", tmp_path / "cpuinfo")
    assert machine._linux_processor() == name


def test_a_system_that_tells_nothing_still_has_a_name(asked_anew, monkeypatch):
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "processor", lambda: "")
    monkeypatch.setattr(platform, "machine", lambda: "")
    monkeypatch.setattr(machine, "_CPU_INFO", machine._CPU_INFO / "no such file")
    assert machine._processor() == "unknown"


def test_cards_are_those_that_the_driver_names(asked_anew, tmp_path, monkeypatch):
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\nprintf 'Loom A\\nLoom B\\n'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert machine_identity().gpus == ("Loom A", "Loom B")
    assert "Loom A, Loom B" in str(machine_identity())


@pytest.mark.parametrize(
    "script", ["#!/bin/sh\nexit 9\n", "no program at all"], ids=["fails", "cannot start"]
)
def test_a_driver_that_does_not_answer_has_no_cards(asked_anew, tmp_path, monkeypatch, script):
    program = tmp_path / "nvidia-smi"
    program.write_text(script)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert machine_identity().gpus == ()


def test_a_driver_that_hangs_is_not_waited_for(asked_anew, monkeypatch):
    def hangs(*_, timeout, **__):
        raise subprocess.TimeoutExpired("nvidia-smi", timeout)

    monkeypatch.setattr(machine.shutil, "which", lambda _: "nvidia-smi")
    monkeypatch.setattr(machine.subprocess, "run", hangs)
    assert machine_identity().gpus == ()


def test_what_the_machine_has_now_is_in_millions_of_bytes(monkeypatch):
    monkeypatch.setattr(machine, "free_memory", lambda: 2_500_000_000)
    now = machine_now(["gguf/small"], {"torch/small": "it failed three times"})
    assert now.free_memory_mb == 2500
    assert now.loaded == {"gguf/small"}
    assert now.resting == {"torch/small": "it failed three times"}
    assert machine_now().loaded == frozenset()
