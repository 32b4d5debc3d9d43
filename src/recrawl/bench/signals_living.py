"""Measures of the group `signals` on the living web: a tracker that reads sitemaps, over HTTP, in fast time.

A third of the sites have honest sitemaps, a third date their pages anew for no reason (`always-now`, `bulk-bumped`), a
third have none. A tracker that reads them and learns whom to trust is held against one that reads none of them, on the
same web with the same budget, which pays for the sitemaps too; then a web whose sitemaps are all useless. Each tracker
is a process with a web of its own; truth comes from the web itself. A day of that web takes a second and a half.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recrawl.bench.living_run import LivingRun, crawl, living_settings
from recrawl.bench.living_truth import calm_world, lasting_pages, log_of, truth_of
from recrawl.bench.measure import Bound, Measure, Reading
from recrawl.bench.once import Once
from recrawl.lab.parallel import workers

if TYPE_CHECKING:
    from recrawl.lab.livingweb.hosts import SitemapKind
    from recrawl.lab.livingweb.server import LivingWeb
    from recrawl.lab.livingweb.world import LivingWorld
    from recrawl.tracker.admission import PageRequest
    from recrawl.tracker.settings.settings import Settings

_POINT = 0.01
_SITEMAPS: tuple[SitemapKind, ...] = ("honest", "always-now", "none", "honest", "bulk-bumped", "none")
_USELESS: tuple[SitemapKind, ...] = ("always-now", "bulk-bumped", "none")
_HICCUP_DAYS = 0.25


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
    """One tracker, with ears or without, and the sitemaps of its web."""

    sizes: Sizes
    listens: bool
    sitemaps: tuple[SitemapKind, ...] = _SITEMAPS


class Outcome(NamedTuple):
    """Freshness of all pages, of those with honest sitemaps and of those with useless ones; and crawls."""

    freshness: float
    honest: float
    useless: float
    crawls: int


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
        self._outcomes = Once(self._run_all)

    def _run_all(self) -> tuple[Outcome, Outcome, Outcome]:
        """With ears on both webs, and without, for which both are the same."""
        tasks = [Task(self._sizes, True), Task(self._sizes, False), Task(self._sizes, True, _USELESS)]
        with workers(self._sizes.processes) as share:
            listening, deaf, in_vain = share(run_task, tasks)
        return listening, deaf, in_vain

    def read_gain(self) -> Reading:
        """Freshness of all pages, with ears less without."""
        ours, deaf, _ = self._outcomes()
        shown = f"{deaf.freshness:.3f} against {ours.freshness:.3f}; of pages with honest sitemaps"
        shown = f"{shown} {deaf.honest:.3f} against {ours.honest:.3f}; {ours.crawls:,} crawls"
        return Reading((ours.freshness - deaf.freshness) / _POINT, None, shown)

    def read_useless(self) -> Reading:
        """The same on a web whose sitemaps are all worth nothing."""
        ours, deaf, in_vain = self._outcomes()
        shown = f"{deaf.freshness:.3f} against {in_vain.freshness:.3f}; beside honest sitemaps, which draw crawls,"
        shown = f"{shown} such pages {deaf.useless:.3f} against {ours.useless:.3f}"
        return Reading((in_vain.freshness - deaf.freshness) / _POINT, None, shown)


def run_task(task: Task) -> Outcome:
    """Crawl a living web with a tracker; what its copies were worth."""
    from recrawl.lab.simulation.measures import measure
    from recrawl.tracker.admission import PageRequest

    sizes, world = task.sizes, make_world(task.sizes, task.sitemaps)
    days = sizes.warm_up_days + sizes.measured_days
    pages, urls = lasting_pages(world, days), list[str]()

    def wanted(web: LivingWeb) -> list[PageRequest]:
        urls.extend(web.url(page) for page in pages)
        return [PageRequest(url) for url in urls]

    living = LivingRun(world, days, sizes.speedup)
    fetches = crawl(living, lambda web, folder: _settings(task, web, folder, len(pages)), wanted)
    log, truth = log_of(fetches, urls), truth_of(world, pages, days)
    kinds = np.array([world.hosts[world.pages.host[page]].sitemap for page in pages])
    groups = {"all": np.ones(len(pages), dtype=bool), "honest": kinds == "honest"}
    groups["useless"] = (kinds == "always-now") | (kinds == "bulk-bumped")
    fresh = {
        name: measure(replace(truth, importance=group.astype(np.float64)), log, start=sizes.warm_up_days).freshness
        for name, group in groups.items()
        if group.any()
    }
    none = float("nan")
    return Outcome(fresh["all"], fresh.get("honest", none), fresh.get("useless", none), len(log.page))


def make_world(sizes: Sizes, sitemaps: tuple[SitemapKind, ...] = _SITEMAPS) -> LivingWorld:
    """A calm web whose sitemaps are of different kinds, dealt out from the largest site to the smallest."""
    world = calm_world(sizes.pages, sizes.hosts, sizes.seed)
    by_size = sorted(range(len(world.hosts)), key=lambda host: -len(world.pages_of(host)))
    for place, host in enumerate(by_size):
        world.hosts[host] = replace(world.hosts[host], sitemap=sitemaps[place % len(sitemaps)])
    return world


def _settings(task: Task, web: LivingWeb, folder: str, pages: int) -> Settings:
    from recrawl.tracker.settings.settings import DiscoveryRules, SignalRules

    return living_settings(
        web,
        folder,
        task.sizes.crawls_a_day * pages,
        _HICCUP_DAYS,
        objective="freshness",
        discover=task.listens,
        discovery=DiscoveryRules(found="none", hubs=False, feeds=False),
        signals=SignalRules(kinds=("sitemap",)),
    )
