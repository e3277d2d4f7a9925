"""A model on a server is probed by its row, over real HTTP, by what the server counts."""

import sys
import time
from pathlib import Path

import pytest
from model_rows import row

from cartoolkit.errors import RateLimited
from cartoolkit.routing.probing.measurements import MeasurementStore, with_measurements
from cartoolkit.routing.probing.probe import probe

sys.path.insert(0, str(Path(__file__).parents[2] / "remote"))

from speaking_server import SpeakingServer, chunk, failing, said, usage

TEMPLATE = 5
QUICK = {"prompt_lengths": (32, 128), "repeats": 2, "answer_tokens": 12}


@pytest.fixture
def server():
    with SpeakingServer() as server:
        server.answers = [answer]
        yield server
        server.shutdown()


@pytest.fixture
def model(server):
    return row(
        "acme/parrot", source={"kind": "remote_api", "location": server.address, "model": "parrot-2026"}
    )


def answer(handler):
    """A token is a word and the template has five more; 1 ms a token read; 12 tokens in three chunks."""
    asked = handler.server.requests[-1]
    read = TEMPLATE + sum(len(message["content"].split()) for message in asked["messages"])
    written = min(12, asked["max_tokens"])

    def wait(_):
        time.sleep(0.05)

    def reading(_):
        time.sleep(read / 1000)

    pieces = [reading, chunk("Par"), wait, chunk("is"), wait, chunk("\nLima"), chunk(finish="stop")]
    said(*pieces, usage(read, written, prompt_tokens_details={"cached_tokens": 0}))(handler)


def test_its_own_count_of_tokens_is_what_speeds_are_made_of(model):
    found = probe(model, quality=False, **QUICK)
    # Words are met exactly, whatever the template adds.
    assert [point.prompt_tokens for point in found.points] == [32, 128]
    # 1 ms a token at least; a loaded machine only makes it slower.
    assert [point.ttft_ms.value >= point.prompt_tokens for point in found.points] == [True, True]
    # Eleven tokens after the first one, in about 100 ms; the first chunk may be read late.
    assert 0 < found.tokens_per_second.value <= 5 * 11 / 0.1
    assert found.notes == ()


def test_the_questions_are_sent_as_turns_and_the_first_line_is_graded(model, server):
    found = probe(model, items=4, **QUICK)
    assert {item.text for item in found.items} == {"Paris"}
    assert [item.id for item in found.items if item.right] == ["capital:France"]
    roles = [message["role"] for message in server.requests[-1]["messages"]]
    assert roles == ["user", "assistant"] * 4 + ["user"]


def test_neither_load_time_nor_memory_is_made_up(model):
    found = probe(model, quality=False, **QUICK)
    assert (found.load_ms, found.ram_mb, found.quality) == (None, None, None)
    assert found.engine == "openai"


def test_it_holds_until_the_row_has_another_address(model, tmp_path):
    store = MeasurementStore(tmp_path)
    store.save(found := probe(model, quality=False, **QUICK))
    assert store.latest(model) == found
    assert with_measurements(model, found).performance.ttft_ms.basis == "measured"
    source = model.source.model_copy(update={"model": "parrot-2027"})
    assert store.latest(model.model_copy(update={"source": source})) is None


def test_what_the_server_found_in_its_cache_is_said(model, server):
    def cached(handler):
        count = usage(40, 1, prompt_tokens_details={"cached_tokens": 4})
        said(chunk("a"), chunk(finish="stop"), count)(handler)

    server.answers = [cached]
    found = probe(model, quality=False, **QUICK)
    assert found.notes[0].startswith("The server found parts of new prompts in its cache")
    # However many words were sent, the server counted 40 tokens: there is one length and no speed.
    assert {point.prompt_tokens for point in found.points} == {40}
    assert found.prefill_tokens_per_second is None


def test_an_error_of_the_server_is_raised_as_it_is(model, server):
    server.answers = [failing(429, {"message": "slow down"})]
    with pytest.raises(RateLimited):
        probe(model, **QUICK)
