"""What a row on a server needs before it can be asked, and what its answers cost."""

import pytest

from cartoolkit.engine import Usage
from cartoolkit.remote import keys, usd_of, why_unusable
from cartoolkit.routing.rows.schema import ModelSchema


def row(kind="remote_api", cost=None, **source):
    given = {"id": "acme/large", "capabilities": ["generate"], "source": {"kind": kind, **source}}
    return ModelSchema.model_validate(given | ({"cost": cost} if cost else {}))


def usage(prompt=1_000_000, completion=1_000_000, cached=0):
    return Usage(prompt, None, cached, completion)


def test_a_row_whose_key_is_not_set_names_the_variable(monkeypatch):
    monkeypatch.delenv("ACME_KEY", raising=False)
    assert why_unusable(row(key_variable="ACME_KEY")) == "no key set: ACME_KEY"
    monkeypatch.setenv("ACME_KEY", "")
    assert why_unusable(row(key_variable="ACME_KEY")) == "no key set: ACME_KEY"
    monkeypatch.setenv("ACME_KEY", "sk-1")
    assert why_unusable(row(key_variable="ACME_KEY")) == ""


def test_a_row_that_needs_no_key_or_no_server_can_be_used(monkeypatch):
    assert why_unusable(row("local_server")) == ""
    monkeypatch.setattr(keys, "_has_openai", lambda: False)
    assert why_unusable(row("folder", key_variable="ACME_KEY")) == ""


@pytest.mark.parametrize("kind", ["remote_api", "local_server"])
def test_without_the_library_a_row_on_a_server_cannot_be_used(monkeypatch, kind):
    monkeypatch.setattr(keys, "_has_openai", lambda: False)
    expected = "the package openai is not installed: pip install 'cartoolkit[remote]'"
    assert why_unusable(row(kind)) == expected


def test_a_bill_is_worked_out_from_the_prices_with_the_cached_part_at_its_own():
    cost = {"input_per_mtok": 2.0, "output_per_mtok": 8.0, "cache_read_input_per_mtok": 0.5}
    # 0.75 M at 2, 0.25 M at 0.5 and 1 M at 8 USD.
    assert usd_of(row(cost=cost), usage(cached=250_000)) == (pytest.approx(9.625), True)


def test_a_cache_that_nobody_tells_of_is_billed_as_none():
    cost = {"input_per_mtok": 2.0, "output_per_mtok": 8.0}
    assert usd_of(row(cost=cost), usage(cached=None)) == (10.0, True)


@pytest.mark.parametrize(
    ("cost", "used"),
    [
        (None, usage()),
        ({"input_per_mtok": 2.0}, usage()),
        ({"input_per_mtok": 2.0, "output_per_mtok": 8.0}, usage(prompt=None)),
        ({"input_per_mtok": 2.0, "output_per_mtok": 8.0}, usage(completion=None)),
    ],
)
def test_a_bill_that_nobody_can_work_out_is_unknown_and_not_free(cost, used):
    assert usd_of(row(cost=cost), used) == (None, False)


@pytest.mark.parametrize("kind", ["folder", "local_server", "catalog"])
def test_nobody_bills_for_a_model_on_this_machine(kind):
    assert usd_of(row(kind), usage(prompt=None)) == (0.0, False)


def test_a_server_on_this_machine_with_prices_passes_somebody_s_bill_on():
    cost = {"input_per_mtok": 2.0, "output_per_mtok": 8.0}
    assert usd_of(row("local_server", cost), usage()) == (10.0, True)
