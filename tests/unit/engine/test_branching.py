"""Branches: what is taken over, what is put there, and what is drawn again."""

import math
import time

import numpy as np
import pytest
from scripted_decoder import EOS, ScriptedDecoder

from cartoolkit import Trace
from cartoolkit.engine import Engine
from cartoolkit.errors import EngineClosed, InvalidRequest

A, B, C, HALF_1, HALF_2 = 1, 2, 3, 4, 5
WORDS = [b"a", b"b", b"c", b"\xc3", b"\xa9"]


class Alphabet(ScriptedDecoder):
    """After a comes b, after b comes c, after c comes a, each with probability one half."""

    def row(self, n):
        size = len(self.vocabulary)
        probs = np.full(size, 0.5 / (size - 1))
        probs[{A: B, B: C, C: A}.get(self.cached[-1], A)] = 0.5
        return np.log(probs).astype(np.float32)


@pytest.fixture
def decoders():
    return []


@pytest.fixture
def engine(decoders):
    def load():
        decoders.append(Alphabet(WORDS, [], context_length=200))
        return decoders[-1]

    with Engine(load) as engine:
        yield engine


def ids(trace):
    return trace.columns["token_id"].tolist()


def test_a_branch_keeps_what_was_before_and_goes_on_from_the_forced_token(engine):
    first = engine.generate("a", temperature=0, max_tokens=6)
    assert first.text == "bcabca"
    branch = engine.branch(first, at=2, token=C).result()
    assert branch.text == "bccabc"
    assert branch.trace.flag("forced").tolist() == [False, False, True, False, False, False]
    assert branch.stop_detail == "max_tokens=6"


def test_the_forced_token_carries_the_distribution_that_it_was_not_drawn_from(engine):
    first = engine.generate("a", temperature=0, max_tokens=3)
    step = engine.branch(first, at=0, token=C).result().trace[0]
    assert step.prob == pytest.approx(0.1)
    # b is likeliest; the end token, a and c tie, and ties go by id.
    assert step.rank == 4
    assert step.processed_logprob == -math.inf
    assert math.isnan(step.draw)


def test_steps_taken_over_keep_their_numbers_and_have_no_time(engine):
    first = engine.generate("a", temperature=1, seed=3, max_tokens=5)
    branch = engine.branch(first, at=3, token=A).result().trace
    for name in ("token_id", "logprob", "rank", "entropy", "draw"):
        assert branch.columns[name][:3].tolist() == first.trace.columns[name][:3].tolist(), name
    assert np.isnan(branch.columns["elapsed"]).tolist() == [True, True, True, False, False]
    assert branch.ttft_ms == pytest.approx(1000 * branch.columns["elapsed"][3])


def test_without_a_change_a_branch_repeats_the_run(engine):
    first = engine.generate("a", temperature=1.3, seed=11, max_tokens=20, ignore_eos=True).trace
    for at in (0, 1, 7, 20, -3):
        branch = engine.branch(first, at=at).result().trace
        assert ids(branch) == ids(first), at
        assert branch.columns["draw"].tolist() == first.columns["draw"].tolist()


def test_another_seed_changes_only_what_comes_after(engine):
    first = engine.generate("a", temperature=2, seed=1, max_tokens=30, ignore_eos=True).trace
    other = engine.branch(first, at=10, seed=2).result().trace
    assert ids(other)[:10] == ids(first)[:10]
    assert ids(other)[10:] != ids(first)[10:]
    assert other.header.params["seed"] == 2


def test_only_what_is_new_is_read(engine, decoders):
    first = engine.generate("aaaa", temperature=0, max_tokens=8)
    read_before = len(decoders[0].forwards)
    branch = engine.branch(first, at=6, token=C).result()
    # Cached are the prompt and seven of eight tokens; the sixth is read again, for its logits.
    assert (branch.usage.reused_tokens, branch.usage.prefill_tokens) == (9, 1)
    assert decoders[0].forwards[read_before:][0] == ([A], 9)


def test_several_tokens_and_a_text_can_be_put_there(engine):
    first = engine.generate("a", temperature=0, max_tokens=6)
    assert engine.branch(first, at=1, token=[C, C]).result().text == "bccabc"
    assert engine.branch(first, at=1, token="cc").result().text == "bccabc"


def test_a_forced_end_token_ends_the_answer(engine):
    first = engine.generate("a", temperature=0, max_tokens=6)
    branch = engine.branch(first, at=2, token=EOS).result()
    assert (branch.text, branch.stop_reason) == ("bc", "stop")


def test_a_branch_of_a_branch_and_of_a_file(engine, tmp_path):
    first = engine.generate("a", temperature=0, max_tokens=6, logit_bias={EOS: -math.inf})
    second = engine.branch(first, at=2, token=C).result()
    second.trace.save(tmp_path / "second.trace")
    loaded = Trace.load(tmp_path / "second.trace")
    third = engine.branch(loaded, at=3, token=A).result()
    assert third.text == "bccabc"
    assert [event.kind for event in third.trace.events] == ["branch", "branch"]
    assert "after 3 tokens, with 'a' put there" in third.trace.events[-1].text


def test_tokens_that_were_rolled_back_are_not_taken_over(engine):
    first = engine.generate("a", temperature=0, max_tokens=6).trace
    first.columns["flags"][1] &= ~np.uint8(8)
    assert first.flag("kept").tolist() == [True, False, True, True, True, True]
    branch = engine.branch(first, at=3, token=B).result().trace
    assert ids(branch)[:3] == [B, A, B]


def test_half_a_character_at_the_end_of_a_run_is_completed_by_its_branch(engine):
    first = engine.branch(engine.generate("a", max_tokens=1), at=0, token=HALF_1).result()
    assert first.text == "�"
    branch = engine.branch(first, at=1, token=HALF_2, max_tokens=2).result()
    assert branch.text == "é"


def test_a_stop_string_across_the_branch_point_ends_it(engine):
    first = engine.generate("a", temperature=0, max_tokens=6)
    branch = engine.branch(first, at=2, token=C, stop="cca").result()
    assert (branch.text, branch.stop_detail) == ("b", "stop string 'cca'")
    # Already in what was taken over: nothing needs to be decoded.
    early = engine.branch(first, at=4, stop="bc").result()
    assert (early.text, early.stop_reason) == ("", "stop")


def test_a_running_session_is_ended_by_its_branch(engine):
    session = engine.start("a", temperature=0, max_tokens=100, paused=True)
    session.step(3)
    deadline = time.monotonic() + 5
    while len(session.steps) < 3 and time.monotonic() < deadline:
        time.sleep(0.002)
    branch = session.branch(at=1, token=A, max_tokens=4)
    assert session.done
    assert branch.result().text == "babc"


def test_a_wrong_argument_does_not_end_a_running_session(engine):
    session = engine.start("a", temperature=0, max_tokens=100, paused=True)
    with pytest.raises(InvalidRequest):
        session.branch(at=999)
    with pytest.raises(InvalidRequest):
        session.branch(at=0, temperatur=1)
    assert not session.done


def test_numbers_of_numpy_are_numbers(engine):
    first = engine.generate("a", temperature=0, max_tokens=6)
    place = first.trace.columns["entropy"].argmin()
    assert engine.branch(first, at=place, token=np.int64(C)).result().text[int(place)] == "c"
    assert engine.branch(first, at=1, token=np.array([C, C])).result().text == "bccabc"


def test_what_was_done_to_the_prompt_is_told_by_a_branch_from_the_beginning_too(engine):
    first = engine.generate("az", temperature=0, max_tokens=3)
    assert [event.kind for event in first.trace.events] == ["unwritable"]
    branch = engine.branch(first, at=0, token=C).result()
    assert [event.kind for event in branch.trace.events] == ["unwritable", "branch"]


def test_a_token_that_max_tokens_leaves_no_room_for_is_refused(engine):
    first = engine.generate("a", temperature=0, max_tokens=3)
    with pytest.raises(InvalidRequest, match="max_tokens=3 leaves no room after the 3 tokens") as caught:
        engine.branch(first, at=3, token=C)
    assert "larger max_tokens" in caught.value.hint
    assert engine.branch(first, at=3, token=C, max_tokens=5).result().text == "bcaca"


def renamed(trace, **changes):
    header = trace.header.model_copy(update={"model": trace.header.model.model_copy(update=changes)})
    return Trace(
        header, trace.columns, trace.texts, prompt_ids=trace.prompt_ids,
        prompt_logprobs=trace.prompt_logprobs, token_bytes=trace.token_bytes,
    )  # fmt: skip


def test_the_same_tokenizer_under_another_name_or_engine_can_be_branched_and_is_told(decoders):
    class Hashed(Alphabet):
        def __init__(self):
            super().__init__(WORDS, [], context_length=200)
            self.info = self.info.model_copy(update={"tokenizer_hash": "t", "weights_hash": "w"})

    with Engine(Hashed) as engine:
        trace = engine.generate("a", temperature=0, max_tokens=4).trace
        elsewhere = renamed(trace, name="org/scripted", engine="torch", dtype="int8", weights_hash="other")
        branch = engine.branch(elsewhere, at=1, token=C).result()
        assert "Branched off a run of torch in int8 after 1 token" in branch.trace.events[-1].text
        with pytest.raises(InvalidRequest, match="cannot be continued"):
            engine.branch(renamed(trace, tokenizer_hash="u", weights_hash="v"), at=1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"at": 7}, r"from -6 to 6; got 7"),
        ({"at": "2"}, r"got '2'"),
        ({"at": True}, r"got True"),
        ({"at": 0, "token": 6}, r"token ids from 0 to 5.*got 6"),
        ({"at": 0, "token": -1}, r"got -1"),
        ({"at": 0, "token": ""}, r"got ''"),
        ({"at": 0, "token": "z"}, r"got 'z'"),
        ({"at": 0, "token": []}, r"got \[\]"),
        ({"at": 0, "prompt": "b"}, r"'prompt' is not a setting of a branch"),
        ({"at": 0, "temperature": -1}, r"temperature must be"),
    ],
)
def test_a_wrong_argument_is_named(engine, options, said):
    first = engine.generate("a", temperature=0, max_tokens=6)
    with pytest.raises(InvalidRequest, match=said):
        engine.branch(first, **options)


def test_a_trace_of_another_model_is_refused(engine):
    first = engine.generate("a", temperature=0, max_tokens=2)
    with Engine(lambda: Alphabet(WORDS[:3], [])) as other, pytest.raises(InvalidRequest, match="6 tokens"):
        other.branch(first, at=0)


def test_a_session_whose_engine_is_gone_says_so(decoders):
    engine = Engine(lambda: Alphabet(WORDS, []))
    session = engine.start("a", max_tokens=2)
    session.wait()
    engine.close()
    del engine
    with pytest.raises(EngineClosed):
        session.branch(at=0)
