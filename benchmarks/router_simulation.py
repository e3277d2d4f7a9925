"""Simulated routing: how long a million requests take, and what the size of a batch changes.

    python benchmarks/router_simulation.py [--only time|batches] [--requests 1000000] [--models 20] [--seed 0]

`time` simulates that many requests once and prints seconds a policy, then as many in 20 runs with intervals.
`batches` shows Thompson's regret when outcomes come in one by one, late, or in batches that grow by 2 %, on
steady traffic and on traffic whose best model of each task dies half-way.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from dataclasses import replace

import numpy as np

from cartoolkit.routing.simulation.bandits import Thompson
from cartoolkit.routing.simulation.comparison import TrafficSimulation, simulate_traffic
from cartoolkit.routing.simulation.simulating import (
    default_policies,
    random_at_equal_cost,
    scores_for,
    simulate,
)
from cartoolkit.routing.simulation.traffic import Traffic, synthetic_traffic

RUNS = 20
BATCHES = (1, 10, 100, 1000, 10_000, None)


def measure_time(requests: int, models: int, seed: int) -> None:
    traffic = synthetic_traffic(requests, models, seed=seed)
    print(f"{requests:,} requests, {models} models, one run\n\n| policy | seconds |\n|---|---|")
    total, (router, *others) = 0.0, default_policies(scores_for(traffic))
    done = simulate_traffic(traffic, [router], runs=1, seed=seed)
    for policy in (router, *others, random_at_equal_cost(done, router.name)):
        start = time.perf_counter()
        simulate_traffic(traffic, [policy], runs=1, seed=seed)
        total += (elapsed := time.perf_counter() - start)
        print(f"| {policy.name} | {elapsed:.2f} |")
    print(f"| all | {total:.2f} |\n")

    traffic = synthetic_traffic(requests // RUNS, models, seed=seed)
    start = time.perf_counter()
    simulation = simulate(traffic, runs=RUNS, seed=seed)
    print(f"{RUNS} runs of {len(traffic):,} requests, all policies: {time.perf_counter() - start:.2f} s\n")
    print_summary(simulation)


def print_summary(simulation: TrafficSimulation) -> None:
    print("| policy | total regret | right | USD a request | ms a request |\n|---|---|---|---|---|")
    for _, row in simulation.summary().iterrows():
        cells = [
            f"{row[name]:{form}} ({row[f'{name}_low']:{form}} to {row[f'{name}_high']:{form}})"
            for name, form in (
                ("total_regret", ",.0f"),
                ("right", ".3f"),
                ("usd", ".4f"),
                ("latency_ms", ",.0f"),
            )
        ]
        print(f"| {row.policy} | {' | '.join(cells)} |")
    print()


def with_a_death(traffic: Traffic) -> Traffic:
    """The same requests; from half-way on the model that was best at each kind is never right."""
    half = len(traffic) // 2
    dead = traffic.right.copy()
    dead[np.arange(len(dead)), traffic.right.argmax(axis=1)] = 0
    before, after = traffic.sequence[:half], traffic.sequence[half:]
    return replace(traffic, sequence=before).then(replace(traffic, right=dead, sequence=after))


def compare_batches(requests: int, models: int, seed: int) -> None:
    steady = synthetic_traffic(requests // RUNS, models, seed=seed)
    print(f"Thompson, {RUNS} runs of {len(steady):,} requests, {models} models: total regret\n")
    print("| batch | steady | the best model dies half-way | seconds |\n|---|---|---|---|")
    for batch in BATCHES:
        start = time.perf_counter()
        cells = []
        for traffic in (steady, with_a_death(steady)):
            done = simulate_traffic(traffic, [Thompson()], runs=RUNS, seed=seed, batch=batch)
            row = done.summary().iloc[0]
            cells.append(f"{row.total_regret:,.0f} ± {row.total_regret_high - row.total_regret:,.0f}")
        elapsed = time.perf_counter() - start
        print(f"| {batch or 'grows by 2 %'} | {' | '.join(cells)} | {elapsed:.1f} |", flush=True)
    print()


PARTS = {"time": measure_time, "batches": compare_batches}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, numpy {np.__version__}\n")
    for name, measure in PARTS.items():
        if args.only in {None, name}:
            measure(args.requests, args.models, args.seed)


if __name__ == "__main__":
    main()
