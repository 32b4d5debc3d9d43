"""A tracker's scheduling on a living web without HTTP or a store, and what the service would estimate of it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from tracker_harness import logged

from recrawl.lab.demo.race import Race
from recrawl.lab.demo.scene import Scene
from recrawl.lab.livingweb.world import LivingWorld
from recrawl.learning.calibration import Audit, Calibration
from recrawl.outcomes import Settlement
from recrawl.scheduling.scheduler import Scheduler
from recrawl.tracker.clock import DAY_S, TrackerClock
from recrawl.tracker.hosts import HostBook
from recrawl.tracker.maintenance import Refitting
from recrawl.tracker.pipeline.dispatch import Soundings
from recrawl.tracker.schedule import Schedule
from recrawl.tracker.settings.settings import Settings
from recrawl.tracker.usage import Accounts
from recrawl.tracker.visit import InFlight

EPOCH = 1_767_225_600
_BEATS = 10  # steps in a second


class Reading(NamedTuple):
    """Freshness at a second: estimated, with its range, and true, beside round robin and the optimum."""

    estimated: float
    low: float
    high: float
    true: float
    round_robin: float
    optimum: float


class Found(NamedTuple):
    """A crawl of a page with a copy."""

    gap_s: float
    changed: bool


@dataclass
class WatchedRace:
    """As much of a tracker as decides what is crawled, learns from it, and is measured.

    Args:
        scene: the web and the budget.
        beside: requests for each crawl that are no crawls, such as second fetches.
    """

    scene: Scene
    beside: float = 0.15
    accounts: Accounts = field(default_factory=Accounts)

    def __post_init__(self) -> None:
        self.now = float(EPOCH)
        self.race = Race(LivingWorld(self.scene.world(EPOCH)), self.scene.budget_per_day, self.now)
        pages = self.race.truth.pages
        self.scheduler = Scheduler(
            self.scene.budget_per_day, "freshness", self.now / DAY_S, burst=self.scene.budget_per_s
        )
        ids = self.scheduler.add(importance=self.race.truth.weights[pages])
        clock, settings = TrackerClock(), Settings()
        self.hosts = HostBook(settings, clock, lambda _: None)
        self.schedule = Schedule(self.scheduler, self.hosts, clock, settings)
        self.schedule.index.put(np.array(pages), ids)
        self._refitting = Refitting(self.schedule, self.accounts)
        self._soundings = Soundings(self.schedule, self.hosts, InFlight(), self.accounts)
        self._estimator, self._calibration = self.scheduler.estimator(), Calibration()
        self._prior = self.scheduler.prior
        self._last: dict[int, float] = {}
        self._found: dict[int, Found] = {}  # since the last look
        self._owed = 0.0

    def run(self, seconds: int) -> list[Reading]:
        """A reading for each second."""
        readings = []
        with logged() as said:
            for second in range(1, seconds + 1):
                for _ in range(_BEATS):
                    self._crawl(self.now + self.scene.speedup / _BEATS)
                asyncio.run(self._refitting.tend())
                readings.append(self._read(float(second)))
        assert not said
        return readings

    def _crawl(self, now: float) -> None:
        self.now = now
        most = int(self.scene.budget_per_s)
        claimed = self._soundings.claim(most, now)
        batch = self.scheduler.take(now / DAY_S, most - len(claimed))
        entries = [*claimed, *batch.ids.tolist()]
        if not entries:
            return
        outcomes = [self._outcome(entry, now) for entry in entries]
        self.scheduler.crawled(entries, now / DAY_S, outcome=outcomes)
        self.accounts.end("fetched", "ok", len(entries))
        self._owed += self.beside * len(entries)
        self.scheduler.spend(float(int(self._owed)), now / DAY_S)
        self.accounts.count("requests", len(entries) + int(self._owed))
        self._owed -= int(self._owed)

    def _outcome(self, entry: int, now: float) -> Settlement:
        page, copies = self.schedule.page_of(entry), self.race.ours
        before = int(copies.versions[page])
        if not copies.made_at(page, now):
            self._found.pop(entry, None)
            return "gone"
        changed = int(copies.versions[page]) != before
        if entry in self._last:
            self._found.setdefault(entry, Found(now - self._last[entry], changed))
        self._last[entry] = now
        return "changed" if changed else "unchanged"

    def _read(self, second: float) -> Reading:
        """What the service measures, and the truth."""
        self._calibration.take(self._audits(list(self._found.items())))
        self._found.clear()
        if self._prior is not self.scheduler.prior:
            self._prior = self.scheduler.prior
            self._calibration.renew()
        seen = self._estimator.look(self.now / DAY_S, None, self._calibration.correction())
        sample = self.race.sample(self.now, second, self.accounts.counted["requests"] - self.race.crawls)
        low, high = seen.freshness_range(self._calibration.doubt)
        return Reading(seen.freshness, low, high, sample.ours, sample.round_robin, sample.optimum)

    def _audits(self, found: Sequence[tuple[int, Found]]) -> list[Audit]:
        gaps = np.array([each.gap_s for _, each in found]) / DAY_S
        said = self._estimator.believed(np.array([entry for entry, _ in found], dtype=np.int64), gaps)
        rows = zip(found, said.chance.tolist(), (said.importance * gaps).tolist(), said.shape.tolist(), strict=True)
        return [
            Audit(-math.log(max(chance, 1e-300)), each.changed, weight, shape)
            for (_, each), chance, weight, shape in rows
            if not math.isnan(chance)
        ]
