"""A plain function from query to text, as a retriever."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cartoolkit.errors import CartoolkitError, InvalidRequest, RetrieverFailed
from cartoolkit.retrieval.passages import Hit, Passage
from cartoolkit.retrieval.retriever import Searcher, require_k

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CallbackRetriever", "as_searcher"]

MAX_CHARACTERS = 10_000


class CallbackRetriever:
    """Asks a function of the user's own: a data base, a web service, a colleague.

    What it returns is one passage. Its id is the hash of its text, so the same text twice counts as
    the same passage.

    Args:
        function: takes the query, returns a text, or None or "" where it knows nothing.
        max_characters: a longer text is cut at the last white space before this.
        source: shown as the passage's origin; the function's name unless given.
    """

    def __init__(
        self,
        function: Callable[[str], str | None],
        *,
        max_characters: int = MAX_CHARACTERS,
        source: str | None = None,
    ) -> None:
        self.function = function
        self.max_characters = max_characters
        self.source = source if source is not None else getattr(function, "__name__", type(function).__name__)

    def search(self, query: str, k: int = 3) -> list[Hit]:
        """The function's text as the only hit, with score 1; nothing if it has no text.

        Raises:
            RetrieverFailed: the function raised, or returned something that is neither text nor None.
        """
        require_k(k)
        text = self._ask(query)
        if text is None or not text.strip():
            return []
        passage = Passage("", cut_at_space(text.strip(), self.max_characters), self.source)
        return [Hit(passage.digest, passage.text, 1.0, passage.source)]

    def __repr__(self) -> str:
        return f"CallbackRetriever({self.source})"

    def _ask(self, query: str) -> str | None:
        try:
            answer = self.function(query)
        except CartoolkitError:
            raise
        except Exception as exc:
            raise RetrieverFailed(f"The retriever {self.source} raised {type(exc).__name__}: {exc}") from exc
        if answer is None or isinstance(answer, str):
            return answer
        raise RetrieverFailed(
            f"The retriever {self.source} returned {type(answer).__name__}, not text or None.",
            hint="Return the passage as str; for several passages write a class with search(query, k).",
        )


def cut_at_space(text: str, limit: int) -> str:
    """`text`, or its beginning of at most `limit` characters up to the last white space there is."""
    if len(text) <= limit:
        return text
    head = text[:limit]
    if not text[limit].isspace():
        head = head.rsplit(maxsplit=1)[0] if len(head.split(maxsplit=1)) > 1 else head
    return head.rstrip()


def as_searcher(retriever: Searcher | Callable[[str], str | None]) -> Searcher:
    """What stands where a retriever is asked for: one that can search, or a plain function.

    Raises:
        InvalidRequest: it is neither.
    """
    if isinstance(retriever, Searcher) and not isinstance(retriever, type):
        return retriever
    if callable(retriever) and not isinstance(retriever, type):
        return CallbackRetriever(retriever)
    raise InvalidRequest(
        f"{retriever!r} is no retriever.",
        hint="Give an object with search(query, k), such as FTSRetriever(path), or str -> str | None.",
    )
