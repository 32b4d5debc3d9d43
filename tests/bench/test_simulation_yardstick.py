from __future__ import annotations

import numpy as np
import pytest

from recrawl.bench.measure import run
from recrawl.bench.simulation import Sizes, at_plan_price, measures, phases, turns
from recrawl.bench.simulation_yardstick import PythonAdaptive, PythonPolicy, PythonRates, PythonRoundRobin, python_loop
from recrawl.lab.peers.registry import make_peer
from recrawl.lab.simulation.due_queue import chance_of
from recrawl.lab.simulation.fixed_rates import FixedRates, RoundRobin
from recrawl.lab.simulation.measures import measure
from recrawl.lab.simulation.policy import Competitor
from recrawl.lab.simulation.scenarios import make_contender
from recrawl.lab.worlds.registry import build_world
from recrawl.lab.worlds.world import World

SEED = 5


def assert_same(world: World, competitor: Competitor, policy: PythonPolicy, tolerance: float) -> None:
    budget = 0.2 * len(world)
    ours = measure(world, competitor.crawl(world, budget, SEED))
    theirs = python_loop(world, policy, budget)
    for name in ("freshness", "harmonic_cost", "age", "completeness", "delay", "wasted", "starved", "peak_rate"):
        assert getattr(theirs, name) == pytest.approx(getattr(ours, name), rel=tolerance, abs=tolerance / 10)
    assert theirs.delays == pytest.approx(ours.delays, rel=tolerance, abs=tolerance)
    tenths = [tenth.freshness for tenth in ours.deciles]
    assert theirs.freshness_by_decile == pytest.approx(tenths, rel=tolerance)
    assert theirs.events == np.count_nonzero(world.changes.times > 0) + round(budget * world.horizon)


def test_the_loop_with_round_robin_measures_what_the_simulator_does() -> None:
    world = build_world("web", 200, 30.0, SEED)
    assert_same(world, RoundRobin(), PythonRoundRobin(turns(200)), 1e-9)


def test_the_loop_with_plan_rates_measures_what_the_simulator_does() -> None:
    world = build_world("web", 200, 30.0, SEED)
    planned = FixedRates(name="plan", by="plan")
    first = [chance_of(SEED, page, 0) for page in range(200)]
    assert_same(world, planned, PythonRates(planned.rates(world, 40.0).tolist(), first), 1e-9)


def test_the_loop_with_an_interval_rule_measures_what_the_simulator_does() -> None:
    world = build_world("web", 200, 30.0, SEED)
    assert_same(world, make_peer("stormcrawler-adaptive-scaled"), PythonAdaptive(phases(world)), 1e-9)


def test_the_loop_at_the_price_of_the_plan_is_nearly_as_good_as_the_scheduler() -> None:
    world = build_world("web", 500, 60.0, SEED)
    ours = measure(world, make_contender("recrawl-harmonic-known").crawl(world, 100.0, SEED), expected=True)
    theirs = python_loop(world, at_plan_price(world, 100.0), 100.0)
    assert theirs.harmonic_cost == pytest.approx(ours.harmonic_cost, rel=0.1)


def test_every_measure_of_the_group_can_be_read() -> None:
    for each in measures(Sizes(many=400, few=100, days=10.0)):
        result = run(each)
        assert result.reason is None
        assert result.reading is not None
        assert result.reading.value >= 0
