"""The likelihood of a page's history at every rate of a grid.

    ln L(Δ) = Σ_changed ln(1 − e^{−Δa}) − Δ · (total time of unchanged crawls)

On a grid that is even in ln Δ, the terms of a changed crawl are one curve, ln(1 − e^{−x}) over ln x, read at equal
steps from a place that its gap sets. So the curve is tabulated once, finely, with the values that are a step apart
side by side: a crawl adds one stretch of the table, and no exponential is computed in the loop. Between two entries
the curve is a line; that is within 2e-5.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import kernel
from recrawl.learning.evidence import MIXED_GAPS, Evidence
from recrawl.learning.histories import Histories
from recrawl.learning.rate_grid import RateGrid
from recrawl.pages import Floats

_PHASES = 16  # table entries per step of the grid
_LOWEST = -20.0  # below, ln(1 − e^{−x}) = ln x to nine digits
_HIGHEST = 3.7  # above, ln(1 − e^{−x}) = 0 to sixteen


class GridTable(NamedTuple):
    """A grid and the curve of a changed crawl: `curve[phase, i]` is its value at step i + phase/phases."""

    rates: Floats
    log_lowest: float
    step: float
    curve: Floats


class Rows(NamedTuple):
    """The observations of some pages, as in `Histories`."""

    offsets: NDArray[np.int64]
    gaps: Floats
    changed: NDArray[np.bool_]


def rows_of(histories: Histories, begin: int = 0, end: int | None = None) -> Rows:
    """The observations of the pages from `begin` to `end`, not copied: offsets still count from the first page."""
    stop = len(histories) if end is None else end
    return Rows(histories.offsets[begin : stop + 1], histories.gaps, histories.changed)


def grid_table(grid: RateGrid) -> GridTable:
    """Tabulate the curve for a grid. O(points)."""
    steps = math.ceil((_HIGHEST - _LOWEST) / grid.step) + 2
    at = np.arange(steps)[None, :] + np.arange(_PHASES + 1)[:, None] / _PHASES
    curve = np.zeros((_PHASES + 1, steps + grid.points))
    curve[:, :steps] = np.log(-np.expm1(-np.exp(np.minimum(_LOWEST + grid.step * at, 6.0))))
    return GridTable(grid.rates, math.log(grid.lowest), grid.step, curve)


@kernel
def fill_log_likelihood(table: GridTable, rows: Rows, evidence: Evidence, page: int, out: Floats) -> None:
    """Write ln L at every rate of the grid for one page. O(points · (1 + changes)), O(points) if gaps are equal."""
    time = evidence.unchanged_time[page]
    for k in range(len(out)):
        out[k] = -time * table.rates[k]
    if evidence.common_gap[page] != MIXED_GAPS:
        if evidence.changes[page] > 0:
            add_changes(table, evidence.common_gap[page], float(evidence.changes[page]), out)
        return
    for row in range(rows.offsets[page], rows.offsets[page + 1]):
        if rows.changed[row] and rows.gaps[row] > 0.0:
            add_changes(table, rows.gaps[row], 1.0, out)


@kernel
def add_changes(table: GridTable, gap: float, times: float, out: Floats) -> None:
    """Add the terms of so many changed crawls after this gap, which must be above 0. O(points)."""
    lowest = math.log(gap) + table.log_lowest
    at = (lowest - _LOWEST) / table.step
    if at < 0.0:
        _add_by_formula(lowest, table.step, times, out)
        return
    if at + len(out) >= table.curve.shape[1]:  # a change was all but certain at every rate
        return
    # Unsigned: an index that could be negative would count from the end, and keeps the loop from vectorising.
    whole = np.uint64(at)
    fine = (at - whole) * _PHASES
    phase = np.uint64(fine)
    upper = times * (fine - phase)
    lower = times - upper
    following = phase + np.uint64(1)
    for k in range(np.uint64(len(out))):
        out[k] += lower * table.curve[phase, whole + k] + upper * table.curve[following, whole + k]


@kernel
def _add_by_formula(lowest: float, step: float, times: float, out: Floats) -> None:
    """The same for gaps so short that the table does not reach them."""
    for k in range(len(out)):
        log_x = lowest + step * k
        if log_x < _LOWEST:
            out[k] += times * log_x
        elif log_x < _HIGHEST:
            out[k] += times * math.log(-math.expm1(-math.exp(log_x)))
