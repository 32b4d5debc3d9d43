"""The race on the truth: how fresh the tracker's copies are, and those of baselines with the same crawls.

What others would have made of the tracker's crawls, on the truth: no request is sent, and no fetch of theirs fails.

Everybody starts with no copy and gets the same number of crawls. They differ in what they know:

| | page addresses | clicks | change rates |
|---|---|---|---|
| round robin | yes | not used | not used |
| the tracker | yes | yes | learned from its own crawls |
| optimum | yes | yes | told |

A page that a crawl finds removed is dropped, as the tracker drops it.

The race on the truth: the tracker's copies as they are made, the shadows beside them, and samples of all three.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from recrawl.lab.livingweb.clock import DAY_S
from recrawl.lab.livingweb.truth import change_rate
from recrawl.lab.livingweb.world import LivingWorld
from recrawl.outcomes import Settlement
from recrawl.pages import Floats
from recrawl.scheduling.scheduler import Scheduler
from recrawl.tracker.pipeline.fetch import FetchStage
from recrawl.tracker.visit import Visit

NO_COPY = -1
_EXISTS = ("alive", "moved")
_AHEAD_S = 21_600.0  # of the web, for which changes are looked up at once


_AT_ONCE = 4  # crawls, so that they are as even in time as those of a crawler that runs
_AMPLE = 1e12  # tokens, so that the number of crawls asked for is the only limit

_MOST_KEPT = 4096  # samples of a course: 17 minutes of a demo in full, and any longer time to a 2,048th
_MOST_RECENT = 256
_NO_GAP = 1e-9  # freshness is a mean of sums, so equal ones may differ in their last digits


class Truth:
    """The versions of all pages, moment by moment. O(pages that changed) a moment, of which each follows the last.

    Args:
        world: the web.
        now: the start.
    """

    def __init__(self, world: LivingWorld, now: float) -> None:
        self.world = world
        self.pages = [page for page in range(len(world)) if world.state(page, now) == "alive"]
        self.weights: Floats = np.zeros(len(world))
        self.weights[self.pages] = np.array(world.pages.clicks)[self.pages]
        self._at = -math.inf
        self._until = np.full(len(world), -math.inf)  # for how long what is known of each page holds
        self._versions = np.zeros(len(world), dtype=np.int64)
        self._weights = np.zeros(len(world))

    def look(self, now: float) -> tuple[NDArray[np.int64], Floats]:
        """Versions, and weights that are 0 for pages that do not exist; both to be read before the next look."""
        if now < self._at:
            self._until[:] = -math.inf
        if now != self._at:
            for page in np.flatnonzero(self._until <= now).tolist():
                self._versions[page] = self.world.version(page, now)
                self._weights[page] = self.weights[page] * (self.world.state(page, now) in _EXISTS)
                self._until[page] = self._next(page, now)
            self._at = now
        return self._versions, self._weights

    def _next(self, page: int, now: float) -> float:
        """When a page changes, appears or is removed next, as far as someone must know now."""
        columns, epoch = self.world.pages, self.world.epoch
        changes = self.world.changes(page, now, now + _AHEAD_S)[:1]
        fates = (epoch + columns.born[page], epoch + columns.gone[page])
        return float(min([*changes, *(at for at in fates if at > now), now + _AHEAD_S]))


class Copies:
    """How fresh copies of a living web really are: each copy by the version of its page when it was made.

    A copy is fresh if its page has not changed since. Pages count by their clicks; those that do not exist at the time
    do not count. Nor do pages that appear later: who is told of the pages at the start cannot know them.

    The copies of one crawler.
    """

    def __init__(self, truth: Truth) -> None:
        self._truth = truth
        self.versions = np.full(len(truth.world), NO_COPY, dtype=np.int64)
        self.made = 0

    def made_at(self, page: int, at: float) -> bool:
        """Crawl a page: makes a copy, or says False if the page is not there."""
        world = self._truth.world
        if world.state(page, at) not in _EXISTS:
            return False
        self.versions[page] = world.version(page, at)
        self.made += 1
        return True

    def fresh(self, now: float) -> NDArray[np.bool_]:
        """Which pages are as they were copied."""
        versions, _weights = self._truth.look(now)
        fresh: NDArray[np.bool_] = self.versions == versions
        return fresh

    def freshness(self, now: float) -> float:
        """Share of the clicks that would find a fresh copy."""
        _versions, weights = self._truth.look(now)
        return float(weights[self.fresh(now)].sum() / max(weights.sum(), 1e-300))


class Shadow(Protocol):
    """A way to spend crawls."""

    copies: Copies

    def crawl(self, count: int, since: float, now: float) -> None:
        """Make a number of crawls, spread evenly between two times in Unix seconds of the web."""


class RoundRobin:
    """Every page in turn, in the order of their addresses."""

    def __init__(self, truth: Truth) -> None:
        self.copies = Copies(truth)
        self._pages = list(truth.pages)
        self._next = 0

    def crawl(self, count: int, since: float, now: float) -> None:
        """Go on with the round."""
        for number in range(1, count + 1):
            if not self._pages:
                return
            self._next %= len(self._pages)
            if self.copies.made_at(self._pages[self._next], since + (now - since) * number / count):
                self._next += 1
            else:
                del self._pages[self._next]


class KnownRates:
    """Our own scheduler, told the true rate of every page: the optimum that a learner can come close to.

    Args:
        truth: of the web.
        budget_per_day: crawls in a day of the web, about: where its first price comes from.
        now: when it begins.
    """

    def __init__(self, truth: Truth, budget_per_day: float, now: float) -> None:
        self.copies = Copies(truth)
        pages = truth.pages
        rates = [change_rate(truth.world, page) for page in pages]
        self._scheduler = Scheduler(budget_per_day, "freshness", now / DAY_S, burst=_AMPLE)
        ids = self._scheduler.add(importance=truth.weights[pages], change_rate=rates)
        self._page_of = dict(zip(ids.tolist(), pages, strict=True))

    def crawl(self, count: int, since: float, now: float) -> None:
        """Crawl what is worth most."""
        left = count
        while left > 0:
            at = since + (now - since) * (count - left + 1) / count
            batch = self._scheduler.take(at / DAY_S, min(_AT_ONCE, left))
            if not len(batch.ids):
                return
            left -= len(batch.ids)
            found = [self.copies.made_at(self._page_of[number], at) for number in batch.ids.tolist()]
            outcomes: list[Settlement] = ["changed" if there else "gone" for there in found]
            self._scheduler.crawled(batch.ids, at / DAY_S, outcome=outcomes)


@dataclass(frozen=True, slots=True)
class Sample:
    """Freshness at a moment, in real seconds since the start, and the crawls that each had made by then."""

    at: float
    ours: float
    round_robin: float
    optimum: float
    crawls: int = 0


@dataclass(frozen=True, slots=True)
class Standing:
    """Mean freshness over a time."""

    ours: float
    round_robin: float
    optimum: float

    @property
    def gap_closed(self) -> float | None:
        """Which share of the way from round robin to the optimum was made; None if there is no way to go."""
        gap = self.optimum - self.round_robin
        return (self.ours - self.round_robin) / gap if gap > _NO_GAP else None


class Course:
    """The samples of a run of any length, in bounded memory: O(1) a sample, O(log n) a mean.

    Keeps every sample until there are too many, then every second one, and so on. Sums of all samples stand beside
    each kept one, so a mean counts all samples since the kept one that is nearest to the time asked for.
    """

    def __init__(self) -> None:
        self.last = Sample(0.0, 0.0, 0.0, 0.0)
        self.lowest, self.highest = 1.0, 0.0
        self._count, self._step = 0, 1
        self._sums = (0.0, 0.0, 0.0)
        self._kept: list[tuple[Sample, int, tuple[float, float, float]]] = []

    def add(self, sample: Sample) -> None:
        """Note a sample, later than all before it."""
        self.last = sample
        found = (sample.ours, sample.round_robin, sample.optimum)
        self.lowest, self.highest = min(self.lowest, *found), max(self.highest, *found)
        ours, round_robin, optimum = self._sums
        self._sums = (ours + sample.ours, round_robin + sample.round_robin, optimum + sample.optimum)
        self._count += 1
        if self._count % self._step:
            return
        self._kept.append((sample, self._count, self._sums))
        if len(self._kept) > _MOST_KEPT:
            self._kept = self._kept[1::2]
            self._step *= 2

    def mean(self, since: float) -> Standing:
        """Mean of the samples since a number of real seconds; the last sample if that is later."""
        if self.last.at < since or not self._count:
            return Standing(self.last.ours, self.last.round_robin, self.last.optimum)
        place = bisect_left(self._kept, since, key=lambda kept: kept[0].at)
        _, before, sums = self._kept[place - 1] if place else (None, 0, (0.0, 0.0, 0.0))
        count = self._count - before
        return Standing(*((all_ - early) / count for all_, early in zip(self._sums, sums, strict=True)))

    def thinned(self, most: int) -> list[Sample]:
        """At most `most` samples, evenly spread over the whole run; the newest one kept is the last."""
        step = max(1, -(-len(self._kept) // most))
        return [sample for sample, _, _ in self._kept[::-step][::-1]]


class WatchedFetcher:
    """Notes when each copy was made, by the clock of the server.

    A page that is said to be unchanged, or to differ by noise alone, is still the old copy: a change that nobody
    notices leaves it stale.

    Args:
        fetcher: does the work.
        note: takes the address, and the second in which the server wrote the page.
    """

    def __init__(self, fetcher: FetchStage, note: Callable[[str, float], None]) -> None:
        self._fetcher = fetcher
        self._note = note
        self.changes = 0
        self.errors = 0

    async def fetch(self, visit: Visit) -> None:
        """Fetch a page."""
        await self._fetcher.fetch(visit)
        self.changes += visit.verdict == "changed"
        self.errors += visit.verdict is None and visit.outcome != "deferred"
        if visit.verdict in ("first", "changed"):
            self._note(visit.page.url, parsedate_to_datetime(visit.answer.header(b"date").decode()).timestamp())


@dataclass(slots=True)
class Race:
    """Three crawlers on one web, which make the same number of crawls.

    Args:
        world: the web.
        budget_per_day: crawls in a day of the web that were planned; those that are made count.
        now: when it begins, in seconds of the web.
    """

    world: LivingWorld
    budget_per_day: float
    now: float
    course: Course = field(default_factory=Course)
    crawls: int = 0
    hosts: int = field(init=False)
    truth: Truth = field(init=False)
    ours: Copies = field(init=False)
    round_robin: RoundRobin = field(init=False)
    optimum: KnownRates = field(init=False)
    _recent: deque[Sample] = field(default_factory=lambda: deque(maxlen=_MOST_RECENT))

    def __post_init__(self) -> None:
        self.truth = Truth(self.world, self.now)
        self.hosts = len({self.world.pages.host[page] for page in self.truth.pages})
        self.ours = Copies(self.truth)
        self.round_robin = RoundRobin(self.truth)
        self.optimum = KnownRates(self.truth, self.budget_per_day, self.now)

    def note(self, url: str, at: float) -> None:
        """The tracker made a copy."""
        page = self.world.page_of(url)
        if page is not None:
            self.ours.made_at(page, at)

    def sample(self, now: float, seconds: float, crawls: int = 0) -> Sample:
        """Let the shadows make the tracker's crawls, and compare.

        Args:
            now: seconds of the web.
            seconds: real ones since the start.
            crawls: requests that the tracker paid for since the last sample.
        """
        for shadow in (self.round_robin, self.optimum):
            shadow.crawl(crawls, self.now, now)
        self.now = now
        self.crawls += crawls
        found = Sample(
            seconds,
            self.ours.freshness(now),
            self.round_robin.copies.freshness(now),
            self.optimum.copies.freshness(now),
            self.crawls,
        )
        self.course.add(found)
        self._recent.append(found)
        return found

    @property
    def has_begun(self) -> bool:
        """Whether there is something to compare: the tracker has copies of a twentieth of the pages."""
        return 20 * self.ours.made >= len(self.truth.pages)

    @property
    def had_a_round(self) -> bool:
        """Whether there were enough crawls to fetch each page once."""
        return self.crawls >= len(self.truth.pages)

    def crawls_a_second(self, within_s: float) -> float | None:
        """Crawls in a real second, averaged over the latest seconds; None until that time has passed.

        A longer time than that of the last samples counts as that time.
        """
        last = self.course.last
        if last.at < within_s or not self._recent:
            return None
        first = next(each for each in self._recent if each.at >= last.at - within_s)
        return (last.crawls - first.crawls) / (last.at - first.at) if last.at > first.at else None

    def standing(self, since: float) -> Standing:
        """Means since a number of real seconds."""
        return self.course.mean(since)
