"""Doubt to look-up: when to look something up, what to ask, how to go on, and where to look.

Nothing here knows an engine: policies see steps, retrievers see text.
"""

from cartoolkit.retrieval.budget import Budget
from cartoolkit.retrieval.controller import drive
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
from cartoolkit.retrieval.events import retrieval_event
from cartoolkit.retrieval.passages import Hit, Passage
from cartoolkit.retrieval.policy import Policy
from cartoolkit.retrieval.presets import PRESETS, preset
from cartoolkit.retrieval.queries import (
    ContentWords,
    MaskedLookahead,
    Partial,
    Query,
    Question,
    QuestionAndAccepted,
)
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
    "Budget",
    "ContentTokenBelow",
    "ContentWords",
    "Continue",
    "Decision",
    "Ended",
    "EntropyAbove",
    "EntropyTrend",
    "EverySentence",
    "EveryTokens",
    "Failed",
    "Finish",
    "Found",
    "GoOn",
    "Hit",
    "LookUp",
    "MaskedLookahead",
    "Never",
    "Partial",
    "Passage",
    "Policy",
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
    "drive",
    "preset",
    "retrieval_event",
    "simulate",
]
