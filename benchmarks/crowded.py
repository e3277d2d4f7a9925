"""Tokens a second of llama.cpp on a machine that others use too, with and without giving up threads.

    python benchmarks/crowded.py [--seconds 8] [--rounds 3]

Each program is a process of its own that loads the default model and decodes for some seconds; `fixed` keeps
one thread a core whatever happens, as llama.cpp does by itself. The ways take turns; medians over
programs and rounds. Loading and a first token are not counted.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys

WAYS = ("fixed", "giving way")
BUSY = [sys.executable, "-c", "while True: pass"]


def decode(way: str, seconds: float) -> None:
    """One program: print the tokens a second that it decoded."""
    import time

    import cartoolkit as ct
    from cartoolkit.engine.decoders.crowding import CrowdedThreads

    if way == "fixed":
        CrowdedThreads.note = lambda *_: None
    with ct.load(engine="gguf", quiet=True) as engine:
        engine.generate("Hi", max_tokens=1)
        print("ready", flush=True)
        sys.stdin.readline()
        begun, count = time.perf_counter(), 0
        for _ in engine.stream("Count to a thousand.", temperature=0, max_tokens=2000, ignore_eos=True):
            count += 1
            if time.perf_counter() - begun > seconds:
                break
        print(count / (time.perf_counter() - begun), flush=True)


def together(way: str, programs: int, busy: int, seconds: float) -> list[float]:
    """Tokens a second of each of some programs that decode at once, beside others that keep a core busy."""
    command = [sys.executable, __file__, "--decode", way, "--seconds", str(seconds)]
    beside = [subprocess.Popen(BUSY) for _ in range(busy)]
    children = []
    try:
        for _ in range(programs):
            child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            children.append(child)
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
        for child in children:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        return [float(child.communicate()[0]) for child in children]
    finally:
        for process in (*beside, *children):
            process.kill()
            process.wait()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=float, default=8)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--decode", choices=WAYS, help=argparse.SUPPRESS)
    args = options.parse_args()
    if args.decode:
        decode(args.decode, args.seconds)
        return
    print(f"{'':34}{WAYS[0]:>10}{WAYS[1]:>14}")
    for what, programs, busy in (("alone", 1, 0), ("beside a busy program", 1, 1), ("two at once", 2, 0)):
        found: dict[str, list[float]] = {way: [] for way in WAYS}
        for _ in range(args.rounds):
            for way in WAYS:
                found[way] += together(way, programs, busy, args.seconds)
        first, second = (statistics.median(found[way]) for way in WAYS)
        print(f"{what:34}{first:10.1f}{second:14.1f}  tokens/s each, {second / first:.1f} times")


if __name__ == "__main__":
    main()
