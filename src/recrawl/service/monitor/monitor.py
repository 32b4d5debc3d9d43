"""Measures a running tracker every few seconds, and keeps what it measured.

    scheduler ── estimates ─┐
    store ── fetches, events ┼─> Vitals (now) ── metrics, dashboard
    hosts, sinks ───────────┘        └─> Timeline (over time, kept in the store)

Runs in the process of the tracker, beside it; nothing waits for it, and what costs time is done in a thread. Readers
get the last measurement.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import StoreError
from recrawl.learning.calibration import Audit, Calibration
from recrawl.scheduling.budget_curve import Point
from recrawl.scheduling.estimates import Estimates
from recrawl.service.monitor.activity import HostsNow, Mover, Recent, Score, look_at_hosts
from recrawl.service.monitor.timeline import Sample, Timeline
from recrawl.store.columns import StoreCounts
from recrawl.store.rows import Observation
from recrawl.tracker.clock import DAY_S
from recrawl.tracker.commands.status import usable_share
from recrawl.tracker.settings.file import Origin
from recrawl.tracker.tracker import Tracker

_SENSELESS = 1e-9  # of the mean importance: no crawl is worth as little


class SinkLag(NamedTuple):
    """How far a sink is behind: events, and failures in a row; why it was stopped, or ""."""

    name: str
    behind: int
    failures: int
    stopped: str


@dataclass(frozen=True, slots=True)
class Vitals:
    """A tracker at one moment.

    Args:
        at: Unix seconds.
        estimates: of all pages.
        freshness_range: between which values the freshness is, 95 %.
        audits: crawls that put beliefs to the test.
        price: that a crawl must be worth.
        budget_per_day: crawls.
        budget_used: share of it that was spent in the last minute; None before that is known.
        crawls_per_minute, changes_per_minute: in the last minute.
        wasted: share of the last fetches that brought nothing new.
        delays_s: from a change to its detection: median and 90 %.
        found_by_expected: changes found by changes expected.
        scores: of signals.
        tallies: counters of the store.
        counts: of the store.
        sinks: how far they are behind.
        hosts: how they are.
        network_down: whether hosts cannot be reached at all.
        last_success_at: when a page last came.
        movers: pages that changed most.
        unwritten: results that are not durable yet.
        gone: pages that are not there any more; they are not among those of the estimates.
        references: freshness that others have or would have, by name, to compare with; NaN where it is not known.
        budget_usable: share of the budget that the least intervals of pages let be used.
        min_interval_s: between two crawls of a page of which nothing else is said.
    """

    at: float
    estimates: Estimates
    freshness_range: tuple[float, float]
    audits: int
    price: float
    budget_per_day: float
    budget_used: float | None
    crawls_per_minute: float | None
    changes_per_minute: float | None
    wasted: float | None
    delays_s: tuple[float | None, float | None]
    found_by_expected: float
    scores: Sequence[Score]
    tallies: Mapping[str, int]
    counts: StoreCounts
    sinks: Sequence[SinkLag]
    hosts: HostsNow
    network_down: bool
    last_success_at: float | None
    movers: Sequence[Mover]
    unwritten: int
    gone: int = 0
    references: Mapping[str, float] = field(default_factory=dict)
    budget_usable: float = 1.0
    min_interval_s: float = 0.0

    @property
    def known_price(self) -> float | None:
        """The price, None while it is still far from what anything sold for, as before the first crawls."""
        mean = self.estimates.importance / max(self.estimates.pages, 1)
        return None if 0.0 < self.price < _SENSELESS * mean else self.price


def sample_of(vitals: Vitals) -> Sample:
    """What goes into the timeline."""
    estimates = vitals.estimates

    def known(value: float | None) -> float:
        return math.nan if value is None else float(value)

    return Sample(
        at=vitals.at,
        freshness=estimates.freshness,
        fresh_pages=estimates.fresh_pages,
        age_p50_s=known(estimates.ages.percentile(0.5)),
        age_p90_s=known(estimates.ages.percentile(0.9)),
        price=known(vitals.known_price),
        budget_used=known(vitals.budget_used),
        crawls=known(vitals.crawls_per_minute),
        changes=known(vitals.changes_per_minute),
        wasted=known(vitals.wasted),
        backlog=float(estimates.on_offer + estimates.at_hosts),
    )


LOOK_EVERY_S = 2.0
_MOST_TIME = 0.02  # of the time that may go into looking
_SAVE_EVERY_S = 60.0
_WINDOW_S = 60.0
_BATCH = 1000
_BACK_EVENTS = 5000
_CURVE_S = 30.0
_LONGEST_WAIT_S = 20.0
_LONGEST_CURVE_S = 600.0
_TELLING = ("unchanged", "noise", "changed")


References = Callable[[], Mapping[str, float]]
"""Gives freshness to compare with, by name: none while there is nothing to compare."""


class Meter(NamedTuple):
    """Counters at a time, between which rates are taken."""

    at: float
    requests: int
    fetched: int
    changed: int


class Watch:
    """Measures a tracker.

    Args:
        tracker: in this process.
        origins: who gave each setting, for whoever shows settings.
        references: gives freshness to compare with, by name, whenever the tracker is measured.
    """

    def __init__(
        self,
        tracker: Tracker,
        origins: Mapping[str, Origin] | None = None,
        references: References | None = None,
    ) -> None:
        self.tracker = tracker
        self.origins = dict(origins or {})
        self.timeline = Timeline()
        self.reference_lines: dict[str, Timeline] = {}
        """What references gave over time, sample by sample with the timeline; not kept over a restart."""
        self._references = references
        self._prior = tracker.schedule.scheduler.prior
        self.recent = Recent()
        self.calibration = Calibration()
        self.looked_at = -math.inf
        """When the last measurement was taken, by the steady clock of the machine."""
        self._vitals: Vitals | None = None
        self._estimator = tracker.schedule.scheduler.estimator(unit_s=DAY_S)
        self._meters: deque[Meter] = deque(maxlen=600)
        self._changed = 0
        self._gone: set[int] = set()
        self._pace = tracker.clock.pace
        self._number = self._cursor = 0
        self._opened = False
        self._lock = asyncio.Lock()
        self._curve: tuple[float, list[Point]] = (-math.inf, [])
        self._curve_lock = asyncio.Lock()
        self._wait_s = LOOK_EVERY_S

    async def run(self) -> None:
        """Look until the tracker stops; a store in trouble is tried again."""
        saved_at = time.monotonic()
        while not self.tracker.stopping:
            with suppress(StoreError):
                await self.look()
                if time.monotonic() - saved_at >= _SAVE_EVERY_S:
                    saved_at = time.monotonic()
                    await self.tracker.store.save_facts(self.timeline.to_facts())
            await self.tracker.pause(self._wait_s)
        with suppress(StoreError):
            await self.tracker.store.save_facts(self.timeline.to_facts(everything=True))

    async def vitals(self) -> Vitals:
        """The last measurement; taken now if there is none, or if it is old."""
        if self._vitals is None or time.monotonic() - self.looked_at > 5 * self._wait_s:
            await self.look()
        assert self._vitals is not None
        return self._vitals

    async def curve(self) -> list[Point]:
        """What other budgets would buy; worked out in a thread, and kept for a while."""
        async with self._curve_lock:
            at, points = self._curve
            if time.monotonic() >= at:
                started = time.monotonic()
                gone, correction = self._gone_ids(), self.calibration.correction()
                points = await asyncio.to_thread(self.tracker.schedule.scheduler.budget_curve, gone, correction)
                ended = time.monotonic()
                kept_s = min(max(_CURVE_S, (ended - started) / _MOST_TIME), _LONGEST_CURVE_S)
                self._curve = (ended + kept_s, points)
            return points

    async def look(self) -> Vitals:
        """Measure now."""
        async with self._lock:
            if not self._opened:
                await self._open()
            await self._follow()
            store = self.tracker.store
            now = self.tracker.clock.now()
            estimates, spent_s = await asyncio.to_thread(self._estimated, now / DAY_S, self._gone_ids())
            tallies, counts = await store.tallies(), await store.counts()
            self._meter(now, tallies)
            sinks = await self._sinks(counts.last_cursor)
            started = time.thread_time()
            vitals = self._measured(now, estimates, tallies, counts, sinks)
            spent_s += time.thread_time() - started
            self._vitals = vitals
            self.timeline.add(sample_of(vitals))
            for name, freshness in vitals.references.items():
                line = self.reference_lines.setdefault(name, Timeline(self._pace))
                line.add(Sample(vitals.at, freshness=freshness))
            self.looked_at = time.monotonic()
            self._wait_s = min(max(LOOK_EVERY_S, spent_s / _MOST_TIME), _LONGEST_WAIT_S)
            return vitals

    def _estimated(self, now: float, gone: NDArray[np.int64]) -> tuple[Estimates, float]:
        """A look at all pages, and the seconds of the processor that it took."""
        started = time.thread_time()
        estimates = self._estimator.look(now, gone, self.calibration.correction())
        return estimates, time.thread_time() - started

    def _measured(
        self,
        now: float,
        estimates: Estimates,
        tallies: Mapping[str, int],
        counts: StoreCounts,
        sinks: Sequence[SinkLag],
    ) -> Vitals:
        tracker, recent = self.tracker, self.recent
        used, crawls, changes = self._rates(tracker.schedule.scheduler.budget)
        median, late = recent.delays((0.5, 0.9))
        return Vitals(
            at=now,
            estimates=estimates,
            freshness_range=estimates.freshness_range(self.calibration.doubt),
            audits=len(self.calibration),
            price=float(tracker.schedule.scheduler.price),
            budget_per_day=float(tracker.schedule.scheduler.budget),
            budget_used=used,
            crawls_per_minute=crawls,
            changes_per_minute=changes,
            wasted=recent.wasted,
            delays_s=(median, late),
            found_by_expected=self.calibration.found_by_expected,
            scores=recent.scores(),
            tallies=tallies,
            counts=counts,
            sinks=sinks,
            hosts=look_at_hosts(tracker, estimates.hosts, now),
            network_down=tracker.network.down,
            last_success_at=recent.last_success_at,
            movers=recent.movers(now),
            unwritten=len(tracker.committer),
            gone=len(self._gone),
            references={} if self._references is None else self._references(),
            budget_usable=usable_share(self.tracker),
            min_interval_s=self.tracker.settings.min_interval_s,
        )

    # following the store

    async def _open(self) -> None:
        """Begin where the store is: what was measured before, pages that are gone, events of late."""
        store = self.tracker.store
        self.timeline = Timeline.from_facts(await store.facts(), self._pace)
        counts = await store.counts()
        self._gone = set(await store.page_ids("removed"))
        day_ago = await store.cursor_before(self.tracker.clock.now() - DAY_S)
        self._cursor = max(day_ago, counts.last_cursor - _BACK_EVENTS)
        self._number = max(await store.last_observation() - _BATCH, 0)
        await self._follow()
        self._changed = 0
        self._opened = True

    async def _follow(self) -> None:
        store = self.tracker.store
        while changes := await store.changes(self._cursor, _BATCH):
            self._cursor = changes[-1].cursor
            self._changed += self.recent.hear(changes)
            for each in changes:
                if each.event.page_id is not None:
                    change = {"removed": self._gone.add, "restored": self._gone.discard}.get(each.event.kind)
                    if change is not None:
                        change(each.event.page_id)
            if len(changes) < _BATCH:
                break
        seen = await store.all_observations(self._number, _BATCH)
        if len(seen) == _BATCH:  # more than we can follow: go on from the end
            self._number = max(await store.last_observation() - _BATCH, seen[-1][0])
            seen = await store.all_observations(self._number, _BATCH)
        if seen:
            self._number = seen[-1][0]
            fetches = [each for _, each in seen]
            self.recent.take(fetches)
            self.calibration.take(self._audits(fetches))
        if self._prior is not self.tracker.schedule.scheduler.prior:
            self._prior = self.tracker.schedule.scheduler.prior
            self.calibration.renew()

    def _audits(self, seen: Sequence[Observation]) -> list[Audit]:
        """Fetches that put to the test what was believed at the last look: the first of each page since then."""
        tested: dict[int, Observation] = {}
        for each in seen:
            tested.setdefault(each.page_id, each)
        numbers = {page: self.tracker.schedule.index.entry(page) for page in tested}
        known = [
            (number, each)
            for page, each in tested.items()
            if (number := numbers[page]) is not None and each.gap_s is not None and each.verdict in _TELLING
        ]
        if not known:
            return []
        gaps = np.array([each.gap_s for _, each in known], dtype=np.float64) / DAY_S
        said = self._estimator.believed(np.array([number for number, _ in known], dtype=np.int64), gaps)
        hazards = -np.log(np.maximum(said.chance, 1e-300))
        rows = zip(known, hazards.tolist(), (said.importance * gaps).tolist(), said.shape.tolist(), strict=True)
        return [
            Audit(hazard, each.verdict == "changed", weight, shape)
            for (_, each), hazard, weight, shape in rows
            if not math.isnan(hazard)
        ]

    def _gone_ids(self) -> NDArray[np.int64]:
        ids = self.tracker.schedule.index.entries(np.fromiter(self._gone, dtype=np.int64, count=len(self._gone)))
        return ids[ids >= 0]

    async def _sinks(self, last: int) -> list[SinkLag]:
        rows = [await self.tracker.store.sink(rule.name) for rule in self.tracker.settings.sinks]
        return [SinkLag(row.name, max(last - row.cursor, 0), row.failures, row.stopped) for row in rows]

    # rates

    def _meter(self, now: float, tallies: Mapping[str, int]) -> None:
        fetched = sum(count for name, count in tallies.items() if name.startswith("fetched:"))
        self._meters.append(Meter(now, tallies.get("requests", 0), fetched, self._changed))

    def _rates(self, budget_per_day: float) -> tuple[float | None, float | None, float | None]:
        """Share of the budget used, crawls and changes a minute, over the last minute or what there is of it."""
        last = self._meters[-1]
        first = next(meter for meter in self._meters if meter.at >= last.at - _WINDOW_S * self._pace)
        passed = last.at - first.at
        if passed <= 0:
            return None, None, None
        allowed = budget_per_day / DAY_S * passed
        used = (last.requests - first.requests) / allowed if allowed > 0 else None
        return used, 60 * (last.fetched - first.fetched) / passed, 60 * (last.changed - first.changed) / passed
