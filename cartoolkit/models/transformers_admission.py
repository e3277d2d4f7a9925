"""What the installed transformers says of an architecture and of a packing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cartoolkit.models.headers import shown

if TYPE_CHECKING:
    from cartoolkit.models.quantization import Quantization

__all__ = ["why_not"]


def why_not(
    model_type: str, quantization: Quantization | None, *, remote_code: bool = False
) -> tuple[str, str] | None:
    """Why transformers cannot load such a model as a causal language model, and what to do; None if it can.

    The architecture is looked up in the mapping that `AutoModelForCausalLM` uses. A packing is put to
    transformers' own quantizer, which checks that the library it needs and the hardware are there.
    """
    if not remote_code and not _is_causal_lm(model_type):
        return (
            f"transformers {_version()} knows no causal language model of the type {shown(model_type)}.",
            "A newer transformers may know it; otherwise look for a GGUF file and engine='gguf'.",
        )
    if quantization is None or quantization.method is None:
        return None
    return _packing_refused(quantization)


def _is_causal_lm(model_type: str) -> bool:
    from transformers import CONFIG_MAPPING, MODEL_FOR_CAUSAL_LM_MAPPING

    spelling = {name.lower(): name for name in CONFIG_MAPPING}.get(model_type.lower())
    return spelling is not None and CONFIG_MAPPING[spelling] in MODEL_FOR_CAUSAL_LM_MAPPING


def _packing_refused(quantization: Quantization) -> tuple[str, str] | None:
    from transformers.quantizers.auto import AutoHfQuantizer

    try:
        quantizer = AutoHfQuantizer.from_config(_as_declared(quantization), pre_quantized=True)
        quantizer.validate_environment(device_map=None)
    except Exception as error:  # noqa: BLE001 - each quantizer refuses in its own way
        said = (str(error).strip().splitlines() or [type(error).__name__])[0]
        reason = (
            f"its weights are packed as {quantization.name!r}, which transformers {_version()} cannot unpack"
            f" here ({said}); read as plain numbers they would be garbage."
        )
        return reason, "Install what it asks for, or use the unquantized version of the model."
    return None


def _as_declared(quantization: Quantization) -> dict[str, Any]:
    """The block of the config; for a bare name, the least that a quantizer's settings accept."""
    block = dict(quantization.declared) or {"quant_method": quantization.method}
    if block.get("quant_method") == "bitsandbytes" and not block.get("load_in_8bit"):
        block.setdefault("load_in_4bit", True)
    if "bits" not in block and quantization.bits is None and not quantization.declared:
        block["bits"] = 4
    return block


def _version() -> str:
    import transformers

    return transformers.__version__
