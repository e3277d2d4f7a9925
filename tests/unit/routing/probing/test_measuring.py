"""Measuring an engine at hand: what is timed, what is refused, and what the questions come to."""

import dataclasses

import pytest
from model_rows import row
from probe_rows import scripted_engine
from scripted_decoder import ScriptedDecoder

from cartoolkit.errors import InvalidRequest, ProbeFailed
from cartoolkit.routing.probing.answers import chosen_items
from cartoolkit.routing.probing.measuring import ProbeOptions, measure
from cartoolkit.routing.probing.probe import probe
from cartoolkit.routing.probing.texts import ProbeTexts

MODEL = row("lab/scripted", "folder")
QUICK = {"prompt_lengths": (64, 256), "repeats": 2, "answer_tokens": 8, "quality": False, "patience": None}


def measured(engine, **options):
    return probe(MODEL, engine=engine, **(QUICK | options))


def test_first_tokens_are_timed_at_each_length_and_the_first_run_is_dropped():
    with scripted_engine() as engine:
        found = measured(engine, repeats=3)
    lengths = [point.prompt_tokens for point in found.points]
    # A word is about five letters here, so the length is met within a word or two.
    assert [point.aimed_at for point in found.points] == [64, 256]
    assert lengths == [pytest.approx(64, abs=24), pytest.approx(256, abs=60)]
    assert [point.ttft_ms.n for point in found.points] == [3, 3]
    assert all(point.ttft_ms.low is None for point in found.points)


def test_six_repeats_give_an_interval():
    with scripted_engine() as engine:
        found = measured(engine, repeats=6)
    for figure in (found.points[0].ttft_ms, found.tokens_per_second):
        assert figure.low <= figure.value <= figure.high


def test_speeds_are_not_above_what_the_decoder_can_do():
    """Four prompt tokens a forward of at least 2 ms, and one answer token a forward."""
    with scripted_engine(delay=0.002) as engine:
        found = measured(engine, repeats=3)
    assert 0 < found.tokens_per_second.value <= 500
    for point in found.points:
        assert point.ttft_ms.value >= 2 * (point.prompt_tokens / 4) * 0.9


def test_the_answers_whose_speed_is_taken_go_on_after_the_end():
    with scripted_engine("", delay=0.001) as engine:
        assert measured(engine).tokens_per_second is not None


def test_what_cannot_be_known_of_an_engine_at_hand_is_unknown_and_not_zero():
    with scripted_engine() as engine:
        found = measured(engine)
    assert (found.load_ms, found.ram_mb, found.quality, found.items) == (None, None, None, ())
    assert (found.engine, found.device, found.dtype) == ("script", "cpu", "float32")
    assert found.versions["cartoolkit"]


def test_a_prompt_that_lies_in_the_cache_is_not_timed():
    """This decoder re-uses every common beginning, and some two of the texts begin with the same letter."""
    with (
        scripted_engine(kind=ScriptedDecoder) as engine,
        pytest.raises(ProbeFailed, match="in the engine's cache"),
    ):
        measured(engine, repeats=30)


def test_lengths_beyond_the_context_are_left_out_and_named():
    with scripted_engine(context_length=300) as engine:
        found = measured(engine, prompt_lengths=(64, 512, 4096))
    assert len(found.points) == 1
    assert found.notes == ("Prompts of 512 and 4,096 tokens were left out: the context holds 300.",)


def test_no_length_that_fits_is_an_error():
    with (
        scripted_engine(context_length=128) as engine,
        pytest.raises(ProbeFailed, match="shortest one, of 512"),
    ):
        measured(engine, prompt_lengths=(512, 600))


def test_a_slow_model_gets_fewer_repeats_and_no_long_prompts():
    """10 ms a forward of four tokens: some 0.16 s for 64 tokens, so 2,048 would take 5 s."""
    with scripted_engine(delay=0.01) as engine:
        found = measured(engine, prompt_lengths=(64, 2048), repeats=50, patience=1.0)
    assert len(found.points) == 1
    assert 1 <= found.points[0].ttft_ms.n < 50
    assert found.notes[0] == "Some figures come from fewer than 50 repeats, as the model is slow."
    assert found.notes[1].startswith("Prompts of 2,048 tokens were left out: one would take about ")


def test_without_patience_one_measurement_is_kept_all_the_same():
    with scripted_engine() as engine:
        found = measured(engine, prompt_lengths=(64,), repeats=6, patience=0)
    assert (found.points[0].ttft_ms.n, found.tokens_per_second.n) == (1, 1)


def test_one_length_gives_a_first_token_and_no_prefill_speed():
    with scripted_engine() as engine:
        found = measured(engine, prompt_lengths=(64,))
    assert found.ttft_ms.value == found.points[0].ttft_ms.value
    assert found.prefill_tokens_per_second is None


def test_a_model_that_always_says_paris_knows_one_capital():
    with scripted_engine("Paris\n") as engine:
        found = measured(engine, quality=True)
    assert [item.id for item in found.items if item.right] == ["capital:France"]
    assert found.quality.value == pytest.approx(1 / 82)
    assert found.quality.n == 82
    # Wilson's interval of 1 of 82 with z² = 3.8415: (1/82 + z²/164 ± z √(81/82³ + z²/(4·82²))) / (1 + z²/82)
    assert (found.quality.low, found.quality.high) == pytest.approx((0.0022, 0.0659), abs=1e-4)


def test_an_answer_ends_with_its_first_line():
    with scripted_engine("\n\nOslo\nBerlin, Rome") as engine:
        found = measured(engine, quality=True, items=8)
    assert {item.text for item in found.items} == {"Oslo"}
    assert {item.completion_tokens for item in found.items} == {len("\n\nOslo\n")}
    assert all(item.ms > 0 for item in found.items)


def test_a_model_that_thinks_aloud_has_no_quality_and_it_is_said_why():
    with scripted_engine("<think>The capital") as engine:
        found = measured(engine, quality=True, items=8)
    assert (found.quality, found.items) == (None, ())
    assert "thinks aloud" in found.notes[0]


def test_fewer_questions_are_of_all_kinds_and_splits():
    groups = [(item.kind, item.split) for item in chosen_items(8)]
    assert {group: groups.count(group) for group in groups} == dict.fromkeys(
        [("facts", "choice"), ("facts", "held_out"), ("arithmetic", "choice"), ("arithmetic", "held_out")], 2
    )
    assert len(chosen_items(None)) == 164


def test_progress_counts_up_to_what_there_is():
    heard = []
    with scripted_engine() as engine:
        measured(engine, quality=True, items=4, progress=lambda *told: heard.append(told))
    assert [told for told in heard if told[0] == "first tokens"] == [("first tokens", n, 2) for n in range(2)]
    assert [told for told in heard if told[0] == "questions"] == [("questions", n, 4) for n in range(4)]


def test_an_engine_of_another_library_than_the_row_s_is_refused():
    model = row("gguf/small", "folder", source={"kind": "folder", "engine": "gguf"})
    with (
        scripted_engine() as engine,
        pytest.raises(InvalidRequest, match=r"runs on the gguf engine.*of script"),
    ):
        probe(model, engine=engine)


def test_a_row_that_cannot_be_used_is_refused_with_its_reason():
    model = row("gguf/small", "folder", available=False, unavailable_because="no such library")
    with pytest.raises(InvalidRequest, match="gguf/small cannot be measured here: no such library"):
        probe(model)


def test_a_row_without_a_place_must_come_with_its_engine():
    with pytest.raises(InvalidRequest, match="no location"):
        probe(MODEL)


@pytest.mark.parametrize(
    "wrong",
    [
        {"prompt_lengths": ()}, {"prompt_lengths": (0,)}, {"prompt_lengths": ("many",)}, {"repeats": 0},
        {"answer_tokens": 1}, {"items": 0}, {"loads": 0}, {"repeats": 1.5},
        {"patience": -1.0},
    ],
    ids=str,
)  # fmt: skip
def test_a_setting_out_of_range_is_refused_by_name(wrong):
    with pytest.raises(InvalidRequest, match=next(iter(wrong))):
        probe(MODEL, **wrong)


def test_texts_have_their_length_and_begin_differently():
    texts = ProbeTexts()
    made = [texts.of(words) for words in (1, 5, 50, 5, 5)]
    assert [len(text.split()) for text in made] == [1, 5, 50, 5, 5]
    assert len({text.split()[0] for text in made}) == 5
    assert ProbeTexts().of(1) == made[0]


def test_a_server_that_counts_nothing_is_told_of():
    """A stand-in that has a server's way of answering: no local engine, and usage that is not told."""
    with scripted_engine("Paris ") as engine:
        found = measure(MODEL, _Elsewhere(engine), ProbeOptions(**QUICK), lambda *_: None)
    assert found.notes == (
        "The server does not count tokens; four characters are taken for one.",
        "No decoding speed: the answers had fewer than two tokens, or nobody counted them.",
    )
    assert found.tokens_per_second is None
    assert len(found.points) == 2


class _Elsewhere:
    """Answers through a local engine, and hides what a server would not tell."""

    def __init__(self, engine):
        self._engine = engine
        self.info = engine.info

    def generate(self, request, **settings):
        assert not {"chat_template", "ignore_eos", "truncate"} & settings.keys()
        result = self._engine.generate(request, **settings)
        unknown = dict.fromkeys(("prompt_tokens", "prefill_tokens", "reused_tokens", "completion_tokens"))
        return dataclasses.replace(result, usage=dataclasses.replace(result.usage, **unknown))
