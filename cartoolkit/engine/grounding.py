"""The prompt of a request with the passages that were found for it."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from cartoolkit.engine.prompt import prepare_prompt
from cartoolkit.retrieval import Hit
from cartoolkit.retrieval.budget import estimate_tokens
from cartoolkit.retrieval.layouts import lay_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartoolkit.engine.decoder import Decoder
    from cartoolkit.engine.prompt import PreparedPrompt
    from cartoolkit.requests import GenerateRequest

__all__ = ["Grounding"]

# Longer texts fit no budget that a reader would set; counting their tokens would take seconds.
_MOST_CHARACTERS = 200_000
# The line break before a passage may become a token of its own, and so may the word after it.
_JOIN_TOKENS = 2


class Grounding:
    """Puts passages into the prompt of one request, for one model.

    Args:
        request: what was asked.
        decoder: whose template and tokens the prompt is written in.
        layout: see `Policy.layout`.
    """

    def __init__(self, request: GenerateRequest, decoder: Decoder, layout: str) -> None:
        self._request = request
        self._decoder = decoder
        self._layout = layout

    def prompt(self, passages: Sequence[Hit]) -> PreparedPrompt:
        """The prompt with these passages, in this order.

        Raises:
            PromptTooLong, InvalidRequest: as `prepare_prompt`.
        """
        texts = [self.plain(hit.text) for hit in passages]
        return prepare_prompt(lay_out(self._request, texts, self._layout), self._decoder)

    def plain(self, text: str) -> str:
        """A passage on one line of its own, without anything that the tokenizer takes for a control token.

        A passage is data: it must not be able to end the system message and speak as somebody else.
        """
        return self._control_names.sub(lambda found: f"{found[0][0]} {found[0][1:]}", text.strip())

    @cached_property
    def _control_names(self) -> re.Pattern[str]:
        decoder = self._decoder
        names = {
            decoder.token_bytes(i).decode(errors="ignore") for i in decoder.special_ids | decoder.eos_ids
        }
        written = sorted((name for name in names if len(name) > 1), key=len, reverse=True)
        return re.compile("|".join(map(re.escape, written)) or r"(?!)")

    def count_tokens(self, text: str) -> int:
        """How much of the context window a passage takes; an estimate where it is absurdly long."""
        if len(text) > _MOST_CHARACTERS:
            return estimate_tokens(text)
        return len(self._decoder.encode(self.plain(text))) + _JOIN_TOKENS

    def room(self) -> int:
        """Tokens of passages that fit beside the rest of the prompt and the answer."""
        window, most = self._decoder.info.context_length, self._request.params.max_tokens
        return max(window - min(most, window // 4) - len(self.prompt([_SMALLEST]).ids), 0)

    def leaves_no_room(self, tokens: int) -> bool:
        """Whether so many tokens fill the context window."""
        return tokens >= self._decoder.info.context_length


_SMALLEST = Hit("", "a", 0.0)
