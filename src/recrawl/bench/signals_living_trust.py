"""Measures of the group `signals` on the living web for trust: the scenes of `signals_trust.py` with the whole tracker.

Pages are fetched over HTTP, change rates are learned from what came, and sites tell of changes over HTTP too
(`living_telling.py`). What the tracker reaches is held against the optimum of someone who knows rates, recall and
precision (NCIS, Busa-Fekete et al. 2025), against a tracker that is told nothing, and against one that fetches at once
whatever it is told of. Truth comes from the web itself. `recrawl bench signals` has one web; the mean of several:

    python -m recrawl.bench.signals_living_trust 5
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recrawl.bench.living_run import LivingRun, crawl, living_settings
from recrawl.bench.living_telling import TOLD_AS, Teller, said_in, telling
from recrawl.bench.living_truth import calm_world, lasting_pages, log_of, truth_of
from recrawl.bench.measure import Bound, Measure, run
from recrawl.bench.once import Once
from recrawl.bench.trust_readings import SHARES, WAYS, Outcome, TrustReadings, Way, optima
from recrawl.lab.parallel import workers

if TYPE_CHECKING:
    from recrawl.lab.livingweb.server import LivingWeb
    from recrawl.tracker.settings.settings import Settings

_HICCUP_DAYS = 0.5


class Sizes(NamedTuple):
    """How large the webs are, how long they are crawled, how fast their time goes, and how many there are."""

    pages: int = 3_000  # of which more than 2,000 last
    hosts: int = 24
    changes_a_day: float = 0.4  # of a page by itself, on average
    crawls_a_day: float = 0.25  # of a page
    warm_up: float = 20.0  # crawls a page
    measured: float = 8.0
    speedup: float = 55_000.0
    seeds: int = 1
    processes: int = 2

    @property
    def days(self) -> float:
        """All of them."""
        return (self.warm_up + self.measured) / self.crawls_a_day


class Task(NamedTuple):
    """One web, what its sites are like, and how far they are believed."""

    sizes: Sizes
    seed: int
    way: Way


class Crawl(NamedTuple):
    """What came of one: freshness, what the optima with and without signals would have, and its size for people."""

    freshness: float
    optima: tuple[float, float]
    size: str


def living_trust_measures(sizes: Sizes | None = None) -> tuple[Measure, ...]:
    """The measures, in the order they run; all share the same runs, and the first one pays."""
    work = _readings(sizes or Sizes())
    points, above = Bound("value", floor=-2), Bound("value", floor=0)
    return (
        Measure("living_honest_freshness", "points", "optimum that knows all", points, work.read_honest),
        Measure("living_honest_gain", "points", "gain of the optimum", points, work.read_gain),
        Measure("living_useless_loss", "points", "ignoring signals", points, work.read_useless),
        Measure("living_mixture_over_trust_all", "points", "believing every signal", above, work.read_over_all),
        Measure("living_mixture_over_trust_none", "points", "ignoring signals", above, work.read_over_none),
    )


def _readings(sizes: Sizes) -> TrustReadings:
    """Readings that share the same runs."""

    def run_all() -> list[Outcome]:
        tasks = [Task(sizes, seed, way) for seed in range(1, sizes.seeds + 1) for way in WAYS]
        with workers(sizes.processes) as share:
            found = share(run_task, tasks)
        return [_together(found[start : start + len(WAYS)]) for start in range(0, len(found), len(WAYS))]

    return TrustReadings(Once(run_all))


def _together(crawls: Sequence[Crawl]) -> Outcome:
    """One web, crawled in all ways."""
    by_way = dict(zip(WAYS, crawls, strict=True))
    honest = by_way["honest", "learned"]
    return Outcome({way: each.freshness for way, each in by_way.items()}, *honest.optima, honest.size)


def run_task(task: Task) -> Crawl:
    """Crawl a web whose sites tell of changes; what the copies were worth."""
    from recrawl.lab.simulation.measures import measure
    from recrawl.lab.worlds.signals import KIND
    from recrawl.tracker.admission import PageRequest

    sizes, (scene, ears) = task.sizes, task.way
    world = calm_world(
        sizes.pages, sizes.hosts, task.seed, laws="poisson", decades=1.0, changes_per_day=sizes.changes_a_day
    )
    pages, urls = lasting_pages(world, sizes.days), list[str]()
    importance = np.random.default_rng([task.seed, 7]).uniform(0.0, 1.0, len(pages))
    hosts = np.array([world.pages.host[page] for page in pages], dtype=np.int64)
    truth = telling(truth_of(world, pages, sizes.days, importance), hosts, SHARES[scene], task.seed)

    def wanted(web: LivingWeb) -> list[PageRequest]:
        urls.extend(web.url(page) for page in pages)
        return [PageRequest(url, each) for url, each in zip(urls, importance.tolist(), strict=True)]

    living, budget = LivingRun(world, sizes.days, sizes.speedup), sizes.crawls_a_day * len(pages)
    teller = None if ears == "none" else Teller(living, said_in(truth), urls, wishes=ears == "all")
    # Each host is asked for its robots.txt once a day, which the plan knows nothing of.
    spent = budget + sizes.hosts
    log = log_of(crawl(living, lambda web, folder: _settings(spent, web, folder), wanted, teller), urls)
    told = 0 if teller is None else teller.told
    return Crawl(
        measure(truth, log, start=sizes.warm_up / sizes.crawls_a_day).freshness,
        optima(truth, KIND, budget),
        f"{len(pages):,} pages, {len(log.page):,} crawls, {told:,} announcements",
    )


def _settings(budget: float, web: LivingWeb, folder: str) -> Settings:
    from recrawl.tracker.settings.settings import SignalRules

    signals = SignalRules(kinds=(TOLD_AS,))
    return living_settings(web, folder, budget, _HICCUP_DAYS, objective="freshness", signals=signals)


def main(seeds: int) -> None:
    """Print each measure for so many webs."""
    for measure in living_trust_measures(Sizes(seeds=seeds)):
        found = run(measure)
        sys.stdout.write(f"{measure.name}: {found.reading or found.reason}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]))
