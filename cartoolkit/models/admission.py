"""Which engine can serve a checkpoint, asked before anything is downloaded or loaded.

There is no list of architectures here: the installed library answers for itself, so a newer library serves
more without an edit. What a library would read as garbage instead of refusing it, its engine refuses here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cartoolkit.errors import InvalidCheckpoint
from cartoolkit.models import llama_cpp_admission, mlx_lm_admission, transformers_admission
from cartoolkit.models.config import brings_code
from cartoolkit.models.engines import EngineName, engine_status
from cartoolkit.models.headers import shown
from cartoolkit.models.quantization import Quantization, QuantScheme
from cartoolkit.models.weights import SERVED_BY

if TYPE_CHECKING:
    from cartoolkit.models.checkpoint import Checkpoint
    from cartoolkit.models.weights import Format

__all__ = ["Verdict", "admit", "checkpoint_served", "engine_serves"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Yes or no, and why; it is true or false itself.

    Attributes:
        serves: whether the engine can serve it.
        reason: one sentence that says why not; empty for a yes.
        hint: one sentence on what would serve it, or None.
    """

    serves: bool
    reason: str = ""
    hint: str | None = None

    def __bool__(self) -> bool:
        return self.serves


YES = Verdict(serves=True)


def engine_serves(
    model_type: str,
    quantization: Quantization | None,
    engine: EngineName,
    *,
    format: Format | None = None,  # noqa: A002 - the word of the field
    remote_code: bool = False,
) -> Verdict:
    """Whether `engine`, as it is installed here, can serve such a checkpoint.

    Layout and architecture must both pass; neither rescues the other. The layout is judged first, which
    costs nothing; then the library is imported and asked.

    Args:
        model_type: as `config.json` or a GGUF header spells it, in any case.
        quantization: from `Checkpoint.quantization`; None is full precision.
        engine: `torch`, `mlx` or `gguf`.
        format: the files' format, where it is known.
        remote_code: the architecture comes as code with the checkpoint, and that was allowed by name.

    Raises:
        ValueError: there is no such engine.
    """
    status = engine_status(engine, try_import=False)
    if status.why_not:
        return Verdict(serves=False, reason=status.why_not, hint=status.hint)
    refusals = (
        _wrong_format(engine, format),
        _wrong_layout(quantization, engine, format),
        _needs_code(engine, remote_code=remote_code),
    )
    for refusal in refusals:
        if refusal is not None:  # a refusal is false itself
            return refusal
    status = engine_status(engine)
    if not status.usable:
        return Verdict(serves=False, reason=status.why_not, hint=status.hint)
    return _library_answer(model_type.strip(), quantization, engine, remote_code=remote_code)


def checkpoint_served(checkpoint: Checkpoint, engine: EngineName) -> Verdict:
    """`engine_serves` for a checkpoint that was inspected."""
    return engine_serves(
        checkpoint.model_type,
        checkpoint.quantization,
        engine,
        format=checkpoint.format,
        remote_code=checkpoint.trust_remote_code and brings_code(checkpoint.config, engine),
    )


def admit(checkpoint: Checkpoint, engine: EngineName) -> None:
    """Refuse a checkpoint that `engine` cannot serve.

    Raises:
        InvalidCheckpoint: with the verdict's reason and hint.
    """
    verdict = checkpoint_served(checkpoint, engine)
    if not verdict:
        raise InvalidCheckpoint(f"{checkpoint.name}: {verdict.reason}", hint=verdict.hint)


# -- layout ----------------------------------------------------------------------------------------

_READS: dict[str, tuple[str, ...]] = {
    "torch": ("safetensors", "pickle"),
    "mlx": ("safetensors",),
    "gguf": ("gguf",),
}


def _wrong_format(engine: EngineName, format: Format | None) -> Verdict | None:  # noqa: A002
    if format is None or format in _READS[engine]:
        return None
    readable = " and ".join(_READS[engine])
    return Verdict(
        serves=False,
        reason=f"the {engine} engine reads {readable} files, and this is a {format} checkpoint.",
        hint=SERVED_BY[format],
    )


def _wrong_layout(
    quantization: Quantization | None,
    engine: EngineName,
    format: Format | None,  # noqa: A002
) -> Verdict | None:
    if quantization is None or not quantization.is_packed or format == "gguf":
        return None  # llama.cpp knows every type that a GGUF file may name, or refuses it itself
    if engine == "gguf":
        return None if quantization.is_ggml else _refused(quantization, "llama.cpp", _elsewhere(quantization))
    if quantization.is_ggml:
        return _refused(quantization, f"the {engine} engine", SERVED_BY["gguf"])
    if engine == "mlx" and quantization.scheme is QuantScheme.UNKNOWN:
        return Verdict(
            serves=False,
            reason=f"its weights are packed as {shown(str(quantization))}, which cartoolkit does not load"
            " with MLX.",
            hint="Use the unquantized version of the model, or one packed by MLX.",
        )
    if engine == "torch" and quantization.method is None:
        hint = "Use it with engine='mlx' (pip install 'cartoolkit[mlx]'), or take the unpacked checkpoint."
        return Verdict(
            serves=False,
            reason=f"its weights are packed for MLX ({quantization}); torch would read them as garbage.",
            hint=hint,
        )
    return None


def _needs_code(engine: EngineName, *, remote_code: bool) -> Verdict | None:
    if not remote_code or engine == "torch":
        return None
    return Verdict(
        serves=False,
        reason=f"it comes with code of its own, and the {engine} engine runs none.",
        hint="Use it with engine='torch', or take a version of the model that needs no code.",
    )


def _refused(quantization: Quantization, library: str, hint: str) -> Verdict:
    return Verdict(
        serves=False,
        reason=f"its weights are packed as {shown(str(quantization))}; {library} cannot unpack them, and read"
        " as plain numbers they would be garbage.",
        hint=hint,
    )


def _elsewhere(quantization: Quantization) -> str:
    engine = "torch" if quantization.method else "mlx"
    return f"Use it with engine='{engine}', or take a GGUF file of the same model."


# -- architecture ----------------------------------------------------------------------------------


def _library_answer(
    model_type: str, quantization: Quantization | None, engine: EngineName, *, remote_code: bool
) -> Verdict:
    if engine == "torch":
        why = transformers_admission.why_not(model_type, quantization, remote_code=remote_code)
    elif engine == "mlx":
        why = mlx_lm_admission.why_not(model_type, quantization)
    else:
        why = llama_cpp_admission.why_not(model_type)
    return YES if why is None else Verdict(serves=False, reason=why[0], hint=why[1])
