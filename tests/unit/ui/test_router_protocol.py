"""The examples that both halves of a `RouterTable` are tested on are of the shape that is written down."""

import json
from pathlib import Path

import pytest
from typed_shapes import faults

from cartoolkit.ui import _router_protocol as protocol

PROTOCOL = Path(__file__).parents[2] / "fixtures" / "protocol"
STATES = ["table", "filtered", "busy", "empty", "hostile"]


def example(name):
    return json.loads((PROTOCOL / f"router_{name}.json").read_text())


@pytest.mark.parametrize("name", STATES)
def test_examples_are_of_the_shape_that_the_protocol_states(name):
    assert faults(example(name), protocol.RouterState) == []


def test_an_update_carries_a_whole_state():
    assert faults(example("update"), protocol.RouterUpdate) == []


@pytest.mark.parametrize("name", STATES)
def test_scores_of_the_examples_are_the_sum_of_their_terms_and_the_bonus(name):
    for row in example(name)["cells"]:
        for cell in row:
            if cell["kind"] == "scored":
                points = [term["weight"] * term["value"] for term in cell["terms"]]
                assert cell["score"] == pytest.approx(sum(points) + cell["bonus"])
                assert cell["worth"] == pytest.approx(cell["reliability"] * cell["score"])


@pytest.mark.parametrize("content", example("from_browser")["valid"])
def test_what_a_browser_says_is_understood(content):
    message = protocol.parse_router_message(content)
    assert message.model_dump() == content


@pytest.mark.parametrize("content", example("from_browser")["refused"])
def test_anything_else_is_refused_in_a_sentence(content):
    with pytest.raises(ValueError, match=r"^a message from the browser was refused: ."):
        protocol.parse_router_message(content)
