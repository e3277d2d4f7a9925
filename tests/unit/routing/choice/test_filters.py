"""Each hard filter by hand: who passes, who does not, and the sentence that says why."""

import pytest
from model_rows import local, remote, row

from cartoolkit.routing.choice.filters import FILTERS, memory_needed_mb, refusals
from cartoolkit.routing.choice.intent import PROFILES, Plan
from cartoolkit.routing.choice.situation import Demand, Machine

PLAIN = Plan(PROFILES["interactive"])


def reasons(model, demand=None, machine=None, plan=PLAIN):
    return [(r.filter, r.reason) for r in refusals(model, plan, demand or Demand(), machine or Machine())]


def test_a_plain_model_passes_all_filters():
    assert reasons(row()) == []
    assert reasons(local()) == []


def test_every_reason_is_given_in_the_order_of_the_filters():
    model = row(available=False, unavailable_because="no key", context_length=100)
    demand = Demand(prompt_tokens=200, require=("vision",), max_cost_usd=1.0)
    found = reasons(model, demand)
    assert [name for name, _ in found] == ["availability", "capability", "context", "budget"]
    assert list(FILTERS) == [
        "excluded", "availability", "resting", "capability", "context", "memory", "budget", "latency",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (
            row(available=False, unavailable_because="no key."),
            [("availability", "not available here: no key")],
        ),
        (row(available=False), [("availability", "not available here: no reason given")]),
        (
            row(kind="folder", weights_ready=False, source={"kind": "folder", "location": "m"}),
            [("availability", "its weights are not at m")],
        ),
        (row(kind="hub", weights_ready=False), []),
    ],
)
def test_availability_asks_whether_it_can_be_used_and_not_whether_it_was_downloaded(model, said):
    assert reasons(model) == said


def test_an_excluded_and_a_resting_model_are_left_out():
    plan = Plan(PROFILES["interactive"], excluded=frozenset({"acme/large"}))
    machine = Machine(resting={"acme/large": "3 failures running, tried again in 40 s"})
    assert reasons(row(), machine=machine, plan=plan) == [
        ("excluded", "excluded by the request"),
        ("resting", "3 failures running, tried again in 40 s"),
    ]


def test_a_capability_may_be_required_by_the_request_or_by_the_hint():
    plan = Plan(PROFILES["interactive"], require=("code", "vision"))
    model = row(capabilities=["generate", "code"])
    assert reasons(model, plan=plan) == [("capability", "cannot vision")]
    assert reasons(row(capabilities=["embed"])) == [("capability", "cannot generate")]


@pytest.mark.parametrize(
    ("prompt", "output", "fits"),
    [
        (800, 200, True),  # 800 + 200 = 1,000 = the context
        (801, 200, False),
        (750, 4096, True),  # of the context a quarter at most is kept free: 750 + 250
        (751, 4096, False),
    ],
)
def test_prompt_and_answer_must_fit_the_context(prompt, output, fits):
    found = reasons(row(context_length=1_000), Demand(prompt_tokens=prompt, output_tokens=output))
    assert (found == []) is fits


def test_the_context_filter_says_the_numbers_and_an_unknown_context_passes():
    demand = Demand(prompt_tokens=9_000, output_tokens=100)
    said = "the prompt of 9,000 tokens and 100 for the answer exceed its context of 8,192"
    assert reasons(row(context_length=8192), demand) == [("context", said)]
    assert reasons(row(), demand) == []


def test_memory_is_what_is_known_else_the_size_and_a_fifth():
    assert memory_needed_mb(local(cost={"ram_mb": 300})) == 300
    assert memory_needed_mb(local(cost={"size_mb": 100})) == pytest.approx(120)
    assert memory_needed_mb(local()) is None
    assert memory_needed_mb(remote()) is None
    assert memory_needed_mb(row(kind="local_server", cost={"ram_mb": 300})) is None


def test_a_model_that_does_not_fit_is_refused_unless_it_is_loaded():
    model = local(cost={"size_mb": 1_000})
    said = "needs 1,200 MB of memory (assumed from its size), and 1,199 MB are free"
    assert reasons(model, machine=Machine(free_memory_mb=1_199)) == [("memory", said)]
    assert reasons(model, machine=Machine(free_memory_mb=1_200)) == []
    loaded = Machine(free_memory_mb=10, loaded=frozenset({model.id}))
    assert reasons(model, machine=loaded) == []


def test_a_budget_is_kept_and_an_unknown_price_is_not_below_it():
    # 1,000 tokens in at $1 and 1,000 out at $4 a million: half a cent.
    demand = Demand(1_000, 1_000, max_cost_usd=0.005)
    assert reasons(remote(), demand) == []
    dear = Demand(1_000, 1_000, max_cost_usd=0.004)
    assert reasons(remote(), dear) == [
        ("budget", "about $0.005 a call, and at most $0.004 is allowed"),
    ]
    assert reasons(row(), dear) == [
        ("budget", "its price is not known, so it cannot be kept below $0.004"),
    ]
    assert reasons(local(), dear) == []


def test_a_latency_ceiling_counts_what_the_workload_counts():
    # 400 ms to the first token, and 256 tokens at 100 a second: 2,960 ms in all.
    demand = Demand(max_latency_ms=2_000)
    said = (
        "expected to take 2,960 ms (first token 400 declared + answer 2,560 declared), "
        "and at most 2,000 ms are allowed"
    )
    assert reasons(remote(), demand) == [("latency", said)]
    assert reasons(remote(), demand, plan=Plan(PROFILES["fastest"])) == []
