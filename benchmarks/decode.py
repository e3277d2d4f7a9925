"""Decoding speed and memory: transformers' generate against the engine without and with inspection.

    python benchmarks/decode.py [--tokens 64] [--rounds 5] [--dtype bfloat16] [--threads 2]

All three decode the same tokens (greedy, fixed length) of the same loaded model in one process, one after
the other in every round, and each engine call starts from an empty cache, as `generate` does. Reported are
medians over the rounds and the median of the per-round ratios, so that a machine that slows down slows
all three. The first round warms up and is not counted. Peak memory is of the process and includes the
weights once.
"""

from __future__ import annotations

import argparse
import itertools
import platform
import statistics
import time
from typing import TYPE_CHECKING

import psutil
import torch
import transformers

import cartoolkit as ct

if TYPE_CHECKING:
    from collections.abc import Callable

PROMPT = (
    "You are helping a school class. Explain in plain words why the sky is blue during the day and red "
    "in the evening, and mention the name of the effect. Use short sentences and one example."
)


class Measured:
    """Per round: tokens per second, from the median time between two, and milliseconds to the first."""

    def __init__(self) -> None:
        self.speed: list[float] = []
        self.ttft: list[float] = []

    def add(self, stamps: list[float], started: float) -> None:
        self.ttft.append(1000 * (stamps[0] - started))
        gaps = [after - before for before, after in itertools.pairwise(stamps)]
        self.speed.append(1 / statistics.median(gaps))


class Stamps(transformers.generation.streamers.BaseStreamer):
    """Notes when each token of `generate` arrives; does nothing else, so it costs `generate` nothing."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def put(self, value: torch.Tensor) -> None:
        # The first call hands over the prompt.
        if value.dim() == 1:
            self.times.append(time.perf_counter())

    def end(self) -> None:
        """Nothing to finish."""


def hf_generate(engine: ct.Engine, ids: list[int], tokens: int) -> tuple[list[float], float]:
    model = engine.decoder._model  # noqa: SLF001 - the same weights, called without the engine
    stamps, started = Stamps(), time.perf_counter()
    model.generate(
        torch.tensor([ids]),
        attention_mask=torch.ones(1, len(ids), dtype=torch.long),
        do_sample=False, max_new_tokens=tokens, min_new_tokens=tokens, streamer=stamps,
        pad_token_id=model.config.eos_token_id,
    )  # fmt: skip
    return stamps.times, started


def engine_generate(engine: ct.Engine, tokens: int, *, inspect: bool) -> tuple[list[float], float]:
    engine.decoder.clear_kv_cache()
    started = time.perf_counter()
    result = engine.generate(PROMPT, temperature=0, max_tokens=tokens, ignore_eos=True, inspect=inspect)
    return [started + t for t in result.trace.columns["elapsed"]], started


def peak_mb() -> float:
    info = psutil.Process().memory_info()
    return getattr(info, "peak_wset", None) or _linux_peak_mb() or info.rss / 1e6


def _linux_peak_mb() -> float:
    try:
        with open("/proc/self/status") as status:  # noqa: PTH123
            return next(int(line.split()[1]) / 1e3 for line in status if line.startswith("VmHWM"))
    except OSError:
        return 0.0


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--tokens", type=int, default=64)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--dtype", default=None)
    options.add_argument("--threads", type=int, default=None)
    args = options.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    engine = ct.load(dtype=args.dtype)
    ids = list(engine.start(PROMPT, max_tokens=1).result().trace.prompt_ids)
    runs: dict[str, Callable[[], tuple[list[float], float]]] = {
        "model.generate": lambda: hf_generate(engine, [int(i) for i in ids], args.tokens),
        "engine, inspect=False": lambda: engine_generate(engine, args.tokens, inspect=False),
        "engine, inspect=True": lambda: engine_generate(engine, args.tokens, inspect=True),
    }
    measured = {name: Measured() for name in runs}
    for round_ in range(args.rounds + 1):
        # Another one begins each round, so that what a neighbour on the machine does hits all alike.
        for turn in range(len(runs)):
            name = list(runs)[(round_ + turn) % len(runs)]
            stamps, started = runs[name]()
            if round_:
                measured[name].add(stamps, started)
    report(measured, engine, prompt_tokens=len(ids), args=args)


def report(
    measured: dict[str, Measured], engine: ct.Engine, *, prompt_tokens: int, args: argparse.Namespace
) -> None:
    base, blind = measured["model.generate"], measured["engine, inspect=False"]
    print(f"\n{engine!r}")
    print(
        f"{platform.processor() or platform.machine()}, {psutil.cpu_count(logical=False)} cores, "
        f"{torch.get_num_threads()} threads, torch {torch.__version__}, "
        f"transformers {transformers.__version__}"
    )
    print(f"{prompt_tokens} prompt tokens, {args.tokens} decoded, {args.rounds} rounds\n")
    print(f"{'':24}{'tok/s':>8}{'ratio to generate':>20}{'ratio to blind':>16}{'TTFT ms':>10}")
    for name, m in measured.items():
        to_base = statistics.median(a / b for a, b in zip(m.speed, base.speed, strict=True))
        to_blind = statistics.median(a / b for a, b in zip(m.speed, blind.speed, strict=True))
        print(
            f"{name:24}{statistics.median(m.speed):8.1f}{to_base:20.3f}{to_blind:16.3f}"
            f"{statistics.median(m.ttft):10.0f}"
        )
    print(f"\npeak memory of the process: {peak_mb():,.0f} MB")


if __name__ == "__main__":
    main()
