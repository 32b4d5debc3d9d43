"""The scheduler that sells crawls at one price against schedules made from a plan: EDF on Azar's rates, and LDS.

All know the change rates and crawl one page at a time, at times k/R. Freshness is the expectation given the crawls.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recrawl.lab.papers.azar import deadline_log
from recrawl.lab.papers.experiment import Experiment, Scale, Table, mean_finding
from recrawl.lab.worlds.laws import uniform
from recrawl.lab.worlds.world import CrawlLog, World

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from recrawl.planning.solve import Solver

BUDGET = 100.0
_PLANNED: dict[str, Solver] = {"EDF": "azar", "LDS": "even"}


class Setup(NamedTuple):
    """How large the experiment is."""

    pages: int = 1_000
    repetitions: int = 10
    burn_in: float = 100.0
    horizon: float = 500.0


def scheduler_against_plans(scale: Scale) -> Experiment:
    """Freshness of the scheduler and of both schedules in the same worlds."""
    return compare(Setup(repetitions=3, horizon=200.0, burn_in=50.0) if scale.quick else Setup())


def compare(setup: Setup) -> Experiment:
    """Run all in each world; ratios are taken world by world."""
    fresh: dict[str, list[float]] = {name: [] for name in ("optimum", "scheduler", *_PLANNED)}
    for repetition in range(setup.repetitions):
        for name, freshness in freshness_in(uniform(setup.pages, setup.horizon, repetition), setup).items():
            fresh[name].append(freshness)
    ratios = {name: (np.array(fresh["scheduler"]) / fresh[name]).tolist() for name in fresh if name != "scheduler"}
    rows = [(name, *mean_finding("", samples)[1:]) for name, samples in fresh.items()]
    rows += [(f"scheduler over {name}", *mean_finding("", samples)[1:]) for name, samples in ratios.items()]
    return Experiment(
        name="beyond.scheduler",
        title="One price against schedules made from a plan",
        table=Table(("policy", "freshness", "low", "high"), rows),
        findings=(
            mean_finding("beyond.scheduler.against_edf", ratios["EDF"]),
            mean_finding("beyond.scheduler.against_lds", ratios["LDS"]),
        ),
        draw=partial(_draw, ratios),
        notes=(
            f"{setup.pages:,} pages, importance and change rate uniform in (0, 1), {BUDGET:g} crawls per unit time.",
            f"{setup.repetitions} worlds; the first {setup.burn_in:g} of {setup.horizon:g} time units do not count.",
            f"The scheduler reaches {np.mean(ratios['optimum']):.4%} of the optimum, which no schedule can beat.",
        ),
    )


def freshness_in(world: World, setup: Setup) -> dict[str, float]:
    """Freshness of each policy in a world, and of the even-spaced optimum."""
    from recrawl.lab.simulation.measures import measure
    from recrawl.lab.simulation.scheduler_run import SchedulerCompetitor, Settings
    from recrawl.planning.solve import plan

    pages = {"importance": world.importance, "change_rate": world.change_rate}
    plans = {name: plan(pages, BUDGET, "freshness", solver) for name, solver in _PLANNED.items()}
    ours = SchedulerCompetitor("price-known", Settings(objective="freshness", rates="known", hearing="nothing"))
    logs: dict[str, CrawlLog] = {"scheduler": ours.crawl(world, BUDGET, seed=0)}
    logs |= {name: deadline_log(made.rates, world.horizon) for name, made in plans.items()}
    measured = {name: measure(world, log, setup.burn_in, expected=True).freshness for name, log in logs.items()}
    return {"optimum": plans["LDS"].freshness, **measured}


def _draw(ratios: dict[str, list[float]]) -> Figure:
    from recrawl.plots.experiments import BarPanel, Series, bars_figure

    found = [mean_finding("", samples) for samples in ratios.values()]
    series = Series("ratio", [f.value for f in found], [f.low for f in found], [f.high for f in found])
    panel = BarPanel(
        title="Freshness of the scheduler",
        y_label="ratio of freshness",
        groups=[f"over {name}" for name in ratios],
        series=[series],
        bottom=0.98,
        reference=1.0,
    )
    return bars_figure([panel])
