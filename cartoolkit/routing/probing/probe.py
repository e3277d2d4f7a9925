"""Measuring a model: in a process of its own if its weights lie here, else over the engine at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from cartoolkit.engine.choosing import READS, named_engine
from cartoolkit.errors import InvalidRequest
from cartoolkit.models import resolve
from cartoolkit.routing.calls.serving import answers_elsewhere, open_answerer
from cartoolkit.routing.checks import several
from cartoolkit.routing.probing.measuring import ProbeOptions, measure, require_the_rows_engine
from cartoolkit.routing.probing.process import measured_apart
from cartoolkit.routing.rows.current import rows_at
from cartoolkit.routing.rows.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cartoolkit.routing.calls.serving import Answerer
    from cartoolkit.routing.probing.measurements import Probe
    from cartoolkit.routing.rows.schema import ModelSchema

    Report = Callable[[str, int, int], None]

__all__ = ["probe", "rows_to_probe"]


def probe(
    model: ModelSchema,
    *,
    engine: Answerer | None = None,
    prompt_lengths: Sequence[int] = (32, 128, 512),
    repeats: int = 6,
    answer_tokens: int = 48,
    quality: bool = True,
    items: int | None = None,
    loads: int = 3,
    patience: float | None = 60.0,
    progress: Report | None = None,
) -> Probe:
    """Measure a model: first tokens, decoding speed, memory, load time, and answers to known questions.

    Other work on this machine makes it slower; measure when it is quiet.

    Args:
        model: the row. Weights that are not here yet are fetched first.
        engine: measure this one, in this process; its load time and memory then stay unknown. So they do for
            a model on a server. None loads the model in a process of its own.
        prompt_lengths: tokens of the prompts whose first token is timed; those that the context does not hold
            are left out, which the measurement's notes say.
        repeats: measurements of each kind; from six on a median has an interval.
        answer_tokens: length of the answers whose decoding speed is taken.
        quality: ask the questions of `probe_items`, some 160 answers of a few tokens.
        items: at most so many questions; None asks all.
        loads: timed loads, beside a first one that also fills the system's cache.
        patience: seconds that first tokens may take, and that decoding may take; a slow model gets fewer
            repeats, and its longest prompts are left out, which the notes say. None waits for all. All of the
            questions are asked even so, since models are compared by the same ones.
        progress: called with what is going on, how much of it is done, and how much there is.

    Raises:
        InvalidRequest: a setting is out of range, the model cannot be used here, or `engine` is another one
            than the row names.
        ProbeFailed: its process crashed, was ended, hung or raised; the message says which.
        CartoolkitError: it cannot be fetched, or the engine at hand fails.
    """
    lengths = several("prompt_lengths", prompt_lengths, example="(32, 128)")
    options = _options(
        prompt_lengths=tuple(lengths), repeats=repeats, answer_tokens=answer_tokens, quality=quality,
        items=items, loads=loads, patience=patience,
    )  # fmt: skip
    report = progress or _nobody_listens
    if engine is not None:
        require_the_rows_engine(model, engine)
        return measure(model, engine, options, report)
    if not model.available:
        raise InvalidRequest(f"{model.id} cannot be measured here: {model.unavailable_because or 'unknown'}.")
    if answers_elsewhere(model):
        answerer = open_answerer(model)
        try:
            return measure(model, answerer, options, report)
        finally:
            answerer.close()
    _fetch(model)
    return measured_apart(model, options, report)


def rows_to_probe(names: Sequence[str] = (), engine: str = "auto") -> list[ModelSchema]:
    """The rows that are meant and can be measured.

    Args:
        names: ids or names of rows, names of the catalog, folders or GGUF files; none for all models whose
            weights are here.
        engine: only rows of this engine; ``auto`` takes each that can serve the model.

    Raises:
        ModelNotFound: nothing has one of these names.
        InvalidRequest: there is no such engine, or nothing that is meant can be measured; it says why.
    """
    registry, wanted = Registry.at_hand(), named_engine(engine)
    meant = [row for name in names for row in registry.named(name) or rows_at(name)]
    if not names:
        meant = [row for row in registry if row.weights_ready]
    found = {row.id: row for row in meant if wanted in {None, row.source.engine}}
    if ready := [row for row in found.values() if row.available]:
        return ready
    if not found:
        raise InvalidRequest(
            f"there is nothing to measure{f' on the {wanted} engine' if wanted else ''}: no model is on this "
            "machine yet.",
            hint="Name one to fetch it: cartoolkit probe smollm2-135m-instruct.",
        )
    reasons = "; ".join(f"{row.id}: {row.unavailable_because.rstrip('.')}" for row in found.values())
    raise InvalidRequest(f"there is nothing that can be measured. {reasons}.")


def _nobody_listens(what: str, done: int, total: int) -> None:
    """The default of `progress`."""


def _options(**given: Any) -> ProbeOptions:  # noqa: ANN401
    try:
        options = ProbeOptions(**given)
    except ValidationError as error:
        first = error.errors()[0]
        field = str(first["loc"][0])
        raise InvalidRequest(f"{field}: {first['msg']}; got {given[field]!r}.") from None
    options.require_sense()
    return options


def _fetch(model: ModelSchema) -> None:
    """See to it that the weights lie here; a download shows its progress."""
    source = model.source
    if not source.location:
        raise InvalidRequest(
            f"{model.id} has no location, so it cannot be loaded.",
            hint="Give the loaded engine itself: probe(model, engine=…).",
        )
    if not model.weights_ready:
        resolve(source.location, formats=READS[source.engine] if source.engine else ("safetensors", "gguf"))
