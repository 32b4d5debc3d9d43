"""The scheduler that sells crawls at one price against schedules made from a plan: EDF on Azar's rates, and LDS.

All know the change rates and crawl one page at a time, at times k/R. Freshness is the expectation given the crawls.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recrawl.lab.papers.azar import deadline_log
from recrawl.lab.papers.experiment import Experiment, Finding, Scale, Table, mean_finding
from recrawl.lab.papers.wic import stationary_gain, stationary_index
from recrawl.lab.worlds.laws import uniform
from recrawl.lab.worlds.world import CrawlLog, World
from recrawl.pages import Floats
from recrawl.plots.experiments import BarPanel, Series, bars_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from recrawl.planning.solve import Solver

Rule = Callable[..., Floats]

_CELLS = tuple((urgency, overwrites) for overwrites in (False, True) for urgency in (0.5, 0.9, 0.99))
_SET_UP = (
    "500 pages, 25 crawls an instant; change probabilities log-uniform from 0.001 to 0.9, importance exponential; the "
    "first quarter of the instants is not counted."
)


BUDGET = 100.0
_PLANNED: dict[str, Solver] = {"EDF": "azar", "LDS": "even"}


class Pages(NamedTuple):
    """Pages that change alike in every instant."""

    importance: Floats
    probability: Floats
    urgency: float
    overwrites: bool


def index_against_greedy(scale: Scale) -> Experiment:
    """The stationary index against WIC's greedy, where pages change alike in every instant.

    The greedy crawls what would capture most now; the index also asks what waiting would add. Both spend the same
    crawls; what they capture is counted in expectation, given when they crawled.

    Utility per instant of both rules, for several urgencies and lives.
    """
    runs, instants = (5, 1500) if scale.quick else (20, 4000)
    ratios = {
        cell: [_ratio(draw_pages(500, seed, *cell), crawls=25, instants=instants) for seed in range(runs)]
        for cell in _CELLS
    }
    found: dict[tuple[float, bool], Finding] = {cell: mean_finding("", ratios[cell]) for cell in _CELLS}
    least = min(_CELLS, key=lambda cell: found[cell].value)
    rows = [
        ("overwrite" if overwrites else "append", urgency, *found[urgency, overwrites][1:])
        for urgency, overwrites in _CELLS
    ]
    panel = BarPanel(
        "Index over greedy", "ratio of utility per instant", [f"{row[0]}\nr = {row[1]:g}" for row in rows],
        [Series("index / greedy", *(np.array([row[at] for row in rows], dtype=np.float64) for at in (2, 3, 4)))],
        bottom=0.98, reference=1.0,
    )  # fmt: skip
    return Experiment(
        "beyond.index",
        "The stationary index against WIC's greedy",
        Table(("life", "urgency", "index over greedy", "low", "high"), rows),
        (mean_finding("beyond.index.against_wic", ratios[least]),),
        lambda: bars_figure([panel]),
        (_SET_UP,),
    )


def draw_pages(pages: int, seed: int, urgency: float, overwrites: bool) -> Pages:
    """Pages of many change probabilities."""
    random = np.random.Generator(np.random.PCG64([seed, pages]))
    probability = np.exp(random.uniform(np.log(0.001), np.log(0.9), pages))
    return Pages(random.exponential(1.0, pages), probability, urgency, overwrites)


def _ratio(pages: Pages, crawls: int, instants: int) -> float:
    return captured(pages, stationary_index, crawls, instants) / captured(pages, stationary_gain, crawls, instants)


def captured(pages: Pages, rule: Rule, crawls: int, instants: int) -> float:
    """Utility per instant if the pages of largest value by a rule are crawled. O(pages · instants)."""
    elapsed = np.zeros(len(pages.importance))
    total = 0.0
    begin = instants // 4
    for now in range(instants):
        elapsed += 1.0
        values = rule(pages.importance, pages.probability, elapsed, pages.urgency, pages.overwrites)
        chosen = np.argsort(-values, kind="stable")[:crawls]
        if now >= begin:
            gains = stationary_gain(
                pages.importance[chosen], pages.probability[chosen], elapsed[chosen], pages.urgency, pages.overwrites
            )
            total += float(gains.sum())
        elapsed[chosen] = 0.0
    return total / (instants - begin)


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
