"""How much looking up, writing and reading an answer may cost."""

from __future__ import annotations

from dataclasses import dataclass

from cartoolkit.retrieval.checks import require_at_least

__all__ = ["Budget", "estimate_tokens"]


@dataclass(frozen=True)
class Budget:
    """What an answer may cost. None is no limit.

    Attributes:
        max_retrievals: look-ups during the answer that brought a new passage; one before the answer
            (`Policy.pre_retrieve`) and those that brought nothing new are not counted.
        max_fruitless: look-ups that brought nothing new, failed or took too long; after so many no more
            are made.
        max_kept_tokens: tokens of the answer that stand; those rolled back do not count.
        max_decoded_tokens: tokens decoded in all, rolled back or not.
        max_context_tokens: tokens of all passages in the prompt together.
        cooldown_tokens: tokens to be decoded after a look-up before the next one; the one before the
            answer starts none.
        deadline_s: seconds after the request from which on no look-up is begun; the text goes on.
        lookup_timeout_s: seconds that one look-up may take.
    """

    max_retrievals: int = 2
    max_fruitless: int = 8
    max_kept_tokens: int | None = None
    max_decoded_tokens: int | None = None
    max_context_tokens: int | None = 1024
    cooldown_tokens: int = 0
    deadline_s: float | None = None
    lookup_timeout_s: float | None = 10.0

    def __post_init__(self) -> None:
        for name in ("max_retrievals", "max_fruitless", "cooldown_tokens"):
            require_at_least(name, getattr(self, name), 0)
        for name in ("max_kept_tokens", "max_decoded_tokens"):
            require_at_least(name, getattr(self, name), 1, optional=True)
        require_at_least("max_context_tokens", self.max_context_tokens, 0, optional=True)
        for name in ("deadline_s", "lookup_timeout_s"):
            require_at_least(name, getattr(self, name), 0, whole=False, optional=True)


def estimate_tokens(text: str) -> int:
    """Tokens of a text where no tokenizer is at hand: one for three bytes, more than most models need.

    >>> estimate_tokens("The capital of France is Paris.")
    11
    """
    return -(-len(text.encode("utf-8", "surrogatepass")) // 3)
