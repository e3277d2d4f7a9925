"""What happened: one record a token, as objects, columns, files and pictures. Needs no model."""

from cartoolkit.trace.columns import CANDIDATE_COLUMNS, STEP_COLUMNS
from cartoolkit.trace.header import Event, ModelInfo, ProviderReport, TraceHeader
from cartoolkit.trace.metrics import low_runs, perplexity, tokens_per_second
from cartoolkit.trace.step import STAGES, Attention, Candidate, Candidates, Step
from cartoolkit.trace.text import TextStream, token_label
from cartoolkit.trace.trace import Trace

__all__ = [
    "CANDIDATE_COLUMNS",
    "STAGES",
    "STEP_COLUMNS",
    "Attention",
    "Candidate",
    "Candidates",
    "Event",
    "ModelInfo",
    "ProviderReport",
    "Step",
    "TextStream",
    "Trace",
    "TraceHeader",
    "low_runs",
    "perplexity",
    "token_label",
    "tokens_per_second",
]
