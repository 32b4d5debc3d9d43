"""`recrawl.Scheduler` as a competitor: it is driven through its public calls and told what a crawler would see.

Crawl k happens at k/budget, a few at a time where there are many pages or crawls (`batch_size`). Before each of these
moments the scheduler is told of pages born and signals sent since the last one. What a crawl finds comes from
`scheduler_run_truth.py`: changed since the crawl before, or gone; that a page was removed is learned by crawling it.
Pages there at the start have a copy of time 0, those born later none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.errors import InvalidInput
from recrawl.lab.simulation.crawl_log import CrawlLog, PageNumbers
from recrawl.lab.simulation.scheduler_run_settings import Settings, batch_size
from recrawl.lab.simulation.world import Ints, World
from recrawl.pages import Floats, check_number

if TYPE_CHECKING:
    from recrawl.scheduling.scheduler import Scheduler

_NOBODY = -1
_SLOT = (1 << 32) - 1  # the part of an id that says where a page is kept; slots are dense and given again


@dataclass(frozen=True, slots=True)
class SchedulerCompetitor:
    """A scheduler with these settings, under this name."""

    name: str
    settings: Settings = field(default_factory=Settings)

    def crawl(self, world: World, budget: float, seed: int) -> CrawlLog:
        """Crawl a world from 0 to its horizon. O(pages + crawls + signals), more for policies that search."""
        return SchedulerRun(world, check_run(world, budget), seed, self.settings).crawl()


class SchedulerRun:
    """One run: a scheduler, and who is who between its ids and the numbers of the world."""

    def __init__(self, world: World, budget: float, seed: int, settings: Settings) -> None:
        from recrawl.lab.simulation.scheduler_run_hearing import make_hearing
        from recrawl.lab.simulation.scheduler_run_truth import truth_of
        from recrawl.scheduling.scheduler import Scheduler
        from recrawl.scheduling.types import Tuning

        self.world, self.settings, self.budget = world, settings, budget
        self.batch = settings.batch or batch_size(len(world), budget * world.horizon)
        # One token to spare, so that rounding never withholds a crawl; the caller keeps the rate.
        self.scheduler: Scheduler = Scheduler(
            budget,
            settings.objective,
            burst=self.batch + 1.0,
            seed=seed,
            policy=settings.policy,
            tuning=Tuning(prior=settings.prior, memory=settings.memory),
        )
        self.id_of_page: Ints = np.full(len(world), _NOBODY, dtype=np.int64)
        self._page_in_slot: PageNumbers = np.full(len(world), _NOBODY, dtype=np.int32)
        self._truth = truth_of(world)
        self._rates = known_rates(world) if settings.rates == "known" else None
        self._sections = section_names(world, settings.section_depth)
        self.hearing = make_hearing(self)

    def crawl(self) -> CrawlLog:
        """Run to the horizon."""
        times = crawl_times(self.world.horizon, self.budget, self.batch)
        born = np.argsort(self.world.born, kind="stable").astype(np.int32)
        here = np.searchsorted(self.world.born[born], np.concatenate([[0.0], times]), side="right")
        self._add(born[: here[0]], 0.0)
        log = CrawlLog(np.empty(len(times) * self.batch, dtype=np.int32), np.empty(len(times) * self.batch))
        done = 0
        for step, now in enumerate(times.tolist()):
            if here[step + 1] > here[step]:
                self._add(born[here[step] : here[step + 1]], None)
            if self.hearing is not None:
                self.hearing.tell(now)
            pages = self._take(now)
            log.page[done : done + len(pages)] = pages
            log.time[done : done + len(pages)] = now
            done += len(pages)
        return CrawlLog(log.page[:done], log.time[:done])

    def known_pages(self) -> PageNumbers:
        """The pages that the scheduler has. O(pages)."""
        return np.flatnonzero(self.id_of_page != _NOBODY).astype(np.int32)

    def section_names_of(self, pages: PageNumbers) -> list[str] | None:
        """Sections of pages, if there are any."""
        return None if self._sections is None else [self._sections[page] for page in pages.tolist()]

    def _add(self, pages: PageNumbers, last_crawled: float | None) -> None:
        if not len(pages):
            return
        columns: dict[str, Any] = {"importance": self.world.importance[pages], "last_crawled": last_crawled}
        if self._rates is not None:
            columns["change_rate"] = self._rates[pages]
        if self.hearing is not None:
            columns["signals"] = self.hearing.quality_of(pages)
        if self._sections is not None:
            columns["host"] = self.section_names_of(pages)
        ids = self.scheduler.add(**columns)
        self.id_of_page[pages] = ids
        self._page_in_slot[ids & _SLOT] = pages

    def _take(self, now: float) -> PageNumbers:
        from recrawl.lab.simulation.scheduler_run_truth import CHANGED, GONE, look

        ids = self.scheduler.take(now, self.batch).ids
        pages: PageNumbers = self._page_in_slot[ids & _SLOT]
        found = look(self._truth, pages, now)
        gone = found == GONE
        if gone.any():
            self._part(ids[gone], pages[gone], now)
            ids, here, found = ids[~gone], pages[~gone], found[~gone]
        else:
            here = pages
        changed = found == CHANGED
        self.scheduler.crawled(ids, now, changed)
        if self.hearing is not None:
            self.hearing.crawled(here, now, changed)
        return pages

    def _part(self, ids: Ints, pages: PageNumbers, now: float) -> None:
        """Pages turned out to be gone."""
        self.scheduler.crawled(ids, now, outcome=["gone"] * len(ids))
        self.id_of_page[pages] = _NOBODY


def check_run(world: World, budget: float) -> float:
    """Refuse worlds and budgets that nothing can be said of; the budget as a number."""
    if not len(world):
        raise InvalidInput("has no pages: there is nothing to crawl", field="world")
    number = check_number(budget, "budget")
    if number <= 0:
        raise InvalidInput(f"is {budget!r}, but must be above 0 crawls a day", field="budget")
    return number


def crawl_times(horizon: float, budget: float, batch: int = 1) -> Floats:
    """Times at which so many crawls at a time are made: crawl k at k/budget, a batch when its last is due.

    >>> crawl_times(1.0, 4.0, batch=2).tolist()
    [0.5, 1.0]
    """
    # A product such as 0.1 · 30 may fall short of the whole number that is meant.
    steps = int(np.floor(horizon * budget / batch * (1 + 1e-12)))
    times: Floats = np.arange(1, steps + 1, dtype=np.float64)
    times *= batch / budget
    times[-1:] = np.minimum(times[-1:], horizon)  # only the last may lie beyond, by rounding
    return times


def known_rates(world: World) -> Floats:
    """Changes a day: those of the law, or if there is none the mean over each page's life. O(pages)."""
    if world.change_rate is not None:
        return world.change_rate
    life = np.minimum(world.removed, world.horizon) - np.maximum(world.born, 0.0)
    changes = np.diff(world.changes.offsets).astype(np.float64)
    rates: Floats = np.divide(changes, life, out=np.zeros(len(world)), where=life > 0)
    return rates


def section_names(world: World, depth: int) -> list[str] | None:
    """The section of each page: its host and the first folders of its name; None if there is one for all. O(pages)."""
    if depth <= 0 or world.page_names is None:
        hosts = world.hosts
        return None if hosts is None else [hosts.names[number] for number in hosts.number.tolist()]
    folders = ["/".join(name.strip("/").split("/")[:-1][:depth]) for name in world.page_names]
    if world.hosts is None:
        return folders
    return [
        f"{world.hosts.names[number]}/{folder}"
        for number, folder in zip(world.hosts.number.tolist(), folders, strict=True)
    ]
