"""Traffic to simulate: made up, from a ledger, from a table of recorded answers."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from cartoolkit.errors import InvalidRequest
from cartoolkit.routing.outcomes.records import Completion, Verdict
from cartoolkit.routing.simulation.traffic import (
    Traffic,
    synthetic_traffic,
    traffic_from_outcomes,
    traffic_from_table,
)

NAN = np.nan


def small(**changes):
    tables = {"right": [[0.5, 1.0]], "usd": [[0.1, NAN]], "latency_ms": [[10, 20]]}
    about = {
        "models": ("a", "b"),
        "kinds": ("k",),
        "tasks": ("t",),
        "sequence": np.zeros(3, int),
        **tables,
        **changes,
    }
    return Traffic(**about)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"right": [[0.5, 1.1]]}, "from 0 to 1"),
        ({"right": [[0.5, NAN]]}, "no NaN"),
        ({"usd": [[-0.1, 0]]}, "usd holds a figure below 0"),
        ({"latency_ms": [[np.inf, 0]]}, "latency_ms holds"),
        ({"usd": [[0.1]]}, "usd must be a table"),
        ({"sequence": np.array([1])}, "sequence must hold kinds from 0 to 0"),
        ({"sequence": np.array([], int)}, "0 requests"),
        ({"tasks": ()}, "0 tasks"),
    ],
)
def test_tables_that_do_not_fit_are_refused(changes, said):
    with pytest.raises(InvalidRequest, match=said):
        small(**changes)


def test_one_traffic_after_another_keeps_tasks_together():
    joined = small().then(replace(small(right=[[1.0, 0.0]]), tasks=("u",), about="dead")).then(small())
    assert joined.sequence.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert joined.right.tolist() == [[0.5, 1.0], [1.0, 0.0], [0.5, 1.0]]
    assert joined.task_names == ("t", "u")
    assert joined.task_of_kind.tolist() == [0, 1, 0]
    with pytest.raises(InvalidRequest, match="the same models"):
        small().then(replace(small(), models=("b", "a")))


# Made up


def test_a_made_up_world_is_as_described():
    traffic = synthetic_traffic(3000, models=8, tasks=2, seed=3)
    assert (len(traffic), traffic.right.shape) == (3000, (6, 8))
    assert traffic.kinds[:4] == ("task-1 short", "task-1 medium", "task-1 long", "task-2 short")
    short, medium, long = traffic.usd[:3]
    assert long == pytest.approx(2 * medium)
    assert long == pytest.approx(4 * short)
    # Over models of skill 0 to 1 the price spans about 100^1 and the time about 10^1.
    assert np.log10(medium.max() / medium.min()) == pytest.approx(2, abs=0.6)
    order = np.argsort(medium)
    assert traffic.right[1, order[-3:]].mean() > traffic.right[1, order[:3]].mean() + 0.3
    assert np.bincount(traffic.sequence) == pytest.approx(np.full(6, 500), abs=100)


def test_a_seed_makes_the_same_world_again():
    one, other, third = (synthetic_traffic(50, seed=seed) for seed in (1, 1, 2))
    assert (one.right == other.right).all()
    assert (one.sequence == other.sequence).all()
    assert (one.right != third.right).any()


# From a ledger


def calls(model, task, right, wrong, **about):
    for number in range(right + wrong):
        trace_id = f"{model}-{task}-{number}"
        yield Completion(trace_id=trace_id, model_id=model, task=task, time=1, latency_ms=number, **about)
        if number >= right:
            yield Verdict(trace_id=trace_id, accepted=False, time=2)


def test_a_ledger_gives_each_models_averages():
    rows = [
        *calls("a", "chat", 3, 1, usd=0.5),
        *calls("b", "chat", 1, 1, usd=0.25),
        *calls("a", "code", 0, 2, usd=0.5),
        *calls("b", "code", 2, 0),
    ]
    traffic = traffic_from_outcomes(rows, requests=12, min_calls=2)
    assert (traffic.models, traffic.kinds) == (("a", "b"), ("chat", "code"))
    assert traffic.right.tolist() == [[0.75, 0.5], [0.0, 1.0]]
    np.testing.assert_equal(traffic.usd, [[0.5, 0.25], [0.5, NAN]])  # an unknown bill stays unknown
    assert traffic.latency_ms.tolist() == [[1.5, 0.5], [0.5, 0.5]]
    assert traffic.sequence.tolist() == [0] * 6 + [1] * 4 + [0, 0]


def test_a_model_that_the_log_hardly_knows_is_named():
    rows = [*calls("a", "chat", 9, 1), *calls("b", "chat", 3, 0), *calls("a", "code", 5, 5)]
    with pytest.raises(InvalidRequest, match=r"b on chat \(3\), b on code \(0\)"):
        traffic_from_outcomes(rows)
    with pytest.raises(InvalidRequest, match="there are none"):
        traffic_from_outcomes([])


# From a table


def test_a_table_gives_every_recorded_answer():
    table = pd.DataFrame(
        {
            "item": ["q1", "q1", "q2", "q2"],
            "model": ["b", "a", "a", "b"],
            "right": [True, False, True, True],
            "usd": [0.2, 0.1, 0.1, None],
            "task": ["chat", "chat", "code", "code"],
        }
    )
    traffic = traffic_from_table(table, requests=5)
    assert (traffic.models, traffic.kinds, traffic.tasks) == (("b", "a"), ("q1", "q2"), ("chat", "code"))
    assert traffic.right.tolist() == [[1, 0], [1, 1]]
    np.testing.assert_equal(traffic.usd, [[0.2, 0.1], [NAN, 0.1]])
    assert np.isnan(traffic.latency_ms).all()
    assert traffic.sequence.tolist() == [0, 1, 0, 1, 0]


def test_a_table_with_gaps_is_refused():
    table = pd.DataFrame({"item": ["q1", "q1", "q2"], "model": ["a", "b", "a"], "right": [1, 0, 1]})
    with pytest.raises(InvalidRequest, match="item 'q2' has 0 of model 'b'"):
        traffic_from_table(table)
    with pytest.raises(InvalidRequest, match="no column 'right'"):
        traffic_from_table(table.drop(columns="right"))
