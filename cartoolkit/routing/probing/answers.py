"""Known questions put to an engine, its answers graded, and the share of them that is right."""

from __future__ import annotations

import time
from collections import defaultdict
from contextlib import closing
from typing import TYPE_CHECKING, Any, cast

from cartoolkit.engine import Engine
from cartoolkit.routing.outcomes.scoreboard import wilson_interval
from cartoolkit.routing.probing.items import first_line, is_right, probe_items
from cartoolkit.routing.probing.measurements import LONGEST_TEXT, ItemResult
from cartoolkit.routing.rows.figures import Figure

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from cartoolkit.routing.calls.serving import Answerer
    from cartoolkit.routing.probing.items import ProbeItem
    from cartoolkit.trace import Step

__all__ = ["answers", "chosen_items", "graded_quality"]

_LONGEST_ANSWER = 24


def chosen_items(most: int | None) -> tuple[ProbeItem, ...]:
    """All questions, or about `most` of them: equally many of each kind and split."""
    items = probe_items()
    if most is None:
        return items
    groups: dict[tuple[str, str], list[ProbeItem]] = defaultdict(list)
    for item in items:
        groups[item.kind, item.split].append(item)
    share = min(max(1, most // len(groups)), *map(len, groups.values()))
    return tuple(group[place * len(group) // share] for group in groups.values() for place in range(share))


def answers(
    engine: Answerer, items: Sequence[ProbeItem], report: Callable[[str, int, int], None]
) -> tuple[tuple[ItemResult, ...], tuple[str, ...]]:
    """What an engine answers, graded; none of a model that thinks aloud first, and a sentence that says so.

    Args:
        engine: what is asked, one question after the other.
        items: the questions.
        report: told how many are done.
    """
    results: list[ItemResult] = []
    for done, item in enumerate(items):
        report("questions", done, len(items))
        results.append(_answer(engine, item))
    if sum(result.text.startswith("<think") for result in results) <= len(results) / 2:
        return tuple(results), ()
    why_none = (
        "No quality: the model thinks aloud before it answers, and the questions leave room for "
        f"{_LONGEST_ANSWER} tokens."
    )
    return (), (why_none,)


def _answer(engine: Answerer, item: ProbeItem) -> ItemResult:
    settings: dict[str, Any] = {"temperature": 0.0, "inspect": False, "max_tokens": _LONGEST_ANSWER}
    if isinstance(engine, Engine):
        # The worked examples are read once.
        settings["repeatable"] = False
    text, steps, began = "", 0, time.perf_counter()
    prompt = item.text if _continues_text(engine) else item.conversation
    with closing(cast("Generator[Step]", engine.stream(prompt, **settings))) as stream:
        for step in stream:
            text, steps = text + step.text, steps + 1
            if "\n" in text.lstrip():
                break
        passed = time.perf_counter() - began
    return ItemResult(
        id=item.id,
        kind=item.kind,
        split=item.split,
        right=is_right(item, text),
        text=first_line(text)[:LONGEST_TEXT],
        ms=1000 * passed,
        completion_tokens=steps,
    )


def _continues_text(engine: Answerer) -> bool:
    """Whether it is a base model that runs here: one behind an address is sent turns in any case."""
    return isinstance(engine, Engine) and engine.decoder.chat_template is None


def graded_quality(items: Sequence[ItemResult]) -> Figure | None:
    """The share of the `choice` items that are right, with Wilson's 95 % interval; None without any."""
    marks = [item.right for item in items if item.split == "choice"]
    if not marks:
        return None
    low, high = wilson_interval(sum(marks), len(marks))
    share = sum(marks) / len(marks)
    # At the ends of the scale rounding may put the interval beside the share.
    return Figure(value=share, basis="measured", low=min(low, share), high=max(high, share), n=len(marks))
