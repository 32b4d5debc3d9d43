"""What was measured over time: rings of samples at four resolutions, small enough to be kept as facts of the store.

A sample that is taken goes into the finest ring; each coarser one holds the mean of what came in its interval. Pure.

| span | a sample every | samples |
|---|---|---|
| `minutes` | 2 s | 300 |
| `hour` | 15 s | 240 |
| `day` | 5 min | 288 |
| `month` | 2 h | 372 |
"""

from __future__ import annotations

import base64
import binascii
import math
import zlib
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

import numpy as np

Span = Literal["minutes", "hour", "day", "month"]
SPANS: tuple[Span, ...] = get_args(Span)
STEPS: Mapping[Span, tuple[float, int]] = {
    "minutes": (2.0, 300),
    "hour": (15.0, 240),
    "day": (300.0, 288),
    "month": (7200.0, 372),
}
"""Seconds between two samples, and how many there are."""

_FACT = "timeline."
_VERSION = 1


class Sample(NamedTuple):
    """What was measured at a time; NaN for what could not be.

    Args:
        at: Unix seconds.
        freshness: estimated, by importance.
        fresh_pages: estimated, by number.
        age_p50_s, age_p90_s: of the copies.
        price: that a crawl must be worth.
        budget_used: share of the budget that was spent since the sample before.
        crawls: fetches a minute.
        changes: changes found a minute.
        wasted: share of the fetches that brought nothing new.
        backlog: pages that are due and wait.
    """

    at: float
    freshness: float = math.nan
    fresh_pages: float = math.nan
    age_p50_s: float = math.nan
    age_p90_s: float = math.nan
    price: float = math.nan
    budget_used: float = math.nan
    crawls: float = math.nan
    changes: float = math.nan
    wasted: float = math.nan
    backlog: float = math.nan


@dataclass(slots=True)
class _Ring:
    """The samples of one resolution, and what comes in the interval that is under way."""

    step_s: float
    samples: deque[Sample]
    gathered: list[Sample] = field(default_factory=list)
    grew: bool = False

    def add(self, sample: Sample) -> None:
        if self.gathered and math.floor(sample.at / self.step_s) != math.floor(self.gathered[0].at / self.step_s):
            self.close()
            while self.samples and self.samples[-1].at > sample.at:  # the clock was set back: this time comes again
                self.samples.pop()
        self.gathered.append(sample)

    def close(self) -> None:
        if self.gathered:
            self.samples.append(_mean(self.gathered))
            self.gathered = []
            self.grew = True


class Timeline:
    """Samples over time; `add` is O(1), amortised.

    Args:
        pace: how many times as fast as a clock on the wall the times run; the steps are as many times as long.
    """

    def __init__(self, pace: float = 1.0) -> None:
        self.pace = pace
        self._rings = {span: _Ring(step_s * pace, deque(maxlen=count)) for span, (step_s, count) in STEPS.items()}

    def add(self, sample: Sample) -> None:
        """Take in a sample; one that is earlier than others replaces them."""
        for ring in self._rings.values():
            ring.add(sample)

    def samples(self, span: Span) -> list[Sample]:
        """The samples of a span, the oldest first, with the interval that is under way."""
        ring = self._rings[span]
        under_way = [_mean(ring.gathered)] if ring.gathered else []
        return [*ring.samples, *under_way][-STEPS[span][1] :]

    def latest(self) -> Sample | None:
        """The last sample that was taken."""
        gathered = self._rings["minutes"].gathered
        return gathered[-1] if gathered else None

    def before(self, span: Span) -> Sample | None:
        """The oldest sample of a span."""
        found = self.samples(span)
        return found[0] if found else None

    def to_facts(self, *, everything: bool = False) -> dict[str, str]:
        """The spans that grew since the last call, as small facts for a store; about 12 kB each."""
        facts = {}
        for span, ring in self._rings.items():
            if (ring.grew and span != "minutes") or everything:
                ring.grew = False
                facts[_FACT + span] = _packed(list(ring.samples))
        return facts

    def covers_s(self, span: Span) -> float:
        """How long a span is when it is full."""
        step_s, count = STEPS[span]
        return step_s * self.pace * count

    @staticmethod
    def from_facts(facts: Mapping[str, str], pace: float = 1.0) -> Timeline:
        """What `to_facts` gave; what cannot be read is left out."""
        timeline = Timeline(pace)
        for span, ring in timeline._rings.items():
            ring.samples.extend(_unpacked(facts.get(_FACT + span, "")))
        return timeline


def _mean(samples: list[Sample]) -> Sample:
    if len(samples) == 1:
        return samples[0]
    columns = []
    for values in zip(*samples, strict=True):
        known = [value for value in values if not math.isnan(value)]
        columns.append(sum(known) / len(known) if known else math.nan)
    return Sample(*columns)


def _packed(samples: list[Sample]) -> str:
    """Times in whole, values in single precision, compressed."""
    table = np.array(samples, dtype=np.float64).reshape(len(samples), len(Sample._fields))
    times, values = table[:, 0].astype("<f8").tobytes(), table[:, 1:].astype("<f4").T.tobytes()
    head = bytes([_VERSION, len(Sample._fields)])
    return base64.b85encode(head + zlib.compress(times + values, 6)).decode()


def _unpacked(text: str) -> list[Sample]:
    columns = len(Sample._fields)
    try:
        packed = base64.b85decode(text)
        if packed[:2] != bytes([_VERSION, columns]):
            return []
        raw = zlib.decompress(packed[2:])
    except (ValueError, zlib.error, binascii.Error):
        return []
    count, rest = divmod(len(raw), 8 + 4 * (columns - 1))
    if rest:
        return []
    times = np.frombuffer(raw[: 8 * count], dtype="<f8")
    values = np.frombuffer(raw[8 * count :], dtype="<f4").reshape(columns - 1, count).T.astype(np.float64)
    if not np.isfinite(times).all():
        return []
    earliest_after = np.minimum.accumulate(times[::-1])[::-1]
    in_order = times <= earliest_after  # all but what a clock that was set back made come again
    return [Sample(at, *row) for at, row in zip(times[in_order].tolist(), values[in_order].tolist(), strict=True)]
