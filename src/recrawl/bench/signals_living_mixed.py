"""Measures of the group `signals` for one market on the living web: one tracker refreshes pages and finds news.

A third of the sites have hubs with articles that fade within hours; all sites have pages that change, and are asked for
about as often. One tracker with everything is held against two trackers with a fixed part of the budget each, in steps
of a tenth: one that only refreshes, one that only finds news. What counts is requests a day that find a fresh copy,
and clicks a day that find an article crawled. Everything is learned, over HTTP.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from recrawl.bench import signals_living_news as news
from recrawl.bench.living_run import LivingRun, crawl
from recrawl.bench.living_truth import lasting_pages, log_of, truth_of
from recrawl.bench.measure import Bound, Measure, Reading
from recrawl.bench.once import Once
from recrawl.bench.split_readings import Captured, against_best, better_in_both
from recrawl.lab.parallel import workers

if TYPE_CHECKING:
    from recrawl.lab.livingweb.server import LivingWeb
    from recrawl.lab.livingweb.world import LivingWorld
    from recrawl.tracker.admission import PageRequest

Part = Literal["both", "refreshing", "news"]
_PARTS: tuple[Part, Part] = ("refreshing", "news")
_HOME = 0.01  # importance of a home page: it is there to be read for links


class Sizes(NamedTuple):
    """How large the web is, how long it is crawled, and how fast its time goes."""

    hosts: int = 24
    pages: int = 600
    clicks_a_day: float = 25.0  # of a page
    crawls_a_day: float = 1_500.0
    learning_days: float = 5.0
    measured_days: float = 3.5
    speedup: float = 14_000.0
    seed: int = 3
    parts: int = 10
    processes: int = 2

    @property
    def days(self) -> float:
        """All of them."""
        return self.learning_days + self.measured_days


class Task(NamedTuple):
    """A tracker with a budget, and what it is for."""

    sizes: Sizes
    part: Part
    crawls_a_day: float


def living_mixed_measures(sizes: Sizes | None = None) -> tuple[Measure, ...]:
    """The measures, in the order they run; both share the same runs, and the first one pays."""
    work = _Work(sizes or Sizes())
    best = "best fixed split"
    return (
        Measure("living_mixed_market", "requests/day", best, Bound("ratio", floor=1), work.read_together),
        Measure("living_mixed_better_in_both", "splits", "one market", Bound("value", limit=0), work.read_dominating),
    )


class _Work:
    """Runs that the measures share."""

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        self._captured = Once(self._run_all)

    def _run_all(self) -> tuple[Captured, list[Captured]]:
        """By one market, and by each fixed split, in tenths that refreshing has."""
        sizes = self._sizes
        shares = [sizes.crawls_a_day * part / sizes.parts for part in range(1, sizes.parts)]
        tasks = [Task(sizes, "both", sizes.crawls_a_day)]
        tasks += [Task(sizes, part, share) for part in _PARTS for share in shares]
        with workers(sizes.processes) as share:
            market, *found = share(run_task, tasks)
        refreshing, finding = found[: len(shares)], found[len(shares) :]
        return market, [
            Captured(one.fresh, other.hits) for one, other in zip(refreshing, reversed(finding), strict=True)
        ]

    def read_together(self) -> Reading:
        """What one tracker captures of both, against the best split."""
        return against_best(*self._captured())

    def read_dominating(self) -> Reading:
        """How many fixed splits capture more of both than one tracker does."""
        return better_in_both(*self._captured())


def make_world(sizes: Sizes) -> LivingWorld:
    """The web of the news, with pages that change at known rates and are asked for."""
    return news.make_world(
        news.Sizes(hosts=sizes.hosts, pages=sizes.pages, seed=sizes.seed),
        laws="poisson",
        decades=1.0,
        clicks_per_day=sizes.clicks_a_day,
        interest="uniform",
    )


def run_task(task: Task) -> Captured:
    """Crawl the web with one tracker; what it captured a day."""
    from recrawl.lab.simulation.measures import measure
    from recrawl.tracker.admission import PageRequest

    sizes, world = task.sizes, make_world(task.sizes)
    pages, urls = lasting_pages(world, sizes.days), list[str]()
    clicks = np.array([world.pages.clicks[page] for page in pages])
    living = LivingRun(world, sizes.days, sizes.speedup)

    def wanted(web: LivingWeb) -> list[PageRequest]:
        urls.extend(web.url(page) for page in pages)
        homes = [PageRequest(url, _HOME) for url in web.seeds()] if task.part != "refreshing" else []
        asked = [PageRequest(url, each) for url, each in zip(urls, clicks.tolist(), strict=True)]
        return homes + (asked if task.part != "news" else [])

    fetches = crawl(
        living,
        lambda web, folder: news.settings_of(
            task.crawls_a_day, web, folder, discover=task.part != "refreshing", objective="freshness"
        ),
        wanted,
        news.log_reader(living) if task.part != "refreshing" else None,
    )
    truth = truth_of(world, pages, sizes.days, clicks)
    fresh = measure(truth, log_of(fetches, urls), start=sizes.learning_days).freshness * float(clicks.sum())
    judged = news.Sizes(learning_days=sizes.learning_days, measured_days=sizes.measured_days)
    return Captured(fresh, news.judge(world, judged, news.articles_of(fetches, living)).captured)
