"""Asking for less where a server refuses a setting: other names, fewer candidates, no count of tokens.

Servers that speak the same interface know different parts of it, and say so with status 400 and the name of
what they do not take. What is asked for less is told in the trace, and remembered for the next request.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = ["MOST_OFFERS", "lowered"]

MOST_OFFERS = 6
"""Requests that are made for one answer at most."""

_FEWER = (10, 5)


def lowered(
    fields: Mapping[str, Any], complaint: str, explicit: Collection[str] = ()
) -> tuple[dict[str, Any], str] | None:
    """The fields to try next, and what is lost by it in a sentence, which is empty if nothing is.

    Args:
        fields: what was refused.
        complaint: what the server said, the name of the parameter included.
        explicit: settings that the caller has written, which are not given up.

    Returns:
        None if the complaint is about something else.

    >>> lowered({"top_logprobs": 20, "logprobs": True}, "top_logprobs must be at most 11")
    ({'top_logprobs': 10, 'logprobs': True}, 'The server tells 10 candidates a token at most.')
    >>> lowered({"max_tokens": 5}, "Use 'max_completion_tokens' instead of 'max_tokens'.")
    ({'max_completion_tokens': 5}, '')
    """

    def named(*names: str) -> bool:
        return any(name in fields and re.search(rf"\b{name}\b", complaint) for name in names)

    if named("max_tokens") and "max_completion_tokens" in complaint:
        rest = _without(fields, "max_tokens")
        return {**rest, "max_completion_tokens": fields["max_tokens"]}, ""
    if named("logprobs", "top_logprobs"):
        return _with_fewer_candidates(fields)
    if named("stream_options", "include_usage"):
        return _without(fields, "stream_options"), "The server does not tell how many tokens it counted."
    for name in ("temperature", "top_p", "seed"):
        if named(name) and name not in explicit:
            return _without(fields, name), f"The server takes no {name}; its own holds."
    return None


def _with_fewer_candidates(fields: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    most = fields.get("top_logprobs", 0)
    fewer = next((few for few in _FEWER if few < most), 0)
    if fewer:
        return {**fields, "top_logprobs": fewer}, f"The server tells {fewer} candidates a token at most."
    return _without(fields, "logprobs", "top_logprobs"), "The server tells no probabilities."


def _without(fields: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in names}
