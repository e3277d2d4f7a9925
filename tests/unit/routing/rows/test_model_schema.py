"""A row of a model: what it holds, what it refuses, and what a call costs by it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_rows import row
from pydantic import ValidationError

from cartoolkit.intents import CAPABILITIES
from cartoolkit.routing.rows.figures import Figure, weakest
from cartoolkit.routing.rows.pricing import Cost
from cartoolkit.routing.rows.schema import Performance

STEADY = settings(derandomize=True, deadline=None, database=None, max_examples=100)


def test_the_capabilities_are_the_seventeen():
    # As listed in the rustdoc of car-inference 0.22.0, ModelCapability.
    assert CAPABILITIES == (
        "generate", "embed", "rerank", "classify", "code", "reasoning", "summarize", "tool_use",
        "multi_tool_call", "vision", "video_understanding", "audio_understanding", "grounding",
        "speech_to_text", "text_to_speech", "image_generation", "video_generation",
    )  # fmt: skip


def test_a_bare_number_is_a_declared_figure():
    assert Performance(ttft_ms=250).ttft_ms == Figure(value=250, basis="declared")


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), "3", True])
def test_a_figure_is_a_finite_number_from_zero_on(value):
    with pytest.raises(ValidationError):
        Figure.model_validate({"value": value})


@pytest.mark.parametrize("given", ["fast", [1], True])
def test_a_figure_that_is_no_number_is_told_what_it_may_be(given):
    with pytest.raises(ValidationError, match="must be a number, or a table with 'value'"):
        Figure.model_validate(given)


@pytest.mark.parametrize("ends", [{"low": 3}, {"high": 1}])
def test_a_figure_lies_in_its_interval(ends):
    with pytest.raises(ValidationError, match="interval"):
        Figure(value=2, **ends)


def test_a_number_made_of_several_is_as_sure_as_its_least_sure_part():
    assert weakest("measured", "declared") == "declared"
    assert weakest("assumed", "measured") == "assumed"
    assert weakest() == "measured"


def test_name_and_provider_follow_from_the_id_unless_they_are_given():
    model = row("openai/gpt-4o-mini:2024")
    assert (model.provider, model.name) == ("openai", "gpt-4o-mini")
    assert row("openai/gpt-4o-mini", name="Mini").name == "Mini"


@pytest.mark.parametrize(
    "wrong", ["", "large", "acme/", "/large", "acme/large:", "a/b:c:d", "a/b/c", "a b/c", "-a/b", 7]
)
def test_an_id_has_its_form(wrong):
    with pytest.raises(ValidationError):
        row(wrong)


@pytest.mark.parametrize(
    ("kind", "ready", "downloads"),
    [
        ("catalog", False, True),
        ("hub", False, True),
        ("folder", False, False),
        ("local_server", True, False),
        ("remote_api", True, False),
    ],
)
def test_available_ready_and_downloading_are_three_facts(kind, ready, downloads):
    from cartoolkit.routing.rows.schema import ModelSchema

    given = {"id": "a/b", "capabilities": ["generate"], "source": {"kind": kind}}
    model = ModelSchema.model_validate(given)
    assert (model.available, model.weights_ready, model.downloads_weights) == (True, ready, downloads)


def test_a_size_is_written_as_people_do():
    assert row(parameters=134_515_008).size_label == "135M"
    assert row(parameters=30_000_000_000, active_parameters=3_000_000_000).size_label == "30B (3B active)"
    assert row().size_label == ""


@pytest.mark.parametrize(
    "wrong",
    [
        {"capabilities": []},
        {"capabilities": ["generate", "generate"]},
        {"capabilities": ["fly"]},
        {"context_length": 0},
        {"quality": 1.5},
        {"performance": {"tokens_per_second": 0}},
        {"cost": {"input_per_mtok": -1}},
        {"cost": {"pricing_tiers": [{"min_prompt_tokens": 5}, {"min_prompt_tokens": 5}]}},
        {"colour": "red"},
    ],
)
def test_a_row_refuses_what_cannot_be(wrong):
    with pytest.raises(ValidationError):
        row(**wrong)


TIERED = Cost.model_validate(
    {
        "input_per_mtok": 1.0,
        "output_per_mtok": 4.0,
        "cache_read_input_per_mtok": 0.1,
        "pricing_tiers": [
            {"min_prompt_tokens": 500_000, "output_per_mtok": 9.0},
            {"min_prompt_tokens": 200_000, "input_per_mtok": 2.0, "output_per_mtok": 6.0},
        ],
    }
)


@pytest.mark.parametrize(
    ("prompt", "rates"),
    [
        (199_999, (1.0, 4.0, 0.1)),
        (200_000, (2.0, 6.0, 0.1)),
        # The highest tier alone holds: it leaves the input at the base rate, not at the tier's below.
        (500_000, (1.0, 9.0, 0.1)),
    ],
)
def test_the_highest_tier_that_is_reached_replaces_only_what_it_declares(prompt, rates):
    at = TIERED.rates_at(prompt)
    assert (at.input_per_mtok, at.output_per_mtok, at.cache_read_input_per_mtok) == rates


@pytest.mark.parametrize(
    ("prompt", "output", "cached", "usd"),
    [
        (1_000, 500, 0, 0.003),  # 1,000 × 1 + 500 × 4 = 3,000 millionths
        (1_000, 500, 800, 0.00228),  # 200 × 1 + 800 × 0.1 + 500 × 4 = 2,280
        (1_000, 500, 5_000, 0.0021),  # all of it cached: 1,000 × 0.1 + 2,000
        (200_000, 0, 0, 0.4),
        (0, 0, 0, 0.0),
    ],
)
def test_a_bill_by_hand(prompt, output, cached, usd):
    assert TIERED.usd(prompt, output, cached=cached) == pytest.approx(usd)


def test_what_is_written_to_the_cache_is_billed_at_its_own_rate_or_as_input():
    assert Cost(input_per_mtok=1, output_per_mtok=1).usd(100, 0, written=100) == pytest.approx(1e-4)
    cost = Cost(input_per_mtok=1, output_per_mtok=1, cache_write_input_per_mtok=1.25)
    assert cost.usd(100, 0, written=100) == pytest.approx(1.25e-4)


def test_unpriced_is_not_free():
    assert Cost().usd(10, 10) is None
    assert Cost().usd(0, 0) is None
    assert Cost(input_per_mtok=1).usd(10, 10) is None
    assert Cost(input_per_mtok=1).usd(10, 0) == pytest.approx(1e-5)
    assert Cost(input_per_mtok=0, output_per_mtok=0).usd(10, 10) == 0


@STEADY
@given(prompt=st.integers(0, 10**6), cached=st.integers(0, 10**6), written=st.integers(0, 10**6))
def test_a_bill_charges_every_prompt_token_once(prompt, cached, written):
    items = TIERED.bill(prompt, 0, cached=cached, written=written)
    assert sum(tokens for _, tokens, _ in items) == prompt


def test_a_source_names_where_its_key_is_and_never_holds_it():
    source = {"kind": "remote_api", "model": "large-2026", "key_variable": "ACME_API_KEY"}
    assert row(source=source).source.key_variable == "ACME_API_KEY"
    with pytest.raises(ValidationError, match="key_variable"):
        row(source=source | {"key_variable": "sk-live-0123456789"})


def test_a_source_without_a_key_and_a_name_of_its_own_needs_neither():
    source = row().source
    assert (source.model, source.key_variable) == ("", "")
