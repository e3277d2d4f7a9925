"""The loop: prefill in chunks, stop at the right place, say why, lose nothing."""

import numpy as np
import pytest
from scripted_decoder import EOS, ScriptedDecoder

from cartoolkit.engine.events import STOP, Decoded, Ending, Prefilled, Scored
from cartoolkit.engine.loop import decode
from cartoolkit.errors import DecodeTimeout, ForwardFailed
from cartoolkit.requests import GenerateParams

WORDS = [b"Hello", b" wor", b"ld", b"!", b" \xf0\x9f", b"\x99", b"\x82", b"END"]
HELLO, WOR, LD, BANG, SMILE_1, SMILE_2, SMILE_3, END = range(1, 9)


def run(decoder, prompt=(1, 2), *, orders=None, clock=None, **settings):
    """All events and the ending; `orders` maps an event's number to what is sent after it."""
    params = GenerateParams(**{"temperature": 0, **settings})
    loop = decode(decoder, list(prompt), params, seed=0, **({"clock": clock} if clock else {}))
    events, reply = [], None
    try:
        while True:
            events.append(loop.send(reply))
            reply = (orders or {}).get(len(events))
    except StopIteration as end:
        return events, end.value


def steps(events):
    return [step for event in events if isinstance(event, Decoded) for step in event.steps]


def text(events):
    return "".join(step.text for step in steps(events))


def test_an_end_token_ends_the_answer_and_is_recorded_without_text():
    events, ending = run(ScriptedDecoder(WORDS, [HELLO, WOR, LD, EOS]))
    assert text(events) == "Hello world"
    assert ending == Ending("stop", "end token <end>")
    last = steps(events)[-1]
    assert (last.token_id, last.text, last.bytes, last.special, last.label) == (
        EOS,
        "",
        b"<end>",
        True,
        "<end>",
    )


def test_an_end_token_that_is_not_marked_special_adds_no_text_either():
    events, ending = run(ScriptedDecoder(WORDS, [HELLO, EOS], special=()))
    assert text(events) == "Hello"
    assert ending.reason == "stop"


def test_ignore_eos_goes_on_to_max_tokens():
    events, ending = run(ScriptedDecoder(WORDS, [HELLO, EOS, LD, BANG]), ignore_eos=True, max_tokens=4)
    assert [step.token_id for step in steps(events)] == [HELLO, EOS, LD, BANG]
    assert text(events) == "Hellold!"
    assert ending == Ending("length", "max_tokens=4")


def test_max_tokens_counts_every_decoded_token_and_reads_none_too_many():
    decoder = ScriptedDecoder(WORDS, [HELLO, WOR, LD, BANG])
    events, ending = run(decoder, max_tokens=2)
    assert len(steps(events)) == 2
    assert ending == Ending("length", "max_tokens=2")
    # The prompt and the first token were read; the last one has nothing after it.
    assert decoder.cached == [1, 2, HELLO]


def test_the_context_window_ends_the_answer_and_says_so():
    events, ending = run(ScriptedDecoder(WORDS, [HELLO] * 9, context_length=5), prompt=(1, 2), max_tokens=50)
    assert len(steps(events)) == 3
    assert ending == Ending("length", "the context window is full")


def test_a_prompt_is_read_in_chunks_with_progress():
    decoder = ScriptedDecoder(WORDS, [EOS])
    events, _ = run(decoder, prompt=[1] * 10)
    assert [e for e in events if isinstance(e, Prefilled)] == [
        Prefilled(0, 10, 0), Prefilled(4, 10, 0), Prefilled(8, 10, 0), Prefilled(10, 10, 0),
    ]  # fmt: skip
    assert [len(ids) for ids, _ in decoder.forwards] == [4, 4, 2]


def test_a_prompt_in_the_cache_is_not_read_again():
    decoder = ScriptedDecoder(WORDS, [EOS])
    run(decoder, prompt=[1, 2, 3, 4, 5, 6])
    decoder.forwards.clear()
    events, _ = run(decoder, prompt=[1, 2, 3, 4, 7, 7])
    assert events[0] == Prefilled(4, 6, 4)
    assert decoder.forwards == [([7, 7], 4)]


def test_stop_during_a_long_prompt_takes_effect_within_one_chunk():
    decoder = ScriptedDecoder(WORDS, [HELLO])
    events, ending = run(decoder, prompt=[1] * 40, orders={3: STOP})
    assert ending == Ending("stopped", "by the user")
    assert len(decoder.forwards) == 2
    assert steps(events) == []


def test_stop_between_tokens_decodes_no_further_token():
    decoder = ScriptedDecoder(WORDS, [HELLO, WOR, LD, BANG])
    events, ending = run(decoder, orders={3: STOP})  # two events of the prefill, then the first token
    assert text(events) == "Hello"
    assert ending == Ending("stopped", "by the user")
    assert len(decoder.forwards) == 1


def test_text_inside_a_character_waits_for_the_token_that_completes_it():
    events, _ = run(ScriptedDecoder(WORDS, [HELLO, SMILE_1, SMILE_2, SMILE_3, EOS]))
    assert [(s.text, s.incomplete) for s in steps(events)] == [
        ("Hello", False), (" ", True), ("", True), ("🙂", False), ("", False),
    ]  # fmt: skip


@pytest.mark.parametrize("script", [[SMILE_1, SMILE_2, EOS], [SMILE_1, SMILE_2]])
def test_an_answer_that_ends_inside_a_character_shows_one_replacement_character(script):
    events, _ = run(ScriptedDecoder(WORDS, script), max_tokens=len(script))
    assert text(events) == b" \xf0\x9f\x99".decode(errors="replace") == " \ufffd"


def test_a_stop_string_over_several_tokens_is_held_back_and_cut_out():
    decoder = ScriptedDecoder(WORDS, [HELLO, WOR, LD, BANG, EOS])
    events, ending = run(decoder, stop="world")
    assert text(events) == "Hello "
    assert ending == Ending("stop", "stop string 'world'")
    shown = [step for event in events[:-1] if isinstance(event, Decoded) for step in event.steps]
    assert "w" not in "".join(step.text for step in shown)
    assert [step.bytes for step in steps(events)] == [b"Hello", b" wor", b"ld"]


def test_text_held_back_for_a_stop_string_is_released_when_the_answer_ends_otherwise():
    held = {"stop": "world!!"}
    assert text(run(ScriptedDecoder(WORDS, [HELLO, WOR, LD, EOS]), **held)[0]) == "Hello world"
    assert text(run(ScriptedDecoder(WORDS, [HELLO, WOR, LD]), max_tokens=3, **held)[0]) == "Hello world"
    events, ending = run(ScriptedDecoder(WORDS, [HELLO, WOR, LD, BANG]), orders={5: STOP}, **held)
    assert (text(events), ending.reason) == ("Hello world", "stopped")


def test_every_decoded_token_is_an_event_even_while_its_text_is_held_back():
    events, _ = run(ScriptedDecoder(WORDS, [WOR, LD, EOS]), stop=" world!!")
    assert [len(event.steps) for event in events if isinstance(event, Decoded)] == [0, 0, 3]


def test_a_forward_that_raises_is_reported_with_its_own_words():
    decoder = ScriptedDecoder(WORDS, [HELLO, WOR])
    decoder.fail_at = 2
    with pytest.raises(ForwardFailed, match="RuntimeError: no memory for this"):
        run(decoder)


@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
def test_logits_that_cannot_be_sampled_are_an_error_not_a_token(value):
    decoder = ScriptedDecoder(WORDS, [HELLO])
    row = decoder.row
    decoder.row = lambda n: row(n) * 0 + value
    with pytest.raises(ForwardFailed, match="no usable logits"):
        run(decoder)


def test_prompt_tokens_are_scored_by_the_row_before_them_when_asked_for():
    decoder = ScriptedDecoder(WORDS, [HELLO, EOS])
    events, _ = run(decoder, prompt=[EOS, 2, EOS, 3, EOS, 4], prompt_logprobs=True)
    scored = next(event for event in events if isinstance(event, Scored))
    # While a prompt is read the script puts one half on the end token and shares the rest among eight.
    expected = np.log([0.5 / 8, 0.5, 0.5 / 8, 0.5, 0.5 / 8])
    assert np.isnan(scored.logprobs[0])
    np.testing.assert_allclose(scored.logprobs[1:], expected, atol=1e-6)
    assert text(events) == "Hello"


def test_scoring_the_prompt_reads_all_of_it_even_if_it_is_cached():
    decoder = ScriptedDecoder(WORDS, [EOS])
    run(decoder, prompt=[1, 2, 3])
    events, _ = run(decoder, prompt=[1, 2, 3], prompt_logprobs=True)
    assert events[0] == Prefilled(0, 3, 0)


def test_logits_that_cannot_be_used_are_found_while_the_prompt_is_scored():
    decoder = ScriptedDecoder(WORDS, [HELLO])
    decoder.row = lambda n: np.full(9, np.nan, np.float32)
    with pytest.raises(ForwardFailed, match="no usable logits"):
        run(decoder, prompt_logprobs=True)


def test_a_control_token_inside_a_character_ends_that_character():
    events, _ = run(ScriptedDecoder(WORDS, [SMILE_1, EOS, SMILE_3, HELLO]), ignore_eos=True, max_tokens=4)
    control = steps(events)[1]
    assert (control.text, control.label) == ("\ufffd", "<end>")
    # Bytes before and after a control token never join to a character.
    assert text(events) == " \ufffd\ufffdHello"


class Clock:
    """Advances one second at each look."""

    def __init__(self):
        self.now = -1.0

    def __call__(self):
        self.now += 1
        return self.now


def test_the_time_limit_keeps_what_there_is():
    events, ending = run(ScriptedDecoder(WORDS, [HELLO] * 20), clock=Clock(), time_limit=5)
    assert ending == Ending("local_decode_timeout", "after 5 s")
    assert 0 < len(steps(events)) < 20


def test_the_time_limit_before_the_first_token_is_an_error():
    with pytest.raises(DecodeTimeout, match="8 of 40 tokens"):
        run(ScriptedDecoder(WORDS, [HELLO]), prompt=[1] * 40, clock=Clock(), time_limit=2)


def test_elapsed_is_measured_from_the_request():
    clock = Clock()
    params = GenerateParams(temperature=0, max_tokens=2)
    loop = decode(ScriptedDecoder(WORDS, [HELLO, LD]), [1], params, seed=0, started=-10.0, clock=clock)
    first = next(step for event in loop if isinstance(event, Decoded) for step in event.steps)
    assert first.elapsed == clock.now + 10


def test_without_inspection_a_step_holds_ids_text_and_time_only():
    events, _ = run(ScriptedDecoder(WORDS, [HELLO, EOS]), inspect=False)
    step = steps(events)[0]
    assert (step.token_id, step.text) == (HELLO, "Hello")
    assert step.entropy != step.entropy
    assert len(step.candidates) == 0


def test_the_chosen_token_is_recorded_with_its_rank_when_it_is_no_candidate():
    # Bias makes the least likely token the choice; only one candidate is recorded besides it.
    decoder = ScriptedDecoder(WORDS, [HELLO])
    events, _ = run(decoder, logit_bias={END: 50}, candidates=1, max_tokens=1)
    step = steps(events)[0]
    assert step.token_id == END
    assert list(step.candidates.ids) == [HELLO, END]
    # All others share 1/2 evenly, ties go by id, and END has the highest id of nine.
    assert step.rank == 9
    assert step.prob == pytest.approx(0.5 / 8)


def test_a_candidate_reads_as_it_would_after_the_chosen_prefix():
    decoder = ScriptedDecoder(WORDS, [SMILE_1, SMILE_2, SMILE_3, EOS])
    events, _ = run(decoder, candidates=9)
    third = steps(events)[2]
    texts = dict(zip((int(i) for i in third.candidates.ids), third.candidates.texts, strict=True))
    assert texts[SMILE_3] == "🙂"
    assert texts[BANG] == "!"
    # It does not go on with the unfinished character, whose bytes belong to the earlier tokens.
    assert texts[SMILE_1] == " \\xF0\\x9F"
