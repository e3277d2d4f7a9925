"""One engine measured in this process: first tokens, decoding speed, and what it knows.

Every prompt whose time counts is a text of its own, so that nothing of it lies in a cache; everything is
greedy; the first run of each kind is dropped. Of an engine that runs here the plain speed is taken: no chat
template, no end, and nothing recorded but the tokens. A server is asked as it lets itself be asked.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from cartoolkit.engine import Engine
from cartoolkit.errors import InvalidRequest, ProbeFailed
from cartoolkit.routing.checks import require_number
from cartoolkit.routing.choice.situation import estimate_tokens
from cartoolkit.routing.probing.answers import answers, chosen_items, graded_quality
from cartoolkit.routing.probing.bystanders import Bystanders
from cartoolkit.routing.probing.freshness import ENGINE_LIBRARIES, weights_hash_of
from cartoolkit.routing.probing.machine import machine_identity
from cartoolkit.routing.probing.measurements import Probe, PromptPoint
from cartoolkit.routing.probing.texts import ProbeTexts
from cartoolkit.routing.probing.timing import fit_prefill, median_figure
from cartoolkit.routing.rows.figures import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cartoolkit.engine import Result
    from cartoolkit.routing.calls.serving import Answerer
    from cartoolkit.routing.rows.figures import Figure
    from cartoolkit.routing.rows.schema import ModelSchema

    Report = Callable[[str, int, int], None]

__all__ = ["ProbeOptions", "measure", "require_the_rows_engine"]

_Measured = TypeVar("_Measured")

_SPEED_WORDS = 16
_LONG_ANSWER = "Write down the numbers from one to one hundred, each one as a word."


class ProbeOptions(Row):
    """What is measured, and how often.

    Attributes:
        prompt_lengths: tokens of the prompts whose first token is timed.
        repeats: measurements of each kind, beside one that is dropped; from six on a median has an interval.
        answer_tokens: length of the answers whose speed is taken.
        quality: ask the questions of `probe_items`.
        items: at most so many of them, of all kinds and splits; None asks all.
        loads: timed loads, beside the first one.
        patience: seconds that first tokens may take, and that decoding may take; a slow model gets fewer
            repeats, and its longest prompts are left out. None waits for all.
    """

    prompt_lengths: tuple[int, ...] = (32, 128, 512)
    repeats: int = 6
    answer_tokens: int = 48
    quality: bool = True
    items: int | None = None
    loads: int = 3
    patience: float | None = 60.0

    def require_sense(self) -> None:
        """Refuse what cannot be measured.

        Raises:
            InvalidRequest: with the setting, its range and what was given.
        """
        if not self.prompt_lengths:
            raise InvalidRequest("prompt_lengths must name at least one length.")
        for length in self.prompt_lengths:
            require_number("each of prompt_lengths", length, least=1, whole=True)
        for name, least in {"repeats": 1, "answer_tokens": 2, "loads": 1}.items():
            require_number(name, getattr(self, name), least=least, whole=True)
        if self.items is not None:
            require_number("items", self.items, least=4, whole=True)
        if self.patience is not None:
            require_number("patience", self.patience, least=0)


def require_the_rows_engine(model: ModelSchema, engine: Answerer) -> None:
    """Refuse to measure one engine for the row of another.

    Raises:
        InvalidRequest: the row names another engine than the one at hand.
    """
    named = model.source.engine
    if named is not None and ENGINE_LIBRARIES[named] != engine.info.engine:
        raise InvalidRequest(
            f"{model.id} runs on the {named} engine, and this one is of {engine.info.engine}.",
            hint="Give the engine that belongs to the row, or none: it is loaded then.",
        )


def measure(model: ModelSchema, engine: Answerer, options: ProbeOptions, report: Report) -> Probe:
    """Measure an engine that is there already; load time and memory stay unknown.

    Args:
        model: the row that it answers for.
        engine: what answers.
        options: what to measure.
        report: told what is going on, how much of it is done, and how much there is.

    Raises:
        ProbeFailed: a prompt was found in the engine's cache, or no answer came.
        CartoolkitError: whatever the engine raises.
    """
    at_work, bystanders = _AtWork(engine, report), Bystanders()
    series = at_work.first_tokens(options)
    speed = at_work.speed(options)
    lacking = bystanders.lacking() if at_work.is_here else None
    items, why_none = answers(engine, chosen_items(options.items), report) if options.quality else ((), ())
    line = fit_prefill(_by_length(series))
    info = engine.info
    return Probe(
        model_id=model.id,
        measured_at=time.time(),
        machine=machine_identity(),
        engine=info.engine,
        device=info.device,
        dtype=info.dtype,
        weights_hash=info.weights_hash or weights_hash_of(model) or "",
        versions=at_work.versions,
        points=tuple(each.point for each in series),
        ttft_ms=line.ttft_ms,
        prefill_tokens_per_second=line.tokens_per_second,
        tokens_per_second=speed,
        quality=graded_quality(items),
        items=items,
        lacking_cores=lacking,
        notes=(*at_work.notes, *why_none),
    )


@dataclass(frozen=True, slots=True)
class _Timed:
    """One first token: length of its prompt, and how long it took in milliseconds."""

    prompt_tokens: int
    ttft_ms: float


@dataclass(frozen=True, slots=True)
class _Series:
    """The first tokens of prompts of about one length."""

    aimed_at: int
    timed: Sequence[_Timed]

    @property
    def prompt_tokens(self) -> int:
        """The middle one of the real lengths."""
        return sorted(each.prompt_tokens for each in self.timed)[len(self.timed) // 2]

    @property
    def times_ms(self) -> list[float]:
        return [each.ttft_ms for each in self.timed]

    @property
    def point(self) -> PromptPoint:
        times = median_figure(self.times_ms)
        return PromptPoint(aimed_at=self.aimed_at, prompt_tokens=self.prompt_tokens, ttft_ms=times)


def _expected_seconds(shorter: _Series, length: int) -> float:
    """What a longer prompt takes at most: in proportion to its length."""
    return min(shorter.times_ms) / 1000 * length / shorter.prompt_tokens


def _by_length(series: Sequence[_Series]) -> dict[int, list[float]]:
    """Real length -> times; short lengths that a template's own tokens exceed are one."""
    times: dict[int, list[float]] = defaultdict(list)
    for each in series:
        times[each.prompt_tokens] += each.times_ms
    return times


class _AtWork:
    """An engine under measurement, with what is told of it on the way."""

    def __init__(self, engine: Answerer, report: Report) -> None:
        self._engine = engine
        self._report = report
        self._texts = ProbeTexts()
        self.is_here = isinstance(engine, Engine)
        self.notes: list[str] = []
        self.versions: dict[str, str] = {}

    # -- first tokens ------------------------------------------------------------------------------

    def first_tokens(self, options: ProbeOptions) -> list[_Series]:
        """Times to the first token at each length, the shortest first."""
        lengths = self._lengths_that_fit(options.prompt_lengths)
        words_for = self._words_for()
        patience = math.inf if options.patience is None else options.patience / len(lengths)
        series: list[_Series] = []
        for place, length in enumerate(lengths):
            if series and (expected := _expected_seconds(series[-1], length)) * 2 > patience:
                self._note(
                    f"Prompts of {length:,} tokens were left out: one would take about {expected:.0f} s."
                )
                continue
            self._report("first tokens", place, len(lengths))
            measure = partial(self._first_token, words_for(length))
            series.append(_Series(length, self._repeated(measure, options.repeats, patience)))
        return series

    def _repeated(self, measure: Callable[[], _Measured], repeats: int, patience: float) -> list[_Measured]:
        """So many measurements, at least one and fewer when patience is over, after one that is dropped."""
        deadline = time.monotonic() + patience
        measure()
        found = [measure()]
        while len(found) < repeats and time.monotonic() < deadline:
            found.append(measure())
        if len(found) < repeats:
            self._note(f"Some figures come from fewer than {repeats} repeats, as the model is slow.")
        return found

    def _lengths_that_fit(self, lengths: Sequence[int]) -> list[int]:
        window = self._engine.info.context_length
        fitting = [length for length in sorted(set(lengths)) if not window or length < window]
        left = [length for length in lengths if length not in fitting]
        if left:
            self._note(
                f"Prompts of {' and '.join(f'{n:,}' for n in left)} tokens were left out: the context holds "
                f"{window:,}."
            )
        if not fitting:
            raise ProbeFailed(
                f"no prompt can be timed: the shortest one, of {min(lengths):,} tokens, does not fit the "
                f"context of {window:,}.",
                hint="Name shorter ones with prompt_lengths=.",
            )
        return fitting

    def _words_for(self) -> Callable[[int], int]:
        """How many words make a prompt of so many tokens: two prompts tell, which also warm the engine up."""
        few, many = 4, 12
        short, long = self._first_token(few), self._first_token(many)
        a_word = max((long.prompt_tokens - short.prompt_tokens) / (many - few), 0.25)
        around = short.prompt_tokens - few * a_word
        return lambda tokens: max(1, round((tokens - around) / a_word))

    def _first_token(self, words: int) -> _Timed:
        text = self._texts.of(words)
        result = self._asked(text, max_tokens=1, **({"truncate": False} if self.is_here else {}))
        if result.ttft_ms is None:
            raise ProbeFailed(f"{self._engine.info.name} answered with nothing ({result.stop_reason}).")
        usage = result.usage
        if usage.reused_tokens:
            self._found_in_cache(usage.reused_tokens)
        if usage.prompt_tokens is None:
            self._note("The server does not count tokens; four characters are taken for one.")
        return _Timed(usage.prompt_tokens or estimate_tokens(text), result.ttft_ms)

    def _found_in_cache(self, tokens: int) -> None:
        if self.is_here:
            raise ProbeFailed(
                f"{tokens:,} tokens of a new prompt were found in the engine's cache, so its first token "
                "came too early to count."
            )
        self._note("The server found parts of new prompts in its cache, such as its own template.")

    # -- decoding ----------------------------------------------------------------------------------

    def speed(self, options: ProbeOptions) -> Figure | None:
        """Median of tokens a second between the first and the last token of an answer."""
        self._report("decoding", 0, 1)
        patience = math.inf if options.patience is None else options.patience
        found = self._repeated(partial(self._one_speed, options.answer_tokens), options.repeats, patience)
        speeds = [speed for speed in found if speed is not None]
        if not speeds:
            self._note("No decoding speed: the answers had fewer than two tokens, or nobody counted them.")
        return median_figure(speeds) if speeds else None

    def _one_speed(self, tokens: int) -> float | None:
        if self.is_here:
            text = self._texts.of(_SPEED_WORDS)
            return self._asked(text, max_tokens=tokens, ignore_eos=True).tokens_per_second
        result = self._asked(_LONG_ANSWER, max_tokens=tokens)
        elapsed, written = result.trace.columns["elapsed"], result.usage.completion_tokens
        if written is None or written < 2 or len(elapsed) < 2 or elapsed[-1] <= elapsed[0]:
            return None
        # A step of a server may be a chunk of several tokens, so its own count is taken.
        return (written - 1) / float(elapsed[-1] - elapsed[0])

    def _asked(self, text: str, **settings: Any) -> Result:  # noqa: ANN401
        if self.is_here:
            settings["chat_template"] = False
        result = self._engine.generate(text, temperature=0.0, inspect=False, **settings)
        self.versions = result.trace.header.versions
        return result

    def _note(self, sentence: str) -> None:
        if sentence not in self.notes:
            self.notes.append(sentence)
