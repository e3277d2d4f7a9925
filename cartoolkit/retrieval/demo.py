"""The demo corpus "elements and countries", which comes with the package."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import as_file, files

from cartoolkit.errors import InvalidIndex
from cartoolkit.retrieval.corpus import Corpus
from cartoolkit.retrieval.fts5 import FTSRetriever

__all__ = ["demo_corpus", "demo_retriever"]

FILE = "elements_and_countries.json.gz"
FILE_SHA256 = "4e23c0a86951c581af608cad70bf4670e369231f87d2ae96dce2b1a78114ba46"


@cache
def demo_corpus() -> Corpus:
    """About 1,100 passages on chemical elements and countries, with about 1,200 questions on them.

    One sentence a fact (symbol, atomic number and discovery year of elements; capital, currency and
    highest point of countries), and a paragraph on each element and country that only resembles an answer.
    Questions are about a single fact, in the passage's words or in others; about two facts, of which the
    second cannot be looked up before the first is known; or about a fact that no passage holds.

    From mendeleev 1.3.0 (MIT) and The World Factbook (public domain), without the facts on which these or
    GeoNames and CLDR disagree; `scripts/build_demo_corpus.py` builds it. It says what its sources said, which
    may be dated or disputed.

    Raises:
        InvalidIndex: the file in the installed package is not the one that was published.
    """
    packed = files("cartoolkit.retrieval") / "data" / FILE
    if hashlib.sha256(packed.read_bytes()).hexdigest() != FILE_SHA256:
        raise InvalidIndex(
            f"The demo corpus {FILE} is not the one that belongs to this version of cartoolkit.",
            hint="Install cartoolkit again.",
        )
    with as_file(packed) as path:
        return Corpus.load(path)


def demo_retriever() -> FTSRetriever:
    """A new index of the demo corpus by words, in memory; building it takes a twentieth of a second."""
    retriever = FTSRetriever()
    retriever.add(demo_corpus().passages)
    return retriever
