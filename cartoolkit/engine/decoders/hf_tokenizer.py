"""A Hugging Face tokenizer as the decoder contract needs it: ids, true bytes, control and end tokens."""

from __future__ import annotations

import json
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any

from cartoolkit.chat import ChatTemplate
from cartoolkit.engine.decoders.continuation import encoded_behind_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from transformers import PreTrainedTokenizerBase

__all__ = ["HFTokenizer"]

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")


class HFTokenizer:
    """Wraps a tokenizer of transformers; shared by every engine that loads Hugging Face folders."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self._tokenizer = tokenizer
        self._bytes: dict[int, bytes] = {}

    def encode(self, text: str, *, add_special_tokens: bool = False) -> list[int]:
        """Text to ids; names of control tokens in the text become those tokens."""
        # Too long a prompt is this toolkit's to report, with its own figures.
        ids: Any = self._tokenizer.encode(text, add_special_tokens=add_special_tokens, verbose=False)
        return list(ids)

    def encode_continuation(self, text: str) -> list[int]:
        """Text to the ids that it has behind other text, see `encoded_behind_text`."""
        return encoded_behind_text(text, self.encode, self.token_bytes)

    def decode(self, ids: Sequence[int]) -> str:
        """Ids to text, control tokens left out, spaces as they are."""
        text: Any = self._tokenizer.decode(
            list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return text

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """Ids that transformers leaves out of decoded text."""
        return frozenset(self._tokenizer.all_special_ids) | frozenset(
            i for i, token in self._tokenizer.added_tokens_decoder.items() if token.special
        )

    def eos_ids(self, *configs: object) -> frozenset[int]:
        """End tokens of the tokenizer and of every config that names some (`eos_token_id`, one or a list)."""
        named: list[object] = [self._tokenizer.eos_token_id]
        for config in configs:
            value = getattr(config, "eos_token_id", None)
            named.extend(value if isinstance(value, list | tuple) else [value])
        return frozenset(i for i in named if isinstance(i, int))

    @cached_property
    def chat_template(self) -> ChatTemplate | None:
        """The tokenizer's own template, the default one if it has several."""
        source = self._tokenizer.chat_template
        if isinstance(source, dict):
            source = source.get("default") or next(iter(source.values()), None)
        if not source:
            return None
        return ChatTemplate(source, {k: str(v) for k, v in self._tokenizer.special_tokens_map.items()})

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes of a token, independent of its neighbours; empty for an id without a token.

        Rows of logits are often padded beyond the vocabulary, and such an id can be a candidate.
        """
        if token_id not in self._bytes:
            self._bytes[token_id] = self._find_bytes(token_id)
        return self._bytes[token_id]

    def _find_bytes(self, token_id: int) -> bytes:
        added = self._tokenizer.added_tokens_decoder.get(token_id)
        if added is not None:
            return added.content.encode()
        token: Any = self._tokenizer.convert_ids_to_tokens(token_id)
        if token is None:
            return b""
        return self._piece_bytes(token, token_id)

    def _piece_bytes(self, token: str, token_id: int) -> bytes:
        """The bytes of a vocabulary entry, by the way in which the vocabulary writes them."""
        if self._is_byte_level:
            return _stand_in_bytes(token)
        if found := _BYTE_TOKEN.fullmatch(token):
            return bytes.fromhex(found[1])
        if self._is_metaspace:
            return token.replace("\u2581", " ").encode()
        if affix := self._word_affix:
            return _word_text(token, **affix).encode()
        text: Any = self._tokenizer.decode([token_id], clean_up_tokenization_spaces=False)
        return text.encode()

    @cached_property
    def _parts(self) -> str:
        """The names of the tokenizer's pre-tokenizer and decoder parts, as JSON."""
        backend = getattr(self._tokenizer, "backend_tokenizer", None)
        if backend is None:
            return ""
        settings = json.loads(backend.to_str())
        return json.dumps([settings.get("pre_tokenizer"), settings.get("decoder")])

    @cached_property
    def _word_affix(self) -> dict[str, str]:
        """How a decoder without spaces in its tokens marks words: `prefix` (BERT) or `suffix` (GPT-1)."""
        _, decoder = json.loads(self._parts or "[null, null]")
        return {k: v for k, v in (decoder or {}).items() if k in ("prefix", "suffix") and isinstance(v, str)}

    @property
    def _is_byte_level(self) -> bool:
        return '"ByteLevel"' in self._parts

    @property
    def _is_metaspace(self) -> bool:
        return '"Metaspace"' in self._parts or "\\u2581" in self._parts


def _byte_characters() -> dict[str, int]:
    """GPT-2's stand-in for every byte (Radford et al. 2019): itself where printable, else from U+0100."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(b): b for b in printable} | {chr(0x100 + i): b for i, b in enumerate(others)}


_BYTE_OF = _byte_characters()


def _word_text(token: str, *, prefix: str = "", suffix: str = "") -> str:
    """A token with the space that belongs to it, whatever its neighbours.

    >>> _word_text("##ing", prefix="##"), _word_text("play", prefix="##")
    ('ing', ' play')
    >>> _word_text("play</w>", suffix="</w>")
    'play '
    """
    if prefix:
        return token.removeprefix(prefix) if token.startswith(prefix) else f" {token}"
    return token.replace(suffix, " ") if suffix else token


def _stand_in_bytes(token: str) -> bytes:
    """A byte-level token is a string over 256 stand-in characters; anything else is text as it is."""
    if all(character in _BYTE_OF for character in token):
        return bytes(_BYTE_OF[character] for character in token)
    return token.encode()
