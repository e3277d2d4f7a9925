"""What FLARE's two halves cost: tokens decoded by rollback and by sentences, and the time to go on.

    python benchmarks/flare.py tokens --folder FOLDER
    python benchmarks/flare.py resume [--prompt 1000] [--rounds 5] [--engines torch-bf16 gguf]

`tokens` reads the runs that `scripts/evaluate_flare.py` left in a folder. `resume` lets an answer be
interrupted by a look-up after some tokens, in a prompt of about so many tokens, and takes the time from the
look-up's return to the next token. Three ways of going on take turns: rollback (the answer stands up to the
word in doubt), a restart that uses the cache, and a restart that reads everything again, as the seed did.
The second time is the one until the answer is as long again as it was when it was interrupted.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agreement import ENGINES

import cartoolkit as ct
from cartoolkit.retrieval import Budget, Hit, Policy, Restart, RollbackToWord, Trigger, demo_corpus
from cartoolkit.retrieval.triggers import Fire

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartoolkit.evaluation import Run
    from cartoolkit.retrieval import Resume
    from cartoolkit.retrieval.answer import Token
    from cartoolkit.trace import Trace

PLACE = 16  # tokens of the answer when it is interrupted
QUESTION = "Tell me in some detail about the element iron and what people do with it."


# Tokens


def compare_tokens(folder: str) -> None:
    runs = ct.evaluation.Evaluation.load(folder).runs
    print("| questions | decoded by rollback | by flare | ratio | match of rollback | of flare |")
    print("|---|---|---|---|---|---|")
    for kind in dict.fromkeys(run.kind for run in runs):
        by_policy = {
            name: {run.question: run for run in runs if (run.kind, run.policy, run.error) == (kind, name, "")}
            for name in ("rollback", "flare")
        }
        shared = sorted(by_policy["rollback"].keys() & by_policy["flare"].keys())
        if shared:
            print_ratio(kind, *([own[each] for each in shared] for own in by_policy.values()))


def print_ratio(kind: str, rollback: Sequence[Run], flare: Sequence[Run]) -> None:
    one, other = (statistics.fmean(run.decoded for run in runs) for runs in (rollback, flare))
    right, also = (statistics.fmean(run.match for run in runs) for runs in (rollback, flare))
    print(
        f"| {kind} ({len(rollback)}) | {one:.1f} | {other:.1f} | {one / other:.0%} "
        f"| {right:.0%} | {also:.0%} |"
    )


# Time


@dataclass(frozen=True)
class At(Trigger):
    """In doubt at one place, so that every run is interrupted at the same one."""

    position: int = PLACE

    def on_token(self, tokens: Sequence[Token]) -> Fire | None:
        here = tokens[-1].position
        return Fire(here, here, (here,), "the benchmark's place") if here == self.position else None


class Passages:
    """Many passages before the answer and a new one in its middle; may empty the cache, as the seed did."""

    def __init__(self, engine: ct.Engine, first: list[Hit], then: Hit, *, forget: bool) -> None:
        self._engine, self._first, self._then, self._forget = engine, first, then, forget
        self._asked = 0

    def search(self, query: str, k: int = 3) -> list[Hit]:  # noqa: ARG002 - the same whatever is asked
        self._asked += 1
        if self._asked == 1:
            return self._first[:k]
        if self._forget:
            # The engine waits for this look-up, so nothing else touches the cache.
            self._engine.decoder.clear_kv_cache()
        return [self._then]


WAYS: dict[str, tuple[Resume, bool]] = {
    "rollback": (RollbackToWord(), False),
    "restart": (Restart(), False),
    "restart, everything read again": (Restart(), True),
}


def filling(engine: ct.Engine, tokens: int) -> list[Hit]:
    """Paragraphs of the demo corpus of about so many tokens together."""
    hits, left = [], tokens
    for passage in demo_corpus().passages:
        if passage.id.startswith("about/"):
            left -= len(engine.decoder.encode(passage.text)) + 1
            hits.append(Hit.of(passage, 1.0))
        if left <= 0:
            break
    return hits


def resumed(engine: ct.Engine, resume: Resume, first: list[Hit], *, forget: bool, seed: int) -> Trace:
    then = Hit.of(demo_corpus()["atomic-number/iron"], 1.0)
    policy = Policy(
        pre_retrieve=True,
        trigger=At(),
        resume=resume,
        budget=Budget(max_retrievals=1, max_context_tokens=None),
        passages_per_query=len(first),
    )
    engine.decoder.clear_kv_cache()
    retriever = Passages(engine, first, then, forget=forget)
    settings = {"temperature": 0, "seed": seed, "ignore_eos": True, "max_tokens": 2 * PLACE}
    return engine.generate(QUESTION, retrieval=policy, retriever=retriever, **settings).trace


def measured(trace: Trace) -> tuple[float, float, int, int]:
    """Seconds to the next token and to where the answer was, tokens read and re-used for it."""
    look_up = next(each for each in trace.events if each.kind == "retrieval" and not each.data["upfront"])
    elapsed = trace.columns["elapsed"]
    asked = elapsed[look_up.at - 1] + look_up.data["ms"] / 1000
    again = look_up.at + PLACE - look_up.data["keep"]
    figures = look_up.data["prefill_tokens"], look_up.data["reused_tokens"]
    return float(elapsed[look_up.at] - asked), float(elapsed[again] - asked), *figures


def measure_resume(prompt: int, rounds: int, engines: Sequence[str]) -> None:
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, {rounds} rounds, medians\n")
    print("| engine | prompt | way | read | re-used | to the next token | to where it was | times rollback |")
    print("|---|---|---|---|---|---|---|---|")
    for name in engines:
        with ct.load(**ENGINES[name], quiet=True) as engine:
            first = filling(engine, prompt)
            found: dict[str, list[tuple[float, float, int, int]]] = {way: [] for way in WAYS}
            length = 0
            for seed in range(rounds + 1):
                for way, (resume, forget) in WAYS.items():
                    trace = resumed(engine, resume, first, forget=forget, seed=seed)
                    length = len(trace.prompt_ids)
                    # The first round warms up.
                    found[way] += [measured(trace)] if seed else []
            print_ways(name, length, found)


def print_ways(name: str, length: int, found: dict[str, list[tuple[float, float, int, int]]]) -> None:
    medians = {way: tuple(map(statistics.median, zip(*rows, strict=True))) for way, rows in found.items()}
    base = medians["rollback"][0]
    for way, (following, there, read, reused) in medians.items():
        print(
            f"| {name} | {length:,} | {way} | {read:.0f} | {reused:.0f} | {1000 * following:.0f} ms | "
            f"{1000 * there:.0f} ms | {following / base:.1f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = parser.add_subparsers(required=True)
    tokens = parts.add_parser("tokens")
    tokens.add_argument("--folder", required=True)
    tokens.set_defaults(run=lambda args: compare_tokens(args.folder))
    resume = parts.add_parser("resume")
    resume.add_argument("--prompt", type=int, default=1000)
    resume.add_argument("--rounds", type=int, default=5)
    resume.add_argument("--engines", nargs="+", choices=ENGINES, default=["torch-bf16", "gguf"])
    resume.set_defaults(run=lambda args: measure_resume(args.prompt, args.rounds, args.engines))
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
