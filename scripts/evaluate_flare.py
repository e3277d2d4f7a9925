"""Measure what looking things up is worth on the demo corpus, and write the table and the figures.

    python scripts/evaluate_flare.py --folder FOLDER [--engine gguf] [--single 240] [--two-hop 50] ...

First thresholds are calibrated on questions of the corpus' split "calibration", then every policy answers
questions of the split "test". A policy is named as `evaluate` names it, with ``@calibrated`` or ``@0.5``
behind it for another threshold than the preset's. Everything is kept in the folder; the same command goes
on after an interrupt.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl

import cartoolkit as ct
from cartoolkit.evaluation import Calibration, calibrate, closed_book, evaluate, sample_questions
from cartoolkit.evaluation.arms import INSTRUCTION
from cartoolkit.retrieval import demo_corpus, preset

if TYPE_CHECKING:
    from cartoolkit.retrieval import LabelledQuestion, Policy
    from cartoolkit.trace import Trace

CALIBRATED = ("seed", "flare", "rollback")
POLICIES = ("none", "oracle", "upfront", "seed", "flare", "rollback")


def calibrations(engine: ct.Engine, args: argparse.Namespace) -> dict[str, Calibration]:
    """One for each policy with a threshold, read from the folder if they are of this model."""
    corpus, found = demo_corpus(), {}
    asked = sample_questions(corpus.questions, args.calibrate, kind="single", split="calibration")
    traces: list[Trace] = []
    for name in CALIBRATED:
        path = args.folder / f"calibration_{name}.json"
        known = Calibration.load(path) if path.exists() else None
        same = known and known.model == engine.info and known.about["instruction"] == args.instruction
        if known is None or not same or known.count != len(asked):
            traces = traces or closed_book(engine, asked, instruction=args.instruction)
            known = calibrate(traces, asked, name, corpus=corpus, instruction=args.instruction)
            known.save(path)
        print(known, f"recall {known.chosen.recall:.2f}" if known.chosen else "no threshold", sep="; ")
        found[name] = known
    found["rollback"].plot().savefig(args.folder / "calibration.png", dpi=120)
    return found


def questions(args: argparse.Namespace) -> list[LabelledQuestion]:
    """Of every kind so many; two hops once with the start of the answer given, once without."""
    counts = {"single": args.single, "paraphrase": args.paraphrase, "unanswerable": args.unanswerable}
    counts = {kind: count for kind, count in counts.items() if count}
    every = demo_corpus().questions
    chosen = [
        each
        for kind, count in counts.items()
        for each in sample_questions(every, count, kind=kind, split="test")
    ]
    hops = sample_questions(every, args.two_hop, kind="two-hop", split="test") if args.two_hop else []
    return [*chosen, *hops, *(replace(each, start="") for each in hops)]


def named_policy(name: str, known: dict[str, Calibration], engine: ct.Engine) -> str | Policy:
    """A preset's name, or a preset with another threshold: ``rollback@0.5``, ``rollback@calibrated``."""
    base, _, threshold = name.partition("@")
    if not threshold:
        return name
    plain = base.removeprefix("upfront+")
    policy = preset(plain)
    if threshold == "calibrated":
        policy = known[plain].apply(policy, engine)
        name = f"{base}@{known[plain].threshold:g}"
    else:
        policy = policy.changed(threshold=float(threshold))
    return policy.changed(name=name, pre_retrieve=policy.pre_retrieve or base != plain)


def main() -> None:
    parser = argparse.ArgumentParser(description="Evaluate policies on the demo corpus.")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--engine", default="gguf", help="as cartoolkit.load takes it")
    parser.add_argument("--policies", nargs="+", default=POLICIES)
    parser.add_argument("--calibrate", type=int, default=120, help="questions to calibrate on")
    parser.add_argument("--single", type=int, default=240)
    parser.add_argument("--paraphrase", type=int, default=0)
    parser.add_argument("--two-hop", type=int, default=50)
    parser.add_argument("--unanswerable", type=int, default=18)
    parser.add_argument("--instruction", default=INSTRUCTION)
    parser.add_argument("--max-tokens", type=int, default=48)
    args = parser.parse_args()
    mpl.use("Agg")
    args.folder.mkdir(parents=True, exist_ok=True)
    with ct.load(engine=args.engine) as engine:
        known = calibrations(engine, args)
        policies = [named_policy(name, known, engine) for name in args.policies]
        result = evaluate(
            engine, demo_corpus(), questions(args), policies,
            folder=args.folder, instruction=args.instruction, max_tokens=args.max_tokens,
        )  # fmt: skip
    (args.folder / "table.md").write_text(result.to_markdown(), encoding="utf-8")
    result.plot().savefig(args.folder / "evaluation.png", dpi=120)
    print(result, result.to_markdown(), sep="\n\n")


if __name__ == "__main__":
    main()
