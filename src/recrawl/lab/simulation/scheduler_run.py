"""`recrawl.Scheduler` as a competitor: it is driven through its public calls and told what a crawler would see.

Crawl k happens at k/budget, a few at a time where there are many pages or crawls (`batch_size`). Before each of these
moments the scheduler is told of pages born and signals sent since the last one. What a crawl finds comes from
`policy.look`: changed since the crawl before, or gone; that a page was removed is learned by crawling it.
Pages there at the start have a copy of time 0, those born later none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.jit import kernel
from recrawl.lab.worlds.world import CrawlLog, Ints, PageNumbers, World
from recrawl.learning.filter_state import Memory
from recrawl.learning.grid import RatePrior
from recrawl.learning.inputs import Flags
from recrawl.learning.trust_tracker import TrustTracker, qualities, usual_signals
from recrawl.pages import Floats, check_number
from recrawl.scheduling.types import Signal

if TYPE_CHECKING:
    from recrawl.scheduling.scheduler import Scheduler

Rates = Literal["learned", "known"]
TrustMode = Literal["nothing", "learned", "known"]
_MOST_TIMES = 100_000  # that a scheduler is asked in a run


Qualities = dict[str, Signal]
Counts = NDArray[np.int64]

_NOBODY = -1
_SLOT = (1 << 32) - 1  # the part of an id that says where a page is kept; slots are dense and given again


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a scheduler is told of a world, and how it learns the rest.

    Attributes:
        objective: what pages are crawled for.
        policy: who chooses, a name of `recrawl.Scheduler`.
        rates: change rates are learned from crawls, or told: those of the law, or if there is none the mean over each
            page's life, which no crawler can know.
        hearing: signals are not heard, or heard with their quality learned from crawls, or told. Where nobody knows
            the quality it is learned.
        memory: what learning of change rates forgets.
        prior: of change rates that are learned; around what a page is crawled on average if None.
        section_depth: folders of a page's name that make a section; 0: the host is all there is. Sections stand for
            hosts in the prior and in trust.
        assumed_quality: recall and precision of signals before there are audits.
        relearn_interval: days between two looks at the quality of signals.
        audits_needed: crawls before the first look.
        audits_remembered: about how many of its latest audits count for a section; infinite: all.
        batch: crawls taken at a time; None: by `batch_size`.
    """

    objective: Literal["freshness", "harmonic"] = "harmonic"
    policy: str = "price"
    rates: Rates = "learned"
    hearing: TrustMode = "learned"
    memory: Memory = field(default_factory=Memory)
    prior: RatePrior | None = None
    section_depth: int = 0
    assumed_quality: tuple[float, float] = (0.5, 0.5)
    relearn_interval: float = 14.0
    audits_needed: int = 50
    audits_remembered: float = float("inf")
    batch: int | None = None

    def __post_init__(self) -> None:
        if check_number(self.relearn_interval, "relearn_interval") <= 0:
            raise InvalidInput(f"is {self.relearn_interval!r}, but must be above 0", field="relearn_interval")
        if self.batch is not None and self.batch < 1:
            raise InvalidInput(f"is {self.batch!r}, but must be at least 1", field="batch")


def batch_size(pages: int, crawls: float) -> int:
    """Crawls taken at a time: a two-thousandth of the pages, so that waiting for the others is no part of the cycle.

    A long run takes more, up to a hundredth of the pages, so that it asks no more than 100,000 times.

    >>> batch_size(1_000, 50_000), batch_size(100_000, 2e6), batch_size(5_000, 1e6), batch_size(5_000, 1e7)
    (1, 50, 10, 50)
    """
    return max(pages // 2_000, min(int(crawls / _MOST_TIMES), pages // 100), 1)


class Sent(NamedTuple):
    """Signals of one kind in order of time."""

    page: PageNumbers
    time: Floats


class Hearing:
    """Tells a scheduler of signals as they come, with a quality that is known."""

    def __init__(self, run: SchedulerRun) -> None:
        self._run = run
        self.kinds = tuple(sorted(run.world.signals))
        self._sent = [sent_of(run.world, kind) for kind in self.kinds]
        self._told = [0] * len(self.kinds)

    def quality_of(self, pages: PageNumbers) -> Qualities:
        """What the scheduler is told of the signals of new pages."""
        told: Qualities = {}
        for kind in self.kinds:
            quality = self._run.world.signals[kind].quality
            assert quality is not None
            # A kind that announces nothing may have any precision, also none.
            told[kind] = Signal(
                np.where(quality.precision[pages] > 0, quality.recall[pages], 0.0),
                np.maximum(quality.precision[pages], 1e-9),
            )
        return told

    def tell(self, now: float) -> None:
        """Pass on the signals sent until now, kind by kind; those of pages nobody knows are lost."""
        for number, sent in enumerate(self._sent):
            start = self._told[number]
            if start < len(sent.time) and sent.time[start] <= now:
                end = start + int(np.searchsorted(sent.time[start:], now, side="right"))
                self._told[number] = end
                self._pass_on(number, sent.page[start:end], now)

    def _pass_on(self, number: int, pages: PageNumbers, now: float) -> None:
        ids = self._run.id_of_page[pages]
        ids = ids[ids >= 0]
        if len(ids):
            self._run.scheduler.signal(ids, now, self.kinds[number])

    def crawled(self, pages: PageNumbers, now: float, changed: Flags) -> None:
        """Pages were crawled; nothing is to be learned."""


class LearnedHearing(Hearing):
    """Signals on their way to a scheduler in a simulated world, and learning how far to trust them.

    Where the quality of signals is told, the scheduler is told it with each page. Where it must be learned, signals
    heard between two crawls of a page and whether the second saw a change are an audit; audits enter a `TrustTracker`
    by section, and from time to time the scheduler is told what they say.

    The same with a quality that is learned from crawls.

    Counts of its own stay until the page is crawled: what the scheduler had counted is lost when it is told of another
    quality, and is then said again.
    """

    def __init__(self, run: SchedulerRun) -> None:
        super().__init__(run)
        settings, pages = run.settings, len(run.world)
        sections = run.section_names_of(np.arange(pages, dtype=np.int32))
        names = dict.fromkeys(sections or [""])
        numbers = {name: number for number, name in enumerate(names)}
        self._section: Ints = np.array([numbers[name] for name in sections or [""] * pages], dtype=np.int64)
        self.tracker = TrustTracker(len(names), self.kinds, memory=settings.audits_remembered)
        recall, precision = settings.assumed_quality
        shape = len(names), len(self.kinds)
        self.recall, self.precision = np.full(shape, recall / len(self.kinds)), np.full(shape, precision)
        self._heard: Counts = np.zeros((pages, len(self.kinds)), dtype=np.int64)
        self._ever: Counts = np.zeros_like(self._heard)  # heard since the first copy, for what is usual
        self._first = np.where(run.world.born <= 0, 0.0, np.nan)
        self._last = self._first.copy()
        self._audits: list[tuple[Ints, Floats, Flags, Floats, Floats]] = []
        self._audited = 0
        self._next = settings.relearn_interval

    def quality_of(self, pages: PageNumbers) -> Qualities:
        """What is believed of the signals of pages: what is believed of their sections."""
        section = self._section[pages]
        return {
            kind: Signal(self.recall[section, number], self.precision[section, number])
            for number, kind in enumerate(self.kinds)
        }

    def tell(self, now: float) -> None:
        """Pass on signals; before that, look at their quality anew if it is time."""
        if now >= self._next:
            self._next = now + self._run.settings.relearn_interval
            self._relearn(now)
        super().tell(now)

    def _pass_on(self, number: int, pages: PageNumbers, now: float) -> None:
        count_signals(self._heard, pages, number, self._last)
        super()._pass_on(number, pages, now)

    def crawled(self, pages: PageNumbers, now: float, changed: Flags) -> None:
        """Note audits: pages that had a copy. O(pages)."""
        gaps = now - self._last[pages]
        audited = gaps > 0  # NaN: a first copy
        rows = pages[audited]
        if len(rows):
            heard = self._heard[rows].astype(np.float64)
            self._ever[rows] += self._heard[rows]
            listening = now - self._first[rows]
            usual = usual_signals(self._ever[rows].astype(np.float64), listening[:, None], gaps[audited][:, None])
            self._audits.append((self._section[rows], gaps[audited], changed[audited], heard, usual))
            self._audited += len(rows)
        self._heard[pages] = 0
        self._first[pages] = np.where(np.isnan(self._first[pages]), now, self._first[pages])
        self._last[pages] = now

    def _relearn(self, now: float) -> None:
        """Fit trust to all audits so far and tell the scheduler. O(pages + new audits)."""
        if self._audited < self._run.settings.audits_needed:
            return
        if self._audits:
            columns = zip(*self._audits, strict=True)
            section, gaps, changed, heard, usual = (np.concatenate(column) for column in columns)
            self.tracker.observe(section, gaps, changed, heard, usual)
            self._audits.clear()
        trust = self.tracker.trust()
        known = trust.audits > 0
        recall, precision = qualities(trust)
        self.recall[known], self.precision[known] = recall[known], precision[known]
        self._tell_quality(now)

    def _tell_quality(self, now: float) -> None:
        run = self._run
        pages = run.known_pages()
        if not len(pages):
            return
        run.scheduler.update(run.id_of_page[pages], signals=self.quality_of(pages))
        for number, kind in enumerate(self.kinds):
            waiting = self._heard[pages, number]
            if waiting.any():
                run.scheduler.signal(np.repeat(run.id_of_page[pages], waiting), now, kind)


def make_hearing(run: SchedulerRun) -> Hearing | None:
    """Who tells the scheduler of signals, by the settings of the run; None if it hears nothing."""
    world, hearing = run.world, run.settings.hearing
    if hearing == "nothing" or not world.signals:
        return None
    told = hearing == "known" and all(signals.quality is not None for signals in world.signals.values())
    return Hearing(run) if told else LearnedHearing(run)


def sent_of(world: World, kind: str) -> Sent:
    """The signals of a kind in order of time, ties by page. O(signals · log signals)."""
    events = world.signals[kind].events
    page = np.repeat(np.arange(len(world), dtype=np.int32), np.diff(events.offsets))
    order = np.argsort(events.times, kind="stable")
    times = events.times[order]
    late = times > 0.0  # earlier ones are of what the crawls at time 0 have seen
    return Sent(page[order][late], times[late])


@kernel
def count_signals(heard: Counts, pages: PageNumbers, kind: int, last: Floats) -> None:
    """Count a signal for each of these pages that has a copy. O(pages)."""
    for i in range(len(pages)):
        if last[pages[i]] == last[pages[i]]:
            heard[pages[i], kind] += 1


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
        from recrawl.lab.simulation.policy import truth_of
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
        from recrawl.lab.simulation.policy import CHANGED, GONE, look

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
