"""Measures of the group `signals` for trust: what listening is worth when everything about it has to be learned.

The scheduler itself crawls simulated worlds (`lab/worlds/announcing.py`): change rates are learned from crawls,
trust from audits, host by host. What it reaches is held against the optimum of someone who knows rates, recall and
precision (NCIS, Busa-Fekete et al. 2025), and against the same scheduler without ears in the same world.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from recrawl.bench.measure import Bound, Measure
from recrawl.bench.once import Once
from recrawl.bench.trust_readings import SHARES, WAYS, Ears, Outcome, Scene, TrustReadings, Way, optima
from recrawl.lab.parallel import workers

if TYPE_CHECKING:
    from recrawl.lab.worlds.world import World

_HONEST_ALONE = WAYS[:2]
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
    ways: tuple[Way, ...] = WAYS


def trust_measures(sizes: Sizes | None = None) -> tuple[Measure, ...]:
    """The measures, in the order they run; all share the same runs, and the first one pays."""
    sizes = sizes or Sizes()
    work = _readings(sizes, WAYS)
    tighter = _readings(sizes._replace(crawls_a_day=_TIGHTER), _HONEST_ALONE)
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


def _readings(sizes: Sizes, ways: tuple[Way, ...]) -> TrustReadings:
    """Readings that share the same runs."""

    def run_all() -> list[Outcome]:
        with workers(sizes.processes) as share:
            return share(run_task, [Task(sizes, seed, ways) for seed in range(sizes.seeds)])

    return TrustReadings(Once(run_all))


def run_task(task: Task) -> Outcome:
    """Crawl one world with all manners and ears. Ignoring signals is the same whatever the manners."""
    from recrawl.lab.worlds.signals import KIND

    sizes = task.sizes
    freshness = {(scene, ears): _freshness_of(task, scene, ears) for scene, ears in task.ways}
    return Outcome(freshness, *optima(_world(task, "honest"), KIND, sizes.pages * sizes.crawls_a_day))


def _world(task: Task, scene: Scene) -> World:
    from recrawl.lab.worlds.signals import Manners, announcing

    return announcing(task.sizes.pages, task.sizes.horizon, task.seed, Manners(*SHARES[scene]))


def _freshness_of(task: Task, scene: Scene, ears: Ears) -> float:
    from recrawl.lab.simulation.measures import measure
    from recrawl.lab.simulation.scheduler_run import SchedulerCompetitor, Settings
    from recrawl.lab.worlds.signals import taken_at_their_word

    sizes, world = task.sizes, _world(task, scene)
    shown = taken_at_their_word(world) if ears == "all" else world
    settings = Settings(
        objective="freshness",
        hearing={"none": "nothing", "learned": "learned", "all": "known"}[ears],  # type: ignore[arg-type]
        batch=sizes.batch,
    )
    log = SchedulerCompetitor("recrawl", settings).crawl(shown, sizes.pages * sizes.crawls_a_day, task.seed)
    return measure(world, log, start=sizes.warm_up / sizes.crawls_a_day).freshness
