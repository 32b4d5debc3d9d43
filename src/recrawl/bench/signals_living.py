"""Measures of the group `signals` on the living web: a tracker that reads sitemaps, over HTTP, in fast time.

A third of the sites have honest sitemaps, a third date their pages anew for no reason (`always-now`, `bulk-bumped`), a
third have none. A tracker that reads them and learns whom to trust is held against one that reads none of them, on the
same web with the same budget, which pays for the sitemaps too. Both run at once, each a process with a web of its own;
truth comes from the web itself. A day of that web takes a second and a half.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recrawl.bench.living_run import DAY_S, OPENED_DAYS, Crawled, LivingRun, crawl
from recrawl.bench.measure import Bound, Measure, Reading
from recrawl.papers.workers import workers

if TYPE_CHECKING:
    from recrawl.livingweb.behaviour import SitemapKind
    from recrawl.livingweb.server import LivingWeb
    from recrawl.livingweb.world import LivingWorld
    from recrawl.simulation.crawl_log import CrawlLog
    from recrawl.simulation.world import World
    from recrawl.tracker.settings import Settings

_POINT = 0.01
_SITEMAPS: tuple[SitemapKind, ...] = ("honest", "always-now", "none", "honest", "bulk-bumped", "none")
_HICCUP_DAYS = 0.25  # budget of so long is not lost while the machine does something else


class Sizes(NamedTuple):
    """How large the web is, how long it is crawled, and how fast its time goes."""

    pages: int = 480
    hosts: int = 6
    crawls_a_day: float = 0.5  # of a page
    warm_up_days: float = 20.0
    measured_days: float = 12.0
    speedup: float = 57_600.0
    processes: int = 2
    seed: int = 3


class Task(NamedTuple):
    """One tracker, with ears or without."""

    sizes: Sizes
    listens: bool


class Outcome(NamedTuple):
    """Freshness of all pages, of those with honest sitemaps and of those with useless ones; crawls, and polls."""

    freshness: float
    honest: float
    useless: float
    crawls: int
    requests: int


def living_measures(sizes: Sizes | None = None) -> tuple[Measure, ...]:
    """The measures, in the order they run; both share the same runs, and the first one pays."""
    work = _Work(sizes or Sizes())
    return (
        Measure("living_sitemaps", "points", "reading no sitemap", Bound("value", floor=0), work.read_gain),
        Measure("living_useless_sitemaps", "points", "reading no sitemap", Bound("value", floor=-2), work.read_useless),
    )


class _Work:
    """Runs that the measures share."""

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes

    @cached_property
    def _outcomes(self) -> tuple[Outcome, Outcome]:
        tasks = [Task(self._sizes, listens=True), Task(self._sizes, listens=False)]
        with workers(self._sizes.processes) as share:
            listening, deaf = share(run_task, tasks)
        return listening, deaf

    def read_gain(self) -> Reading:
        """Freshness of all pages, with ears less without."""
        ours, deaf = self._outcomes
        shown = f"{deaf.freshness:.3f} against {ours.freshness:.3f}; of pages with honest sitemaps"
        shown = f"{shown} {deaf.honest:.3f} against {ours.honest:.3f}; {ours.crawls:,} crawls"
        return Reading((ours.freshness - deaf.freshness) / _POINT, None, shown)

    def read_useless(self) -> Reading:
        """The same of pages whose sitemaps are worth nothing."""
        ours, deaf = self._outcomes
        return Reading((ours.useless - deaf.useless) / _POINT, None, f"{deaf.useless:.3f} against {ours.useless:.3f}")


def run_task(task: Task) -> Outcome:
    """Crawl a living web with a tracker; what its copies were worth."""
    from recrawl.simulation.measures import measure

    sizes, world = task.sizes, make_world(task.sizes)
    pages, urls = lasting_pages(world, sizes), list[str]()

    def addresses(web: LivingWeb) -> list[str]:
        urls.extend(web.url(page) for page in pages)
        return urls

    living = LivingRun(world, sizes.warm_up_days + sizes.measured_days, sizes.speedup)
    crawled = crawl(living, lambda web, folder: _settings(task, web, folder, len(pages)), addresses)
    log = _log(crawled, urls)
    truth = truth_of(world, pages, sizes)
    kinds = np.array([world.hosts[world.pages.host[page]].sitemap for page in pages])
    groups = {"all": np.ones(len(pages), dtype=bool), "honest": kinds == "honest"}
    groups["useless"] = (kinds == "always-now") | (kinds == "bulk-bumped")
    fresh = {
        name: measure(replace(truth, importance=group.astype(np.float64)), log, start=sizes.warm_up_days).freshness
        for name, group in groups.items()
    }
    return Outcome(fresh["all"], fresh["honest"], fresh["useless"], len(log.page), crawled.requests)


def make_world(sizes: Sizes) -> LivingWorld:
    """A calm web in which one page is like the other but for its changes."""
    from recrawl.livingweb.world import LivingWorld
    from recrawl.livingweb.world_settings import WorldSettings

    calm = {"trouble": "calm", "robots": "allow", "feed": "none", "hub": False, "etag": "true", "modified": "true"}
    world = LivingWorld(
        WorldSettings(
            pages=sizes.pages, hosts=sizes.hosts, seed=sizes.seed, noise_share=0.0, kilobytes=2.0, every_host=calm
        )
    )
    world.hosts[:] = [
        replace(host, sitemap=_SITEMAPS[place % len(_SITEMAPS)], max_age_s=None)
        for place, host in enumerate(world.hosts)
    ]
    return world


def lasting_pages(world: LivingWorld, sizes: Sizes) -> list[int]:
    """Pages that are there, at the same address, all the time."""
    end = (OPENED_DAYS + sizes.warm_up_days + sizes.measured_days) * DAY_S
    columns = world.pages
    return [
        page
        for page in range(len(world))
        if columns.born[page] <= 0 and columns.gone[page] > end and columns.moved[page] > end
    ]


def truth_of(world: LivingWorld, pages: list[int], sizes: Sizes) -> World:
    """When these pages changed, in days from the start of the crawl."""
    from recrawl.simulation.world import World, group_events

    start, days = world.epoch + OPENED_DAYS * DAY_S, sizes.warm_up_days + sizes.measured_days
    times = [world.changes(page, start, start + days * DAY_S) for page in pages]
    number = np.repeat(np.arange(len(pages)), [len(each) for each in times])
    changes = (np.array([at for each in times for at in each]) - start) / DAY_S
    return World(
        name="living",
        horizon=days,
        importance=np.ones(len(pages)),
        changes=group_events(number, changes, len(pages)),
        born=np.full(len(pages), 0.0),
        removed=np.full(len(pages), np.inf),
    )


def _settings(task: Task, web: LivingWeb, folder: str, pages: int) -> Settings:
    from recrawl.tracker.discovery.rules import DiscoveryRules, SignalRules
    from recrawl.tracker.settings import Settings
    from recrawl.web.egress import egress_policy

    return Settings(
        store=folder,
        budget_per_day=task.sizes.crawls_a_day * pages,
        burst=_HICCUP_DAYS * task.sizes.crawls_a_day * pages,
        objective="freshness",
        contact="https://example.org/bench",
        min_gap_s=0.0,
        max_in_flight=8,
        again_after_s=0.0,
        egress=egress_policy(allow=web.allow, resolve=web.resolve),
        discover=task.listens,
        discovery=DiscoveryRules(found="none", hubs=False, feeds=False),
        signals=SignalRules(kinds=("sitemap",)),
    )


def _log(crawled: Crawled, urls: list[str]) -> CrawlLog:
    """Fetches of these pages, in order of time."""
    from recrawl.simulation.crawl_log import CrawlLog

    number = {url: place for place, url in enumerate(urls)}
    rows = [(at, number[url]) for at, url in crawled.fetches if url in number]
    page = np.array([place for _, place in rows], dtype=np.int32)
    return CrawlLog(page, np.array([at for at, _ in rows], dtype=np.float64))
