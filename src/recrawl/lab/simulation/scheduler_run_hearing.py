"""Signals on their way to a scheduler in a simulated world, and learning how far to trust them.

Where the quality of signals is told, the scheduler is told it with each page. Where it must be learned, signals heard
between two crawls of a page and whether the second saw a change are an audit; audits enter a `TrustTracker` by
section, and from time to time the scheduler is told what they say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import kernel
from recrawl.lab.simulation.crawl_log import PageNumbers
from recrawl.lab.simulation.world import Ints, World
from recrawl.learning.inputs import Flags
from recrawl.learning.trust_tracker import TrustTracker, qualities, usual_signals
from recrawl.pages import Floats
from recrawl.scheduling.types import Signal

if TYPE_CHECKING:
    from recrawl.lab.simulation.scheduler_run import SchedulerRun

Qualities = dict[str, Signal]
Counts = NDArray[np.int64]


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
    """The same with a quality that is learned from crawls.

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
