"""Measures of the group `signals` for news on the living web: a tracker that starts from home pages, over HTTP.

A third of the sites have hubs, whose articles are linked for six hours and fade within three. The tracker finds the
other lists by itself, reads access logs every six hours, and has one budget for polls and articles. Two crawlers are
computed on the truth: one that has all articles at birth, and one that polls all home pages and lists in turn at the
same rate and takes what it finds at once.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from recrawl.bench.living_run import DAY_S, OPENED_DAYS, Fetches, LivingRun, crawl, living_settings
from recrawl.bench.measure import Bound, Measure, Reading
from recrawl.bench.signals_news import weighted_median

if TYPE_CHECKING:
    from recrawl.lab.livingweb.articles import Article
    from recrawl.lab.livingweb.server import LivingWeb
    from recrawl.lab.livingweb.world import LivingWorld
    from recrawl.tracker.admission import PageRequest
    from recrawl.tracker.settings.settings import Settings
    from recrawl.tracker.tracker import Tracker

_MINUTES = 1440.0
_LAST_DAYS = 0.5  # articles born later have no fair chance
_LOGS_S = 6 * 3600.0  # between two looks at the access logs
_HICCUP_DAYS = 0.05  # budget of so long is not lost while the machine does something else


class Sizes(NamedTuple):
    """How large the web is, how long it is crawled, and how fast its time goes."""

    hosts: int = 36
    pages: int = 180
    crawls_a_day: float = 1_800.0
    learning_days: float = 7.0
    measured_days: float = 4.0
    speedup: float = 7_200.0
    seed: int = 3

    @property
    def days(self) -> float:
        """All of them."""
        return self.learning_days + self.measured_days


class Outcome(NamedTuple):
    """Of one crawler: the share of clicks that found the article crawled, the median delay over clicks in days.

    And how many such clicks there were a day.
    """

    share: float
    delay: float
    captured: float


Key = tuple[int, int]
"""An article: its host and its number there."""


def living_news_measures(sizes: Sizes | None = None) -> tuple[Measure, ...]:
    """The measures, in the order they run; all share one run, and the first one pays."""
    work = _Work(sizes or Sizes())
    return (
        Measure("living_news_in_turn", "share of hits", "no limit", Bound("value", limit=0.65), work.read_in_turn),
        Measure("living_news", "share of hits", "no limit", Bound("value", floor=0.9), work.read_captured),
        Measure("living_news_delay", "minutes", "polling all in turn", Bound("ratio", floor=3), work.read_delay),
    )


class _Work:
    """The run that the measures share."""

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes

    @cached_property
    def _world(self) -> LivingWorld:
        return make_world(self._sizes)

    @cached_property
    def _ours(self) -> Outcome:
        return judge(self._world, self._sizes, fetched_by_tracker(self._world, self._sizes))

    @cached_property
    def _in_turn(self) -> Outcome:
        return judge(self._world, self._sizes, fetched_in_turn(self._world, self._sizes))

    def read_in_turn(self) -> Reading:
        """What polling all sources in turn captures."""
        return Reading(self._in_turn.share, None, f"{self._sizes.crawls_a_day:,.0f} crawls a day")

    def read_captured(self) -> Reading:
        """What the tracker captures at the same rate."""
        return Reading(self._ours.share, None, f"in turn {self._in_turn.share:.3f}")

    def read_delay(self) -> Reading:
        """The median over hits of the time from publication to fetch."""
        ours, theirs = self._ours.delay * _MINUTES, self._in_turn.delay * _MINUTES
        return Reading(ours, theirs / ours, f"{theirs:.0f} minutes")


def make_world(sizes: Sizes, **more: Any) -> LivingWorld:
    """A calm web without feeds and sitemaps, whose news is in the hubs alone; `more` fields of its settings."""
    from recrawl.lab.livingweb.world import LivingWorld
    from recrawl.lab.livingweb.world_settings import WorldSettings

    calm = {"trouble": "calm", "robots": "allow", "feed": "none", "sitemap": "none", "etag": "true", "modified": "true"}
    return LivingWorld(
        WorldSettings(
            pages=sizes.pages,
            hosts=sizes.hosts,
            seed=sizes.seed,
            noise_share=0.0,
            kilobytes=2.0,
            every_host=calm,
            **more,
        )
    )


def judge(world: LivingWorld, sizes: Sizes, fetched: dict[Key, float]) -> Outcome:
    """What a crawler captured that had these articles at these times, in days from the start."""
    from recrawl.lab.livingweb.articles import articles_between, clicks

    start = world.epoch + OPENED_DAYS * DAY_S
    end = start + sizes.days * DAY_S
    captured, total = 0, 0
    delays, weights = [], []
    for host in hubs_of(world):
        hits: dict[bytes, list[float]] = {}
        for click in clicks(world, host, start, end):
            hits.setdefault(click.path, []).append((click.at - start) / DAY_S)
        for found in articles_between(world, host, start + sizes.learning_days * DAY_S, end - _LAST_DAYS * DAY_S):
            times = hits.get(found.path, [])
            at = fetched.get((host, found.number), sizes.days)
            captured += len(times) - bisect_left(times, at)
            total += len(times)
            delays.append(at - (found.born - start) / DAY_S)
            weights.append(float(len(times)))
    delay = weighted_median(np.array(delays), np.array(weights))
    return Outcome(captured / total, delay, captured / (sizes.measured_days - _LAST_DAYS))


def hubs_of(world: LivingWorld) -> list[int]:
    """Numbers of hosts that publish articles."""
    return [number for number, host in enumerate(world.hosts) if host.hub]


def fetched_in_turn(world: LivingWorld, sizes: Sizes) -> dict[Key, float]:
    """When a crawler has each article that polls all home pages and lists of sections one after the other."""
    from recrawl.lab.livingweb.articles import newest_articles
    from recrawl.lab.livingweb.world import SECTIONS

    start = world.epoch + OPENED_DAYS * DAY_S
    hubs = frozenset(hubs_of(world))
    sources = [(host, place) for place in range(1 + len(SECTIONS)) for host in range(len(world.hosts))]
    fetched: dict[Key, float] = {}
    crawls, turn = 0, 0
    while crawls < sizes.days * sizes.crawls_a_day:
        crawls += 1
        host, place = sources[turn % len(sources)]
        turn += 1
        now = start + crawls / sizes.crawls_a_day * DAY_S
        found: list[Article] = newest_articles(world, host, now) if place == 0 and host in hubs else []
        for each in found:
            if (host, each.number) not in fetched:
                crawls += 1
                fetched[host, each.number] = crawls / sizes.crawls_a_day
    return fetched


def fetched_by_tracker(world: LivingWorld, sizes: Sizes) -> dict[Key, float]:
    """When the tracker has each article; it starts from the home pages."""
    living = LivingRun(world, sizes.days, sizes.speedup)
    fetches = crawl(
        living, lambda web, folder: settings_of(sizes.crawls_a_day, web, folder), homes_of, log_reader(living)
    )
    return articles_of(fetches, living)


def articles_of(fetches: Fetches, living: LivingRun) -> dict[Key, float]:
    """When each article was first fetched, in days from the start."""
    from recrawl.lab.livingweb.articles import find_article

    world, end = living.world, living.start + living.days * DAY_S
    host_of = {host.name: number for number, host in enumerate(world.hosts)}
    fetched: dict[Key, float] = {}
    for at, url in fetches:
        name, _, path = url.removeprefix("http://").partition("/")
        host = host_of[name.partition(":")[0]]
        if (found := find_article(world, host, b"/" + path.encode(), end)) is not None:
            fetched.setdefault((host, found.number), at)
    return fetched


def homes_of(web: LivingWeb) -> list[PageRequest]:
    """The home pages."""
    from recrawl.tracker.admission import PageRequest

    return [PageRequest(url) for url in web.seeds()]


def log_reader(living: LivingRun) -> Callable[[Tracker, LivingWeb], Awaitable[None]]:
    """What gives a tracker the access logs, beside it."""

    async def read_logs(tracker: Tracker, web: LivingWeb) -> None:
        await _tell_hits(tracker, web, living)

    return read_logs


async def _tell_hits(tracker: Tracker, web: LivingWeb, living: LivingRun) -> None:
    """Give the tracker the access logs of the hosts with hubs, every six hours of the web."""
    from recrawl.lab.livingweb.articles import clicks
    from recrawl.tracker.commands.commands import CommandHandler, CountHits
    from recrawl.tracker.commands.hits import LogReader
    from recrawl.tracker.signals.access_log import Hit

    world, told = web.world, living.start
    hand = CommandHandler(tracker.store, tracker.settings, tracker)
    while True:
        await asyncio.sleep(_LOGS_S / living.speedup)
        now = tracker.clock.now()
        reader = LogReader(tracker.store)
        for host in hubs_of(world):
            home = f"http://{world.hosts[host].name}:{web.port}"
            await reader.read(Hit(home + hit.path.decode(), hit.at, 1.0) for hit in clicks(world, host, told, now))
        await hand.do(CountHits(await reader.counts()), now)
        told = now


def settings_of(crawls_a_day: float, web: LivingWeb, folder: str, **more: Any) -> Settings:
    """Settings of a tracker that crawls once what it finds; more of them, or others."""
    from recrawl.tracker.settings.settings import DiscoveryRules

    follows = {"discover": True, "discovery": DiscoveryRules(found="once"), **more}
    return living_settings(web, folder, crawls_a_day, _HICCUP_DAYS, **follows)
