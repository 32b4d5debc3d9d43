"""What a measure is: a name, what it is held to, and how it is read; and how a result is written down.

A group of measures is a module with a function `measures()`. It computes nothing: each measure carries the function
that reads it. A measure that cannot run is a result with a reason, never an error, so that a group always ends.
This module reads the clock; it knows no group and prints nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

RUNS = 3
"""How often a piece of work is timed; the best time counts."""


class CannotRun(Exception):
    """A measure that this machine or installation cannot run; the sentence says why and what to do."""


@dataclass(frozen=True, slots=True)
class Bound:
    """What a measure is held to: a least (`floor`) or a most (`limit`) of its value or its ratio; both are a band."""

    on: Literal["value", "ratio"]
    floor: float | None = None
    limit: float | None = None

    def holds(self, reading: Reading) -> bool:
        """Whether the reading keeps the bound; one that has no such number does not.

        >>> Bound("ratio", floor=10).holds(Reading(0.02, ratio=12.5))
        True
        """
        number = reading.value if self.on == "value" else reading.ratio
        if number is None:
            return False
        above = self.floor is None or number >= self.floor
        below = self.limit is None or number <= self.limit
        return above and below

    def __str__(self) -> str:
        """The bound as people read it.

        >>> str(Bound("ratio", floor=10)), str(Bound("value", floor=3.9, limit=4.3))
        ('ratio ≥ 10', 'value ≥ 3.9, ≤ 4.3')
        """
        parts = []
        if self.floor is not None:
            parts.append(f"≥ {self.floor:g}")
        if self.limit is not None:
            parts.append(f"≤ {self.limit:g}")
        return f"{self.on} {', '.join(parts)}"


@dataclass(frozen=True, slots=True)
class Reading:
    """What a measure reads: its value, how that compares with the yardstick, and the yardstick's own figure."""

    value: float
    ratio: float | None = None
    yardstick_figure: str = ""


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure: `yardstick` says in words what the value is compared with, `read` does the work."""

    name: str
    unit: str
    yardstick: str
    bound: Bound
    read: Callable[[], Reading]


@dataclass(frozen=True, slots=True)
class Result:
    """A measure that was run, or could not be: then there is no reading, and a reason."""

    measure: Measure
    reading: Reading | None
    reason: str | None
    seconds: float

    @property
    def holds(self) -> bool:
        """Whether the measure ran and keeps its bound."""
        return self.reading is not None and self.measure.bound.holds(self.reading)

    @property
    def yardstick(self) -> str:
        """What the value is compared with, and the figure of that if there is one."""
        figure = "" if self.reading is None else self.reading.yardstick_figure
        return f"{self.measure.yardstick}: {figure}" if figure else self.measure.yardstick

    def as_json(self) -> dict[str, Any]:
        """The result for machines; `seconds` is how long the measure took, yardstick included."""
        bound = self.measure.bound
        document: dict[str, Any] = {
            "name": self.measure.name,
            "value": None if self.reading is None else self.reading.value,
            "unit": self.measure.unit,
            "yardstick": self.yardstick,
            "ratio": None if self.reading is None else self.reading.ratio,
            "bounds": bound.on,
        }
        if bound.floor is not None:
            document["floor"] = bound.floor
        if bound.limit is not None:
            document["limit"] = bound.limit
        document["holds"] = self.holds
        document["seconds"] = round(self.seconds, 3)
        if self.reason is not None:
            document["reason"] = self.reason
        return document


def run(measure: Measure) -> Result:
    """Read a measure; whatever stops it becomes the reason of the result."""
    started = time.monotonic()
    reading: Reading | None = None
    reason: str | None = None
    try:
        reading = measure.read()
    except CannotRun as error:
        reason = str(error)
    except Exception as error:  # a failing measure must not end the group
        sentence = " ".join(str(error).split())
        reason = f"{type(error).__name__}: {sentence}" if sentence else type(error).__name__
    return Result(measure, reading, reason, time.monotonic() - started)


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU time of one call, in seconds; other processes on the machine hardly disturb it."""
    started = time.process_time()
    work()
    return time.process_time() - started


def best_cpu_seconds(work: Callable[[], object]) -> float:
    """CPU time of the best of `RUNS` calls, after one that is not timed and may compile."""
    work()
    return min(cpu_seconds(work) for _ in range(RUNS))
