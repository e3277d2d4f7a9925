"""Where a run comes from: what stands in its trace before the first token is decoded."""

from __future__ import annotations

import platform
import secrets
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from cartoolkit.trace import TraceHeader

if TYPE_CHECKING:
    from cartoolkit.requests import GenerateParams
    from cartoolkit.trace import Event, ModelInfo

__all__ = ["new_header", "seeded"]

_LIBRARIES = {
    "torch": ["torch", "transformers"],
    "mlx": ["mlx", "mlx-lm", "transformers"],
    "llama.cpp": ["llama-cpp-python"],
    "openai": ["openai"],
}


def seeded(params: GenerateParams) -> tuple[GenerateParams, int]:
    """The parameters with their seed, a new one if they have none, so that the trace can be repeated."""
    seed = secrets.randbits(32) if params.seed is None else params.seed
    return params.model_copy(update={"seed": seed}), seed


def new_header(model: ModelInfo, prompt: str, params: GenerateParams, events: list[Event]) -> TraceHeader:
    """The header of a run that begins now: model, settings, time and the libraries that take part."""
    return TraceHeader(
        model=model,
        prompt=prompt,
        params=params.model_dump(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=_versions(model.engine),
        events=events,
    )


def _versions(engine: str) -> dict[str, str]:
    """Python and the libraries that took part, as they call themselves."""
    names = ["cartoolkit", "numpy", *_LIBRARIES.get(engine, [])]
    found = {"python": platform.python_version(), "platform": sys.platform}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found
