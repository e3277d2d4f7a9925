"""DRAGIN's trigger and query on steps whose attention is written down; sums are worked out here by hand."""

import numpy as np
import pytest
from scripted_answers import steps, tokens

from cartoolkit.errors import InvalidRequest
from cartoolkit.evaluation.calibrating import calibrate
from cartoolkit.retrieval import AttendedWords, EntropyAttention, EveryTokens, Policy, preset, simulate
from cartoolkit.retrieval.queries import Situation
from cartoolkit.retrieval.triggers import Fire
from cartoolkit.trace import Attention, ModelInfo, Trace, TraceHeader

PROMPT = (b"<user>", b"What", b" melts", b" at", b" 1337", b" K", b"?", b"<assistant>")
QUESTION = "What melts at 1337 K?"


def piece(text, entropy, on_answer, on_prompt=None, *, prompt=PROMPT, **fields):
    weights = np.array([*([0] * len(prompt) if on_prompt is None else on_prompt), *on_answer], np.float32)
    return {"text": text, "entropy": entropy, "attention": Attention(weights, prompt), **fields}


# Each row: how the position before the token looked at the tokens of the answer so far.
SENTENCE = [
    piece(" Gold", 0.5, []),
    piece(" melts", 1.0, [0.5]),
    piece(" at", 2.0, [0.25, 0.25]),
    piece(" 1337", 1.5, [0.125, 0.5, 0.25]),
    piece(" K", 0.5, [0.25, 0.125, 0.125, 0.25]),
    piece(".", 0.1, [0, 0.125, 0, 0.5, 0.125]),
]
NEXT = piece(" It", 0.5, [0.125, 0, 0, 0.25, 0.25, 0.5])
# The most that each token gets:      Gold .5, melts .5, at .25, 1337 .5, K .25, . .5
# Of its words, "K." being one:       Gold .5, melts .5, at .25, 1337 .5, K. .75; 2.5 in all, and 5 words
# Times mean entropy, times 5 / 2.5:  Gold .5, melts 1.0, at 1.0, 1337 1.5, K. .3 * .75 * 2 = .45


def judged(threshold, pieces=SENTENCE, following=(NEXT,)):
    read = tokens(*pieces, *following)
    return EntropyAttention(threshold).on_sentence(read[: len(pieces)], read[len(pieces) :])


def test_the_uncertain_word_that_others_look_at_fires():
    fire = judged(1.2)
    assert (fire.first, fire.at, fire.positions) == (3, 6, (3,))
    assert (
        fire.reason == "entropy × attention of 1 word of the sentence above 1.2, the highest 1.50 at '1337'"
    )


def test_a_score_must_exceed_the_threshold_and_function_words_never_do():
    assert judged(1.5) is None
    assert judged(1.0).positions == (3,)
    # "at" scores as much as "melts", and is no content word.
    assert judged(0.99).positions == (1, 3)
    assert judged(0.46).positions == (0, 1, 3)
    assert judged(0.44).positions == (0, 1, 3, 4, 5)


def test_a_last_token_that_was_never_read_gives_and_gets_no_attention():
    # "K." has .125 from the full stop's choice, all have 1.875, and 1337 scores 1.5 * .5 * 5 / 1.875 = 2.
    fire = judged(1.99, following=())
    assert fire.positions == (3,)
    assert "2.00" in fire.reason
    assert judged(2.01, following=()) is None


def test_only_the_first_token_after_a_sentence_tells_where_its_last_one_looked():
    later = piece(" is", 0.5, [1, 0, 0, 0, 0, 0, 0])
    assert judged(1.2, following=(NEXT, later)) == judged(1.2)


def test_what_the_caller_wrote_is_no_word_of_the_sentence():
    given = [piece(" Gold", 9.0, [], forced=True), piece(" melts", 9.0, [0.5], forced=True), *SENTENCE[2:]]
    # at .25, 1337 .5, K. .75: 1.5 in all, 3 words; 1337 scores 1.5 * .5 * 2 = 1.5, as it happens.
    fire = judged(1.2, given)
    assert fire.positions == (3,)
    assert "1.50" in fire.reason


def test_all_tokens_of_a_word_are_in_doubt_and_go_into_its_score():
    pieces = [
        piece("It", 0, []),
        piece(" is", 0, [1]),
        piece(" Au", 4.0, [0, 0.5]),
        piece("rum", 2.0, [0, 0, 0.5]),
    ]
    end = piece("", 0, [0.25, 0.25, 0, 0.5], special=True, bytes=b"<end>")
    # It 1 (from itself), is .5, Aurum .5 + .5; 2.5 in all, 3 words: 3 * 1 / 2.5 * 3 = 3.6.
    fire = judged(3.5, pieces, [end])
    assert (fire.first, fire.positions) == (2, (2, 3))
    assert "3.60 at 'Aurum'" in fire.reason


def test_an_answer_of_one_word_scores_its_entropy():
    assert judged(1.2, [piece("Paris", 1.3, [])], ()).positions == (0,)
    assert judged(1.3, [piece("Paris", 1.3, [])], ()) is None


def test_a_step_without_attention_is_refused_and_never_taken_for_sure():
    without = [SENTENCE[0], {"text": " melts", "entropy": 1.0}]
    with pytest.raises(InvalidRequest, match=r"step 1 \(' melts'\) carries no attention") as caught:
        judged(1.2, without, ())
    assert "attention='eager'" in caught.value.hint


def test_a_step_without_inspection_is_refused():
    with pytest.raises(InvalidRequest, match="carries no entropy"):
        judged(1.2, [piece("Paris", float("nan"), [])], ())


@pytest.mark.parametrize("value", [-0.1, "much", None, float("nan")])
def test_a_threshold_out_of_range_is_refused(value):
    with pytest.raises(InvalidRequest, match="threshold must be a number of at least 0"):
        EntropyAttention(value)


# The query

ANSWER = [
    piece(" The", 0, []),
    piece(" metal", 0, [0]),
    piece(" is", 0, [0, 0]),
    piece(" Sil", 3, [0, 0.1, 0.4], [0, 0, 0.1, 0, 0.3, 0.05, 0, 0.05]),
    piece("ver", 3, [0, 0.02, 0, 0.5], [0, 0, 0.3, 0, 0.1, 0.03, 0, 0.05]),
    piece(" ore", 0, [0, 0, 0, 0, 0.9]),
]
# Means over the rows of " Sil" and "ver": melts .2, 1337 .2, K .04; metal .06.
DOUBT = Fire(3, 6, (3, 4), "")


def asked(max_words=25, pieces=ANSWER, fire=DOUBT, question=QUESTION):
    return AttendedWords(max_words).build(Situation(question, tokens(*pieces), fire))


def test_the_words_most_looked_at_are_asked_for_in_the_order_of_the_text():
    assert asked(2) == "melts 1337"
    assert asked(3) == "melts 1337 metal"
    assert asked() == "melts 1337 K metal"


def test_words_in_doubt_are_left_out_and_those_between_them_are_not():
    doubt = Fire(1, 6, (1, 5), "")
    # The row of "ore" looks at "ver" alone; "Silver" stands between the two words in doubt.
    assert asked(1, fire=doubt) == "Silver"
    assert "metal" not in asked(fire=doubt)
    assert "ore" not in asked(fire=doubt)


def test_a_word_counts_once_where_it_stands_first_with_what_it_weighs_most():
    pieces = [*ANSWER[:1], piece(" 1337", 0, [0]), *ANSWER[2:]]
    assert asked(pieces=pieces) == "melts 1337 K"


def test_a_trigger_without_doubt_asks_where_the_last_token_looked_from():
    after = Fire(6, 6, (), "")
    assert asked(1, fire=after) == "Silver"
    assert asked(fire=after) == "melts 1337 K metal Silver ore"


def test_a_question_is_found_across_characters_that_tokens_split():
    prompt = (b"Q: ", b"O", b"\xc3", b"\xb9", b" est", b" Orl", b"\xc3", b"\xa9", b"ans", b"?")
    looks = [0, 0, 0, 0, 0.1, 0.1, 0.1, 0.1, 0.1, 0]
    pieces = [piece(" La", 3, [], looks, prompt=prompt)]
    doubt = Fire(0, 1, (0,), "")
    assert asked(1, pieces, doubt, "Où est Orléans?") == "Orléans"
    assert asked(2, pieces, doubt, "Où est Orléans?") == "est Orléans"


def test_the_question_nearest_to_the_answer_counts():
    twice = (*PROMPT, *PROMPT)
    looks = [0] * len(PROMPT) + [0, 0, 0.1, 0, 0.3, 0.2, 0, 0]
    pieces = [piece(" Gold", 3, [], looks, prompt=twice)]
    assert asked(2, pieces, Fire(0, 1, (0,), "")) == "1337 K"


def test_a_question_that_the_prompt_says_otherwise_is_kept_whole():
    assert asked(4, question="Which metal melts at thirteen hundred?") == "metal melts thirteen hundred"


def test_steps_without_attention_make_no_query():
    with pytest.raises(InvalidRequest, match="carries no attention"):
        asked(pieces=[{"text": " Gold"}], fire=Fire(0, 1, (0,), ""))


def test_nothing_written_asks_for_the_question():
    assert AttendedWords().build(Situation(QUESTION, [], Fire(0, 0, (), ""))) == ""


# The policy, and replays of it

END = piece("", 0, [0.125, 0, 0, 0.25, 0.25, 0.5], special=True, bytes=b"<end>")
MODEL = ModelInfo(name="m", engine="torch", device="cpu", dtype="float32", context_length=64, vocab_size=99)


def run(pieces=(*SENTENCE, END)):
    made = steps(*pieces)
    return Trace.from_steps(TraceHeader(model=MODEL, stop_reason="stop"), made, token_bytes=lambda _: b"x")


def test_the_preset_writes_the_sentence_anew_with_what_the_attended_words_found():
    simulation = simulate(run(), preset("dragin", threshold=1.2), QUESTION)
    (look_up,) = simulation.look_ups
    assert (look_up.keep, look_up.trigger_steps, look_up.k) == (0, (3,), 3)
    # " 1337" looked at " melts" half and at " Gold" an eighth; of the question it saw nothing.
    assert look_up.query == "melts 1337 K Gold"
    assert simulate(run(), preset("dragin", max_words=2), QUESTION).look_ups[0].query == "melts Gold"
    assert simulate(run(), preset("dragin", threshold=1.6), QUESTION).look_ups == ()


def test_calibration_takes_its_threshold_for_nats_above_which_it_fires():
    known = {"max_prob": 0.5, "logprob": -0.7}
    runs = [run([piece("Paris", entropy, [], **known)]) for entropy in (0.5, 3.0)]
    found = calibrate(runs, ["Q?", "Q?"], "dragin", right=[True, False], thresholds=[0.4, 1.0, 4.0])
    assert found.threshold == 1.0


def test_a_trace_in_memory_replays_as_its_steps_do():
    policy = preset("dragin")
    assert simulate(run(), policy, QUESTION) == simulate(steps(*SENTENCE, END), policy, QUESTION)


def test_a_trace_from_a_file_has_no_attention_and_says_so_instead_of_replaying(tmp_path):
    loaded = Trace.load(run().save(tmp_path / "run.trace"))
    assert run()[3].attention.on_answer.tolist() == [0.125, 0.5, 0.25]
    assert [step.attention for step in loaded] == [None] * 7
    with pytest.raises(InvalidRequest, match="carries no attention"):
        simulate(loaded, preset("dragin"), QUESTION)
    with pytest.raises(InvalidRequest, match="carries no attention"):
        simulate(loaded, Policy(trigger=EveryTokens(3), query=AttendedWords()), QUESTION)
