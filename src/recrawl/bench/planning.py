"""The group `planning`: speed, exactness and memory of plans, and speed of the special functions.

Pages are drawn by `web_population`; the budget is one crawl in five days per page. Times are CPU seconds, the best of
three after a warm-up. The yardsticks that need scipy's lambertw take tens of seconds for their 60 passes, so they
run once; a single run of so many passes is steady enough.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

import recrawl
from recrawl.bench import yardsticks
from recrawl.bench.measure import Bound, Measure, Reading, best_cpu_seconds, cpu_seconds
from recrawl.bench.memory import peak_memory
from recrawl.bench.plans import (
    EVEN_FRESHNESS,
    EVEN_HARMONIC,
    MILLION,
    MIXED,
    PLANS,
    RANDOM,
    PlanCase,
    budget_of,
    draw_millions,
)
from recrawl.lab.worlds.laws import web_population
from recrawl.pages import Floats

if TYPE_CHECKING:
    from recrawl.planning.plan import Plan
    from recrawl.planning.solve import Solver

_MANY_MILLIONS = 20
_SCALED = (MIXED, EVEN_HARMONIC)
_SLOW_YARDSTICKS = (EVEN_HARMONIC, EVEN_FRESHNESS)
_MB = 1e6


def measures() -> tuple[Measure, ...]:
    """The measures of the group; they share populations and timings, so each is drawn and timed once."""
    work = _Work()
    return (
        _speed(work, MIXED, "NumPy bisection", 10),
        _speed(work, RANDOM, "NumPy bisection", 10),
        _speed(work, EVEN_HARMONIC, "lambertw bisection", 20),
        _speed(work, EVEN_FRESHNESS, "lambertw bisection", 20),
        _passes(work, MIXED),
        _passes(work, RANDOM),
        *(_scaling(work, case) for case in _SCALED),
        *(_memory(case) for case in _SCALED),
        *_values(),
        Measure("kkt_residual_1m", "relative", "optimality conditions", Bound("value", limit=1e-9), work.read_gap),
        *_costs(work),
    )


class _Work:
    """What measures of the group share."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    @cached_property
    def population(self) -> dict[str, Floats]:
        """A million pages."""
        return web_population(MILLION)

    def seconds(self, case: PlanCase) -> float:
        """CPU seconds of a plan of a million pages."""
        if case.name not in self._seconds:
            self._seconds[case.name] = best_cpu_seconds(partial(case.plan, self.population))
        return self._seconds[case.name]

    @cached_property
    def seconds_of_many(self) -> dict[str, float]:
        """CPU seconds of plans of many million pages, which are drawn once and not kept."""
        columns = draw_millions(_MANY_MILLIONS, MIXED.columns)
        return {case.name: best_cpu_seconds(partial(case.plan, columns)) for case in _SCALED}

    def harmonic_cost(self, solver: Solver) -> float:
        """Harmonic staleness per page of a plan of a million pages."""
        columns = MIXED.pick(self.population)
        plan = recrawl.plan(columns, budget=budget_of(columns), objective="harmonic", solver=solver)
        return plan.costs.per_page().harmonic

    @cached_property
    def mixed_cost(self) -> float:
        """Harmonic staleness per page of the mixed plan."""
        return self.harmonic_cost("lambdacrawl")

    def read_gap(self) -> Reading:
        """The largest violation of the optimality conditions by any of the plans."""
        from recrawl.bench.optimality import optimality_gap

        gaps = {case.name: optimality_gap(case.plan(self.population)) for case in PLANS}
        worst = max(gaps, key=lambda name: gaps[name])
        return Reading(gaps[worst], None, f"worst is {worst}")


def _speed(work: _Work, case: PlanCase, yardstick: str, floor: float) -> Measure:
    def read() -> Reading:
        if case in _SLOW_YARDSTICKS:
            yardsticks.load_lambertw()
            plain = cpu_seconds(partial(case.solve_plainly, work.population))
        else:
            plain = best_cpu_seconds(partial(case.solve_plainly, work.population))
        ours = work.seconds(case)
        return Reading(ours, plain / ours, f"{plain:.3g} s")

    return Measure(f"{case.name}_1m", "s", yardstick, Bound("ratio", floor=floor), read)


def _passes(work: _Work, case: PlanCase) -> Measure:
    def read() -> Reading:
        plan: Plan = case.plan(work.population)
        return Reading(plan.passes, yardsticks.PASSES / plan.passes, f"{yardsticks.PASSES} passes")

    return Measure(f"{case.name}_passes", "passes", "bisection", Bound("value", limit=12), read)


def _scaling(work: _Work, case: PlanCase) -> Measure:
    def read() -> Reading:
        many, one = work.seconds_of_many[case.name], work.seconds(case)
        return Reading(many, many / one, f"{one:.3g} s")

    name = f"{case.name}_{_MANY_MILLIONS}m_scaling"
    return Measure(name, "s", "1 million pages", Bound("ratio", limit=24), read)


def _memory(case: PlanCase) -> Measure:
    def read() -> Reading:
        peak = peak_memory(case, _MANY_MILLIONS)
        return Reading(peak.extra_bytes / _MB, peak.extra_bytes / peak.input_bytes, f"{peak.input_bytes / _MB:.0f} MB")

    name = f"{case.name}_{_MANY_MILLIONS}m_memory"
    return Measure(name, "MB", "input arrays", Bound("ratio", limit=1.5), read)


def _values() -> tuple[Measure, ...]:
    def read_g() -> Reading:
        from recrawl.values import shape_g

        x = _changes_per_crawl()
        return _compare_values(partial(shape_g, x), partial(yardsticks.g_by_formula, x))

    def read_inverse_g() -> Reading:
        from recrawl.values import inverse_shape_g, shape_g

        level = np.minimum(shape_g(_changes_per_crawl()), 1 - 1e-15)
        plain = partial(yardsticks.inverse_g_by_lambertw, yardsticks.load_lambertw(), level)
        return _compare_values(partial(inverse_shape_g, level), plain)

    def read_inverse_h() -> Reading:
        from recrawl.values import inverse_shape_h, shape_h

        level = shape_h(_changes_per_crawl())
        plain = partial(yardsticks.inverse_h_by_lambertw, yardsticks.load_lambertw(), level)
        return _compare_values(partial(inverse_shape_h, level), plain)

    unit = "million/s"
    return (
        Measure("values_g", unit, "NumPy formula", Bound("value", floor=20), read_g),
        Measure("values_inverse_g", unit, "SciPy lambertw", Bound("value", floor=5), read_inverse_g),
        Measure("values_inverse_h", unit, "SciPy lambertw", Bound("value", floor=5), read_inverse_h),
    )


def _changes_per_crawl() -> Floats:
    """From a page crawled a thousand times per change to one that changes a hundred times per crawl."""
    return np.logspace(-3, 2, MILLION)


def _compare_values(ours: Callable[[], object], plain: Callable[[], object]) -> Reading:
    per_second, plainly = 1 / best_cpu_seconds(ours), 1 / best_cpu_seconds(plain)
    return Reading(per_second, per_second / plainly, f"{plainly:.3g} million/s")


def _costs(work: _Work) -> tuple[Measure, ...]:
    def read_mixed() -> Reading:
        return Reading(work.mixed_cost, None, "about 1.20")

    def read_baseline(solver: Solver) -> Reading:
        cost = work.harmonic_cost(solver)
        return Reading(cost, cost / work.mixed_cost, f"{work.mixed_cost:.3f}")

    unit = "per page"
    uniform, proportional = Bound("value", floor=3.9, limit=4.3), Bound("value", floor=7.5, limit=8.5)
    return (
        Measure("mixed_harmonic_cost", unit, "expected", Bound("value", limit=1.25), read_mixed),
        Measure(
            "uniform_harmonic_cost", unit, "about 4.1; mixed plan", uniform,
            partial(read_baseline, "uniform"),
        ),
        Measure(
            "proportional_harmonic_cost", unit, "about 8; mixed plan", proportional,
            partial(read_baseline, "proportional"),
        ),
    )  # fmt: skip
