"""Doubt to look-up: when to look something up, what to ask, how to go on, and where to look.

Nothing here knows an engine: policies see steps, retrievers see text.
"""

from cartoolkit.retrieval.bm25 import BM25Retriever
from cartoolkit.retrieval.budget import Budget
from cartoolkit.retrieval.callback import CallbackRetriever, as_searcher
from cartoolkit.retrieval.controller import drive
from cartoolkit.retrieval.corpus import Corpus
from cartoolkit.retrieval.decisions import (
    Decision,
    Ended,
    Failed,
    Finish,
    Found,
    GoOn,
    LookUp,
    Report,
    ResumeFrom,
    Tally,
    TookTooLong,
)
from cartoolkit.retrieval.demo import demo_corpus, demo_retriever
from cartoolkit.retrieval.dragin import AttendedWords, EntropyAttention
from cartoolkit.retrieval.embeddings import Embedder, EmbeddingRetriever
from cartoolkit.retrieval.events import retrieval_event
from cartoolkit.retrieval.fts5 import FTSRetriever
from cartoolkit.retrieval.hybrid import HybridRetriever, reciprocal_rank_fusion
from cartoolkit.retrieval.minilm import MiniLM
from cartoolkit.retrieval.passages import Hit, Passage
from cartoolkit.retrieval.policy import Policy
from cartoolkit.retrieval.postgres import PostgresRetriever
from cartoolkit.retrieval.presets import PRESETS, preset
from cartoolkit.retrieval.qdrant import QdrantRetriever
from cartoolkit.retrieval.queries import (
    ContentWords,
    MaskedLookahead,
    Partial,
    Query,
    Question,
    QuestionAndAccepted,
)
from cartoolkit.retrieval.questions import LabelledQuestion
from cartoolkit.retrieval.resume import Continue, RegenerateSentence, Restart, Resume, RollbackToWord
from cartoolkit.retrieval.retriever import Retriever, Searcher
from cartoolkit.retrieval.simulation import Recording, Simulation, simulate
from cartoolkit.retrieval.triggers import (
    AnyTokenInSentence,
    ContentTokenBelow,
    EntropyAbove,
    EntropyTrend,
    EverySentence,
    EveryTokens,
    Never,
    Trigger,
    WindowMaxProb,
)

__all__ = [
    "PRESETS",
    "AnyTokenInSentence",
    "AttendedWords",
    "BM25Retriever",
    "Budget",
    "CallbackRetriever",
    "ContentTokenBelow",
    "ContentWords",
    "Continue",
    "Corpus",
    "Decision",
    "Embedder",
    "EmbeddingRetriever",
    "Ended",
    "EntropyAbove",
    "EntropyAttention",
    "EntropyTrend",
    "EverySentence",
    "EveryTokens",
    "FTSRetriever",
    "Failed",
    "Finish",
    "Found",
    "GoOn",
    "Hit",
    "HybridRetriever",
    "LabelledQuestion",
    "LookUp",
    "MaskedLookahead",
    "MiniLM",
    "Never",
    "Partial",
    "Passage",
    "Policy",
    "PostgresRetriever",
    "QdrantRetriever",
    "Query",
    "Question",
    "QuestionAndAccepted",
    "Recording",
    "RegenerateSentence",
    "Report",
    "Restart",
    "Resume",
    "ResumeFrom",
    "Retriever",
    "RollbackToWord",
    "Searcher",
    "Simulation",
    "Tally",
    "TookTooLong",
    "Trigger",
    "WindowMaxProb",
    "as_searcher",
    "demo_corpus",
    "demo_retriever",
    "drive",
    "preset",
    "reciprocal_rank_fusion",
    "retrieval_event",
    "simulate",
]
