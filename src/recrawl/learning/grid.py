"""The grid of change rates, and what is computed on it: likelihoods, priors, and summaries of a distribution.

Rates are evenly spaced in the logarithm, per unit time of the caller's choice. The likelihood of a history is

    ln L(Δ) = Σ_changed ln(1 − e^{−Δa}) − Δ · (total time of unchanged crawls)

The terms of a changed crawl are one curve, ln(1 − e^{−x}) over ln x, read at equal steps from a place that its gap
sets. The curve is tabulated once, finely, with the values that are a step apart side by side: a crawl adds one stretch
of the table, and the loop computes no exponential. Between two entries the curve is a line; the error is below 2e-5.

A distribution is summed up in five numbers (`sum_up`). Each node counts for half a step to both sides, so quantiles
move smoothly between nodes. A likelihood about as narrow as the step, or narrower, gets nodes of its own where its
weight is (`place_nodes`): the logarithm of the likelihood is smooth in the logarithm of the rate, so seven grid values
around its top give the values in between to about 1e-6. The prior is linear between its weights. Positions of nodes
count in steps of the grid from its lowest rate.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from recrawl.errors import InvalidInput
from recrawl.jit import exact, kernel
from recrawl.learning.inputs import check_count, check_positive
from recrawl.pages import LARGEST, SMALLEST, Floats
from recrawl.values.special import exp_of_minus

POINTS_PER_DECADE = 8

MOST_POINTS = 512


_PHASES = 16  # table entries per step of the grid
_LOWEST = -20.0  # below, ln(1 − e^{−x}) = ln x to nine digits
_HIGHEST = 3.7  # above, ln(1 − e^{−x}) = 0 to sixteen

NUMBERS = 5
"""How many numbers sum up a page: mean, median, low, high, mean of the logarithm, in this order."""

_NEGLIGIBLE = 300.0  # e^{−300} times any weight or rate is a normal float, and those are quicker

NODES = 33
"""Nodes over eight standard deviations."""

_PER_DEVIATION = 4.0
_WINDOW = 7
# Posteriors wider than a step are summed up on the grid, narrower than 0.6 on nodes of their own, and between the two
# answers are mixed, so that a page's rate does not jump when one crawl more narrows it.
_WIDE = 1.0
_NARROW = 0.6
# The least deviations looked at in turn: one look finds place and width for the next, until it is wide enough.
_LOOKS = (0.2, 0.01, 0.0)


@dataclass(frozen=True, slots=True)
class RateGrid:
    """Change rates `lowest · e^{step·k}`, k = 0 … points − 1.

    >>> RateGrid(lowest=0.01, step=math.log(10), points=4).rates.round(6).tolist()
    [0.01, 0.1, 1.0, 10.0]
    """

    lowest: float
    step: float
    points: int

    def __post_init__(self) -> None:
        check_positive(self.lowest, "lowest")
        check_positive(self.step, "step")
        check_count(self.points, "points", least=2, most=MOST_POINTS)
        if not SMALLEST <= self.lowest <= LARGEST:
            raise InvalidInput(f"is {self.lowest!r}, but must be a rate above 0", field="lowest")
        if not 0 < self.step <= math.log(LARGEST):
            raise InvalidInput(f"is {self.step!r}, but must be above 0", field="step")
        if math.log(self.lowest) + self.step * (self.points - 1) > math.log(LARGEST):
            raise InvalidInput(f"is {self.points!r}, which ends in rates above {LARGEST:g}", field="points")

    @property
    def log_rates(self) -> Floats:
        """Natural logarithms of the rates, rising. O(points)."""
        return math.log(self.lowest) + self.step * np.arange(self.points, dtype=np.float64)

    @property
    def rates(self) -> Floats:
        """The rates, rising. O(points)."""
        rates: Floats = np.exp(self.log_rates)
        return rates

    @property
    def highest(self) -> float:
        """The last rate."""
        return self.lowest * math.exp(self.step * (self.points - 1))


def rate_grid(lowest: float, highest: float, per_decade: int = POINTS_PER_DECADE) -> RateGrid:
    """A grid from `lowest` to `highest` or a little more, with so many points per factor of ten.

    >>> rate_grid(0.001, 10.0).points
    33
    """
    lowest, highest = check_positive(lowest, "lowest"), check_positive(highest, "highest")
    step = math.log(10) / check_count(per_decade, "per_decade", least=1, most=MOST_POINTS)
    points = math.ceil(math.log(highest / lowest) / step - 1e-9) + 1
    return RateGrid(lowest, step, max(2, points))


@dataclass(frozen=True, slots=True)
class RatePrior:
    """Weights of the grid's rates over the whole population, and over hosts that have enough pages."""

    grid: RateGrid
    weights: Floats
    host_weights: Floats  # one row per host in `host_rows`
    host_rows: Mapping[Hashable, int] = field(default_factory=dict)


class GridTable(NamedTuple):
    """A grid and the curve of a changed crawl: `curve[phase, i]` is its value at step i + phase/phases."""

    rates: Floats
    log_lowest: float
    step: float
    curve: Floats


def grid_table(grid: RateGrid) -> GridTable:
    """Tabulate the curve for a grid. O(points)."""
    steps = math.ceil((_HIGHEST - _LOWEST) / grid.step) + 2
    at = np.arange(steps)[None, :] + np.arange(_PHASES + 1)[:, None] / _PHASES
    curve = np.zeros((_PHASES + 1, steps + grid.points))
    curve[:, :steps] = np.log(-np.expm1(-np.exp(np.minimum(_LOWEST + grid.step * at, 6.0))))
    return GridTable(grid.rates, math.log(grid.lowest), grid.step, curve)


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


class Nodes(NamedTuple):
    """Rates with equal steps between their logarithms, and their weights, up to a factor."""

    log_rates: Floats
    rates: Floats
    weights: Floats


@kernel
def exponentials(logarithms: Floats, out: Floats) -> None:
    """Write e to these powers, up to a factor: the highest becomes 1, and none becomes 0. O(len)."""
    highest = logarithms[0]
    for k in range(1, len(logarithms)):  # compiled in a tenth of the time that the method takes
        highest = max(highest, logarithms[k])
    for k in range(len(out)):
        out[k] = exp_of_minus(min(highest - logarithms[k], _NEGLIGIBLE))


@kernel
def sum_up(nodes: Nodes, tail: float, out: Floats) -> None:
    """Write the five numbers, with `tail` of the weight below the low end and as much above the high. O(nodes)."""
    weights = nodes.weights
    total = 0.0
    rate = 0.0
    log_rate = 0.0
    for k in range(len(weights)):
        total += weights[k]
        rate += weights[k] * nodes.rates[k]
        log_rate += weights[k] * nodes.log_rates[k]
    out[0] = rate / total
    out[1] = _quantile(nodes, 0.5 * total)
    out[2] = _quantile(nodes, tail * total)
    out[3] = _quantile(nodes, (1.0 - tail) * total)
    out[4] = log_rate / total


@kernel
def _quantile(nodes: Nodes, weight: float) -> float:
    """The rate with so much weight below it."""
    last = len(nodes.rates) - 1
    below = 0.0
    k = 0
    while k < last and below + nodes.weights[k] < weight:
        below += nodes.weights[k]
        k += 1
    share = (weight - below) / max(nodes.weights[k], 1e-300)
    step = nodes.log_rates[1] - nodes.log_rates[0]
    log_rate = nodes.log_rates[k] + step * (min(share, 1.0) - 0.5)
    return math.exp(min(max(log_rate, nodes.log_rates[0]), nodes.log_rates[last]))


@kernel
def share_of_nodes(log_likelihood: Floats) -> float:
    """How much of the answer the nodes give, from 0 where a likelihood is wide to 1 where it is narrow. O(points)."""
    top = _highest(log_likelihood)
    if len(log_likelihood) < _WINDOW or top < 2 or top > len(log_likelihood) - 3:
        return 0.0
    _, deviation = _peak(log_likelihood, top)
    return min(max((_WIDE - deviation) / (_WIDE - _NARROW), 0.0), 1.0)


@kernel
def place_nodes(table: GridTable, log_likelihood: Floats, prior: Floats, nodes: Nodes) -> None:
    """Place the nodes around the top of a narrow likelihood and weigh them. O(points)."""
    centre, deviation = _peak(log_likelihood, _highest(log_likelihood))
    for least in _LOOKS:
        spacing = max(deviation, least) / _PER_DEVIATION
        first = centre - spacing * (NODES // 2)
        _look(log_likelihood, centre, first, spacing, nodes.weights)
        if deviation >= least:
            break
        at, width = _peak(nodes.weights, min(max(_highest(nodes.weights), 2), NODES - 3))
        centre = first + spacing * at
        deviation = spacing * width
    exponentials(nodes.weights, nodes.weights)
    _weigh(table, prior, first, spacing, nodes)


@kernel
def _look(log_likelihood: Floats, centre: float, first: float, spacing: float, out: Floats) -> None:
    """Interpolate the likelihood at the nodes."""
    window = min(max(int(centre + 0.5) - _WINDOW // 2, 0), len(log_likelihood) - _WINDOW)
    scaled = _scaled_differences(log_likelihood[window : window + _WINDOW])
    for i in range(NODES):
        out[i] = _between(scaled, first + spacing * i - window)


@kernel
def _weigh(table: GridTable, prior: Floats, first: float, spacing: float, nodes: Nodes) -> None:
    """Set the rates of the nodes and multiply their likelihoods by the prior, which is 0 beyond the grid."""
    last = len(prior) - 1
    rate = math.exp(table.log_lowest + table.step * first)
    ratio = math.exp(table.step * spacing)
    for i in range(NODES):
        position = first + spacing * i
        nodes.log_rates[i] = table.log_lowest + table.step * position
        nodes.rates[i] = rate
        rate *= ratio
        k = min(max(int(position), 0), last - 1)
        inside = 0.0 <= position <= last
        nodes.weights[i] *= prior[k] + (prior[k + 1] - prior[k]) * (position - k) if inside else 0.0


@exact
def _scaled_differences(values: Floats) -> tuple[float, float, float, float, float, float, float]:
    """The coefficients of Newton's polynomial through seven values at 0, 1, …, 6."""
    a, b, c, d, e, f, g = values[0], values[1], values[2], values[3], values[4], values[5], values[6]
    b, c, d, e, f, g = b - a, c - b, d - c, e - d, f - e, g - f
    c, d, e, f, g = (c - b) / 2.0, (d - c) / 2.0, (e - d) / 2.0, (f - e) / 2.0, (g - f) / 2.0
    d, e, f, g = (d - c) / 3.0, (e - d) / 3.0, (f - e) / 3.0, (g - f) / 3.0
    e, f, g = (e - d) / 4.0, (f - e) / 4.0, (g - f) / 4.0
    f, g = (f - e) / 5.0, (g - f) / 5.0
    return a, b, c, d, e, f, (g - f) / 6.0


@exact
def _between(scaled: tuple[float, ...], position: float) -> float:
    """Newton's polynomial, at a position counted from the first of its values."""
    value = scaled[6]
    for i in range(5, -1, -1):
        value = value * (position - i) + scaled[i]
    return value


@kernel
def _highest(values: Floats) -> int:
    """The index of the highest value."""
    best = 0
    for i in range(1, len(values)):
        if values[i] > values[best]:
            best = i
    return best


@exact
def _peak(values: Floats, top: int) -> tuple[float, float]:
    """Place and deviation of the peak near an index that has two neighbours on both sides, infinite if there is none.

    The bend at the place is read between the bends at two indices, so that it does not jump from one top to the next.
    """
    bend = _bend(values, top)
    if bend <= 0.0:
        return float(top), math.inf
    lean = min(max(0.5 * (values[top + 1] - values[top - 1]) / bend, -0.5), 0.5)
    beside = _bend(values, top + 1 if lean > 0.0 else top - 1)
    bend += abs(lean) * (max(beside, 0.0) - bend)
    return top + lean, 1.0 / math.sqrt(bend)


@exact
def _bend(values: Floats, i: int) -> float:
    """How far a value lies above the line between its neighbours, twice."""
    return float(2.0 * values[i] - values[i - 1] - values[i + 1])
