"""The tokenizer inside a GGUF file, as the decoder contract needs it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from cartoolkit.chat import ChatTemplate
from cartoolkit.engine.decoders.continuation import encoded_behind_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cartoolkit.engine.decoders.llama_cpp_model import LlamaCppModel

__all__ = ["LlamaCppVocabulary"]


class LlamaCppVocabulary:
    """Wraps the vocabulary of a model that llama.cpp has opened; valid as long as the model is.

    Other threads than the engine's may ask for tokens, such as a view's; what they ask for is locked against
    freeing the model.
    """

    def __init__(self, library: Any, opened: LlamaCppModel) -> None:  # noqa: ANN401 - ctypes
        self._library = library
        self._opened = opened
        self._vocab = library.llama_model_get_vocab(opened.model)
        self.size: int = library.llama_vocab_n_tokens(self._vocab)
        template = library.llama_model_chat_template(opened.model, None)
        self._template = template.decode(errors="replace") if template else ""
        self._bytes: dict[int, bytes] = {}

    def encode(self, text: str, *, add_special_tokens: bool = False) -> list[int]:
        """Text to ids; names of control tokens in the text become those tokens.

        They are transformers' ids, but for text around a byte that the vocabulary has no token for (such as
        0x16 in SmolLM2's): both drop it, and transformers merges what stands on its two sides.
        """
        data = text.encode()
        ids, count = self._tokenized(data, len(data) + 8, add_special_tokens)
        if count < 0:
            # A vocabulary may write one byte as several tokens; minus the count is what it needs.
            ids, count = self._tokenized(data, -count, add_special_tokens)
        if count < 0:
            raise ValueError(f"llama.cpp could not tokenize a text of {len(data):,} bytes")
        return list(ids[:count])

    def encode_continuation(self, text: str) -> list[int]:
        """Text to the ids that it has behind other text, see `encoded_behind_text`."""
        return encoded_behind_text(text, self.encode, self.token_bytes)

    def _tokenized(self, data: bytes, room: int, add_special_tokens: bool) -> tuple[Any, int]:  # noqa: FBT001
        """An array of `room` ids and how many are set; negative if they need more room."""
        ids = (self._library.llama_token * room)()
        # llama.cpp takes the text with its length, so that a zero byte inside does not end it.
        with self._opened.in_use():
            count = self._library.llama_tokenize(
                self._vocab, data, len(data), ids, room, add_special_tokens, True
            )
        return ids, count

    def decode(self, ids: Sequence[int]) -> str:
        """Ids to text, control tokens left out.

        It is the tokens' bytes: where a vocabulary writes a space before the first word, it stays.
        """
        special = self.special_ids
        return b"".join(self.token_bytes(i) for i in ids if i not in special).decode(errors="replace")

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes of a token, independent of its neighbours; empty for an id without a token."""
        if token_id not in self._bytes:
            self._bytes[token_id] = self._piece(token_id) if 0 <= token_id < self.size else b""
        return self._bytes[token_id]

    def _piece(self, token_id: int) -> bytes:
        with self._opened.in_use():
            return _filled(
                lambda buffer, room: self._library.llama_token_to_piece(
                    self._vocab, token_id, buffer, room, 0, True
                )
            )

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """Every control token."""
        is_control = self._library.llama_vocab_is_control
        with self._opened.in_use():
            return frozenset(i for i in range(self.size) if is_control(self._vocab, i))

    @cached_property
    def eos_ids(self) -> frozenset[int]:
        """Every token at which llama.cpp ends a text: end of text, of turn, of message.

        It also goes by names, so there may be more of them than a checkpoint's `generation_config.json` has:
        for SmolLM2 also ``<|endoftext|>`` and ``<reponame>`` beside ``<|im_end|>``. An answer ends here as in
        every other program over llama.cpp.
        """
        named = {self._library.llama_vocab_eos(self._vocab), self._library.llama_vocab_eot(self._vocab)}
        ends = self._library.llama_vocab_is_eog
        return frozenset(i for i in self.special_ids | named if i >= 0 and ends(self._vocab, i))

    @cached_property
    def chat_template(self) -> ChatTemplate | None:
        """The template in the file, if it has one."""
        if not self._template:
            return None
        with self._opened.in_use():
            marks = {
                "bos_token": self._library.llama_vocab_bos(self._vocab),
                "eos_token": self._library.llama_vocab_eos(self._vocab),
            }
        names = {name: self.token_bytes(i).decode(errors="replace") for name, i in marks.items() if i >= 0}
        return ChatTemplate(self._template, names)


def _filled(write: Callable[[Any, int], int], room: int = 64) -> bytes:
    """What a C function writes into a buffer; if that is too small, it returns minus the room it needs."""
    import ctypes

    buffer = ctypes.create_string_buffer(room)
    count = write(buffer, room)
    if count < 0:
        return _filled(write, -count)
    return buffer.raw[:count]
