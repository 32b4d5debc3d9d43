"""Posteriors about as narrow as the grid's step or narrower: nodes of their own, fine enough, where the weight is.

The logarithm of the likelihood is smooth in the logarithm of the rate, so seven grid values around its top give it in
between to about 1e-6 of its scale. The prior is taken as a line between its weights. Positions here count in steps of
the grid from its lowest rate.
"""

from __future__ import annotations

import math

from recrawl.jit import exact, kernel
from recrawl.learning.likelihood import GridTable
from recrawl.learning.summary import Nodes, exponentials
from recrawl.pages import Floats

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
