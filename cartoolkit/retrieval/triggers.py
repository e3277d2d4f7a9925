"""When to look something up: rules over the tokens that were just written.

A trigger holds settings and no state. It is shown the tokens since the last look-up, newest last, and
each sentence when it has ended. It never sees thinking, control tokens or what the caller put there.
All numbers are *raw*: they do not move with temperature, top-k or top-p.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Literal

from cartoolkit.errors import InvalidRequest
from cartoolkit.retrieval.checks import require_at_least, require_choice, require_probability

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cartoolkit.retrieval.answer import Token

__all__ = [
    "AnyTokenInSentence",
    "ContentTokenBelow",
    "EntropyAbove",
    "EntropyTrend",
    "EverySentence",
    "EveryTokens",
    "Fire",
    "Never",
    "Signal",
    "Trigger",
    "WindowMaxProb",
    "recorded",
]

Signal = Literal["max_prob", "prob"]
"""Which raw probability: that of the likeliest token, or that of the token taken."""


@dataclass(frozen=True, slots=True)
class Fire:
    """A trigger fired.

    Attributes:
        first: position of the first token in doubt; what stands before it is not in doubt.
        at: position of the token that it fired at; what stands before it had been written by then.
        positions: of the tokens that made it fire; none for a trigger that knows no doubt.
        reason: one clause for people.
    """

    first: int
    at: int
    positions: tuple[int, ...]
    reason: str


def recorded(token: Token, name: str) -> float:
    """A number of a token's step.

    Raises:
        InvalidRequest: the step was decoded without inspection, so the number is not there.
    """
    value = getattr(token.step, name)
    if math.isnan(value):
        raise InvalidRequest(
            f"step {token.step.index} ({token.step.label!r}) carries no {name}: it was decoded with "
            "inspect=False, so nothing can be said about its doubt.",
            hint="Generate with inspect=True, or use a policy that looks at no numbers: none, upfront, "
            "or one with EveryTokens or EverySentence.",
        )
    return value


@dataclass(frozen=True)
class Trigger:
    """The base of all triggers: sees tokens and sentences, and fires at none.

    Attributes:
        reads_numbers: it looks at what inspection records.
        reads_attention: it looks at where the model looked, which not every engine says.
    """

    reads_numbers: ClassVar[bool] = True
    reads_attention: ClassVar[bool] = False

    def on_token(self, tokens: Sequence[Token]) -> Fire | None:  # noqa: ARG002 - for those that look
        """Look at the tokens since the last look-up, newest last, at least one."""
        return None

    def on_sentence(
        self,
        sentence: Sequence[Token],  # noqa: ARG002 - likewise
        following: Sequence[Token] = (),  # noqa: ARG002
    ) -> Fire | None:
        """Look at a sentence that has ended, at least one token.

        Args:
            sentence: its tokens.
            following: what stands after it by now: mostly one token, by which it was seen that it had ended;
                none where the answer ends with it for another reason than a token.
        """
        return None


@dataclass(frozen=True)
class Never(Trigger):
    """Nothing is looked up while the answer is written."""

    reads_numbers: ClassVar[bool] = False


@dataclass(frozen=True)
class EveryTokens(Trigger):
    """After every n tokens, whatever they are: the passive baseline with a fixed stride.

    Attributes:
        n: tokens between two look-ups, at least 1.
    """

    reads_numbers: ClassVar[bool] = False

    n: int = 16

    def __post_init__(self) -> None:
        require_at_least("n", self.n, 1)

    def on_token(self, tokens: Sequence[Token]) -> Fire | None:
        """Fire when n tokens have been written since the last look-up."""
        if len(tokens) < self.n:
            return None
        after = tokens[-1].position + 1
        return Fire(after, after, (), f"{self.n} tokens since the last look-up")


@dataclass(frozen=True)
class EverySentence(Trigger):
    """After every sentence, whatever is in it: the passive baseline by sentences."""

    reads_numbers: ClassVar[bool] = False

    def on_sentence(self, sentence: Sequence[Token], following: Sequence[Token] = ()) -> Fire | None:  # noqa: ARG002
        """Fire."""
        after = sentence[-1].position + 1
        return Fire(after, after, (), "a sentence has ended")


@dataclass(frozen=True, kw_only=True)
class _Doubt(Trigger):
    """What triggers share that look at one number a token.

    Attributes:
        skip_wordless: leave out tokens without a letter or digit, such as punctuation.
        skip_sentence_initial: leave out the first word of every sentence, whose doubt is mostly style.
        skip_function_words: leave out whole words as in `FUNCTION_WORDS`.
    """

    skip_wordless: bool = True
    skip_sentence_initial: bool = False
    skip_function_words: bool = False

    def _counts(self, token: Token) -> bool:
        return not (
            (self.skip_wordless and token.wordless)
            or (self.skip_sentence_initial and token.initial)
            or (self.skip_function_words and token.function_word)
        )


@dataclass(frozen=True, kw_only=True)
class _LowProb(_Doubt):
    """Doubt as a raw probability below a threshold.

    Attributes:
        signal: which probability, see `Signal`; under greedy decoding they are the same.
    """

    signal: Signal = "max_prob"

    def _check(self, threshold: float) -> None:
        require_probability("threshold", threshold)
        require_choice("signal", self.signal, ("max_prob", "prob"))

    def _value(self, token: Token) -> float:
        if self.signal == "max_prob":
            return recorded(token, "max_prob")
        return math.exp(recorded(token, "logprob"))


@dataclass(frozen=True)
class WindowMaxProb(_LowProb):
    """A run of tokens below a threshold: sustained doubt.

    Attributes:
        threshold: raw probability, 0 to 1.
        window: length of the run, at least 1. A token that does not count neither ends nor lengthens it.
    """

    threshold: float = 0.4
    window: int = 3
    skip_wordless: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        self._check(self.threshold)
        require_at_least("window", self.window, 1)

    def on_token(self, tokens: Sequence[Token]) -> Fire | None:
        """Fire when the last `window` tokens that count are all below the threshold."""
        if not self._counts(tokens[-1]):
            return None
        counting = (token for token in reversed(tokens) if self._counts(token))
        run: list[int] = []
        for token in islice(counting, self.window):
            if self._value(token) >= self.threshold:
                return None
            run.append(token.position)
        if len(run) < self.window:
            return None
        reason = f"{self.window} tokens running below {self.threshold:g}"
        return Fire(run[-1], run[0], tuple(reversed(run)), reason)


@dataclass(frozen=True)
class ContentTokenBelow(_LowProb):
    """One token below a threshold, as soon as it is written.

    Attributes:
        threshold: raw probability, 0 to 1.
    """

    threshold: float = 0.6

    def __post_init__(self) -> None:
        self._check(self.threshold)

    def on_token(self, tokens: Sequence[Token]) -> Fire | None:
        """Fire when the newest token counts and is below the threshold."""
        token = tokens[-1]
        if not self._counts(token) or (value := self._value(token)) >= self.threshold:
            return None
        return _at(token, f"{token.step.label!r} at {value:.3f}, below {self.threshold:g}")


@dataclass(frozen=True)
class AnyTokenInSentence(_LowProb):
    """Any token of a sentence below a threshold, once the sentence has ended (FLARE, Jiang et al. 2023).

    The sentence just written is the look-ahead: where nothing fires it simply stands, and nothing is
    decoded twice.

    Attributes:
        threshold: raw probability, 0 to 1.
    """

    threshold: float = 0.8

    def __post_init__(self) -> None:
        self._check(self.threshold)

    def on_sentence(self, sentence: Sequence[Token], following: Sequence[Token] = ()) -> Fire | None:  # noqa: ARG002
        """Fire when a token of the sentence counts and is below the threshold."""
        values = {
            token.position: self._value(token) for token in sentence if token.watched and self._counts(token)
        }
        low = [position for position, value in values.items() if value < self.threshold]
        if not low:
            return None
        number = f"{len(low)} token{'s' if len(low) > 1 else ''}"
        reason = (
            f"{number} of the sentence below {self.threshold:g}, the lowest at {min(values.values()):.3f}"
        )
        return Fire(low[0], sentence[-1].position + 1, tuple(low), reason)


@dataclass(frozen=True)
class EntropyAbove(_Doubt):
    """One token drawn from a distribution with a high entropy, as soon as it is written.

    Attributes:
        threshold: entropy of the raw distribution, nats.
    """

    threshold: float = 2.0

    def __post_init__(self) -> None:
        require_at_least("threshold", self.threshold, 0, whole=False)

    def on_token(self, tokens: Sequence[Token]) -> Fire | None:
        """Fire when the newest token counts and its entropy is above the threshold."""
        token = tokens[-1]
        if not self._counts(token) or (value := recorded(token, "entropy")) <= self.threshold:
            return None
        return _at(token, f"entropy {value:.2f} nats at {token.step.label!r}, above {self.threshold:g}")


_TREND_MEMORY = 16
"""Differences further back weigh less than 1e-8 with the lightest smoothing that is allowed."""


@dataclass(frozen=True)
class EntropyTrend(_Doubt):
    """Entropy that begins to rise faster: a smoothed second difference above a threshold, after ETC.

    With the entropies H of the tokens that count: d_i = H_i - 2 H_(i-1) + H_(i-2), smoothed as
    s_i = a d_i + (1 - a) s_(i-1). ETC multiplies this by the attention that a token receives and lets `a`
    follow it from 0.9 on; without attentions `a` is fixed and the threshold is in nats.

    Attributes:
        threshold: nats, above 0 means that doubt accelerates.
        smoothing: a, above 0.7 and up to 1 (1 smoothes nothing).
    """

    threshold: float = 1.0
    smoothing: float = 0.9

    def __post_init__(self) -> None:
        require_at_least("threshold", self.threshold, 0, whole=False)
        require_probability("smoothing", self.smoothing)
        if self.smoothing <= 0.7:
            raise InvalidRequest(f"smoothing must be above 0.7; got {self.smoothing!r}.")

    def on_token(self, tokens: Sequence[Token]) -> Fire | None:
        """Fire when the newest token counts and the smoothed second difference is above the threshold."""
        token = tokens[-1]
        if not self._counts(token):
            return None
        trend = self._trend(reversed(tokens))
        if trend <= self.threshold:
            return None
        return _at(token, f"entropy accelerates by {trend:.2f} nats at {token.step.label!r}")

    def _trend(self, newest_first: Iterator[Token]) -> float:
        counting = (recorded(token, "entropy") for token in newest_first if self._counts(token))
        entropies = list(islice(counting, _TREND_MEMORY + 2))[::-1]
        trend = 0.0
        for i in range(2, len(entropies)):
            second = entropies[i] - 2 * entropies[i - 1] + entropies[i - 2]
            trend = self.smoothing * second + (1 - self.smoothing) * trend
        return trend


def _at(token: Token, reason: str) -> Fire:
    return Fire(token.position, token.position, (token.position,), reason)
