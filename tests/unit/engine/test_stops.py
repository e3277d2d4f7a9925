"""Stop strings over arbitrary pieces: what is released, what is held, what is cut."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cartoolkit.engine.stops import StopGate
from cartoolkit.trace import Step

STEADY = settings(derandomize=True, deadline=None, database=None, max_examples=400)
# Few letters, so that stop strings begin, break off and overlap all the time.
LETTERS = st.text("ab🙂é", max_size=4)


def steps(*pieces: str) -> list[Step]:
    return [Step(i, 100 + i, piece, piece.encode()) for i, piece in enumerate(pieces)]


def run(pieces, stops):
    """Texts released by each push, by the flush, and the stop string; as the loop drives the gate."""
    gate, released = StopGate(stops), []
    for step in steps(*pieces):
        out, found = gate.push(step)
        released.append(out)
        if found:
            return released, found
    return [*released, gate.flush()], ""


def texts(released) -> list[list[str]]:
    return [[step.text for step in out] for out in released]


def cut_text(pieces, stops) -> tuple[str, str]:
    """The text after the first piece that completes a stop string, cut where the earliest one begins."""
    for n in range(1, len(pieces) + 1):
        text = "".join(pieces[:n])
        places = [text.index(stop) for stop in stops if stop in text]
        if places:
            begins = min(places)
            return text[:begins], max((s for s in stops if text.startswith(s, begins)), key=len)
    return "".join(pieces), ""


@STEADY
@given(st.lists(LETTERS, max_size=12), st.lists(LETTERS.filter(bool), max_size=3))
@example(["a", "a", "a", "b"], ["aab"])
@example(["ab", "c", "d"], ["abcd", "bc"])
def test_the_released_text_is_the_text_before_the_stop(pieces, stops):
    released, found = run(pieces, stops)
    text = "".join(step.text for out in released for step in out)
    assert (text, found) == cut_text(pieces, stops)
    assert not any(stop in text for stop in stops)


@STEADY
@given(st.lists(LETTERS, max_size=12), st.lists(LETTERS.filter(bool), max_size=3))
def test_nothing_of_a_stop_string_is_ever_released(pieces, stops):
    final, _ = cut_text(pieces, stops)
    released, _ = run(pieces, stops)
    so_far = ""
    for out in released:
        so_far += "".join(step.text for step in out)
        assert final.startswith(so_far)


@STEADY
@given(st.lists(LETTERS, max_size=12), st.lists(LETTERS.filter(bool), max_size=3))
def test_every_step_comes_out_once_in_order_with_its_id_and_bytes(pieces, stops):
    released, found = run(pieces, stops)
    out = [step for batch in released for step in batch]
    read = len(released) if found else len(pieces)
    assert [(s.index, s.token_id, s.bytes) for s in out] == [
        (i, 100 + i, piece.encode()) for i, piece in enumerate(pieces[:read])
    ]


@STEADY
@given(st.lists(LETTERS, max_size=12), st.lists(LETTERS.filter(bool), max_size=3))
def test_no_step_waits_longer_than_a_stop_string_may_be_coming(pieces, stops):
    gate, text, out = StopGate(stops), "", []
    for step in steps(*pieces):
        batch, found = gate.push(step)
        if found:
            break
        text, out = text + step.text, out + batch
        begun = [n for stop in stops for n in range(1, len(stop)) if text.endswith(stop[:n])]
        certain, end, expected = len(text) - max(begun, default=0), 0, 0
        for piece in pieces[: step.index + 1]:
            end += len(piece)
            if end > certain:
                break
            expected += 1
        assert (len(out), gate.held) == (expected, step.index + 1 - expected)


def test_without_stop_strings_every_step_passes_at_once():
    assert texts(run(["a", "", "b"], [])[0]) == [["a"], [""], ["b"], []]


def test_a_stop_string_that_begins_again_inside_itself_is_found():
    released, found = run(["a", "a", "a", "b", "x"], ["aab"])
    assert found == "aab"
    # The first a is free as soon as the third has come; the other two are cut.
    assert texts(released) == [[], [], ["a"], ["", "", ""]]


def test_a_stop_string_inside_one_token_cuts_the_token():
    released, found = run(["one. two", "!"], [". "])
    assert (texts(released), found) == ([["one"]], ". ")
    assert released[0][0].bytes == b"one. two"


def test_a_stop_string_over_three_tokens_is_cut_from_all_three():
    released, found = run(["Hi", "#", "#", "# x"], ["###"])
    assert (texts(released), found) == ([["Hi"], [], [], ["", "", ""]], "###")


def test_a_token_that_ends_with_the_beginning_of_a_stop_string_keeps_its_first_part():
    released, _ = run(["end\n", "\nUser:"], ["\n\n"])
    assert texts(released) == [[], ["end", ""]]


@pytest.mark.parametrize("stops", [["ab", "abc"], ["abc", "ab"]])
def test_of_two_stop_strings_that_begin_alike_the_shorter_ends_it_first(stops):
    assert run(["x", "a", "b", "c"], stops)[1] == "ab"
    # One token that completes both: the longer one is named, the text is the same.
    released, found = run(["x", "abc"], stops)
    assert (texts(released), found) == ([["x"], [""]], "abc")


def test_of_two_stop_strings_the_one_that_is_complete_first_ends_it():
    assert texts(run(["a", "b", "c", "d"], ["abcd", "bc"])[0]) == [[], [], ["a", "", ""]]


def test_characters_of_many_bytes_are_matched_as_characters():
    released, found = run(["Hé", "🙂", "👍🏽", "!"], ["🙂👍🏽"])
    assert (texts(released), found) == ([["Hé"], [], ["", ""]], "🙂👍🏽")


def test_half_a_stop_string_is_released_when_it_breaks_off():
    assert texts(run(["#", "#", "a"], ["###"])[0]) == [[], [], ["#", "#", "a"], []]


def test_half_a_stop_string_at_the_end_is_released_by_the_flush():
    gate = StopGate(["###"])
    assert [gate.push(step)[0] for step in steps("#", "#")] == [[], []]
    assert gate.held == 2
    assert [step.text for step in gate.flush()] == ["#", "#"]
    assert gate.held == 0
    assert gate.flush() == []


def test_steps_without_text_wait_behind_the_ones_before_them():
    # As half a character or a control token inside a stop string.
    assert texts(run(["#", "", "#", ""], ["##"])[0]) == [[], [], ["", "", ""]]
    assert texts(run(["#", "", "x"], ["##"])[0]) == [[], [], ["#", "", "x"], []]
