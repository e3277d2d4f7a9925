"""A whole run: its steps as columns, the prompt, and where it came from. Needs no model to be read."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np

from cartoolkit.trace import metrics
from cartoolkit.trace.columns import FLAGS, Columns, columns_of, step_at
from cartoolkit.trace.text import TextStream, token_label

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pandas as pd
    from matplotlib.axes import Axes

    from cartoolkit.trace.header import Event, TraceHeader
    from cartoolkit.trace.step import Attention, Step

__all__ = ["Trace"]


class Trace:
    """What a model did, one record a token, with everything needed to look at it again elsewhere.

    Attributes:
        header: model, settings, versions, timing, events.
        columns: arrays as named in `cartoolkit.trace.columns`; [n] a step, [n, k] a candidate.
        texts: what each step added to the answer, [n].
        prompt_ids: int32 [p].
        prompt_logprobs: float32 [p], raw; NaN where the prompt's own tokens were not scored.
        token_bytes: bytes of every token id that occurs.
        attentions: `Step.attention` of each step, [n]; None throughout in a trace from a file.
    """

    def __init__(
        self,
        header: TraceHeader,
        columns: Columns,
        texts: Sequence[str],
        *,
        prompt_ids: np.ndarray,
        prompt_logprobs: np.ndarray,
        token_bytes: Mapping[int, bytes],
        attentions: Sequence[Attention | None] | None = None,
    ) -> None:
        self.header = header
        self.columns = columns
        self.texts = list(texts)
        self.prompt_ids = prompt_ids
        self.prompt_logprobs = prompt_logprobs
        self.token_bytes = dict(token_bytes)
        self.attentions = [None] * len(self.texts) if attentions is None else list(attentions)

    @classmethod
    def from_steps(
        cls,
        header: TraceHeader,
        steps: Sequence[Step],
        *,
        prompt_ids: Sequence[int] | np.ndarray = (),
        prompt_logprobs: np.ndarray | None = None,
        token_bytes: Callable[[int], bytes],
    ) -> Self:
        """Build a trace from steps; `token_bytes` is asked once for each token id that occurs."""
        columns = columns_of(steps)
        prompt = np.asarray(prompt_ids, np.int32)
        ids = np.unique(np.concatenate((prompt, columns["token_id"], columns["candidate_id"].ravel())))
        return cls(
            header,
            columns,
            [step.text for step in steps],
            prompt_ids=prompt,
            prompt_logprobs=np.full(len(prompt), np.nan, np.float32)
            if prompt_logprobs is None
            else np.asarray(prompt_logprobs, np.float32),
            token_bytes={int(i): token_bytes(int(i)) for i in ids if i >= 0},
            attentions=[step.attention for step in steps],
        )

    # Reading it

    def __len__(self) -> int:
        return len(self.texts)

    def __iter__(self) -> Iterator[Step]:
        return (self._step(i) for i in range(len(self)))

    @overload
    def __getitem__(self, i: int) -> Step: ...
    @overload
    def __getitem__(self, i: slice) -> list[Step]: ...
    def __getitem__(self, i: int | slice) -> Step | list[Step]:
        if isinstance(i, slice):
            return [self._step(j) for j in range(*i.indices(len(self)))]
        if not -len(self) <= i < len(self):
            raise IndexError(f"step {i} of a trace of {len(self)} steps")
        return self._step(i % len(self))

    def _step(self, i: int) -> Step:
        token_id = int(self.columns["token_id"][i])
        return step_at(
            self.columns,
            i,
            text=self.texts[i],
            token=self.token_bytes[token_id],
            candidate_texts=self.candidate_texts(i),
            attention=self.attentions[i],
        )

    def candidate_texts(self, i: int) -> list[str]:
        """How each recorded candidate of step i would have read after the tokens chosen before it."""
        ids = self.columns["candidate_id"][i]
        return [token_label(self.token_bytes[int(j)], self._pending[i]) for j in ids if j >= 0]

    @cached_property
    def _pending(self) -> list[bytes]:
        """Bytes of an unfinished character before each step, [n]."""
        stream, pending, settled = TextStream(), [], b""
        rows = zip(self.columns["token_id"], self.flag("special"), self.flag("kept"), strict=True)
        for token_id, special, kept in rows:
            # What follows tokens that were rolled back continues from the last kept one.
            if kept and stream.pending != settled:
                stream = TextStream()
                stream.feed(settled)
            pending.append(stream.pending)
            if special:
                stream.flush()
            else:
                stream.feed(self.token_bytes[int(token_id)])
            settled = stream.pending if kept else settled
        return pending

    @property
    def text(self) -> str:
        """The answer: the texts of the steps that were kept."""
        return "".join(t for t, kept in zip(self.texts, self.flag("kept"), strict=True) if kept)

    @property
    def prompt_text(self) -> str:
        """The prompt as the model saw it, template and control tokens included."""
        return b"".join(self.token_bytes[int(i)] for i in self.prompt_ids).decode(errors="replace")

    @property
    def events(self) -> list[Event]:
        """What happened besides tokens, in order."""
        return self.header.events

    def flag(self, name: str) -> np.ndarray:
        """One bit of the `flags` column as bool [n]: incomplete, special, forced or kept."""
        return (self.columns["flags"] & FLAGS[name]) != 0

    # Figures

    @property
    def perplexity(self) -> float:
        """Exp of the mean raw surprisal of the kept tokens, the end token included."""
        return metrics.perplexity(self.columns["logprob"][self.flag("kept")])

    @property
    def mean_entropy(self) -> float:
        """Mean entropy of the raw distribution over the kept tokens, nats; NaN if none was inspected."""
        values = self.columns["entropy"][self.flag("kept")].astype(np.float64)
        values = values[~np.isnan(values)]
        return float(values.mean()) if values.size else float("nan")

    @property
    def ttft_ms(self) -> float | None:
        """Milliseconds from the request to the first token decoded for it; None before there is one."""
        elapsed = self.columns["elapsed"]
        elapsed = elapsed[~np.isnan(elapsed)]
        return float(elapsed[0]) * 1000 if len(elapsed) else None

    @property
    def tokens_per_second(self) -> float | None:
        """Decoding speed without the prefill; None for fewer than two tokens.

        Where steps are chunks, each is taken to hold as many tokens as the others, and it is None if the
        server does not tell how many there were.
        """
        speed = metrics.tokens_per_second(self.columns["elapsed"])
        if np.isnan(speed):
            return None
        provider = self.header.provider
        if provider is None or provider.unit == "token":
            return speed
        tokens = provider.answer_tokens
        return speed * tokens / len(self) if tokens else None

    @property
    def completion_tokens(self) -> int:
        """Kept tokens, without the control token that ended the answer.

        Where steps are chunks, the number that the server tells, or that of the chunks if it tells none.
        """
        provider = self.header.provider
        if provider is not None and provider.unit == "chunk" and provider.answer_tokens is not None:
            return provider.answer_tokens
        ended = self.header.stop_reason == "stop" and len(self) and bool(self.flag("special")[-1])
        return int(self.flag("kept").sum()) - int(ended)

    # Taking it elsewhere

    def to_frame(self, *, candidates: bool = False) -> pd.DataFrame:
        """One row a step; with `candidates=True` one row a candidate. See `cartoolkit.trace.frame`."""
        from cartoolkit.trace.frame import candidates_frame, steps_frame

        return candidates_frame(self) if candidates else steps_frame(self)

    def prompt_frame(self) -> pd.DataFrame:
        """One row a token of the prompt, with its surprisal if `prompt_logprobs=True` asked for it."""
        from cartoolkit.trace.frame import prompt_frame

        return prompt_frame(self)

    def to_json(self, **options: Any) -> str:  # noqa: ANN401 - handed on to json.dumps
        """The whole trace as strict JSON for other tools; `save` is smaller, exact and can be loaded."""
        from cartoolkit.trace.json_export import to_json

        return to_json(self, **options)

    def to_html(self, *, metric: str = "max_prob", threshold: float = 0.4) -> str:
        """A static page fragment: the text with its doubts and its candidates; no script, no requests."""
        from cartoolkit.trace.static_html import run_html

        return run_html(self, metric=metric, threshold=threshold)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write one safetensors file that `Trace.load` opens without the model; returns its path.

        The file appears whole or not at all.
        """
        from cartoolkit.trace.file import save

        return save(self, Path(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Trace:
        """Open a saved trace.

        Raises:
            TraceError: the file is damaged, not a trace, or written by a newer version.
        """
        from cartoolkit.trace.file import load

        return load(Path(path))

    def plot_confidence(self, ax: Axes | None = None, *, threshold: float = 0.4, window: int = 3) -> Axes:
        """Raw max probability along the text, with the stretches below `threshold` shaded."""
        from cartoolkit.trace.figures import plot_confidence

        return plot_confidence(self, ax, threshold=threshold, window=window)

    def plot_candidates(self, step: int, ax: Axes | None = None) -> Axes:
        """The candidates of one step: raw probability against the one drawn from, removed ones struck."""
        from cartoolkit.trace.figures import plot_candidates

        return plot_candidates(self, step, ax)

    def __repr__(self) -> str:
        model = self.header.model
        engine = ", ".join(filter(None, (model.engine, model.dtype)))
        return (
            f"<Trace: {len(self)} steps of {model.name} ({engine}), "
            f"perplexity {self.perplexity:.2f}, ended by {self.header.stop_reason or 'nothing yet'}>"
        )

    def _repr_html_(self) -> str:
        return self.to_html()
