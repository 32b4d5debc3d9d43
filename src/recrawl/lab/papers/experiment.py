"""What an experiment leaves behind: a table, a figure, and a number for each claim that was fixed beforehand.

A paper's module has `experiments(scale)`, which yields `Experiment`s one after the other. It prints and writes
nothing; `report.py` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recrawl.lab.simulation.compare import mean_of
from recrawl.pages import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Samples = Sequence[float] | Floats


class Scale(NamedTuple):
    """How large to run: `quick` keeps all set-ups and has fewer pages, repetitions or steps."""

    quick: bool
    workers: int = 1


class Finding(NamedTuple):
    """The number measured for a claim, and its 95 % interval; without repetitions all three are equal."""

    claim: str
    value: float
    low: float
    high: float


class Table(NamedTuple):
    """Rows of texts and numbers under column names."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[str | float | int, ...]]


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment that was run.

    Attributes:
        name: paper and experiment, as `azar.fig1`; also the name of its files.
        title: what it is, in one line.
        table: every number behind the figure and the findings.
        findings: one for each claim of this experiment.
        draw: makes the figure, when asked.
        notes: set-up that the paper leaves open, how it was chosen, and what was seen, one sentence each.
    """

    name: str
    title: str
    table: Table
    findings: tuple[Finding, ...]
    draw: Callable[[], Figure] | None = None
    notes: tuple[str, ...] = field(default=())


def exact_finding(claim: str, value: float) -> Finding:
    """A finding without chance."""
    return Finding(claim, value, value, value)


def mean_finding(claim: str, samples: Sequence[float] | Floats) -> Finding:
    """The mean over repetitions with its 95 % interval by Student's t; of ratios and differences give paired ones.

    >>> mean_finding("x", [1.0, 1.0, 1.0])
    Finding(claim='x', value=1.0, low=1.0, high=1.0)
    """
    return Finding(claim, *mean_of(np.asarray(samples, dtype=np.float64).tolist()))


def least_ratio(claim: str, pairs: Iterable[tuple[Samples, Samples]]) -> Finding:
    """The least mean ratio of paired samples over settings, with the interval at that setting.

    >>> least_ratio("x", [([2.0, 2.0], [1.0, 1.0]), ([3.0, 3.0], [2.0, 2.0])]).value
    1.5
    """
    return min((_ratio(claim, *pair) for pair in pairs), key=lambda finding: finding.value)


def largest_distance(claim: str, pairs: Iterable[tuple[Samples, Samples]]) -> Finding:
    """The largest distance of the mean ratio from 1 over settings.

    >>> largest_distance("x", [([1.0, 1.0], [1.0, 1.0]), ([0.75, 0.75], [1.0, 1.0])]).value
    0.25
    """
    found = (_ratio(claim, *pair) for pair in pairs)
    distances = (Finding(claim, each.value - 1.0, each.low - 1.0, each.high - 1.0) for each in found)
    return max((without_sign(each) for each in distances), key=lambda finding: finding.value)


def ratio_of_means(claim: str, above: Samples, below: Samples) -> Finding:
    """The ratio of two means of paired samples; its interval to first order.

    >>> round(ratio_of_means("x", [1.0, 3.0], [4.0, 4.0]).value, 3)
    0.5
    """
    top, bottom = np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64)
    ratio = top.mean() / bottom.mean()
    return mean_finding(claim, ratio + (top - ratio * bottom) / bottom.mean())


def without_sign(finding: Finding) -> Finding:
    """The size of a number that may have either sign.

    >>> without_sign(Finding("x", -0.1, -0.2, 0.05))
    Finding(claim='x', value=0.1, low=0.0, high=0.2)
    """
    low, high = abs(finding.low), abs(finding.high)
    least = 0.0 if finding.low <= 0.0 <= finding.high else min(low, high)
    return Finding(finding.claim, abs(finding.value), least, max(low, high))


def _ratio(claim: str, above: Samples, below: Samples) -> Finding:
    return mean_finding(claim, np.asarray(above, dtype=np.float64) / np.asarray(below, dtype=np.float64))
