"""What an experiment leaves behind: a table, a figure, and a number for each claim that was fixed beforehand.

A paper's module has `experiments(scale)`, which yields `Experiment`s one after the other. It prints and writes
nothing; `report.py` does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from recrawl.lab.simulation.compare import mean_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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


def mean_finding(claim: str, samples: Sequence[float]) -> Finding:
    """The mean over repetitions with its 95 % interval by Student's t; of ratios and differences give paired ones.

    >>> mean_finding("x", [1.0, 1.0, 1.0])
    Finding(claim='x', value=1.0, low=1.0, high=1.0)
    """
    return Finding(claim, *mean_of(samples))
