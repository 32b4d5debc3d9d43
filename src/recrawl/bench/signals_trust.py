"""Measures of the group `signals` for trust: what listening is worth when everything about it has to be learned.

The scheduler itself crawls simulated worlds (`simulation/worlds/announcing.py`): change rates are learned from crawls,
trust from audits, host by host. What it reaches is held against the optimum of someone who knows rates, recall and
precision (NCIS, Busa-Fekete et al. 2025), and against the same scheduler without ears in the same world.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from recrawl.bench.measure import Bound, Measure, Reading
from recrawl.papers.workers import workers

if TYPE_CHECKING:
    from recrawl.simulation.world import World

Scene = Literal["honest", "useless", "mixture"]
Ears = Literal["none", "learned", "all"]

POINT = 0.01
_MANNERS: dict[Scene, tuple[float, float]] = {"honest": (0.3, 0.0), "useless": (0.0, 0.3), "mixture": (0.3, 0.3)}
_RUNS: tuple[tuple[Scene, Ears], ...] = (
    ("honest", "none"), ("honest", "learned"), ("useless", "learned"), ("mixture", "learned"), ("mixture", "all"),
)  # fmt: skip
_HONEST_ALONE = _RUNS[:2]
_TIGHTER = 0.1


class Sizes(NamedTuple):
    """How large the worlds are, how long they are crawled, and how often that is repeated."""

    pages: int = 2_000
    crawls_a_day: float = 0.25  # of a page, which changes every second day on average
    warm_up: float = 20.0  # crawls a page
    measured: float = 12.0
    seeds: int = 5
    processes: int = 2
    batch: int = 4

    @property
    def horizon(self) -> float:
        """Days."""
        return (self.warm_up + self.measured) / self.crawls_a_day


class Task(NamedTuple):
    """One world, and in which ways it is crawled."""

    sizes: Sizes
    seed: int
    runs: tuple[tuple[Scene, Ears], ...] = _RUNS


class Outcome(NamedTuple):
    """Freshness by scene and ears, and what the optima with and without signals of the honest scene would have."""

    freshness: dict[tuple[Scene, Ears], float]
    optimum: float
    optimum_without: float


def trust_measures(sizes: Sizes | None = None) -> tuple[Measure, ...]:
    """The measures, in the order they run; all share the same runs, and the first one pays."""
    sizes = sizes or Sizes()
    work, tighter = _Work(sizes, _RUNS), _Work(sizes._replace(crawls_a_day=_TIGHTER), _HONEST_ALONE)
    points = Bound("value", floor=-2)
    above = Bound("value", floor=0)
    return (
        Measure("honest_freshness", "points", "optimum that knows all", points, work.read_honest),
        Measure("honest_gain", "points", "gain of the optimum", points, work.read_gain),
        Measure("honest_gain_tighter", "points", "gain of the optimum", points, tighter.read_gain),
        Measure("useless_loss", "points", "ignoring signals", points, work.read_useless),
        Measure("mixture_over_trust_all", "points", "believing every signal", above, work.read_over_all),
        Measure("mixture_over_trust_none", "points", "ignoring signals", above, work.read_over_none),
    )


class _Work:
    """Runs that the measures share."""

    def __init__(self, sizes: Sizes, runs: tuple[tuple[Scene, Ears], ...]) -> None:
        self._sizes, self._runs = sizes, runs

    @cached_property
    def _outcomes(self) -> list[Outcome]:
        tasks = [Task(self._sizes, seed, self._runs) for seed in range(self._sizes.seeds)]
        with workers(self._sizes.processes) as share:
            return share(run_task, tasks)

    def _mean(self, scene: Scene, ears: Ears) -> float:
        return float(np.mean([outcome.freshness[scene, ears] for outcome in self._outcomes]))

    def _difference(self, ours: tuple[Scene, Ears], theirs: tuple[Scene, Ears]) -> Reading:
        """Points of freshness between two runs in the same worlds."""
        gaps = [(one.freshness[ours] - one.freshness[theirs]) / POINT for one in self._outcomes]
        shown = f"{self._mean(*theirs):.4f} against {self._mean(*ours):.4f}; {_spread(gaps)}"
        return Reading(float(np.mean(gaps)), None, shown)

    def read_honest(self) -> Reading:
        """Freshness with honest signals, less what the optimum would have."""
        key: tuple[Scene, Ears] = ("honest", "learned")
        gaps = [(one.freshness[key] - one.optimum) / POINT for one in self._outcomes]
        best = np.mean([one.optimum for one in self._outcomes])
        return Reading(float(np.mean(gaps)), None, f"{best:.4f} against {self._mean(*key):.4f}; {_spread(gaps)}")

    def read_gain(self) -> Reading:
        """What honest signals bring over ignoring them, less what they bring the optimum."""
        found = [one.freshness["honest", "learned"] - one.freshness["honest", "none"] for one in self._outcomes]
        best = [one.optimum - one.optimum_without for one in self._outcomes]
        gaps = [(ours - theirs) / POINT for ours, theirs in zip(found, best, strict=True)]
        away = np.mean([one.freshness["honest", "learned"] - one.optimum for one in self._outcomes]) / POINT
        shown = (
            f"{np.mean(best):.4f} against {np.mean(found):.4f}; {_spread(gaps)}; freshness {away:+.2f} off the optimum"
        )
        return Reading(float(np.mean(gaps)), None, shown)

    def read_useless(self) -> Reading:
        """What listening to signals at random times costs."""
        return self._difference(("useless", "learned"), ("honest", "none"))

    def read_over_all(self) -> Reading:
        """Honest and useless hosts: learned trust over believing all of them."""
        return self._difference(("mixture", "learned"), ("mixture", "all"))

    def read_over_none(self) -> Reading:
        """The same over believing none."""
        return self._difference(("mixture", "learned"), ("honest", "none"))


def run_task(task: Task) -> Outcome:
    """Crawl one world with all manners and ears. Ignoring signals is the same whatever the manners."""
    from recrawl.planning.solve import plan

    sizes = task.sizes
    freshness = {(scene, ears): _freshness_of(task, scene, ears) for scene, ears in task.runs}
    world = _world(task, "honest")
    quality = world.signals["sitemap"].quality
    assert quality is not None
    columns = {"importance": world.importance, "change_rate": world.change_rate}
    budget = sizes.pages * sizes.crawls_a_day
    noisy = {**columns, "recall": quality.recall, "precision": np.where(quality.recall > 0, quality.precision, 1.0)}
    optimum = plan(noisy, budget, "freshness", solver="signals").freshness
    return Outcome(freshness, optimum, plan(columns, budget, "freshness").freshness)


def _world(task: Task, scene: Scene) -> World:
    from recrawl.simulation.worlds.announcing import Manners, announcing

    return announcing(task.sizes.pages, task.sizes.horizon, task.seed, Manners(*_MANNERS[scene]))


def _freshness_of(task: Task, scene: Scene, ears: Ears) -> float:
    from recrawl.simulation.measures import measure
    from recrawl.simulation.scheduler_run import SchedulerCompetitor
    from recrawl.simulation.scheduler_run_settings import Settings
    from recrawl.simulation.worlds.announcing import taken_at_their_word

    sizes, world = task.sizes, _world(task, scene)
    shown = taken_at_their_word(world) if ears == "all" else world
    settings = Settings(
        objective="freshness",
        hearing={"none": "nothing", "learned": "learned", "all": "known"}[ears],  # type: ignore[arg-type]
        batch=sizes.batch,
    )
    log = SchedulerCompetitor("recrawl", settings).crawl(shown, sizes.pages * sizes.crawls_a_day, task.seed)
    return measure(world, log, start=sizes.warm_up / sizes.crawls_a_day).freshness


def _spread(gaps: list[float]) -> str:
    """The points of each world."""
    return "by world " + ", ".join(f"{gap:+.2f}" for gap in gaps)
