"""Azar et al. 2018, figure 1: their exact rates made into a schedule, against the numerical optimum and rules of thumb.

Every policy is a set of rates that is crawled earliest deadline first; freshness is the expectation given these
crawls. The optimum is the even-spaced one, in closed form: no schedule with the same budget can be fresher.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from recrawl.lab.papers.experiment import Experiment, Finding, Scale, Table, mean_finding
from recrawl.lab.worlds.laws import draw_population
from recrawl.lab.worlds.world import CrawlLog, World, no_events
from recrawl.pages import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from recrawl.planning.solve import Solver

LAWS = ("zipf", "uniform")
POLICIES = ("edf", "change_directed", "importance", "uniform")
_NAMES = {
    "edf": "exact rates, EDF",
    "change_directed": "change-rate-directed",
    "importance": "importance-proportional",
    "uniform": "uniform",
    "spaced": "exact rates, evenly spaced",
}
_SPACED = "spaced"
_SOLVERS: dict[str, Solver] = {
    "edf": "azar", "change_directed": "even", "importance": "importance", "uniform": "uniform"
}  # fmt: skip
_AT_ONCE = 1e-12  # born just after 0: a page that is there, but has no copy


Ratios: TypeAlias = dict[tuple[str, float, str], list[float]]
Found: TypeAlias = dict[tuple[str, float, str], Finding]
"""By law of importance, budget and policy."""


@dataclass(frozen=True, slots=True)
class Setup:
    """How large the experiment is; the paper has 1,000 pages and does not name its budgets."""

    pages: int = 1_000
    budgets: tuple[float, ...] = (50.0, 100.0, 200.0, 500.0)
    repetitions: int = 10
    burn_in: float = 200.0
    horizon: float = 1_000.0


QUICK = Setup(repetitions=3, horizon=500.0)


def experiments(scale: Scale) -> Iterator[Experiment]:
    """Figure 1."""
    yield figure_1(QUICK if scale.quick else Setup())


def figure_1(setup: Setup) -> Experiment:
    """Run all policies on all laws of importance, budgets and populations."""
    cells = [(law, budget) for law in LAWS for budget in setup.budgets]
    best: dict[tuple[str, float], list[float]] = {cell: [] for cell in cells}
    ratios: Ratios = {(*cell, policy): [] for cell in cells for policy in (*POLICIES, _SPACED)}
    for law in LAWS:
        for repetition in range(setup.repetitions):
            importance, change_rate = draw_population(law, setup.pages, repetition)
            for budget in setup.budgets:
                optimum = planned_freshness("even", importance, change_rate, budget)
                best[law, budget].append(optimum)
                for policy in POLICIES:
                    fresh = freshness_of(policy, importance, change_rate, budget, setup)
                    ratios[law, budget, policy].append(fresh / optimum)
                spaced = planned_freshness("azar", importance, change_rate, budget)
                ratios[law, budget, _SPACED].append(spaced / optimum)
    found = {key: mean_finding(f"azar.fig1.{key[2]}", samples) for key, samples in ratios.items()}
    return Experiment(
        name="azar.fig1",
        title="Freshness of schedules as a share of the numerical optimum",
        table=_table(found, best),
        findings=tuple(_extreme(policy, found) for policy in ("edf", "change_directed", "uniform", "importance")),
        draw=partial(_draw, found, setup.budgets),
        notes=_notes(setup, found),
    )


def planned_freshness(solver: Solver, importance: Floats, change_rate: Floats, budget: float) -> float:
    """Freshness of a solver's rates if all crawls could be spaced evenly; `even` is the best of any schedule."""
    from recrawl.planning.solve import plan

    pages = {"importance": importance, "change_rate": change_rate}
    return plan(pages, budget, "freshness", solver).spaced("even").freshness


def freshness_of(policy: str, importance: Floats, change_rate: Floats, budget: float, setup: Setup) -> float:
    """Freshness after the burn-in of a policy's rates, crawled earliest deadline first from no copies at all."""
    from recrawl.lab.simulation.measures import measure

    world = World(
        name=policy,
        horizon=setup.horizon,
        importance=importance,
        changes=no_events(len(importance)),
        change_rate=change_rate,
        poisson=True,
        born=np.full(len(importance), _AT_ONCE),
        removed=np.full(len(importance), np.inf),
    )
    log = deadline_log(policy_rates(policy, importance, change_rate, budget), setup.horizon)
    return measure(world, log, setup.burn_in, expected=True).freshness


def policy_rates(policy: str, importance: Floats, change_rate: Floats, budget: float) -> Floats:
    """The rates of a policy; the change-rate-directed one is the optimum of pages of equal importance."""
    from recrawl.planning.solve import plan

    weights = np.ones(len(importance)) if policy == "change_directed" else importance
    return plan({"importance": weights, "change_rate": change_rate}, budget, "freshness", _SOLVERS[policy]).rates


def deadline_log(rates: Floats, horizon: float) -> CrawlLog:
    """Crawls up to a horizon, earliest deadline first. O(log pages) per crawl."""
    from recrawl.planning.schedules import schedule

    crawls = int(horizon * float(rates.sum()) + 1e-6)
    taken = np.fromiter(
        islice(schedule(rates, "edf"), crawls), dtype=[("time", np.float64), ("page", np.int32)], count=crawls
    )
    return CrawlLog(np.ascontiguousarray(taken["page"]), np.ascontiguousarray(taken["time"]))


def _extreme(policy: str, found: Found) -> Finding:
    """The finding for a claim: the least ratio where a policy should be close, the largest where it should not."""
    of_policy = [finding for key, finding in found.items() if key[2] == policy]
    pick = min if policy in ("edf", "importance") else max
    return pick(of_policy, key=lambda finding: finding.value)


def _table(found: Found, best: dict[tuple[str, float], list[float]]) -> Table:
    rows = [
        (law, budget, _NAMES[policy], float(np.mean(best[law, budget])), finding.value, finding.low, finding.high)
        for (law, budget, policy), finding in found.items()
    ]
    return Table(("importance", "budget", "policy", "optimum", "ratio", "low", "high"), rows)


def _draw(found: Found, budgets: tuple[float, ...]) -> Figure:
    from recrawl.plots.experiments import BarPanel, Series, bars_figure

    def series(law: str, policy: str) -> Series:
        cells = [found[law, budget, policy] for budget in budgets]
        return Series(_NAMES[policy], [c.value for c in cells], [c.low for c in cells], [c.high for c in cells])

    panels = [
        BarPanel(
            title=f"Importance {'Zipf(2) up to 10,000' if law == 'zipf' else 'uniform in (0, 1)'}",
            y_label="freshness / optimum",
            groups=[f"R = {budget:g}" for budget in budgets],
            series=[series(law, policy) for policy in POLICIES],
            reference=1.0,
        )
        for law in LAWS
    ]
    return bars_figure(panels)


def _notes(setup: Setup, found: Found) -> tuple[str, ...]:
    close = [finding.value for key, finding in found.items() if key[2] == "importance"]
    spaced = [finding.value for key, finding in found.items() if key[2] == _SPACED]
    shown = ", ".join(f"{budget:g}" for budget in setup.budgets)
    return (
        f"The paper's budget is not known; R = {shown} for {setup.pages:,} pages were chosen before anything was seen.",
        f"Means over {setup.repetitions} populations.",
        f"Pages start without a copy, and the first {setup.burn_in:g} of {setup.horizon:g} time units do not count.",
        "All rates are crawled earliest deadline first; freshness is exact in expectation given the crawls.",
        "The change-rate-directed policy has the optimal even-spaced rates of pages of equal importance.",
        f"The exact rates, perfectly evenly spaced, reach {min(spaced):.2%} to {max(spaced):.2%} of the optimum.",
        "So what the schedule misses is lost in the rates, which are best for crawls at random times.",
        f"Crawling in proportion to importance reaches {min(close):.1%} to {max(close):.1%} of the optimum.",
    )
