"""Tokens as a server tells them become steps: bytes, numbers, ranks, and what is not told."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from speaking_server import chunk, said, token, words

from cartoolkit.errors import TraceError
from cartoolkit.remote.piece_writer import PieceWriter
from cartoolkit.remote.pieces import Piece, Told
from cartoolkit.remote.vocabulary import Vocabulary
from cartoolkit.requests import GenerateParams
from cartoolkit.trace import Trace
from cartoolkit.trace.comparison import compare

STEADY = settings(derandomize=True, deadline=None, database=None, max_examples=100)


def answered(engine, server, *chunks, **settings):
    server.answers = [said(*chunks)]
    return engine.generate("Hi", **settings).trace


def told(*texts, **last):
    """Chunks of one token each, and an end."""
    return [*(chunk(text, tokens=[token(text)]) for text in texts), chunk(finish="stop", **last)]


def test_each_token_is_a_step_with_its_bytes(engine, server):
    trace = answered(engine, server, *told("The", " sky", " is", " blue", "."))
    assert [step.text for step in trace] == ["The", " sky", " is", " blue", "."]
    assert [step.bytes for step in trace] == [b"The", b" sky", b" is", b" blue", b"."]
    assert trace.header.provider.unit == "token"
    assert trace.completion_tokens == 5


def test_several_tokens_in_one_chunk_are_several_steps_of_one_moment(engine, server):
    both = chunk("The sky", tokens=[token("The"), token(" sky")])
    trace = answered(engine, server, both, chunk(finish="stop"))
    assert [step.text for step in trace] == ["The", " sky"]
    assert len(set(trace.columns["elapsed"])) == 1


def test_equal_tokens_have_equal_ids_which_are_numbered_as_they_came(engine, server):
    trace = answered(engine, server, *told("la", " la", "la"))
    assert trace.columns["token_id"].tolist() == [0, 1, 0]


def test_a_character_over_several_tokens_appears_with_the_last_of_them(engine, server):
    # U+1F642 is F0 9F 99 82 in UTF-8; OpenAI tells the bytes of each token.
    pieces = [chunk("", tokens=[token(b"\xf0\x9f")]), chunk("🙂!", tokens=[token(b"\x99\x82!")])]
    trace = answered(engine, server, *pieces, chunk(finish="stop"))
    assert trace.text == "🙂!"
    assert [step.text for step in trace] == ["", "🙂!"]
    assert [step.incomplete for step in trace] == [True, False]


def test_numbers_are_those_that_the_server_tells(engine, server):
    others = [(" blue", math.log(0.5)), (" red", math.log(0.25)), (" green", math.log(0.125))]
    piece = chunk(" red", tokens=[token(" red", math.log(0.25), others=others)])
    (step,) = answered(engine, server, piece, chunk(finish="stop"))
    assert step.logprob == pytest.approx(math.log(0.25))
    assert (step.rank, step.max_prob, step.margin) == (2, pytest.approx(0.5), pytest.approx(0.25))
    assert step.rest_mass == pytest.approx(0.125)
    assert [(c.text, c.prob) for c in step.candidates] == [
        (" blue", pytest.approx(0.5)),
        (" red", pytest.approx(0.25)),
        (" green", pytest.approx(0.125)),
    ]
    assert step.token_id == step.candidates[1].token_id


def test_what_no_server_tells_stays_unknown(engine, server):
    piece = chunk("a", tokens=[token("a", others=[("a", -0.1), ("b", -3.0)])])
    (step,) = answered(engine, server, piece, chunk(finish="stop"))
    unknown = ["entropy", "varentropy", "processed_logprob", "processed_rest_mass", "draw"]
    assert all(math.isnan(getattr(step, name)) for name in unknown)


def test_candidates_are_ordered_though_the_server_does_not(engine, server):
    others = [("c", -3.0), ("a", -0.1), ("b", -2.0)]
    piece = chunk("a", tokens=[token("a", others=others)])
    (step,) = answered(engine, server, piece, chunk(finish="stop"))
    assert [c.text for c in step.candidates] == ["a", "b", "c"]
    assert step.rank == 1


def test_a_token_beyond_the_likeliest_is_a_candidate_of_unknown_rank(engine, server):
    piece = chunk("z", tokens=[token("z", -7.0, others=[("a", -0.1), ("b", -3.0)])])
    (step,) = answered(engine, server, piece, chunk(finish="stop"))
    assert [c.text for c in step.candidates] == ["a", "b", "z"]
    assert (step.rank, step.logprob) == (0, -7.0)
    assert step.rest_mass == pytest.approx(1 - math.exp(-0.1) - math.exp(-3) - math.exp(-7))


def test_a_token_too_unlikely_to_be_told_has_no_probability(engine, server):
    # OpenAI documents -9999.0 as what stands for a token that is very unlikely.
    piece = chunk("z", tokens=[token("z", -9999.0, others=[("a", -0.1)])])
    trace = answered(engine, server, piece, chunk(finish="stop"))
    assert math.isnan(trace[0].logprob)
    assert trace[0].max_prob == pytest.approx(math.exp(-0.1))
    assert math.isnan(trace.perplexity)


def test_a_token_without_probability_and_alternatives_has_no_numbers(engine, server):
    piece = chunk("z", tokens=[token("z", None)])
    (step,) = answered(engine, server, piece, chunk(finish="stop"))
    assert (step.rank, len(step.candidates)) == (0, 0)


def test_no_more_candidates_are_kept_than_were_asked_for(engine, server):
    others = [("a", -0.5), ("b", -1.5), ("c", -2.5)]
    piece = chunk("c", tokens=[token("c", -2.5, others=others)])
    (step,) = answered(engine, server, piece, chunk(finish="stop"), candidates=2)
    assert [c.text for c in step.candidates] == ["a", "b", "c"]
    assert step.rank == 0


def test_candidates_written_alike_have_ids_of_their_own(engine, server):
    # Servers that tell text and no bytes write all broken characters alike.
    others = [("\ufffd", -0.5), ("\ufffd", -1.5), ("a", -2.5)]
    piece = chunk("a", tokens=[token("a", -2.5, others=others)])
    trace = answered(engine, server, piece, chunk(finish="stop"))
    ids = trace[0].candidates.ids.tolist()
    assert len(set(ids)) == 3
    assert trace.candidate_texts(0) == ["\ufffd", "\ufffd", "a"]


def test_tokens_without_bytes_are_taken_where_they_give_the_text(engine, server):
    pieces = [chunk("The sky", tokens=[token("The", data=False), token(" sky", data=False)])]
    trace = answered(engine, server, *pieces, chunk(finish="stop"))
    assert [step.bytes for step in trace] == [b"The", b" sky"]


def test_a_token_in_the_vocabularys_own_writing_is_read_off_the_text(engine, server):
    others = [("Ġsky", -0.1), ("Ġsea", -3.0)]
    entry = token("Ġsky", others=others, data=False)
    entry["top_logprobs"] = [{**each, "bytes": None} for each in entry["top_logprobs"]]
    trace = answered(engine, server, chunk(" sky", tokens=[entry]), chunk(finish="stop"))
    assert trace.text == " sky"
    assert trace[0].rank == 1
    assert trace.candidate_texts(0)[0] == " sky"


def test_tokens_that_do_not_give_the_text_are_one_step_which_says_so(engine, server):
    piece = chunk(" sky is", tokens=[token("Ġsky", data=False), token("Ġis", data=False)])
    trace = answered(engine, server, piece, chunk(finish="stop"))
    assert [step.text for step in trace] == [" sky is"]
    assert math.isnan(trace[0].logprob)
    assert trace.header.provider.unit == "chunk"


def test_the_control_token_that_ends_an_answer_is_no_part_of_its_text(engine, server):
    # vLLM tells the end token with the reason, and leaves it out of the text.
    end = chunk("", finish="stop", tokens=[token("<|im_end|>")])
    trace = answered(engine, server, chunk("Hi", tokens=[token("Hi")]), end)
    assert trace.text == "Hi"
    assert trace.flag("special").tolist() == [False, True]
    assert trace.completion_tokens == 1
    assert trace[1].label == "<|im_end|>"


def test_a_server_that_does_not_heed_the_limit_is_stopped_at_it(engine, server):
    trace = answered(engine, server, *told(*"abcdef"), max_tokens=3)
    assert trace.text == "abc"
    assert (trace.header.stop_reason, trace.header.stop_detail) == ("length", "max_tokens=3")


def test_a_stop_string_over_several_tokens_is_cut_and_their_ids_stay(engine, server):
    trace = answered(engine, server, *told("a", " EN", "D", "b"), stop=[" END"])
    assert trace.text == "a"
    assert [step.bytes for step in trace] == [b"a", b" EN", b"D"]
    assert trace.header.stop_detail == "stop string ' END'"


def test_what_was_held_back_for_a_stop_string_that_does_not_come_is_told_at_the_end(engine, server):
    trace = answered(engine, server, *told("a", " EN"), stop=[" END"])
    assert trace.text == "a EN"


def test_such_a_trace_shows_itself_and_is_saved_bit_for_bit(engine, server, tmp_path):
    others = [("<b>", -0.1), ("b", -3.0)]
    pieces = [chunk(text, tokens=[token(text, others=others)]) for text in ("<b>", "b", "c")]
    trace = answered(engine, server, *pieces, chunk(finish="stop"))
    again = Trace.load(trace.save(tmp_path / "run.trace"))
    for name, column in trace.columns.items():
        np.testing.assert_array_equal(again.columns[name], column)
    assert again.to_html() == trace.to_html()
    assert "&lt;b&gt;" in trace.to_html()
    assert len(trace.to_frame(candidates=True)) == 7
    trace.plot_confidence()
    assert [label.get_text() for label in trace.plot_candidates(0).get_yticklabels()][-1] == "others"


def test_a_run_with_some_tokens_told_and_some_not_says_that_steps_are_chunks(engine, server):
    trace = answered(engine, server, chunk("a", tokens=[token("a")]), chunk("bc"), chunk(finish="stop"))
    assert trace.text == "abc"
    assert trace.header.provider.unit == "chunk"
    assert math.isnan(trace[1].logprob)


LETTERS = "ab é🙂"


@STEADY
@given(st.text(LETTERS, max_size=40), st.lists(st.integers(0, 160)), st.text(LETTERS, min_size=1, max_size=3))
def test_however_a_text_is_cut_into_tokens_it_comes_out_whole_up_to_its_stop_string(text, cuts, stop):
    data = text.encode()
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    pieces = [Piece(tokens=(Told("?", data[a:b], -1.0),)) for a, b in itertools.pairwise(places)]
    writer = PieceWriter(Vocabulary(), GenerateParams(stop=[stop]))
    steps = []
    for piece in pieces:
        certain, found = writer.write(piece, elapsed=0.0)
        steps += certain
        if found:
            break
    else:
        steps += writer.flush()
    assert "".join(step.text for step in steps) == text.partition(stop)[0]
    assert [step.index for step in steps] == list(range(len(steps)))


def test_without_inspection_steps_are_chunks_and_nothing_is_complained_of(engine, server):
    server.answers = [words("a", "b")]
    trace = engine.generate("Hi", inspect=False).trace
    assert trace.header.provider.unit == "chunk"
    assert trace.events == []
    assert "Decoded with inspect=False" in trace.to_html()


def test_runs_of_servers_are_not_compared_token_by_token(engine, server):
    trace = answered(engine, server, *told("a", "b"))
    with pytest.raises(TraceError, match="the first run was told by a server"):
        compare(trace, trace)
