"""The router beside simpler choices on held-out questions: shares, costs, mixes and intervals by hand."""

import math

import pytest
from model_rows import local, remote, row

from cartoolkit.errors import InvalidRequest
from cartoolkit.routing.choice.decision import weigh
from cartoolkit.routing.choice.intent import Plan, Profile, profile
from cartoolkit.routing.choice.situation import Demand, Machine
from cartoolkit.routing.probing.machine import MachineIdentity
from cartoolkit.routing.probing.measurements import ItemResult, Probe
from cartoolkit.routing.simulation.baseline_rows import baseline_rows
from cartoolkit.routing.simulation.baselines import BASELINES, baselines, held_out_baselines

HERE = MachineIdentity(processor="P", architecture="x86_64", cores=2, memory_gib=8, system="Linux")
# 100 tokens: 100 + 1,000 ms, 100 + 10,000 ms and 600 + 5,000 ms.
A, B, C = (
    local("torch/a", ttft=100, speed=100),
    local("torch/b", ttft=100, speed=10),
    local("torch/c", ttft=600, speed=20),
)
DEMAND = Demand(prompt_tokens=10, output_tokens=100)


def items(split, facts, sums):
    """Questions with what came of them, a digit each: 1 is right."""
    for kind, marks in (("facts", facts), ("arithmetic", sums)):
        for number, mark in enumerate(marks):
            name = f"{kind}-{split}-{number}"
            yield ItemResult(
                id=name, kind=kind, split=split, right=mark == "1", text="x", ms=1.0, completion_tokens=1
            )


def probe(model, choice, held_out):
    """`choice` and `held_out` are facts and sums each."""
    found = (*items("choice", *choice), *items("held_out", *held_out))
    about = {"machine": HERE, "engine": "torch", "device": "cpu", "dtype": "float32"}
    return Probe(model_id=model.id, measured_at=1.0, items=found, **about)


PROBES = [
    probe(A, ("1111", "0000"), ("1111", "0000")),
    probe(B, ("1000", "1111"), ("1000", "1110")),
    probe(C, ("1100", "1100"), ("1100", "0011")),
]


def compared(winner="torch/a", probes=PROBES, models=(A, B, C), workload="batch", **more):
    table = held_out_baselines(probes, {workload: winner}, models, DEMAND, **more)
    return table.loc[workload] if len(table) else table


def test_each_baseline_is_there_once_a_workload():
    table = held_out_baselines(PROBES, {"batch": "torch/a", "fastest": "torch/b"}, (A, B, C), DEMAND)
    assert list(table.index) == [(w, name) for w in ("batch", "fastest") for name in BASELINES]
    assert (table["items"] == 8).all()
    # As fastest, time is that to the first token.
    assert table.loc[("batch", "router"), "ms"] == 1_100
    assert table.loc[("fastest", "router"), "ms"] == 100


def test_the_router_and_the_best_constant_by_hand():
    table = compared()
    router, constant = table.loc["router"], table.loc["best constant model"]
    assert (router.models, router.right, router.ms, router.usd) == ("torch/a", 0.5, 1_100, 0)
    # Wilson for 4 of 8: 0.5 ± 1.96 √(1/32 + 3.84/256) / (1 + 3.84/8).
    assert (router.low, router.high) == (pytest.approx(0.2152, abs=1e-4), pytest.approx(0.7848, abs=1e-4))
    # On the choice questions a is right in 4, b in 5, c in 4 of 8; on the held-out ones b in 4.
    assert (constant.models, constant.right, constant.ms) == ("torch/b", 0.5, 10_100)
    assert constant.note == "chosen on 8 other items"
    assert math.isnan(constant.difference)


def test_the_best_constant_is_not_chosen_on_what_it_is_judged_by():
    # b is better there by far, and a was better on the others.
    probes = [probe(A, ("11", ""), ("00", "")), probe(B, ("10", ""), ("11", ""))]
    constant = compared(probes=probes, models=(A, B)).loc["best constant model"]
    assert (constant.models, constant.right) == ("torch/a", 0)


def test_of_two_constants_that_were_as_good_the_sooner_one_stands_and_the_other_is_named():
    probes = [probe(model, ("10", "1"), ("10", "1")) for model in (B, A)]
    constant = compared(probes=probes, models=(B, A)).loc["best constant model"]
    assert constant.models == "torch/a"
    assert constant.note == "chosen on 3 other items; torch/b as good there, and slower"


def test_the_oracle_is_right_wherever_a_model_is_and_takes_the_cheapest_that_is():
    oracle = compared().loc["oracle"]
    # Facts: a. Sums: b, b, then c, which is sooner than b, and c. (4 × 1,100 + 2 × 10,100 + 2 × 5,600) / 8.
    assert (oracle.right, oracle.ms) == (1, 4_475)
    nobody = [probe(model, ("1", ""), ("0", "")) for model in (A, B)]
    oracle = compared(probes=nobody, models=(A, B)).loc["oracle"]
    assert (oracle.right, oracle.ms) == (0, 1_100)


def test_the_choice_by_kind_takes_the_best_score_of_each_kind():
    # Facts, quality: a 6.5 / 9, b 3.5 / 9, c 4.5 / 9. Sums: a 2.5 / 9, b 6.5 / 9, c 4.5 / 9; as batch the
    # latency of a brings 0.15 × 0.820, that of b 0.15 × 0.331: less than 0.60 × 4 / 9.
    table = compared()
    by_kind = table.loc["router by kind"]
    assert by_kind.models == "facts: torch/a, arithmetic: torch/b"
    assert (by_kind.right, by_kind.ms) == (7 / 8, (1_100 + 10_100) / 2)
    # As fastest the quality of 0.10 × 4 / 9 is too little to be worth waiting for.
    slow_b = local("torch/b", ttft=1_000, speed=10)
    alike = compared(models=(A, slow_b, C), workload="fastest").loc["router by kind"]
    assert (alike.models, alike.note) == ("torch/a", "the same model for every kind")


def test_a_random_mix_costs_as_much_as_the_router():
    # 5,600 ms is the mean of 1,100, 10,100 and 5,600: all three alike.
    mix = compared("torch/c").loc["random at equal cost"]
    assert mix.models == "33% torch/a, 33% torch/b, 33% torch/c"
    assert mix.ms == pytest.approx(5_600)
    assert mix.right == pytest.approx((4 + 4 + 4) / 24)
    assert mix.low < 0.5 < mix.high
    assert mix.note == "the same mean time as the router"


def test_where_the_router_takes_the_cheapest_there_is_nothing_to_draw():
    mix = compared("torch/a").loc["random at equal cost"]
    assert (mix.models, mix.right) == ("100% torch/a", 0.5)
    assert mix.note == "only this model has the router's time, so there is nothing to draw"


def test_where_somebody_bills_the_price_is_the_cost():
    # 100 tokens at $20 and $40 a million: $0.002 and $0.004; the local one is free.
    dear, dearest = remote("acme/b", usd=(0, 20)), remote("acme/c", usd=(0, 40))
    probes = [
        PROBES[0],
        probe(dear, ("1000", "1111"), ("1000", "1110")),
        probe(dearest, ("0", "0"), ("1100", "0011")),
    ]
    table = compared("acme/b", probes=probes, models=(A, dear, dearest))
    mix = table.loc["random at equal cost"]
    assert (mix.usd, mix.note) == (pytest.approx(0.002), "the same mean price as the router")
    assert mix.models == "33% acme/b, 33% acme/c, 33% torch/a"
    # An unknown price is no price: then it is the time that is equal.
    unpriced = row("acme/c", performance={"ttft_ms": 600, "tokens_per_second": 20})
    table = compared("acme/b", probes=probes, models=(A, dear, unpriced))
    assert table.loc["random at equal cost", "note"] == "the same mean time as the router"
    assert math.isnan(table.loc["random at equal cost", "usd"])


# -- differences -----------------------------------------------------------------------------------


def test_a_difference_has_a_paired_interval_that_is_drawn_within_each_kind():
    # Against b, a gains each fact and loses no sum: 0.5, whichever questions are drawn.
    probes = [probe(A, ("10", "11"), ("1" * 8, "0" * 8)), probe(B, ("11", "11"), ("0" * 8, "0" * 8))]
    router = compared(probes=probes, models=(A, B)).loc["router"]
    assert (router.difference, router.difference_low, router.difference_high) == (0.5, 0.5, 0.5)
    assert router.verdict == "better than the best constant model"


@pytest.mark.parametrize(
    ("held_out", "difference", "verdict"),
    [
        # a and b differ on one question each way.
        (("1101", "1011"), 0.0, "not told from the best constant model by 8 items"),
        (("1110", "1110"), 0.0, "right where the best constant model is"),
        (("0000", "0000"), -0.75, "worse than the best constant model"),  # 6 to 0: 2 / 2⁶ = 0.03
    ],
)
def test_what_a_difference_says_is_put_into_words(held_out, difference, verdict):
    probes = [probe(A, ("00", "00"), held_out), probe(B, ("11", "11"), ("1110", "1110"))]
    router = compared(probes=probes, models=(A, B)).loc["router"]
    assert (router.difference, router.verdict) == (difference, verdict)


def test_three_questions_are_not_enough_to_call_a_choice_better():
    # The choice by kind gains three sums over b and loses none: by chance 2 / 2³ = 0.25.
    by_kind = compared().loc["router by kind"]
    assert by_kind.difference == 3 / 8
    assert by_kind.difference_low > 0
    assert by_kind.verdict == "not told from the best constant model by 8 items"


# -- what is not there -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("probes", "said"),
    [
        ([], "No model has been probed with questions"),
        ([Probe(**{**PROBES[0].model_dump(), "items": ()})], "No model has been probed with questions"),
        ([probe(remote("acme/gone"), ("1", "1"), ("1", "1"))], "No model has been probed with questions"),
        (PROBES[:1], "Only torch/a has been probed with questions"),
        ([probe(A, ("1", ""), ("1", "")), probe(B, ("", "1"), ("", "1"))], "share no questions"),
    ],
)
def test_where_there_is_nothing_to_compare_it_is_said(probes, said):
    table = compared(probes=probes)
    assert table.empty
    assert said in table.attrs["note"]
    (line,) = baseline_rows(table, ["batch", "fastest"])
    assert said in line["note"]
    assert len(line["cells"]) == 2


def test_a_choice_that_was_not_probed_is_compared_by_its_cost_alone():
    far = local("torch/far", ttft=600, speed=20)
    table = compared("torch/far", models=(A, B, C, far))
    router, mix = table.loc["router"], table.loc["random at equal cost"]
    assert (router.models, router.ms, router.note) == (
        "torch/far",
        5_600,
        "it has not been probed with questions",
    )
    assert math.isnan(router.right)
    assert mix.right == pytest.approx(0.5)
    beyond = local("torch/far", ttft=60_000)
    mix = compared("torch/far", models=(A, B, C, beyond)).loc["random at equal cost"]
    assert mix.note == "no mix of the probed models has the same time"


def test_a_model_that_may_not_answer_takes_no_part():
    decision = weigh(
        (A, B, C),
        Plan(profile("batch"), "chat"),
        Demand(10, 100, max_latency_ms=6_000),
        machine=Machine(loaded=frozenset({"torch/a", "torch/b", "torch/c"})),
    )
    table = baselines(PROBES, {"batch": decision}).loc["batch"]
    assert table.loc["best constant model", "models"] == "torch/a"  # b would take 10,100 ms
    # Facts: all by a; sums: those of c, since a has none.
    assert table.loc["oracle", "right"] == 6 / 8
    nobody = weigh((A, B), Plan(profile("batch"), "chat"), Demand(10, 100, max_latency_ms=1))
    table = baselines(PROBES, {"batch": nobody})
    assert table["right"].isna().all()
    assert set(table["note"]) == {"none of the models that were probed may answer"}


def test_weights_of_ones_own_are_a_workload_as_well():
    mine = Profile("mine", 1.0, 0.0, 0.0)
    decision = weigh((A, B, C), Plan(mine, "chat"), DEMAND)
    assert set(baselines(PROBES, {"mine": decision}).loc["mine"].index) == set(BASELINES)
    with pytest.raises(InvalidRequest, match="'mine' is no workload"):
        held_out_baselines(PROBES, {"mine": "torch/a"}, (A, B), DEMAND)


# -- in short --------------------------------------------------------------------------------------


def test_the_rows_under_the_table_say_in_short_what_the_table_holds():
    table = held_out_baselines(PROBES, {"batch": "torch/a"}, (A, B, C), DEMAND)
    lines = {
        line["name"]: line
        for line in baseline_rows(table, ["batch"], name=lambda model_id: model_id.removeprefix("torch/"))
    }
    assert list(lines) == list(BASELINES)
    assert lines["router"]["note"] == "the first of this table, on 8 questions that it did not choose by"
    (cell,) = lines["router"]["cells"]
    assert cell["text"] == "a · 50% right"
    assert cell["hint"].startswith(
        "a is right on 4 of 8 held-out questions, 95% interval 22% to 78%. "
        "Expected: 1,100 ms and no bill a call. +0 points against the best constant model ("
    )
    assert lines["oracle"]["cells"][0]["text"] == "100% right"
    assert "At least one model is right on 8 of 8" in lines["oracle"]["cells"][0]["hint"]


def test_the_choice_by_kind_is_left_out_where_it_is_the_routers():
    same = [probe(A, ("11", "11"), ("1", "0")), probe(B, ("00", "00"), ("1", "0"))]
    table = held_out_baselines(same, {"batch": "torch/a"}, (A, B), DEMAND)
    assert "router by kind" not in [line["name"] for line in baseline_rows(table, ["batch"])]


def test_a_cell_of_which_nothing_is_known_says_why():
    table = held_out_baselines(PROBES, {"batch": "torch/far"}, (A, B, local("torch/far")), DEMAND)
    (cell,) = baseline_rows(table, ["batch"])[0]["cells"]
    assert cell == {"text": "torch/far", "hint": "It has not been probed with questions."}
