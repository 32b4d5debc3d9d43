"""Harmonic cost with noisy signals, at a small scale; closed forms against simulation."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from recrawl.lab.papers import beyond_signals
from recrawl.lab.papers.claims import load_claims
from recrawl.lab.papers.experiment import Experiment
from recrawl.lab.simulation.measures import measure
from recrawl.lab.simulation.scheduler_run import SchedulerCompetitor, Settings
from recrawl.lab.worlds.laws import Population, draw_population, world_of
from recrawl.lab.worlds.signals import announce

_SMALL = beyond_signals.Setup(pages=40, repetitions=2)


@pytest.fixture(scope="module")
def small() -> Experiment:
    return beyond_signals.compare(_SMALL)


def test_it_has_one_finding_for_each_of_its_claims(small: Experiment) -> None:
    wanted = [claim.id for claim in load_claims().values() if claim.experiment == "beyond.signals"]
    assert [finding.claim for finding in small.findings] == wanted


def test_two_runs_are_the_same_to_the_bit(small: Experiment) -> None:
    again = beyond_signals.compare(_SMALL)
    assert (again.findings, again.table, again.notes) == (small.findings, small.table, small.notes)


def test_findings_are_the_largest_ratios_and_the_gain_at_one_crawl_per_change(small: Experiment) -> None:
    ncis, perfect, gain = small.findings
    assert ncis.value == max(float(row[7]) for row in small.table.rows)
    assert perfect.value == max(float(row[8]) for row in small.table.rows)
    assert [float(row[9]) for row in small.table.rows if row[:3] == (0.5, 0.7, 0.64)] == [gain.value]
    assert small.draw is not None
    assert len(small.draw().axes) == 2


def test_the_index_is_never_worse_than_ignoring_signals_or_than_others() -> None:
    population = draw_population("uniform", 80, 9)
    for cell in ((0.1, 0.9, 0.95), (0.5, 0.3, 0.13), (0.5, 0.7, 0.64)):
        costs = beyond_signals.costs_of(population, cell)
        assert costs["harmonic index"] == min(costs.values())


def test_believing_every_signal_costs_what_a_simulation_of_it_costs() -> None:
    population = Population(np.array([1.0, 2.0, 0.5]), np.array([0.4, 1.0, 2.0]))
    rate, recall, precision = cell = (0.7, 0.7, 0.64)
    told = beyond_signals.believing_cost(population, cell)
    price = _price(population, cell)
    random = np.random.default_rng(12)
    total = 0.0
    for importance, change_rate in zip(*population, strict=True):
        signal_rate = recall * change_rate / precision
        chance = min(1.0, importance / (price * signal_rate))
        total += importance * _simulated_cost((1 - recall) * change_rate, signal_rate, precision, chance, random)
    assert rate * 3 == pytest.approx(2.1)
    assert told == pytest.approx(total, rel=0.02)


def _price(population: Population, cell: tuple[float, float, float]) -> float:
    """The price at which coins at signals spend the budget, by bisection."""
    rate, recall, precision = cell
    signal_rate = recall * population.change_rate / precision
    low, high = 1e-6, 1e6
    for _ in range(200):
        middle = (low * high) ** 0.5
        used = np.minimum(signal_rate, population.importance / middle).sum()
        low, high = (middle, high) if used > rate * len(signal_rate) else (low, middle)
    return high


def _simulated_cost(
    silent_rate: float, signal_rate: float, precision: float, chance: float, random: np.random.Generator
) -> float:
    """Mean H(missed changes) over a long time, event by event."""
    total_rate = silent_rate + signal_rate
    events = 200_000
    waits = random.exponential(1 / total_rate, events)
    kinds, coins, truths = random.random((3, events))
    missed, cost, sum_cost = 0, 0.0, 0.0
    for wait, kind, coin, truth in zip(waits.tolist(), kinds.tolist(), coins.tolist(), truths.tolist(), strict=True):
        sum_cost += cost * wait
        signal = kind * total_rate < signal_rate
        if signal and coin < chance:
            missed, cost = 0, 0.0
        elif not signal or truth < precision:
            missed += 1
            cost += 1 / missed
    return sum_cost / float(waits.sum())


def test_closed_forms_of_the_index_and_of_ncis_agree_with_the_scheduler_that_runs_them() -> None:
    rates = np.random.default_rng(3).uniform(0.3, 1.0, 100)
    population = Population(rates.copy(), rates)  # importance/change rate is the same for all: nobody starves
    cell = (0.4, 0.7, 0.64)
    costs = beyond_signals.costs_of(population, cell)
    world = announce(world_of(population, 300.0, 8, name="alike"), 0.7, 0.64, seed=8)
    runs: tuple[tuple[str, Literal["harmonic", "freshness"], str], ...] = (
        ("price", "harmonic", "harmonic index"),
        ("greedy-ncis", "freshness", "GREEDY-NCIS"),
    )
    for policy, objective, name in runs:
        settings = Settings(objective=objective, policy=policy, rates="known", hearing="known")
        log = SchedulerCompetitor(name, settings).crawl(world, 0.4 * 100, seed=0)
        assert measure(world, log, 50.0).harmonic_cost == pytest.approx(costs[name], rel=0.05)
