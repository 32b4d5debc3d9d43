"""`recrawl.Scheduler` over news and pages to refresh in one market: every crawl goes to whatever is worth most.

Content sources are entries with the objective `news`, pages found on them with `once`, pages to refresh with
`freshness`. Importance is requests a day and profit hits of a page, so that all values are in one currency. Everything
is learned on the way: new pages and interest of sources as ECHO does (Lefortier et al. 2013, `news_learner.py`),
change rates by the scheduler. A source is crawled now and then whatever it is worth, so that none is given up for ever.
Crawls are evenly spaced in time, a few at once; hits come in every hour, sources are judged anew every half hour.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recrawl.errors import InvalidInput
from recrawl.lab.simulation.news import NewsRun
from recrawl.lab.simulation.news_kernels import WAITING, Codes, Numbers, graph_of, hits_to_come, look, new_crawler
from recrawl.lab.simulation.news_learner import SourceLearner
from recrawl.lab.simulation.policy import CHANGED, truth_of
from recrawl.lab.simulation.policy import look as look_at_pages
from recrawl.lab.simulation.scheduler_run import crawl_times
from recrawl.lab.worlds.news import NewsWorld
from recrawl.lab.worlds.world import CrawlLog, World
from recrawl.pages import Floats

if TYPE_CHECKING:
    from recrawl.scheduling.scheduler import Scheduler

_SLOT = (1 << 32) - 1
_LESSON = 1 / 48
_PUSHES = 2
_EXPLORED = 0.07  # share of the budget in which every source could be looked at, whatever it is worth
_FAINT = 0.05  # of the price: a found page that is worth less is dropped


@dataclass(frozen=True, slots=True)
class MarketLog:
    """What one market crawled: news, if there were any, and pages to refresh, if there were any."""

    news: NewsRun | None
    refresh: CrawlLog


class MarketRun:
    """One scheduler with sources, found pages and pages to refresh.

    Codes of what is crawled: sources, then new pages, then pages to refresh.

    Args:
        news: sources and what they will show; None: there are none.
        refresh: pages to refresh, all there from the start, of the same horizon; None: there are none.
        budget: crawls a day of all together.
        seed: of the order in which sources are first crawled.
        batch: crawls at once.
    """

    def __init__(self, news: NewsWorld | None, refresh: World | None, budget: float, seed: int, batch: int = 1) -> None:
        from recrawl.scheduling.scheduler import Scheduler

        horizons = {world.horizon for world in (news, refresh) if world is not None}
        if len(horizons) != 1:
            raise InvalidInput("must be news or pages to refresh, of the same days", field="worlds")
        self._times = crawl_times(horizons.pop(), budget, batch)
        self._batch = batch
        self.scheduler: Scheduler = Scheduler(budget, "freshness", burst=batch + 1.0, seed=seed)
        self._code_in_slot: Codes = np.zeros(1024, dtype=np.int32)
        self.slots = len(self._times) * batch
        self._desk = None if news is None else _NewsDesk(self, news, seed)
        self._first_page = 0 if news is None else news.sources + news.pages
        self._truth = None
        if refresh is not None:
            self._truth = truth_of(refresh)
            ids = self.scheduler.add(importance=refresh.importance, last_crawled=np.zeros(len(refresh)))
            self.remember(ids, self._first_page + np.arange(len(refresh)))

    def remember(self, ids: Numbers, codes: Numbers | Codes) -> None:
        """Note who is behind ids."""
        slots = ids & _SLOT
        most = int(slots.max(initial=0))
        if most >= len(self._code_in_slot):
            longer: Codes = np.zeros(2 * most, dtype=np.int32)
            longer[: len(self._code_in_slot)] = self._code_in_slot
            self._code_in_slot = longer
        self._code_in_slot[slots] = codes

    def crawl(self) -> MarketLog:
        """Run to the horizon."""
        page, time = np.empty(self.slots, dtype=np.int32), np.empty(self.slots)
        done, lesson = 0, _LESSON
        for now in self._times.tolist():
            while self._desk is not None and now > lesson:
                self._desk.learn(lesson)
                lesson += _LESSON
            codes = self._crawl_at(now)
            page[done : done + len(codes)] = codes
            time[done : done + len(codes)] = now
            done += len(codes)
        refreshed = page[:done] >= self._first_page
        log = CrawlLog(page[:done][refreshed] - np.int32(self._first_page), time[:done][refreshed])
        if self._desk is None:
            return MarketLog(None, log)
        return MarketLog(self._desk.run_of(page[:done][~refreshed], time[:done][~refreshed]), log)

    def _crawl_at(self, now: float) -> Codes:
        ids = self.scheduler.take(now, self._batch).ids
        codes: Codes = self._code_in_slot[ids & _SLOT]
        pages = codes >= self._first_page
        if self._truth is not None and pages.any():
            found = look_at_pages(self._truth, codes[pages] - np.int32(self._first_page), now)
            self.scheduler.crawled(ids[pages], now, found == CHANGED)
        if self._desk is not None and not pages.all():
            self.scheduler.crawled(ids[~pages], now)
            self._desk.crawled(codes[~pages], now)
        return codes


class _NewsDesk:
    """Sources and what was found on them: learns, and tells the scheduler."""

    def __init__(self, run: MarketRun, world: NewsWorld, seed: int) -> None:
        self._run, self._world, self._graph = run, world, graph_of(world)
        self._crawler = new_crawler(world, run.slots, seed)
        self._learner = SourceLearner(world)
        self._slot = 0
        self._lessons = 0
        self._since: list[tuple[int, float, int]] = []
        self._waiting: dict[int, int] = {}  # ids of found pages by number
        learner = self._learner
        order = self._crawler.order
        longest = world.sources / (_EXPLORED * run.scheduler.budget)
        ids = run.scheduler.add(
            objective="news",
            profit=learner.profit[order],
            new_page_rate=learner.new_page_rates()[order],
            decay=learner.decay[order],
            last_crawled=-longest,
            max_interval=longest,
        )
        self._ids = np.empty(world.sources, dtype=np.int64)
        self._ids[order] = ids
        run.remember(ids, order)

    def crawled(self, codes: Codes, now: float) -> None:
        """Sources or found pages were crawled: enter what sources showed that is new."""
        crawler, sources = self._crawler, self._world.sources
        for code in codes.tolist():
            slot, self._slot = self._slot, self._slot + 1
            if code >= sources:
                crawler.crawled[slot] = code
                self._waiting.pop(code - sources, None)
                continue
            look(self._graph, crawler, code, slot, now)
            self._since.append((code, now, int(crawler.new_pages[slot])))
            found = crawler.stack[: crawler.counts[WAITING]].copy()
            crawler.counts[WAITING] = 0
            if len(found):
                self._enter(code, found)

    def _enter(self, source: int, pages: Codes) -> None:
        """Found pages compete by their age for one crawl."""
        ids = self._run.scheduler.add(
            objective="once",
            profit=np.full(len(pages), self._learner.profit[source]),
            decay=self._learner.decay[source],
            last_crawled=self._world.births[pages],
        )
        self._run.remember(ids, pages + self._world.sources)
        self._waiting.update(zip(pages.tolist(), ids.tolist(), strict=True))

    def learn(self, now: float) -> None:
        """Judge sources anew, and pages by what their sources are worth now; drop what is worth next to nothing."""
        learner, scheduler = self._learner, self._run.scheduler
        if self._since:
            source, time, found = (np.array(column) for column in zip(*self._since, strict=True))
            learner.see_crawls(source.astype(np.int32), time, found.astype(np.int32))
            self._since.clear()
        self._lessons += 1
        if self._lessons % _PUSHES == 0:
            learner.push(self._crawler, now, fit=True)
        rates = learner.new_page_rates()
        scheduler.update(self._ids, objective="news", profit=learner.profit, new_page_rate=rates, decay=learner.decay)
        if not self._waiting:
            return
        pages = np.fromiter(self._waiting, dtype=np.int64)
        ids = np.fromiter(self._waiting.values(), dtype=np.int64)
        source = self._crawler.found_on[pages]
        profit, decay = learner.profit[source], learner.decay[source]
        worth = profit * np.exp(-decay * (now - self._world.births[pages]))
        faint = worth < _FAINT * scheduler.price
        scheduler.remove(ids[faint])
        for page in pages[faint].tolist():
            del self._waiting[page]
        if not faint.all():
            scheduler.update(ids[~faint], profit=profit[~faint], decay=decay[~faint])

    def run_of(self, codes: Codes, times: Floats) -> NewsRun:
        """The crawls of sources and found pages, and what they were worth."""
        world = self._world
        gains = np.zeros(len(codes), dtype=np.int64)
        pages = codes >= world.sources
        number = codes[pages].astype(np.int64) - world.sources
        gains[pages] = hits_to_come(world.hit_start, world.hit_time, number, times[pages])
        return NewsRun(world, times, codes, gains)
