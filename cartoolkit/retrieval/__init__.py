"""Doubt to look-up: when to look something up, what to ask, how to go on, and where to look.

Nothing here knows an engine: policies see steps, retrievers see text.
"""

from cartoolkit.retrieval.passages import Hit, Passage
from cartoolkit.retrieval.retriever import Retriever, Searcher

__all__ = ["Hit", "Passage", "Retriever", "Searcher"]
