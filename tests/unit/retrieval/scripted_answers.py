"""Steps and whole answers made by hand, and a driver that plays them to a controller as an engine would."""

import math
from dataclasses import dataclass, field

from cartoolkit.retrieval import Ended, Finish, Found, GoOn, Hit, LookUp, ResumeFrom, drive
from cartoolkit.retrieval.answer import Answer
from cartoolkit.trace import Step

SURE = 0.95


def step(index, piece):
    """A step from `text`, `(text, prob)`, or a dict of `Step` fields that has text."""
    if isinstance(piece, str):
        piece = (piece, SURE)
    if isinstance(piece, tuple):
        text, prob = piece
        piece = {"text": text, "max_prob": prob, "logprob": math.log(prob)}
    return Step(index, index, bytes=piece.get("bytes", piece["text"].encode()), **without_bytes(piece))


def without_bytes(piece):
    return {name: value for name, value in piece.items() if name != "bytes"}


def steps(*pieces):
    return [step(index, piece) for index, piece in enumerate(pieces)]


def tokens(*pieces, **options):
    """The tokens of an answer, as a trigger sees them."""
    answer = Answer(**options)
    for each in steps(*pieces):
        answer.add(each)
    return answer.tokens


def hit(name, text=None, score=1.0):
    return Hit(name, text or f"Passage {name}.", score)


def found(*names):
    return Found(tuple(hit(name) for name in names))


@dataclass
class Played:
    """What came of an answer: `steps` that stand, every look-up with its outcome, every decision on it."""

    steps: list = field(default_factory=list)
    look_ups: list = field(default_factory=list)
    decisions: list = field(default_factory=list)
    context: tuple = ()
    finish: Finish | None = None

    @property
    def text(self):
        return "".join(each.text for each in self.steps)

    @property
    def queries(self):
        return [look_up.query for look_up in self.look_ups]


def play(policy, write, look=lambda _query: found(), *, question="Who?", ended="stop", **options):
    """Generate as an engine would.

    write: a list of pieces, or a function of the passages' ids that gives one. After a rollback the model
    goes on with what it would write with its new passages, from the same place.
    look: what the retriever answers to a query.
    """
    played = Played()
    script = write if callable(write) else lambda _ids: write
    pieces, decoded = list(script(())), 0
    controller = drive(policy, question, **options)
    decision = next(controller)
    while not isinstance(decision, Finish):
        if isinstance(decision, LookUp):
            played.look_ups.append(decision)
            decision = controller.send(look(decision.query))
            played.decisions.append(decision)
            continue
        if isinstance(decision, ResumeFrom):
            assert len(played.steps) - decision.keep == decision.dropped
            del played.steps[decision.keep :]
            played.context = decision.context
            pieces = list(script(tuple(each.id for each in decision.context)))
        assert isinstance(decision, GoOn | ResumeFrom)
        place = len(played.steps)
        if place < len(pieces):
            played.steps.append(step(decoded, pieces[place]))
            decoded += 1
            decision = controller.send(played.steps[-1])
        else:
            decision = controller.send(Ended(ended))
    played.finish = decision
    assert decision.tally.kept == len(played.steps)
    assert decision.tally.decoded == decoded
    return played
