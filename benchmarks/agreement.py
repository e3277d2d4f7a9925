"""How far each engine's distributions are from those of torch in float32, on the same text.

    python benchmarks/agreement.py [--tokens 2000] [--engines torch-bf16 torch-int8 gguf mlx]

The text is this project's own prose, read in windows of 500 tokens. Reported are the exact Kullback-Leibler
divergence of the engine's raw distribution from float32's in nats, over the whole vocabulary, and how often
both find the same token likeliest.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import cartoolkit as ct

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
TEXTS = ("ARCHITECTURE.md", "README.md", "CHANGELOG.md", "LICENSE")
WINDOW, CHUNK = 500, 50
ENGINES: dict[str, dict[str, Any]] = {
    "torch-bf16": {"engine": "torch", "dtype": "bfloat16"},
    "torch-int8": {"engine": "torch", "dtype": "bfloat16", "quantize": "int8"},
    "gguf": {"engine": "gguf"},
    "mlx": {"engine": "mlx"},
}


def windows(engine: ct.Engine, tokens: int) -> list[list[int]]:
    """The text as token ids, in windows that are read from an empty cache each."""
    text = "\n\n".join((ROOT / name).read_text(encoding="utf-8") for name in TEXTS)
    ids = engine.decoder.encode(text)[:tokens]
    return [ids[i : i + WINDOW] for i in range(0, len(ids), WINDOW)]


def rows(engine: ct.Engine, ids: list[int]) -> Iterator[np.ndarray]:
    """Raw logprobs after each of `ids`, float64 [vocab], read in chunks on the engine's own thread."""
    engine.decoder.clear_kv_cache()
    for first in range(0, len(ids), CHUNK):
        part = ids[first : first + CHUNK]
        read = lambda part=part, first=first: engine.decoder.forward_all(part, first).copy()  # noqa: E731
        for row in engine._worker.run(read):  # noqa: SLF001 - below a session, where whole rows are
            yield logprobs(row)


def logprobs(row: np.ndarray) -> np.ndarray:
    shifted = row.astype(np.float64) - row.max()
    return shifted - np.log(np.exp(shifted).sum())


def beside(
    reference: ct.Engine, engine: ct.Engine, ids: list[int]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Both engines' rows; only a chunk of each is in memory at a time."""
    return zip(rows(reference, ids), rows(engine, ids), strict=True)


def apart(p: np.ndarray, q: np.ndarray) -> tuple[float, bool]:
    """Divergence of q from p in nats, and whether they have the same favourite."""
    return float((np.exp(p) * (p - q)).sum()), bool(p.argmax() == q.argmax())


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--tokens", type=int, default=2000)
    options.add_argument(
        "--engines", nargs="+", choices=ENGINES, default=["torch-bf16", "torch-int8", "gguf"]
    )
    args = options.parse_args()
    reference = ct.load(engine="torch", dtype="float32", quiet=True)
    parts = windows(reference, args.tokens)
    print(f"{sum(map(len, parts)):,} tokens in windows of {WINDOW}, against torch float32\n")
    print(f"{'':12}{'mean KL':>10}{'median':>10}{'99 %':>10}{'largest':>10}{'same favourite':>16}")
    for name in args.engines:
        with ct.load(**ENGINES[name], quiet=True) as engine:
            found = np.array([apart(p, q) for ids in parts for p, q in beside(reference, engine, ids)])
        divergences, same = found[:, 0], found[:, 1].mean()
        quantiles = np.quantile(divergences, [0.5, 0.99, 1])
        print(
            f"{name:12}{divergences.mean():10.4f}"
            + "".join(f"{q:10.4f}" for q in quantiles)
            + f"{same:16.1%}"
        )


if __name__ == "__main__":
    main()
