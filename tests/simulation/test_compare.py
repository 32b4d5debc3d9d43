from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from lab_worlds import steady_world
from scipy.stats import t

from recrawl.errors import InvalidInput
from recrawl.lab.simulation.compare import Trial, compare, equal_budget, mean_of, seeds_of, student_95
from recrawl.lab.simulation.fixed_rates import FixedRates, RoundRobin
from recrawl.lab.worlds.registry import build_world

PLAN = FixedRates(name="plan", by="plan")
TRIAL = Trial(
    make_world=partial(build_world, "web", 60, 20.0),
    competitors=(RoundRobin(), PLAN),
    budget=20.0,
    start=5.0,
    repetitions=4,
)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 7, 9, 30, 200])
def test_student_is_that_of_scipy(freedom: int) -> None:
    assert student_95(freedom) == pytest.approx(t.ppf(0.975, freedom), rel=1e-3)


def test_the_answer_does_not_depend_on_the_workers() -> None:
    told: list[tuple[int, int]] = []
    alone = compare(TRIAL, progress=lambda done, of: told.append((done, of)))
    together = compare(TRIAL, workers=2)
    assert alone == together
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_differences_are_paired() -> None:
    comparison = compare(TRIAL)
    more = comparison.difference("plan", "round-robin", "freshness")
    pairs = np.subtract(comparison.samples["plan"]["freshness"], comparison.samples["round-robin"]["freshness"])
    assert more.value == pytest.approx(pairs.mean())
    assert more.low < more.value < more.high
    assert more.low > 0
    assert comparison.difference("plan", "plan", "freshness") == (0.0, 0.0, 0.0)
    document = comparison.as_json(reference="round-robin")
    assert document["plan"]["freshness"]["more"] == more.value


def test_repetitions_have_worlds_of_their_own() -> None:
    samples = compare(TRIAL).samples["plan"]["freshness"]
    assert len(set(samples)) == 4
    assert len({seeds_of(0, number) for number in range(100)}) == 100


def test_an_interval_holds_the_mean_nineteen_times_in_twenty() -> None:
    random = np.random.default_rng(1)
    held = [mean.low <= 0 <= mean.high for mean in (mean_of(random.normal(size=8).tolist()) for _ in range(2000))]
    assert np.mean(held) == pytest.approx(0.95, abs=0.02)


def test_the_plan_needs_less_budget_to_equal_round_robin() -> None:
    trial = Trial(
        make_world=lambda seed: steady_world(seed=seed), competitors=(RoundRobin(),), budget=60.0, repetitions=2
    )
    target = compare(trial).mean("round-robin", "freshness").value
    answer = equal_budget(trial, PLAN, target)
    assert answer.reached
    assert 5.0 < answer.budget < 55.0
    assert answer.score >= target
    short = equal_budget(trial, PLAN, 0.9999)
    assert (short.reached, short.budget) == (False, 60.0)


def test_a_budget_that_is_too_little_is_raised_until_it_is_enough() -> None:
    """Up to the most that is allowed; the answer is that of a search from above."""
    trial = Trial(
        make_world=lambda seed: steady_world(seed=seed), competitors=(RoundRobin(),), budget=60.0, repetitions=2
    )
    target = compare(trial).mean("round-robin", "freshness").value
    small = replace(trial, budget=5.0)
    answer = equal_budget(small, RoundRobin(), target, most=200.0)
    assert answer.reached
    assert answer.budget == pytest.approx(60.0, rel=0.1)
    assert answer.score >= target
    short = equal_budget(small, RoundRobin(), target, most=20.0)
    assert (short.reached, short.budget) == (False, 20.0)
    assert short.score < target


def test_a_target_that_needs_no_crawls_is_equalled_by_the_least_budget() -> None:
    trial = Trial(make_world=lambda seed: steady_world(seed=seed), competitors=(PLAN,), budget=64.0)
    answer = equal_budget(trial, PLAN, 0.0)
    assert (answer.reached, answer.budget) == (False, 64.0 / 1024)


def test_costs_are_equalled_from_above() -> None:
    trial = Trial(
        make_world=lambda seed: steady_world(seed=seed), competitors=(RoundRobin(),), budget=60.0, repetitions=2
    )
    target = compare(trial).mean("round-robin", "harmonic_cost").value
    harmonic = FixedRates(name="plan", by="plan", objective="harmonic")
    answer = equal_budget(trial, harmonic, target, score="harmonic_cost")
    assert answer.reached
    assert answer.budget < 55.0
    assert answer.score <= target


def test_bad_trials_are_refused() -> None:
    with pytest.raises(InvalidInput, match="competitors"):
        Trial(make_world=steady_world, competitors=(), budget=1.0)
    with pytest.raises(InvalidInput, match="twice"):
        Trial(make_world=steady_world, competitors=(PLAN, PLAN), budget=1.0)
    with pytest.raises(InvalidInput, match="repetitions"):
        Trial(make_world=steady_world, competitors=(PLAN,), budget=1.0, repetitions=0)
