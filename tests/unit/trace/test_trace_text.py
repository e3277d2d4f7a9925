"""Bytes to text: streams and labels, against Python's own decoder and by hand."""

import doctest
import importlib
import itertools
import subprocess
import sys
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_samples import step, trace

import cartoolkit.trace
from cartoolkit.trace import TextStream, token_label
from cartoolkit.trace.glyphs import bars, clip, nats, printable, probability, visible

utf8ish = st.one_of(st.binary(max_size=40), st.text(max_size=20).map(lambda t: t.encode()))


@settings(derandomize=True, deadline=None)
@given(utf8ish, st.lists(st.integers(0, 40), max_size=10))
def test_the_pieces_of_a_stream_join_to_one_decode_of_all_bytes(data, cuts):
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    stream = TextStream()
    pieces = [stream.feed(data[a:b]) for a, b in itertools.pairwise(edges)]
    assert "".join(pieces) + stream.flush() == data.decode("utf-8", errors="replace")


@settings(derandomize=True, deadline=None)
@given(utf8ish)
def test_what_is_pending_is_the_unfinished_end_and_never_a_whole_character(data):
    stream = TextStream()
    stream.feed(data)
    assert data.endswith(stream.pending)
    assert len(stream.pending) < 4


def test_an_emoji_over_four_tokens_comes_with_the_last():
    stream = TextStream()
    assert [stream.feed(bytes([byte])) for byte in "🙂".encode()] == ["", "", "", "🙂"]
    assert stream.pending == b""


def test_cjk_and_combining_marks_arrive_when_complete():
    stream = TextStream()
    assert [stream.feed(piece) for piece in (b"\xe4\xbd", b"\xa0e", b"\xcc", b"\x81")] == [
        "",
        "你e",
        "",
        "\u0301",
    ]


@pytest.mark.parametrize(
    ("token", "pending", "label"),
    [
        (b" sky", b"", " sky"),
        (b"", b"", ""),
        (b"\xf0\x9f", b"", "\\xF0\\x9F"),
        (b"\x99\x82", b"\xf0\x9f", "🙂"),
        (b"a", b"\xf0\x9f", "a"),
        (b"\x82", b"\xe2", "\\x82"),
        (b"\x82\xac!", b"\xe2", "€!"),
        (b"\xff", b"", "\\xFF"),
        ("\u0301".encode(), b"", "\u0301"),
    ],
)
def test_a_label_is_the_token_as_it_reads_after_what_is_pending(token, pending, label):
    assert token_label(token, pending) == label


def test_a_candidate_is_decoded_after_the_chosen_prefix_and_never_after_its_siblings():
    # Step 1 may be the second half of 😀 (98 80) or of 🙂 (99 82); step 2 has nothing pending before it.
    steps = [
        step(0, 8, "", (8, 1), (0.5, 0.25), (0.5, 0.5)),
        step(1, 9, "🙂", (10, 9, 1), (0.5, 0.25, 0.125), (0.5, 0.5, 0)),
        step(2, 1, "The", (1, 9), (0.5, 0.25), (1, 0)),
    ]
    run = trace(steps)
    assert run.candidate_texts(0) == ["\\xF0\\x9F", "The"]
    assert run.candidate_texts(1) == ["😀", "🙂", "The"]
    assert run.candidate_texts(2) == ["The", "\\x99\\x82"]


def test_a_candidate_after_a_rollback_is_decoded_after_the_tokens_that_were_kept():
    steps = [
        step(0, 1, "The", (1,), (0.5,), (1,)),
        step(1, 8, "", (8,), (0.5,), (1,), kept=False),
        step(2, 9, "", (9, 1), (0.5, 0.25), (1, 0)),
    ]
    assert trace(steps).candidate_texts(2) == ["\\x99\\x82", "The"]


def test_a_special_token_ends_an_unfinished_character():
    steps = [step(0, 8, ""), step(1, 2, "", special=True), step(2, 9, "", (9,), (0.5,), (1,))]
    assert trace(steps).candidate_texts(2) == ["\\x99\\x82"]


def test_nothing_that_controls_a_page_stays_in_printable_text():
    controls = [chr(c) for c in range(0x20000) if unicodedata.category(chr(c)) in ("Cc", "Cs", "Zl", "Zp")]
    assert len(controls) == 65 + 2048 + 2
    assert [c for c in controls if c in printable(f"a{c}b")] == ["\t", "\n"]


def test_marks_that_reorder_text_are_spelt_and_joiners_stay():
    assert printable("\u202e\u200f\u2066\ufeff") == "\\u202E\\u200F\\u2066\\uFEFF"
    assert printable("👩\u200d💻 ❤\ufe0f ن\u200cا") == "👩\u200d💻 ❤\ufe0f ن\u200cا"


def test_a_visible_label_has_a_glyph_for_every_space():
    assert visible(" a b\n\t\xa0") == "␣a␣b⏎⇥⍽"
    assert visible("\u0301e") == "◌\u0301e"
    assert visible("") == ""


def test_numbers_are_shown_with_three_decimals_and_never_as_a_false_zero():
    shown = [probability(p) for p in (1.0, 0.99951, 0.0005, 0.00049, 1e-30, 0.0, float("nan"))]
    assert shown == ["1.000", "1.000", "0.001", "<.001", "<.001", "0", "–"]
    assert [nats(0.0), nats(2.268), nats(float("nan"))] == ["0.00", "2.27", "–"]
    assert [clip("abcd", 4), clip("abcde", 4)] == ["abcd", "abc…"]


def test_bars_keep_the_lowest_of_each_block():
    assert bars([1, 1, 0.5, 0, 1, 1], width=3) == [("█", 1.0), ("▁", 0.0), ("█", 1.0)]
    assert bars([]) == []
    assert [b for b, _ in bars([float("nan"), 2.0, -1.0])] == [" ", "█", "▁"]


@pytest.mark.parametrize("name", ["text", "metrics", "glyphs", "exact_json"])
def test_the_examples_in_the_docstrings_hold(name):
    result = doctest.testmod(importlib.import_module(f"cartoolkit.trace.{name}"))
    assert result.attempted > 0
    assert result.failed == 0


def test_everything_named_in_all_is_there():
    assert [name for name in cartoolkit.trace.__all__ if not hasattr(cartoolkit.trace, name)] == []


def test_importing_traces_costs_no_heavy_library():
    heavy = "{'torch', 'pandas', 'matplotlib', 'mlx', 'transformers'}"
    code = f"import sys, cartoolkit.trace; sys.exit(', '.join({heavy} & set(sys.modules)) or 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
