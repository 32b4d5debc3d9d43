"""Interest in the new pages of a content source: how many hits they gather, and how fast that fades.

Average cumulative hits by age follow P(1 − e^{−κ·age}) (ECHO, Lefortier et al. 2013, algorithm 2). Profit P and decay κ
are a least-squares fit, with ages weighted by the pages that reached them. For a given decay the best profit is a
quotient of two sums, so a search over the logarithm of the decay alone is enough: a grid finds the valley, golden
section its floor. It cannot diverge and needs no step size.

Little is certain from few hits, so the decay is drawn to a default until there are some. The profit starts from a
pessimistic default, of which less is left the more pages were watched; it never reaches 0.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from recrawl.errors import InvalidInput
from recrawl.jit import kernel
from recrawl.learning.hit_histograms import HitHistograms
from recrawl.pages import LARGEST, Floats, check_number

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


class InterestFit(NamedTuple):
    """Profit (hits that a new page will gather) and decay (per unit time) of each source."""

    profit: Floats
    decay: Floats


class _Curves(NamedTuple):
    """Average cumulative hits by age, the weight of each age, and the hits behind it all, per source."""

    gathered: Floats
    weights: Floats
    hits: Floats


class Interest:
    """Profit and decay of every source, fitted anew when hits have come in.

    Args:
        histograms: the hits; the caller goes on recording there.
        default_decay: the decay of a source of which nothing is known, per unit time.
        default_profit: its profit.

    >>> histograms = HitHistograms(sources=2, start=0.0, bin_width=0.1, bins=40)
    >>> histograms.add_pages([0] * 100, times=[0.0] * 100)
    >>> histograms.advance(4.0)
    >>> ages = (np.arange(40) + 0.5) * 0.1
    >>> histograms.add_hits([0] * 40, ages, hits=500 * np.exp(-2 * ages))
    >>> interest = Interest(histograms)
    >>> fit = interest.refit()
    >>> fit.profit.round(1).tolist(), fit.decay.round(1).tolist()
    ([25.0, 0.0], [2.0, 1.0])
    """

    def __init__(
        self, histograms: HitHistograms, *, default_decay: float = 1.0, default_profit: float = DEFAULT_PROFIT
    ) -> None:
        self._histograms = histograms
        self.default_decay = check_number(default_decay, "default_decay")
        self.default_profit = check_number(default_profit, "default_profit")
        if self.default_decay == 0 or self.default_profit == 0:
            raise InvalidInput(
                "is 0, but a source with no profit or no decay would never be judged again",
                field="default_decay" if self.default_decay == 0 else "default_profit",
            )
        sources = len(histograms)
        self._fit = InterestFit(np.full(sources, self.default_profit), np.full(sources, self.default_decay))

    @property
    def fit(self) -> InterestFit:
        """The latest fit."""
        return self._fit

    def refit(self, *, everything: bool = False) -> InterestFit:
        """Fit the sources that had hits since the last call, or all of them. O(bins) per source, about 80 passes.

        Pages that gather no hits lower the profit of their source only when it is fitted: ask for everything now and
        then.
        """
        touched = self._histograms.take_touched()
        rows = np.arange(len(self._histograms)) if everything else touched
        if len(rows):
            own = fit_interest(
                self._histograms.hits()[rows],
                self._histograms.watched()[rows],
                self._histograms.bin_width,
                default_decay=self.default_decay,
                default_profit=self.default_profit,
            )
            fit = InterestFit(self._fit.profit.copy(), self._fit.decay.copy())
            fit.profit[rows], fit.decay[rows] = own
            self._fit = fit
        return self._fit


def fit_interest(
    hits: Floats,
    watched: Floats,
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
    hits, watched = _check_bins(hits, "hits"), _check_bins(watched, "watched")
    if hits.shape != watched.shape:
        raise InvalidInput(f"has the form {watched.shape} but hits has {hits.shape}", field="watched")
    average = np.divide(hits, watched, out=np.zeros(hits.shape), where=watched > 0)
    most = watched.max(axis=1, initial=0.0)
    weights = np.divide(watched, most[:, None], out=np.zeros(hits.shape), where=watched > 0)
    curves = _Curves(np.cumsum(average, axis=1), weights, np.where(watched > 0, hits, 0.0).sum(axis=1))
    own = InterestFit(np.zeros(len(hits)), np.full(len(hits), default_decay * bin_width))
    _fit_all(curves, default_decay * bin_width, own)
    return InterestFit(own.profit + default_profit / (most + 1.0), own.decay / bin_width)


def _check_bins(bins: Floats, name: str) -> Floats:
    array = np.asarray(bins, dtype=np.float64)
    if array.ndim != 2:
        raise InvalidInput("must be numbers, sources by bins", field=name)
    bad = ~((array >= 0) & (array < LARGEST)).all(axis=1)
    if bad.any():
        raise InvalidInput("has a number that is not 0 or more", field=name, row=int(np.argmax(bad)))
    return array


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
    return curves.hits[source] * unexplained / total + _PRIOR * surprise * surprise, profit
