"""What it takes to the next token: a branch at the end of a long prompt, or reading everything again.

    python benchmarks/branching.py [--prompt 1000] [--rounds 5] [--engines torch-bf16 gguf]

Both ways give the logits after the same tokens, in one process, in turn. Reported are medians.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time

from agreement import ENGINES, windows

import cartoolkit as ct


def timed(engine: ct.Engine, ids: list[int], *, from_empty: bool) -> float:
    """Seconds to the logits after `ids`, whose last token is another one than the cache holds."""

    def work() -> float:
        decoder = engine.decoder
        if from_empty:
            decoder.clear_kv_cache()
        begun = time.perf_counter()
        done = decoder.begin_prompt(ids)
        while len(ids) - done > decoder.prefill_chunk:
            decoder.prefill(ids[done : done + decoder.prefill_chunk], done)
            done += decoder.prefill_chunk
        decoder.forward(ids[done:], done)
        return time.perf_counter() - begun

    return engine._worker.run(work)  # noqa: SLF001 - below a session, which would also choose a token


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--prompt", type=int, default=1000)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument(
        "--engines", nargs="+", choices=ENGINES, default=["torch-bf16", "torch-int8", "gguf"]
    )
    args = options.parse_args()
    print(f"{'':12}{'branch ms':>12}{'re-read ms':>12}{'ratio':>8}")
    for name in args.engines:
        with ct.load(**ENGINES[name], quiet=True) as engine:
            ids = list(itertools.chain(*windows(engine, args.prompt + args.rounds + 1)))
            timed(engine, ids[: args.prompt], from_empty=True)
            branch, again = [], []
            for i in range(args.rounds):
                # Another last token every time, so that there is something to read.
                other = [*ids[: args.prompt - 1], ids[args.prompt + i]]
                branch.append(timed(engine, other, from_empty=False))
                again.append(timed(engine, other, from_empty=True))
            ratio = statistics.median(a / b for a, b in zip(again, branch, strict=True))
            print(
                f"{name:12}{1000 * statistics.median(branch):12.1f}{1000 * statistics.median(again):12.1f}"
                f"{ratio:8.1f}"
            )


if __name__ == "__main__":
    main()
