"""What other programs took of the processor while a model was timed, and what is said about it."""

import subprocess
import sys
import time

import pytest
from probe_rows import MACHINE, probe_row

from cartoolkit.engine.decoders.cores import usable_cores
from cartoolkit.routing.probing import bystanders
from cartoolkit.routing.probing.bystanders import Bystanders, lacking_cores
from cartoolkit.routing.probing.probe_table import probe_frame, probe_markdown, probe_text


@pytest.mark.parametrize(
    ("others", "usable", "total", "lacking"),
    [
        (0, 2, 2, 0),
        (0.5, 2, 2, 0.5),
        (3, 2, 4, 1),  # two of the four cores are not this process's anyway
        (50, 2, 64, 0),
        (64, 2, 64, 2),
        (70, 2, 64, 2),  # clocks are read one after the other
    ],
)
def test_what_others_take_beyond_the_cores_left_to_them_is_lacking(others, usable, total, lacking):
    assert lacking_cores(others, usable, total) == lacking


def test_a_process_does_not_lack_what_it_takes_itself(monkeypatch):
    """Ten seconds in which all cores worked for 12 and this process for 8: others had 0.4 cores."""
    readings = iter([bystanders._Reading(5.0, 100.0, 1.0), bystanders._Reading(15.0, 112.0, 9.0)])
    monkeypatch.setattr(bystanders, "_read", lambda: next(readings))
    monkeypatch.setattr(bystanders, "usable_cores", lambda: 2)
    monkeypatch.setattr(bystanders.psutil, "cpu_count", lambda logical: 2)
    assert Bystanders().lacking() == pytest.approx(0.4)


def test_programs_that_keep_every_core_busy_are_seen():
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * usable_cores())]
    try:
        time.sleep(0.3)
        watch = Bystanders()
        time.sleep(1)
        assert watch.lacking() > usable_cores() / 2
    finally:
        for process in busy:
            process.kill()
            process.wait()


SAID = "Other programs had 1.3 of its 4 cores while it was timed; measure again when the machine is quiet."


def test_times_from_a_crowded_machine_are_said_to_be_doubtful():
    probe = probe_row(lacking_cores=1.26, notes=["One thing was left out."])
    assert probe.crowding == SAID
    assert probe.remarks == ("One thing was left out.", SAID)
    assert probe_frame([probe])["notes"].item() == f"One thing was left out. {SAID}"
    for table in (probe_text, probe_markdown):
        assert table([probe]).endswith(f"{probe.model_id}: {SAID}")


@pytest.mark.parametrize(
    ("lacking", "cores", "doubtful"),
    [(None, 4, False), (0.0, 4, False), (0.24, 1, False), (0.26, 1, True), (1.5, 16, False), (1.7, 16, True)],
)
def test_a_little_is_not_worth_a_word(lacking, cores, doubtful):
    machine = MACHINE.model_copy(update={"cores": cores})
    assert bool(probe_row(lacking_cores=lacking, machine=machine).crowding) == doubtful
