"""What the converters of all architectures share: a file's metadata, and the parts of a converter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cartoolkit.errors import InvalidCheckpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import numpy as np
    from gguf import GGUFReader
    from tokenizers import AddedToken, Tokenizer

__all__ = ["Metadata", "Recipe", "added_tokens", "generation_config", "tokenizer_config"]

# gguf.TokenType
NORMAL_TOKEN, CONTROL_TOKEN, USER_DEFINED_TOKEN, BYTE_TOKEN = 1, 3, 4, 6
END_TOKENS = ("<|im_end|>", "<|endoftext|>", "<end_of_turn>")


class Metadata:
    """The key-value part of a GGUF file; a key that is missing is an error that names it."""

    def __init__(self, reader: GGUFReader) -> None:
        self._fields = reader.fields
        self._read: dict[str, Any] = {}  # a vocabulary of 262,144 tokens takes half a second to read

    def __getitem__(self, key: str) -> Any:  # noqa: ANN401 (GGUF values are of thirteen types)
        if key not in self._fields:
            raise InvalidCheckpoint(f"The GGUF file does not say {key!r}, which the conversion needs.")
        if key not in self._read:
            self._read[key] = self._fields[key].contents()
        return self._read[key]

    def get(self, key: str, default: Any = None) -> Any:  # noqa: ANN401
        """The value of `key`, or `default`."""
        return self[key] if key in self._fields else default

    def expect(self, key: str, known: Iterable[object], default: object = None) -> None:
        """Refuse a file whose `key` is none of the values the conversion is right for."""
        if (value := self.get(key, default)) not in known:
            raise InvalidCheckpoint(f"The GGUF file says {key} = {value!r}, which cartoolkit cannot convert.")

    def decimal(self, key: str) -> float:
        """A number as its makers wrote it.

        GGUF keeps 1e-05 as the float32 9.999999747378752e-06; the shortest decimal of that float32 is 1e-05
        again, which is what was published.
        """
        import numpy as np

        return float(str(np.float32(self[key])))


@dataclass(frozen=True, slots=True)
class Recipe:
    """How GGUF files of one architecture become folders in Hugging Face's layout.

    Attributes:
        title: what its checkpoints are called in an error.
        tensors: the kind in a GGUF tensor's name, such as `attn_q`, to the module of the checkpoint.
        config: the `config.json` from the metadata; `tied` says that there is no output matrix.
        restored: one tensor's float32 values as the checkpoint had them, from its GGUF name, its values and
            the config.
        tokenizer: the tokenizer from the metadata.
    """

    title: str
    tensors: Mapping[str, str]
    config: Callable[[Metadata, bool], dict[str, Any]]
    restored: Callable[[str, np.ndarray, dict[str, Any]], np.ndarray]
    tokenizer: Callable[[Metadata], Tokenizer]

    def name(self, name: str) -> str:
        """Translate a GGUF tensor name: `blk.3.attn_q.weight` is `model.layers.3.self_attn.q_proj.weight`.

        Raises:
            InvalidCheckpoint: checkpoints of this architecture have no such tensor.
        """
        match name.split("."):
            case ["blk", layer, kind, "weight"] if kind in self.tensors and layer.isdecimal():
                return f"model.layers.{layer}.{self.tensors[kind]}.weight"
            case [kind, "weight"] if kind in self.tensors:
                return f"{self.tensors[kind]}.weight"
        raise InvalidCheckpoint(
            f"The GGUF file holds a tensor {name!r}, which a {self.title} checkpoint does not have."
        )


def generation_config(metadata: Metadata) -> dict[str, Any]:
    """The `generation_config.json`: which tokens begin, pad and end a text.

    The metadata names one end token: for a chat model the one that ends a turn, for a base model the one
    that ends a text. llama.cpp stops at the other one as well, so both are listed.
    """
    ends = [metadata["tokenizer.ggml.eos_token_id"]]
    tokens = metadata["tokenizer.ggml.tokens"]
    ends += [tokens.index(token) for token in END_TOKENS if token in tokens]
    return {
        "bos_token_id": metadata["tokenizer.ggml.bos_token_id"],
        "eos_token_id": list(dict.fromkeys(ends)),
        "pad_token_id": metadata.get("tokenizer.ggml.padding_token_id"),
    }


def tokenizer_config(metadata: Metadata, context_length: int) -> dict[str, Any]:
    """The `tokenizer_config.json`: special tokens by name, and the chat template if the file has one."""
    tokens = metadata["tokenizer.ggml.tokens"]
    ids = {
        kind: metadata.get(f"tokenizer.ggml.{kind}_token_id") for kind in ("bos", "eos", "padding", "unknown")
    }
    names = {kind: tokens[index] for kind, index in ids.items() if index is not None}
    template = metadata.get("tokenizer.chat_template")
    return {
        # A neutral class: a model's own class would rebuild what the file says of its pre-tokenizer.
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": context_length,
        "clean_up_tokenization_spaces": False,
        "bos_token": names.get("bos"),
        "eos_token": names.get("eos"),
        "pad_token": names.get("padding"),
        "unk_token": names.get("unknown"),
    } | ({} if template is None else {"chat_template": template})


def added_tokens(metadata: Metadata, *, known: Iterable[int]) -> list[AddedToken]:
    """The tokens that are found in a text before it is cut into words: control tokens, and those of users.

    Args:
        metadata: of the file.
        known: the kinds of tokens (`gguf.TokenType`) that the caller's tokenizer can represent.

    Raises:
        InvalidCheckpoint: there are tokens of another kind.
    """
    from tokenizers import AddedToken

    kinds = metadata["tokenizer.ggml.token_type"]
    if unknown := set(kinds) - set(known):
        raise InvalidCheckpoint(
            f"The GGUF file has tokens of the kinds {sorted(unknown)}, which cannot be converted."
        )
    pairs = zip(metadata["tokenizer.ggml.tokens"], kinds, strict=True)
    return [
        AddedToken(token, special=kind == CONTROL_TOKEN, normalized=False)
        for token, kind in pairs
        if kind in (CONTROL_TOKEN, USER_DEFINED_TOKEN)
    ]
