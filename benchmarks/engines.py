"""Decoding with every token inspected, against the engines' own generation without (or with) probabilities.

    python benchmarks/engines.py [--rounds 5] [--tokens 64] [--prompts 59 1000] [--peers torch gguf mlx]

Every peer runs in a process of its own and loads the default model; in each round they decode one after the
other, and another one begins each round. A round's speed comes from the median gap between tokens; reported
are medians over the rounds and medians of the per-round ratios. The first round warms up and is not counted.
Peers are greedy and blind (but for logprobs=20); ours inspects every token: 20 candidates, entropy, the raw
and the processed distribution.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from peers.registry import PEERS, THREADS

FAMILIES = {
    "torch": [
        "transformers.generate bf16",
        "cartoolkit torch bf16, blind",
        "cartoolkit torch bf16",
        "cartoolkit torch int8",
    ],
    "gguf": [
        "llama-cpp-python",
        "llama-cpp-python logprobs=20",
        "cartoolkit gguf, blind",
        "cartoolkit gguf",
        "cartoolkit gguf, sampling",
    ],
    "mlx": ["mlx_lm.stream_generate", "cartoolkit mlx"],
}
"""The first of each is what the others are compared with."""


class Child:
    """One peer in its process."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._process = subprocess.Popen(
            [sys.executable, "-m", "peers.serve", name], cwd=Path(__file__).parent, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.costs = self._hear()

    def run(self, ids: list[int], tokens: int) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"ids": ids, "tokens": tokens}) + "\n")
        self._process.stdin.flush()
        return self._hear()

    def _hear(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name} ended with exit code {self._process.wait()}.")
        return json.loads(line)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def prompt_ids(length: int) -> list[int]:
    """A chat prompt of the default model, about `length` tokens long."""
    import cartoolkit as ct
    from cartoolkit.engine.prompt import prepare_prompt
    from cartoolkit.requests import make_request

    with ct.load(engine="gguf", quiet=True) as engine:
        text = Path(__file__).parents[1].joinpath("ARCHITECTURE.md").read_text(encoding="utf-8")
        words = text.split()
        count = next(
            n for n in range(1, len(words))
            if len(prepare_prompt(make_request(" ".join(words[:n])), engine.decoder).ids) >= length
        )  # fmt: skip
        return prepare_prompt(make_request(" ".join(words[:count])), engine.decoder).ids


def measure(children: list[Child], ids: list[int], args: argparse.Namespace) -> dict[str, dict[str, list]]:
    """For each peer: speed (tok/s), ttft (ms) and peak (MB) of every counted round."""
    found: dict[str, dict[str, list]] = defaultdict(lambda: defaultdict(list))
    for round_ in range(args.rounds + 1):
        for turn in range(len(children)):
            child = children[(round_ + turn) % len(children)]
            answer = child.run(ids, args.tokens)
            if round_:
                stamps = answer["stamps"]
                gaps = [after - before for before, after in itertools.pairwise(stamps)]
                found[child.name]["speed"].append(1 / statistics.median(gaps))
                found[child.name]["ttft"].append(1000 * stamps[0])
                found[child.name]["peak"].append(answer["peak_mb"])
    return found


def report(found: dict[str, dict[str, list]], base: str, prompt: int, args: argparse.Namespace) -> None:
    print(f"\n{prompt} prompt tokens, {args.tokens} decoded, {args.rounds} rounds")
    print(f"{'':32}{'tok/s':>8}{'× ' + base:>30}{'TTFT ms':>10}{'peak MB':>10}")
    for name in FAMILIES[next(family for family, names in FAMILIES.items() if base in names)]:
        values = found[name]
        ratio = statistics.median(a / b for a, b in zip(values["speed"], found[base]["speed"], strict=True))
        print(
            f"{name:32}{statistics.median(values['speed']):8.1f}{ratio:30.2f}"
            f"{statistics.median(values['ttft']):10.0f}{max(values['peak']):10.0f}"
        )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--tokens", type=int, default=64)
    options.add_argument("--prompts", type=int, nargs="+", default=[59, 1000])
    options.add_argument("--peers", nargs="+", choices=FAMILIES, default=["torch", "gguf"])
    args = options.parse_args()
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, {THREADS} threads")
    prompts = [prompt_ids(length) for length in args.prompts]
    for family in args.peers:
        children = [Child(name) for name in FAMILIES[family]]
        print(f"\n{family}: " + ", ".join(f"{k} {v}" for k, v in children[0].costs["versions"].items()))
        print(f"{'':32}{'import s':>10}{'load s':>10}")
        for child in children:
            print(f"{child.name:32}{child.costs['import']:10.2f}{child.costs['load']:10.2f}")
        for ids in prompts:
            report(measure(children, ids, args), children[0].name, len(ids), args)
        for child in children:
            child.close()


if __name__ == "__main__":
    assert set(itertools.chain(*FAMILIES.values())) == set(PEERS)
    main()
