"""cartoolkit: watch a language model decide, in a notebook.

The names below are imported when they are first used, so that ``import cartoolkit`` is instant and
loads no engine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cartoolkit import errors, evaluation, models, retrieval, routing
    from cartoolkit.engine import Engine, Result, Session, load
    from cartoolkit.errors import CartoolkitError
    from cartoolkit.evaluation import calibrate, evaluate
    from cartoolkit.messages import Message
    from cartoolkit.requests import GenerateParams, GenerateRequest
    from cartoolkit.routing import Router
    from cartoolkit.trace import Step, Trace
    from cartoolkit.trace.comparison import compare
    from cartoolkit.ui import FlareView, Inspector, RouterTable

__all__ = [
    "CartoolkitError",
    "Engine",
    "FlareView",
    "GenerateParams",
    "GenerateRequest",
    "Inspector",
    "Message",
    "Result",
    "Router",
    "RouterTable",
    "Session",
    "Step",
    "Trace",
    "calibrate",
    "compare",
    "errors",
    "evaluate",
    "evaluation",
    "load",
    "models",
    "retrieval",
    "routing",
]

_HOME = {
    "CartoolkitError": "errors",
    "Engine": "engine",
    "FlareView": "ui",
    "GenerateParams": "requests",
    "GenerateRequest": "requests",
    "Inspector": "ui",
    "Message": "messages",
    "Result": "engine",
    "Router": "routing.router",
    "RouterTable": "ui",
    "Session": "engine",
    "Step": "trace",
    "Trace": "trace",
    "calibrate": "evaluation",
    "compare": "trace.comparison",
    "evaluate": "evaluation",
    "load": "engine",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        return _version()
    if name in _HOME:
        return getattr(import_module(f"cartoolkit.{_HOME[name]}"), name)
    if name in ("errors", "evaluation", "models", "trace", "engine", "ui", "chat", "retrieval", "routing"):
        return import_module(f"cartoolkit.{name}")
    raise AttributeError(f"module 'cartoolkit' has no attribute {name!r}")


def _version() -> str:
    # importlib.metadata is most of what an import would cost.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("cartoolkit")
    except PackageNotFoundError:  # a checkout on the path that was never installed
        return "0"


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
