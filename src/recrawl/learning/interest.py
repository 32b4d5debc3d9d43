"""Interest in the new pages of a content source: how many hits they gather, and how fast that fades.

Average cumulative hits by age follow P(1 − e^{−κ·age}) (ECHO, Lefortier et al. 2013, algorithm 2). Profit P and decay κ
are a least-squares fit, with ages weighted by the pages that reached them. For a given decay the best profit is a
quotient of two sums, so a search over the logarithm of the decay alone is enough: a grid finds the valley, golden
section its floor. It cannot diverge and needs no step size.

Hits add up, so one bin with far too many would raise every later point of the curve. Therefore a bin is first held to
what the bins beside it allow: their median, and a few times the usual spread of hits. A steady rise or fall passes
unchanged however steep it is, so the shape of the curve is not bent to the law. The first bin has nothing before it
and counts in full: a spike there cannot be told from interest that fades at once.

Little is certain from few hits, so the decay is drawn to a default until there are some. The profit starts from a
pessimistic default, of which less is left the more pages were watched; it never reaches 0.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from recrawl.errors import InvalidInput
from recrawl.jit import kernel
from recrawl.learning.inputs import check_positive, check_table
from recrawl.pages import Floats

TWENTY_MINUTES = 1 / 72
"""The bins of the paper, in days."""

DEFAULT_PROFIT = 0.01
"""Hits expected of a page of a source of which nothing is known: pessimistic, never 0, as in the paper."""

_GRID = 40
_GOLDEN_STEPS = 40
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_DECADE = math.log(10.0)
_PRIOR = 0.1  # in hits: how much less a decay ten times the default is believed
# The slowest decay that can be told from none, per span of all bins, and the fastest from at once, per bin.
_SLOWEST = 0.05
_FASTEST = 20.0
_LEAST_WATCHED = 1e-30  # of the pages: an age that fewer have reached tells nothing

_REACH = 3  # bins on either side that a bin is compared with
_ALLOWED = 3.0  # how many times the usual spread it may be away from them
_ALLOWED_ALONE = 2.0  # and how many usual clumps of hits may come where there are none
_CALM = 0.75  # share of the bins that say what is usual
_CALM_SQUARES = 0.368  # mean square of a standard normal number that is among this share of the least


class InterestFit(NamedTuple):
    """Profit (hits that a new page will gather) and decay (per unit time) of each source."""

    profit: Floats
    decay: Floats


class _Curves(NamedTuple):
    """Average cumulative hits by age, the weight of each age, and the hits behind it all, per source."""

    gathered: Floats
    weights: Floats
    hits: Floats


def fit_interest(
    hits: Any,
    watched: Any,
    bin_width: float,
    *,
    default_decay: float = 1.0,
    default_profit: float = DEFAULT_PROFIT,
) -> InterestFit:
    """Fit profit and decay of many sources to their histograms. O(sources · bins), about 80 passes.

    Args:
        hits: hits by page age, sources by bins.
        watched: pages watched at that age, of the same form.
        bin_width: length of a bin.
        default_decay: what the decay is drawn to while there are few hits, per unit time.
        default_profit: the profit before any page was watched; after n pages 1/(n+1) of it is still added.
    """
    shape = _shape_of(hits)
    hits, watched = check_table(hits, "hits", shape), check_table(watched, "watched", shape)
    width = check_positive(bin_width, "bin_width")
    default = check_positive(default_decay, "default_decay") * width
    profit = check_positive(default_profit, "default_profit")
    most = watched.max(axis=1, initial=0.0)
    with np.errstate(under="ignore"):
        weights = _shares(watched, most)
        weights[weights < _LEAST_WATCHED] = 0.0
        hits = np.where(weights > 0, hits, 0.0)
        total = hits.sum(axis=1)
        calm = _shares(hits, total)  # in shares of all hits, so that no square overflows
        cut_spikes(calm, weights, _units(hits, total))
        gathered = np.cumsum(np.divide(calm, weights, out=np.zeros(shape), where=weights > 0), axis=1)
    own = InterestFit(np.zeros(len(total)), np.full(len(total), default))
    _fit_all(_Curves(gathered, weights, total * calm.sum(axis=1)), default, own)
    per_page = np.divide(total, most, out=np.zeros(len(total)), where=most > 0)
    return InterestFit(own.profit * per_page + profit / (most + 1.0), own.decay / width)


def _shape_of(table: Any) -> tuple[int, int]:
    """Rows and columns of a table."""
    try:
        shape = np.shape(table)
    except ValueError:  # rows of different lengths
        shape = ()
    if len(shape) != 2:
        raise InvalidInput("must be numbers, sources by bins", field="hits")
    return int(shape[0]), int(shape[1])


def _shares(parts: Floats, whole: Floats) -> Floats:
    """Each row over its whole; 0 where there is none."""
    return np.divide(parts, whole[:, None], out=np.zeros(parts.shape), where=whole[:, None] > 0)


def _units(hits: Floats, total: Floats) -> Floats:
    """The least that hits come in, in shares of all: one hit, or less if parts of hits were counted or have faded."""
    least = np.where(hits > 0, hits, 1.0).min(axis=1, initial=1.0)
    units: Floats = np.divide(least, total, out=np.zeros(len(total)), where=total > 0)
    return units


@kernel
def cut_spikes(hits: Floats, watched: Floats, units: Floats) -> None:
    """Hold each bin of each source, in place, to what the watched bins beside it allow. O(sources · bins · log bins).

    Hits of a calm source vary about their expectation e by √(φe), as clumps of φ hits do, where φ is a unit or more.
    What is usual is φ for most bins; a bin may be away from the median of its neighbours by a few times √(φe), and
    above it by a few clumps more.
    """
    sources, bins = hits.shape
    place = np.empty(bins, dtype=np.int64)
    average, expected, surprise = np.empty(bins), np.empty(bins), np.empty(bins)
    beside = np.empty(2 * _REACH + 1)
    for source in range(sources):
        count = 0
        for age in range(bins):
            if watched[source, age] > 0.0:
                place[count] = age
                average[count] = hits[source, age] / watched[source, age]
                count += 1
        told = 0
        for i in range(count):
            own = hits[source, place[i]]
            expected[i] = _median_about(average, i, count, beside) * watched[source, place[i]]
            larger = max(own, expected[i])
            if larger > 0.0:
                surprise[told] = (own - expected[i]) ** 2 / larger
                told += 1
        if told == 0:
            continue
        usual = math.ceil(_CALM * told)
        clump = max(np.sort(surprise[:told])[:usual].sum() / (usual * _CALM_SQUARES), units[source])
        for i in range(count):
            room = _ALLOWED * math.sqrt(clump * expected[i])
            most = expected[i] + room + _ALLOWED_ALONE * clump
            hits[source, place[i]] = max(min(hits[source, place[i]], most), expected[i] - room)


@kernel
def _median_about(values: Floats, place: int, count: int, beside: Floats) -> float:
    """The median of a value and its neighbours; as many before as after, except at the end. Of two the lower."""
    reach = min(_REACH, place)
    size = 0
    for i in range(place - reach, min(place + reach + 1, count)):
        at = size
        while at > 0 and beside[at - 1] > values[i]:
            beside[at] = beside[at - 1]
            at -= 1
        beside[at] = values[i]
        size += 1
    median: float = beside[(size - 1) // 2]
    return median


@kernel
def _fit_all(curves: _Curves, default: float, fit: InterestFit) -> None:
    """Fit every source, time measured in bins."""
    sources, bins = curves.gathered.shape
    low, high = math.log(_SLOWEST / bins), math.log(_FASTEST)
    for source in range(sources):
        if curves.hits[source] <= 0.0:
            continue
        best, place = math.inf, 0
        for k in range(_GRID):
            loss = _loss(curves, source, low + (high - low) * k / (_GRID - 1), default)[0]
            if loss < best:
                best, place = loss, k
        step = (high - low) / (_GRID - 1)
        left, right = low + step * max(place - 1, 0), low + step * min(place + 1, _GRID - 1)
        log_decay = _valley_floor(curves, source, left, right, default)
        fit.profit[source] = _loss(curves, source, log_decay, default)[1]
        fit.decay[source] = math.exp(log_decay)


@kernel
def _valley_floor(curves: _Curves, source: int, left: float, right: float, default: float) -> float:
    """Golden section between two points that have the least loss between them."""
    inner_left, inner_right = right - _GOLDEN * (right - left), left + _GOLDEN * (right - left)
    loss_left = _loss(curves, source, inner_left, default)[0]
    loss_right = _loss(curves, source, inner_right, default)[0]
    for _ in range(_GOLDEN_STEPS):
        if loss_left <= loss_right:
            right, inner_right, loss_right = inner_right, inner_left, loss_left
            inner_left = right - _GOLDEN * (right - left)
            loss_left = _loss(curves, source, inner_left, default)[0]
        else:
            left, inner_left, loss_left = inner_left, inner_right, loss_right
            inner_right = left + _GOLDEN * (right - left)
            loss_right = _loss(curves, source, inner_right, default)[0]
    return 0.5 * (left + right)


@kernel
def _loss(curves: _Curves, source: int, log_decay: float, default: float) -> tuple[float, float]:
    """What a decay leaves unexplained, with the prior's share, and the best profit for it."""
    decay = math.exp(log_decay)
    fades = math.exp(-decay)
    left = 1.0
    squares = 0.0
    cross = 0.0
    for age in range(curves.gathered.shape[1]):
        left *= fades
        shape = 1.0 - left
        squares += curves.weights[source, age] * shape * shape
        cross += curves.weights[source, age] * shape * curves.gathered[source, age]
    profit = cross / squares
    left = 1.0
    unexplained = 0.0
    total = 0.0
    for age in range(curves.gathered.shape[1]):
        left *= fades
        gathered = curves.gathered[source, age]
        unexplained += curves.weights[source, age] * (profit * (1.0 - left) - gathered) ** 2
        total += curves.weights[source, age] * gathered * gathered
    surprise = (log_decay - math.log(default)) / _DECADE
    return curves.hits[source] * (unexplained / total) + _PRIOR * surprise * surprise, profit
