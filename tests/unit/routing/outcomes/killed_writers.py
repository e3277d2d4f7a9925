"""A program that kills writers of one ledger: ``python killed_writers.py FOLDER KILLS SEED``.

Two processes write at a time. Half of the kills come from outside at a random moment, half hit a writer in
the middle of its write, after a random number of bytes. Each writer notes every row whose `append` returned
in FOLDER/acknowledged; the line is short enough to be written in one go.

It is a program of its own because forking is cheap and safe only in a process with one thread.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

import filelock  # noqa: F401 - imported on first use otherwise, by each writer anew

from cartoolkit.routing.outcomes import ledger as module
from cartoolkit.routing.outcomes.ledger import Ledger
from cartoolkit.routing.outcomes.records import Completion


def row(number):
    about = {"model_id": "lab/small:q4", "task": "chat", "time": 1.0, "usd": number / 7}
    return Completion(trace_id=f"trace-{number}", **about)


def write_for_ever(folder, first, tear_after, seed):
    rng = random.Random(seed)

    def write_a_part_and_die(file, data):
        file.write(data[: rng.randrange(len(data))])
        os.kill(os.getpid(), signal.SIGKILL)

    ledger = Ledger(folder / "outcomes.jsonl")
    acknowledged = os.open(folder / "acknowledged", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    whole = module._write
    for number in range(first, first + 1_000_000):
        module._write = write_a_part_and_die if number - first == tear_after else whole
        ledger.append(row(number))
        os.write(acknowledged, b"trace-%d\n" % number)


def start(folder, generation, rng):
    """Fork a writer; the id of its process and whether it will end of itself."""
    tear_after, seed = (rng.randrange(3) if generation % 2 else -1), rng.random()
    if pid := os.fork():
        return pid, tear_after >= 0
    try:
        sys.stdout = (folder / "said").open("a")
        write_for_ever(folder, generation * 1_000_000, tear_after, seed)
    finally:
        os._exit(1)


def main(folder, kills, seed):
    rng = random.Random(seed)
    writers = [start(folder, 0, rng), start(folder, 1, rng)]
    for kill in range(kills):
        turn = rng.randrange(2)
        pid, dies_by_itself = writers[turn]
        if not dies_by_itself:
            time.sleep(rng.uniform(0, 0.02))
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        assert os.WIFSIGNALED(status), f"a writer ended with an error: {status}"
        writers[turn] = start(folder, kill + 2, rng)
    for pid, _ in writers:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
