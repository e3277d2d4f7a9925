"""A trace in the making: written by one thread, looked at by others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cartoolkit.trace.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import numpy as np

    from cartoolkit.trace.header import TraceHeader
    from cartoolkit.trace.step import Step

__all__ = ["TraceRecorder"]


class TraceRecorder:
    """Collects steps; `trace()` is a copy of what is there so far.

    Attributes:
        header: replaced as a whole when something becomes known, never changed in place.
        prompt_ids: the prompt as it was read.
        prompt_logprobs: float32 [prompt], set once if the prompt's own tokens are scored.
        steps: never shorter than it was, so a reader may slice it at any time; a step that is rolled back
            later is replaced in its place.
    """

    def __init__(
        self, header: TraceHeader, prompt_ids: Sequence[int], token_bytes: Callable[[int], bytes]
    ) -> None:
        self.header = header
        self.steps: list[Step] = []
        self.prompt_ids = list(prompt_ids)
        self.prompt_logprobs: np.ndarray | None = None
        self._token_bytes = token_bytes
        self._snapshot: Trace | None = None

    def add_steps(self, steps: Iterable[Step]) -> None:
        """Append steps."""
        self.steps.extend(steps)

    def revise(self, steps: Iterable[Step]) -> None:
        """Put steps in the places of those that have their index; `update` must follow."""
        for step in steps:
            self.steps[step.index] = step
        self._snapshot = None

    def update(self, **fields: Any) -> None:  # noqa: ANN401 - the header's own fields
        """Set fields of the header."""
        self.header = self.header.model_copy(update=fields)

    def finish(self) -> None:
        """Nothing will be added; let go of where the bytes of tokens came from, which is the model."""
        self._token_bytes = self.trace().token_bytes.__getitem__

    def trace(self) -> Trace:
        """The trace up to now; the same object until something is added."""
        steps, header = list(self.steps), self.header
        last = self._snapshot
        if last is None or len(last) != len(steps) or last.header is not header:
            self._snapshot = last = Trace.from_steps(
                header,
                steps,
                prompt_ids=self.prompt_ids,
                prompt_logprobs=self.prompt_logprobs,
                token_bytes=self._token_bytes,
            )
        return last
