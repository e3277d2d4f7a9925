"""One decoded token and everything that was known when it was chosen.

*raw* numbers come from the softmax of the model's logits before anything touched them; *processed*
numbers from the distribution that the token was drawn from. Logs are natural, entropies in nats.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["STAGES", "Attention", "Candidate", "Candidates", "Step"]

STAGES = ("", "bias", "greedy", "top_k", "top_p", "min_p")
"""What may remove a candidate, in the order of the sampler; the first entry means: not removed."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One alternative at one step.

    Attributes:
        token_id: the vocabulary's number.
        text: as it would have read at this place.
        logprob: raw, natural log.
        processed_logprob: natural log of the probability it was drawn with; -inf if removed.
        removed_by: the sampler stage that removed it, one of `STAGES`; empty if none did.
    """

    token_id: int
    text: str
    logprob: float
    processed_logprob: float
    removed_by: str

    @property
    def prob(self) -> float:
        """Raw probability."""
        return float(np.exp(self.logprob))

    @property
    def processed_prob(self) -> float:
        """Probability it was drawn with; 0 if removed."""
        return float(np.exp(self.processed_logprob))


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The recorded alternatives of one step, likeliest (raw) first, the chosen token among them.

    Attributes:
        ids: int32 [c].
        texts: [c], each decoded after the text chosen so far.
        logprobs: float32 [c], raw.
        processed_logprobs: float32 [c], -inf where removed.
        removed_by: uint8 [c], index into `STAGES`.
    """

    ids: np.ndarray
    texts: tuple[str, ...]
    logprobs: np.ndarray
    processed_logprobs: np.ndarray
    removed_by: np.ndarray

    @classmethod
    def none(cls) -> Candidates:
        """What a step holds that was decoded with `inspect=False`."""
        empty = np.empty(0, np.float32)
        return cls(np.empty(0, np.int32), (), empty, empty, np.empty(0, np.uint8))

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Candidate]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, i: int) -> Candidate:
        return Candidate(
            int(self.ids[i]),
            self.texts[i],
            float(self.logprobs[i]),
            float(self.processed_logprobs[i]),
            STAGES[self.removed_by[i]],
        )


@dataclass(frozen=True, slots=True, eq=False)
class Attention:
    """Where the model looked when it chose a token: the last layer, mean over its heads.

    It is the row of the position before the token, the one whose logits the token was chosen by.

    Attributes:
        weights: float32 [prompt + answer before the token], 0 to 1 each, 1 in all.
        prompt: the bytes of every token of the prompt as it was read then, [prompt]; steps share it.
    """

    weights: np.ndarray
    prompt: tuple[bytes, ...]

    @property
    def on_prompt(self) -> np.ndarray:
        """The weights of the prompt's tokens, float32 [prompt]."""
        return self.weights[: len(self.prompt)]

    @property
    def on_answer(self) -> np.ndarray:
        """The weights of the answer's tokens before this one, float32 [place of the token in the answer]."""
        return self.weights[len(self.prompt) :]


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One decoded token; also recorded for the token that ends the text.

    Attributes:
        index: position in the answer, from 0.
        token_id: the vocabulary's number; ids and bytes are the truth, text is a view.
        text: what this token added to the answer. Empty inside a character, where a stop string was cut
            out, and for special tokens, except that one that ends the text inside a character brings
            U+FFFD. An answer that is stopped from outside ends before its unfinished character.
        bytes: the token's own bytes.
        incomplete: the token ends inside a character.
        special: a control token such as the end of a turn.
        logprob: raw log-probability of the token.
        rank: its place in the raw distribution, 1 is likeliest; ties go by token id.
        processed_logprob: log of the probability it was drawn with.
        max_prob: raw probability of the likeliest token.
        entropy: of the raw distribution, nats.
        varentropy: variance of the raw surprisal, nats².
        margin: raw probability of the likeliest token less that of the second.
        candidates: the alternatives.
        rest_mass: raw probability of all tokens that are not among the candidates.
        processed_rest_mass: the same for the distribution drawn from.
        draw: the uniform number in [0, 1) that picked the token: it fell into the token's stretch of
            the cumulative processed distribution, likeliest first.
        elapsed: seconds from the request to this token; NaN if it was taken over from another run.
        forced: put there by the caller, not drawn.
        kept: False if it was rolled back later.
        attention: where the model looked, if it was loaded with ``attention="eager"``; files do not hold it.
    """

    index: int
    token_id: int
    text: str
    bytes: bytes
    incomplete: bool = False
    special: bool = False
    logprob: float = float("nan")
    rank: int = 0
    processed_logprob: float = float("nan")
    max_prob: float = float("nan")
    entropy: float = float("nan")
    varentropy: float = float("nan")
    margin: float = float("nan")
    candidates: Candidates = field(default_factory=Candidates.none)
    rest_mass: float = float("nan")
    processed_rest_mass: float = float("nan")
    draw: float = float("nan")
    elapsed: float = 0.0
    forced: bool = False
    kept: bool = True
    attention: Attention | None = None

    @property
    def surprisal(self) -> float:
        """−logprob of the chosen token, raw, nats."""
        return -self.logprob

    @property
    def prob(self) -> float:
        """Raw probability of the chosen token."""
        return float(np.exp(self.logprob))

    @property
    def label(self) -> str:
        """The token as a name: the text it stands for even where it added none to the answer."""
        from cartoolkit.trace.text import token_label

        return token_label(self.bytes) if self.special else self.text or token_label(self.bytes)
