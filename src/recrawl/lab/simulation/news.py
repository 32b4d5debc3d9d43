"""Crawling news: sources and the new pages found on them, by ECHO's policies, their baselines, and the market.

    bfs            sources in a fixed order, after each all its new pages
    frequency      as echo-schedule, but all sources are worth the same
    fixed-quota    half of the crawls for sources on schedule, half for new pages, newest first
    echo-greedy    the source of largest λPτ, after it all its new pages
    echo-schedule  sources whose interval has passed, otherwise new pages, newest first
    echo-newpages  all new pages first, otherwise the source that is most behind its interval
    market         whatever is worth most, a source or a new page, if it is worth the price

Of the sources, those not crawled since the start come first. Crawls that a schedule or the market leaves to spare go to
the source that was not crawled for longest. All learn on the way (`news_learner.py`): schedules are solved again
every half hour, hits come in every hour (ECHO, Lefortier et al. 2013). Crawls are evenly spaced in time. Quality is the
number of hits still to come when a page is crawled.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.lab.simulation.discovery_market import Estimates, crawl_by_value, new_offers
from recrawl.lab.simulation.discovery_schedule import source_schedule
from recrawl.lab.simulation.news_kernels import (
    PAGES_FIRST,
    SOURCES_WHEN_DUE,
    TAKE_TURNS,
    Codes,
    Crawler,
    Graph,
    Numbers,
    Stretch,
    crawl_by_pace,
    crawl_in_order,
    graph_of,
    hits_to_come,
    new_crawler,
)
from recrawl.lab.simulation.news_learner import DEFAULT_DECAY, SourceLearner
from recrawl.lab.worlds.news import NewsWorld
from recrawl.pages import Floats

NEWS_POLICIES = ("bfs", "frequency", "fixed-quota", "echo-greedy", "echo-schedule", "echo-newpages", "market")
"""Names for `run_news`."""

_FIRST = {
    "frequency": SOURCES_WHEN_DUE,
    "fixed-quota": TAKE_TURNS,
    "echo-greedy": PAGES_FIRST,
    "echo-schedule": SOURCES_WHEN_DUE,
    "echo-newpages": PAGES_FIRST,
}
_SOLVED_A_DAY = 48  # every half hour
_PUSHES = 2  # every second time: every hour
_QUOTA = 0.5
_MOST_SLOTS = 10**9


@dataclass(frozen=True, slots=True)
class NewsRun:
    """What was crawled and what that was worth.

    Attributes:
        world: where.
        times: of the crawls, in days.
        crawled: at each time the source, or the number of sources + the page.
        gains: hits still to come when the page was crawled; 0 for a source.
        learning: share of the time, from its start, that is not measured.
    """

    world: NewsWorld
    times: Floats
    crawled: Codes
    gains: Numbers
    learning: float = 2.0 / 3.0

    @property
    def measured_from(self) -> float:
        """The first part of the time is for learning; the shares and rates below are of the rest."""
        return self.world.horizon * self.learning

    @property
    def hits_per_day(self) -> float:
        """Hits captured a day: those still to come when pages were crawled."""
        return float(self.gains[self._counted].sum()) / (self.world.horizon - self.measured_from)

    @property
    def share_of_bound(self) -> float:
        """Hits captured of pages born in the measured time, of those captured if each is crawled at birth."""
        bound = self.world.hits()[self.world.births > self.measured_from].sum()
        return float(self.gains[self._of_new_pages].sum()) / max(float(bound), 1.0)

    @property
    def source_crawls(self) -> int:
        """Crawls of sources."""
        return int((self._counted & (self.crawled < self.world.sources)).sum())

    @property
    def page_crawls(self) -> int:
        """Crawls of new pages."""
        return int((self._counted & (self.crawled >= self.world.sources)).sum())

    @property
    def pages_crawled(self) -> float:
        """The share of the pages born in the measured time that was crawled."""
        return int(self._of_new_pages.sum()) / max(int((self.world.births > self.measured_from).sum()), 1)

    @property
    def delay(self) -> float:
        """Mean time from the birth of a page to its crawl, of the pages that were crawled; 0 if none was."""
        counted = self._counted & (self.crawled >= self.world.sources)
        late = self.times[counted] - self.world.births[self.crawled[counted] - self.world.sources]
        return float(late.mean()) if len(late) else 0.0

    def crawls_by_source(self) -> Numbers:
        """How often each source was crawled."""
        sources = self.crawled[self._counted & (self.crawled < self.world.sources)]
        return np.bincount(sources, minlength=self.world.sources).astype(np.int64)

    @property
    def _counted(self) -> NDArray[np.bool_]:
        counted: NDArray[np.bool_] = self.times > self.measured_from
        return counted

    @property
    def _of_new_pages(self) -> NDArray[np.bool_]:
        """Which crawls are of pages born in the measured time; with those that wait from before, shares exceed 1."""
        pages = self.crawled >= self.world.sources
        of_new: NDArray[np.bool_] = np.zeros(len(self.crawled), dtype=np.bool_)
        of_new[pages] = self.world.births[self.crawled[pages] - self.world.sources] > self.measured_from
        return of_new


def run_news(world: NewsWorld, policy: str, crawls_per_day: float, seed: int) -> NewsRun:
    """Crawl a world by a policy that learns on the way. O(sources) per crawl.

    Args:
        world: a graph of sources and new pages.
        policy: one of `NEWS_POLICIES`.
        crawls_per_day: of sources and new pages together.
        seed: of the order in which sources are first crawled.
    """
    if policy not in NEWS_POLICIES:
        near = difflib.get_close_matches(policy, NEWS_POLICIES, n=1, cutoff=0.4)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise InvalidInput(f"is {policy!r}, but must be one of {', '.join(NEWS_POLICIES)}{hint}", field="policy")
    if not 0.0 < crawls_per_day * world.horizon < _MOST_SLOTS:
        raise InvalidInput(
            f"is {crawls_per_day!r} a day, but must be positive, and not a billion in all", field="budget"
        )
    slots = int(world.horizon * crawls_per_day)
    crawler = new_crawler(world, slots, seed)
    rule = _Rule(world, policy, crawls_per_day)
    times: Floats = np.arange(1, slots + 1) / crawls_per_day
    first = 0
    for step in range(1, int(np.ceil(world.horizon * _SOLVED_A_DAY)) + 1):
        now = step / _SOLVED_A_DAY
        end = int(np.searchsorted(times, now, "right"))
        rule.crawl(crawler, Stretch(first, end, crawls_per_day))
        rule.learn(crawler, times, slice(first, end), now if step % _PUSHES == 0 else None)
        first = end
    return NewsRun(world, times, crawler.crawled, _gains(world, crawler.crawled, times))


def crawl_at_birth(world: NewsWorld) -> NewsRun:
    """The upper bound: every page is crawled as it appears, and no source needs to be."""
    pages = world.sources + np.arange(world.pages, dtype=np.int32)
    return NewsRun(world, world.births, pages, world.hits())


def quality(run: NewsRun, window: float, moments: Floats) -> Floats:
    """Hits captured per day in the window before each moment (ECHO, equation 1). O(crawls + moments · log crawls)."""
    total = np.concatenate(([0.0], np.cumsum(run.gains, dtype=np.float64)))
    upto = total[np.searchsorted(run.times, moments, "right")]
    before = total[np.searchsorted(run.times, moments - window, "right")]
    captured: Floats = (upto - before) / window
    return captured


def _gains(world: NewsWorld, crawled: Codes, times: Floats) -> Numbers:
    gains = np.zeros(len(crawled), dtype=np.int64)
    pages = crawled >= world.sources
    page = crawled[pages].astype(np.int64) - world.sources
    gains[pages] = hits_to_come(world.hit_start, world.hit_time, page, times[pages])
    return gains


class _Rule:
    """How a policy chooses, and what it has learned."""

    def __init__(self, world: NewsWorld, policy: str, crawls_per_day: float) -> None:
        self._graph: Graph = graph_of(world)
        self._policy = policy
        self._learner = SourceLearner(world)
        self._crawls_per_day = crawls_per_day
        self._offers = new_offers(world)
        self._pace = self._new_pace()

    def crawl(self, crawler: Crawler, stretch: Stretch) -> None:
        """Crawl until the next lesson."""
        if self._policy == "bfs":
            crawl_in_order(self._graph, crawler, stretch)
        elif self._policy == "market":
            learner = self._learner
            believed = Estimates(learner.profit, learner.new_page_rates(), learner.decay)
            crawl_by_value(self._graph, crawler, stretch, self._offers, believed)
        else:
            crawl_by_pace(self._graph, crawler, stretch, _FIRST[self._policy], self._pace)

    def learn(self, crawler: Crawler, times: Floats, since: slice, pushed: float | None) -> None:
        """Take in the crawls since the last lesson, and the hits if they were pushed; solve again."""
        if self._policy == "bfs":
            return
        crawled = crawler.crawled[since]
        sources = crawled < len(crawler.order)
        found = crawler.new_pages if self._policy == "market" else crawler.new_links
        self._learner.see_crawls(crawled[sources], times[since][sources], found[since][sources])
        if pushed is not None and self._policy != "frequency":
            self._learner.push(crawler, pushed, fit=self._policy != "echo-greedy")
        self._pace = self._new_pace()

    def _new_pace(self) -> Floats:
        """By what a source's elapsed time is multiplied to say how far it is behind."""
        learner = self._learner
        rates = learner.new_page_rates()
        if self._policy in ("bfs", "market"):
            return rates
        if self._policy == "echo-greedy":
            greedy: Floats = rates * learner.mean_hits
            return greedy
        if self._policy == "frequency":
            same = np.ones(len(rates))
            return source_schedule(same, rates, same * DEFAULT_DECAY, self._crawls_per_day, True)
        if self._policy == "fixed-quota":
            return source_schedule(learner.profit, rates, learner.decay, self._crawls_per_day * _QUOTA, False)
        return source_schedule(learner.profit, rates, learner.decay, self._crawls_per_day, True)
