"""Traces made by hand, and an engine without a model that answers from a dictionary."""

import math

from cartoolkit.engine import Result
from cartoolkit.requests import make_request
from cartoolkit.retrieval import LabelledQuestion
from cartoolkit.trace import Event, ModelInfo, Step, Trace, TraceHeader

MODEL = ModelInfo(
    name="tiny", engine="torch", device="cpu", dtype="float32",
    context_length=64, vocab_size=99, weights_hash="sha256:1",
)  # fmt: skip


def question(name, *answers, kind="single", relation="capital", split="test", **fields):
    answers = answers or (name.capitalize(),)
    passages = fields.pop("passages", ())
    return LabelledQuestion(
        f"{kind}/{name}", f"Where is {name}?", answers, kind, relation, passages, split, **fields
    )


def step(index, text, prob=0.9, entropy=1.0, **flags):
    return Step(
        index, index, text, text.encode(), logprob=math.log(prob), max_prob=prob, entropy=entropy, **flags
    )


def trace(steps, *, events=(), model=MODEL, stop_reason="stop", prefill=10, reused=0):
    header = TraceHeader(
        model=model,
        stop_reason=stop_reason,
        events=list(events),
        prefill_tokens=prefill,
        reused_tokens=reused,
    )
    bytes_of = {each.token_id: each.bytes for each in steps}
    return Trace.from_steps(header, steps, token_bytes=bytes_of.__getitem__)


def said(text, *probs, **options):
    """A trace of an answer, one token a word, with their probabilities."""
    words = [("" if i == 0 else " ") + word for i, word in enumerate(text.split())]
    chances = list(probs) + [0.9] * (len(words) - len(probs))
    return trace([step(i, *pair) for i, pair in enumerate(zip(words, chances, strict=True))], **options)


def look_up(at, *, upfront=False, outcome="found", **figures):
    return Event(kind="retrieval", text="", at=at, data={"upfront": upfront, "outcome": outcome, **figures})


class ScriptedEngine:
    """Answers with the passages it finds, or with what it believes.

    Attributes:
        asked: (policy's name, question's text) of every call.
    """

    def __init__(self, beliefs, *, model=MODEL, raises=None):
        self.info = model
        self.beliefs = beliefs
        self.raises = dict(raises or {})
        self.asked = []
        self.requests = []

    def generate(self, request=None, *, retrieval=None, retriever=None, **settings):
        asked = make_request(request, **settings)
        text = asked.conversation()[-1].text()
        name = retrieval.name if retrieval else ""
        self.asked.append((name, text))
        self.requests.append(asked)
        if (error := self.raises.pop((name, text), None)) is not None:
            raise error
        believed, events = self.beliefs.get(text, "nothing"), []
        if isinstance(believed, Trace):
            return Result.of(believed)
        if retrieval and retrieval.pre_retrieve:
            hits = retriever.search(text, retrieval.passages_per_query)
            events = [look_up(0, upfront=True, outcome="found" if hits else "nothing")]
            believed = " ".join([hit.text for hit in hits]) or believed
        return Result.of(said(believed, events=events))
