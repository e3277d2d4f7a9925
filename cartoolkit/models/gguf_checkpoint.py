"""A GGUF model seen from outside: its file or its parts, and its header in Hugging Face's words."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cartoolkit.errors import InvalidCheckpoint, ModelNotFound
from cartoolkit.models.gguf_header import GgufHeader, read_gguf_header
from cartoolkit.models.headers import shown
from cartoolkit.models.quantization import Quantization

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["GgufModel", "gguf_models_in", "only_gguf_in", "read_gguf_model"]

PART = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf", re.IGNORECASE)

# `config.json` of Hugging Face on the left, the key below the architecture's name on the right.
_WORDS = {
    "max_position_embeddings": "context_length",
    "hidden_size": "embedding_length",
    "num_hidden_layers": "block_count",
    "intermediate_size": "feed_forward_length",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "head_dim": "attention.key_length",
    "sliding_window": "attention.sliding_window",
    "num_experts": "expert_count",
    "num_experts_per_tok": "expert_used_count",
    "rope_theta": "rope.freq_base",
    "rms_norm_eps": "attention.layer_norm_rms_epsilon",
    "layer_norm_eps": "attention.layer_norm_epsilon",
}
_TOKENS = {"bos_token_id": "bos", "eos_token_id": "eos", "pad_token_id": "padding"}


@dataclass(frozen=True, slots=True)
class GgufModel:
    """One model in one or several GGUF files.

    Attributes:
        headers: one a file, in the order of the parts; the first one describes the model.
    """

    headers: tuple[GgufHeader, ...]

    @property
    def first(self) -> GgufHeader:
        """The header that describes the model; its file is what llama.cpp opens."""
        return self.headers[0]

    @property
    def stem(self) -> str:
        """The file's name without `.gguf` and without the number of its part."""
        part = PART.fullmatch(self.first.path.name)
        return part["stem"] if part else self.first.path.stem

    @property
    def parameters(self) -> int:
        """Numbers in all tensors of all parts."""
        return sum(header.parameters for header in self.headers)

    @property
    def weight_bytes(self) -> int:
        """Bytes of all tensors of all parts."""
        return sum(header.weight_bytes for header in self.headers)

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The ggml types that occur, sorted."""
        return tuple(sorted({tensor.dtype for header in self.headers for tensor in header.tensors}))

    @property
    def quantization(self) -> Quantization:
        """By the file's own type; where it names none, by the type that takes most of the bytes."""
        return Quantization.parse(self.first.file_type or self._commonest_type())

    def _commonest_type(self) -> str:
        sizes: Counter[str] = Counter()
        for header in self.headers:
            for tensor in header.tensors:
                sizes[tensor.dtype] += tensor.end - tensor.begin
        return sizes.most_common(1)[0][0]

    @property
    def config(self) -> dict[str, Any]:
        """What the header says, under the names that a `config.json` would use; unknown keys are left out."""
        header, architecture = self.first, self.first.architecture
        known = {"model_type": architecture, "vocab_size": header.vocab_size}
        known |= {word: _number(header.metadata.get(f"{architecture}.{key}")) for word, key in _WORDS.items()}
        known |= {word: header.number(f"tokenizer.ggml.{key}_token_id") for word, key in _TOKENS.items()}
        return {word: value for word, value in known.items() if value is not None}


def _number(value: object) -> int | float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if value >= 0 else None  # neither a negative one nor nan


def read_gguf_model(path: Path) -> GgufModel:
    """Read the headers of a GGUF model; `path` may be any part of a split one.

    Raises:
        ModelNotFound: there is no such file.
        InvalidCheckpoint: a file is damaged or not a model, or a part is missing.
    """
    if not path.exists():
        raise ModelNotFound(
            f"There is no file {path}.", hint="Check the path, and that the download finished."
        )
    model = GgufModel(tuple(read_gguf_header(part) for part in _parts(path)))
    _require_model(model.first)
    _require_all_parts(model)
    if not model.parameters:
        raise InvalidCheckpoint(f"{path} holds no weights.")
    return model


def _parts(path: Path) -> list[Path]:
    """Every file of the model, the first part first."""
    named = PART.fullmatch(path.name)
    if named is None:
        return [path]
    count = int(named["count"])
    if not 0 < int(named["number"]) <= count:
        raise InvalidCheckpoint(f"{path} calls itself part {named['number']} of {count}.")
    there = _siblings(path, named["stem"], count)
    missing = [number for number in range(1, count + 1) if number not in there]
    if missing:
        numbers = ", ".join(map(str, missing[:5])) + (", …" if len(missing) > 5 else "")
        raise InvalidCheckpoint(
            f"{path} is one of {count} parts, and {len(missing)} of them are missing beside it: {numbers}.",
            hint="Fetch or copy the missing parts into the same folder.",
        )
    return [there[number] for number in sorted(there)]


def _siblings(path: Path, stem: str, count: int) -> dict[int, Path]:
    found = {}
    for sibling in path.parent.iterdir():
        part = PART.fullmatch(sibling.name)
        if part and part["stem"] == stem and int(part["count"]) == count and sibling.is_file():
            found[int(part["number"])] = sibling
    return {number: sibling for number, sibling in found.items() if 0 < number <= count}


def _require_model(header: GgufHeader) -> None:
    kind = header.metadata.get("general.type", "model")
    if kind != "model":
        raise InvalidCheckpoint(
            f"{header.path} is of the type {shown(kind)}, and a language model is needed.",
            hint="Give the file of the model itself, not of its adapter, projector or importance matrix.",
        )
    _ = header.architecture  # refuses a file that names none


def _require_all_parts(model: GgufModel) -> None:
    first, tensors = model.first, sum(len(header.tensors) for header in model.headers)
    count, expected = first.number("split.count") or 1, first.number("split.tensors.count")
    if count > 1 and count != len(model.headers):
        raise InvalidCheckpoint(
            f"{first.path} is part of a model in {count} files, and its name does not say which part.",
            hint=f"Give the parts the names that they were made with: …-00001-of-{count:05}.gguf.",
        )
    if len(model.headers) > 1 and expected is not None and expected != tensors:
        raise InvalidCheckpoint(
            f"{first.path} says that its parts hold {expected} tensors, and they hold {tensors}.",
            hint="The parts are from different models or downloads; fetch them again.",
        )


def gguf_models_in(folder: Path) -> list[Path]:
    """The GGUF files of a folder, sorted; of a split model only the first part that is there."""
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() == ".gguf" and path.is_file():
            part = PART.fullmatch(path.name)
            found.setdefault(part["stem"] + part["count"] if part else path.name, path)
    return list(found.values())


def only_gguf_in(folder: Path) -> Path:
    """The one GGUF model in `folder`.

    Raises:
        InvalidCheckpoint: there is none, or there are several; the message lists them.
    """
    paths = gguf_models_in(folder)
    if len(paths) == 1:
        return paths[0]
    if not paths:
        raise InvalidCheckpoint(f"{folder} holds no GGUF file.")
    raise InvalidCheckpoint(
        f"{folder} holds {len(paths)} GGUF models: {', '.join(path.name for path in paths[:8])}"
        f"{', …' if len(paths) > 8 else ''}.",
        hint=f"Give the file itself, such as {paths[0]}.",
    )
