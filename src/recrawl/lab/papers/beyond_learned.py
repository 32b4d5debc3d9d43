"""Change rates learned on the way against known ones: the same scheduler, the same worlds.

Who learns starts from no knowledge of any page, and hears of each crawl only whether the page had changed. What is
judged is the scheduler as it comes, whose prior has rates around what a page is crawled on average. Beside it stands
one whose prior was fitted to the crawls of another world of the same law, as by a crawler that has met such pages
before. Freshness and harmonic cost are the expectation given the crawls, over the last half of the time.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from recrawl.lab.papers.experiment import Experiment, Finding, Scale, Table, mean_finding
from recrawl.lab.worlds.laws import poisson_world
from recrawl.lab.worlds.world import World
from recrawl.pages import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from recrawl.lab.worlds.world import CrawlLog
    from recrawl.learning.grid import RatePrior

Judged: TypeAlias = Literal["freshness", "harmonic"]
Knowledge: TypeAlias = Literal["known", "learned", "learned, fitted prior"]
OBJECTIVES: tuple[Judged, Judged] = ("freshness", "harmonic")
LAWS = ("uniform", "web")
LEARNERS: tuple[Knowledge, Knowledge] = ("learned", "learned, fitted prior")
_ELSEWHERE = 1_000  # the seed of the world that a prior is fitted to

Found: TypeAlias = dict[tuple[str, Judged, Knowledge], Finding]


class Setup(NamedTuple):
    """How large the experiment is: time is in days; the budget is crawls per page and day."""

    pages: int = 1_000
    crawls_per_page: float = 0.2
    repetitions: int = 5
    horizon: float = 150.0


def learned_against_known(scale: Scale) -> Experiment:
    """Learned and known rates under both objectives, in both populations."""
    return compare(Setup(pages=500, repetitions=2, horizon=60.0) if scale.quick else Setup())


def compare(setup: Setup) -> Experiment:
    """Run all in each world; ratios are taken world by world, and the worse population counts."""
    rows: list[tuple[str | float, ...]] = []
    ratios: Found = {}
    for law in LAWS:
        prior = prior_from(poisson_world(law, setup.pages, setup.horizon, _ELSEWHERE), setup)
        worlds = [poisson_world(law, setup.pages, setup.horizon, seed) for seed in range(setup.repetitions)]
        for objective in OBJECTIVES:
            known = np.array([judge(world, objective, "known", None, setup) for world in worlds])
            for learner in LEARNERS:
                learned = np.array([judge(world, objective, learner, prior, setup) for world in worlds])
                found = mean_finding(f"beyond.learned.{objective}", (learned / known).tolist())
                ratios[law, objective, learner] = found
                rows.append((law, objective, learner, float(known.mean()), float(learned.mean()), *found[1:]))
    return Experiment(
        name="beyond.learned",
        title="Change rates learned on the way against known ones",
        table=Table(("population", "objective", "learner", "known", "learned", "ratio", "low", "high"), rows),
        findings=(
            min((ratios[law, "freshness", "learned"] for law in LAWS), key=lambda found: found.value),
            max((ratios[law, "harmonic", "learned"] for law in LAWS), key=lambda found: found.value),
        ),
        draw=partial(_draw, ratios),
        notes=_notes(setup, ratios),
    )


def judge(world: World, objective: Judged, knowledge: Knowledge, prior: RatePrior | None, setup: Setup) -> float:
    """Freshness, or harmonic cost per unit importance, of the scheduler in the last half of a world's time."""
    from recrawl.lab.simulation.measures import measure

    log = run_scheduler(world, objective, knowledge, prior, setup)
    found = measure(world, log, setup.horizon / 2, expected=True)
    return found.freshness if objective == "freshness" else found.harmonic_cost


def run_scheduler(
    world: World, objective: Judged, knowledge: Knowledge, prior: RatePrior | None, setup: Setup
) -> CrawlLog:
    """The crawls of a scheduler that is told the rates, or learns them, with the prior or without."""
    from recrawl.lab.simulation.scheduler_run import SchedulerCompetitor, Settings

    settings = Settings(
        objective=objective,
        rates="known" if knowledge == "known" else "learned",
        hearing="nothing",
        prior=prior if knowledge == "learned, fitted prior" else None,
    )
    return SchedulerCompetitor(knowledge, settings).crawl(world, setup.crawls_per_page * len(world), seed=0)


def prior_from(world: World, setup: Setup) -> RatePrior:
    """The prior of rates that the crawls of a learner in this world show."""
    from recrawl.learning.histories import histories_from_log
    from recrawl.learning.prior import fit_prior

    log = run_scheduler(world, "harmonic", "learned", None, setup)
    # All pages have a copy of time 0, which the first crawl of each is compared with.
    page = np.concatenate([np.arange(len(world)), log.page])
    time = np.concatenate([np.zeros(len(world)), log.time])
    return fit_prior(histories_from_log(page, time, changed_since(world, page, time), len(world)))


def changed_since(world: World, page: NDArray[np.int64], time: Floats) -> NDArray[np.bool_]:
    """Whether each crawl of a log in order of time saw a change since the crawl of the page before. O(n log n)."""
    order = np.lexsort((time, page))
    happened = np.empty(len(page), dtype=np.int64)
    for at, (one, now) in enumerate(zip(page[order].tolist(), time[order].tolist(), strict=True)):
        first, last = world.changes.offsets[one], world.changes.offsets[one + 1]
        happened[at] = np.searchsorted(world.changes.times[first:last], now, side="right")
    flags = np.zeros(len(page), dtype=np.bool_)
    same = page[order][1:] == page[order][:-1]
    flags[order[1:]] = same & (happened[1:] > happened[:-1])
    return flags


def _notes(setup: Setup, ratios: Found) -> tuple[str, ...]:
    fitted = min(ratios[law, "freshness", LEARNERS[1]].value for law in LAWS)
    return (
        f"{setup.repetitions} worlds of {setup.pages:,} pages, {setup.crawls_per_page:g} crawls per page and day.",
        f"Of {setup.horizon:g} days the last half counts.",
        "Importance and change rate uniform in (0, 1), or as on the web: lognormal, rates over four decades.",
        "Of both populations the worse one counts.",
        "The scheduler's own prior has rates around what a page is crawled on average.",
        f"With a prior fitted to another world of the same law the least ratio of freshness is {fitted:.3f}.",
    )


def _draw(ratios: Found) -> Figure:
    from recrawl.plots.experiments import BarPanel, Series, bars_figure

    def series(objective: Judged, learner: Knowledge) -> Series:
        found = [ratios[law, objective, learner] for law in LAWS]
        return Series(learner, [f.value for f in found], [f.low for f in found], [f.high for f in found])

    panels = [
        BarPanel(
            title=f"{'Freshness' if objective == 'freshness' else 'Harmonic cost'} over that with known rates",
            y_label="ratio",
            groups=[f"{law} population" for law in LAWS],
            series=[series(objective, learner) for learner in LEARNERS],
            reference=1.0,
            bottom=0.8,
        )
        for objective in OBJECTIVES
    ]
    return bars_figure(panels)
