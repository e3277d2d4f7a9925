"""Policies that decide by attention: on engines that say where the model looks, and on those that do not."""

import numpy as np
import pytest
from talking_decoder import TalkingDecoder

from cartoolkit.engine import Engine
from cartoolkit.errors import ForwardFailed, InvalidRequest
from cartoolkit.retrieval import AttendedWords, EveryTokens, Policy, preset, simulate
from cartoolkit.trace import Trace

QUESTION = "Which city is it?"
WORDS = [" The", " capital", " is", " City", " Belmopan", "."]
SURE = {" The": 0.99, " capital": 0.99, " is": 0.99, " City": 0.3, " Belmopan": 0.99, ".": 0.99, "": 0.99}


class LookingDecoder(TalkingDecoder):
    """Looks at all text before a token alike, and writes another town when the prompt knows it."""

    def __init__(self, *, attention="eager", engine="torch"):
        super().__init__(WORDS, self.say)
        self.info = self.info.model_copy(update={"attention": attention, "engine": engine})
        self.asked = 0

    @staticmethod
    def say(text):
        before, _, answer = text.rpartition(QUESTION)
        for word in (" The", " capital", " is", " Belmopan" if "Belmopan" in before else " City", "."):
            if not answer:
                return word, SURE[word]
            answer = answer.removeprefix(word)
        return "", SURE[""]

    def attention(self):
        self.asked += 1
        return np.full(len(self.cached), 1 / len(self.cached), np.float32)


@pytest.fixture
def use():
    engines = []

    def make(decoder):
        engines.append(Engine(lambda: decoder))
        return engines[-1]

    yield make
    for engine in engines:
        engine.close()


def generate(engine, look=lambda _: "The capital is Belmopan.", policy="dragin", **settings):
    return engine.generate(
        QUESTION, retrieval=policy, retriever=look, **{"temperature": 0, "max_tokens": 20} | settings
    )


def look_ups(trace):
    return [event.data for event in trace.events if event.kind == "retrieval"]


def test_a_doubtful_word_is_asked_for_by_what_was_looked_at_and_its_sentence_written_anew(use):
    # "City." has two of the five tokens, all alike, and a mean entropy of about 2 nats; the others have 0.1.
    result = generate(use(LookingDecoder()))
    assert result.text == " The capital is Belmopan."
    (event,) = look_ups(result.trace)
    assert event["query"] == "city capital"
    assert (event["keep"], event["dropped"], event["outcome"]) == (0, 6, "found")
    assert [result.trace[row].text for row in event["trigger_steps"]] == [" City", "."]


def test_where_nothing_is_found_the_text_is_that_without_look_ups(use):
    result = generate(use(LookingDecoder()), look=lambda _: None)
    plain = use(LookingDecoder()).generate(QUESTION, temperature=0, max_tokens=20)
    assert result.text == plain.text == " The capital is City."
    assert look_ups(result.trace)[0]["outcome"] == "nothing"


def test_a_replay_of_the_run_makes_its_look_ups_and_of_its_file_refuses(use, tmp_path):
    trace = generate(use(LookingDecoder())).trace
    made = [(e["query"], e["position"], tuple(e["trigger_steps"])) for e in look_ups(trace)]
    again = simulate(trace, preset("dragin"), QUESTION).look_ups
    assert [(each.query, each.position, each.trigger_steps) for each in again] == made
    loaded = Trace.load(trace.save(tmp_path / "run.trace"))
    assert loaded.header.model.attention == "eager"
    with pytest.raises(InvalidRequest, match="it comes from a file, which does not hold it"):
        simulate(loaded, preset("dragin"), QUESTION)


def test_a_branch_keeps_where_the_model_looked(use):
    engine = use(LookingDecoder())
    run = engine.generate(QUESTION, temperature=0, max_tokens=20)
    branch = engine.branch(run, at=3, token=" Belmopan").result().trace
    assert [len(each.on_answer) for each in branch.attentions] == list(range(len(branch)))


def test_attention_is_asked_for_once_a_token_and_not_at_all_without_inspection(use):
    decoder = LookingDecoder()
    engine = use(decoder)
    result = engine.generate(QUESTION, temperature=0, max_tokens=20)
    assert decoder.asked == len(result.trace) == 6
    engine.generate(QUESTION, temperature=0, max_tokens=20, inspect=False)
    assert decoder.asked == 6


def test_attention_that_fails_is_a_failed_forward(use):
    decoder = LookingDecoder()
    decoder.attention = lambda: 1 / 0
    with pytest.raises(ForwardFailed, match="ZeroDivisionError"):
        use(decoder).generate(QUESTION)


@pytest.mark.parametrize(
    ("engine", "said", "hint"),
    [
        (
            "torch",
            "the policy 'dragin' decides by attention, and scripted was loaded without it",
            "attention=",
        ),
        ("mlx", "decides by attention, which the mlx engine does not say", "engine='torch'"),
        ("gguf", "decides by attention, which the gguf engine does not say", "engine='torch'"),
    ],
)
def test_an_engine_without_attention_refuses_before_anything_runs(use, engine, said, hint):
    decoder = LookingDecoder(attention="", engine=engine)
    loaded = use(decoder)
    for call in (loaded.generate, loaded.start, loaded.stream):
        with pytest.raises(InvalidRequest, match=said) as caught:
            call(QUESTION, retrieval="dragin", retriever=lambda _: None)
        assert hint in caught.value.hint
    assert decoder.forwards == []


def test_a_query_by_attention_alone_is_refused_as_well(use):
    policy = Policy(name="mine", trigger=EveryTokens(3), query=AttendedWords())
    with pytest.raises(InvalidRequest, match="the policy 'mine' decides by attention"):
        generate(use(LookingDecoder(attention="")), policy=policy)


def test_a_policy_that_decides_by_attention_needs_inspection(use):
    with pytest.raises(InvalidRequest, match="inspect=False does not go with the policy 'dragin'"):
        generate(use(LookingDecoder()), inspect=False)
