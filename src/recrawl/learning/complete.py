"""Change rates of pages whose every change is known: from a feed, a version history, a site that announces them.

U changes in a time T have a Gamma posterior once the rate has the prior of half a change in half a unit of time:
Gamma(U + ½, T + ½), with mean (U + ½)/(T + ½) (LambdaCrawl, Kolobov et al. 2019, with half a day).
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np

from recrawl.errors import InvalidInput
from recrawl.jit import exact, kernel
from recrawl.learning.inputs import check_amounts, check_positive, check_share
from recrawl.learning.posterior import RatePosterior
from recrawl.pages import Floats
from recrawl.values.gamma import inverse_lower_gamma

_FAKE_CHANGES = 0.5
_MOST_CHANGES = 2**53
_NEARLY_NORMAL = 1e5  # from this shape on the expansion around the normal distribution has 13 digits


def complete_rate(changes: Any, watched: Any, fake_time: float = 0.5) -> Floats:
    """The rate of each page, (U + ½)/(T + ½). O(pages).

    Args:
        changes: how many changes were seen, one number per page or one alone.
        watched: for how long, in the caller's unit of time.
        fake_time: the time of the imaginary half change; the paper has half a day.

    >>> complete_rate([0, 9], [9.5, 9.5]).tolist()
    [0.05, 0.95]
    """
    counts, times, fake = _checked(changes, watched, fake_time)
    rates: Floats = (counts + _FAKE_CHANGES) / (times + fake)
    return rates


def complete_posterior(changes: Any, watched: Any, fake_time: float = 0.5, level: float = 0.9) -> RatePosterior:
    """What is known of each page's rate; `mean` is `complete_rate`. O(pages · √changes), O(pages) from 100,000 changes.

    >>> known = complete_posterior([4], [9.5])
    >>> known.mean.round(3).tolist(), known.low.round(3).tolist(), known.high.round(3).tolist()
    ([0.45], [0.166], [0.846])
    """
    tail = (1 - check_share(level, "level")) / 2
    counts, times, fake = _checked(changes, watched, fake_time)
    shape, time = np.broadcast_arrays(np.atleast_1d(counts) + _FAKE_CHANGES, np.atleast_1d(times) + fake)
    shape = np.ascontiguousarray(shape)
    median, low, high = (gamma_quantiles(shape, share) / time for share in (0.5, tail, 1 - tail))
    return RatePosterior(shape / time, median, low, high, log_means(shape) - np.log(time))


def gamma_quantiles(shapes: Floats, share: float) -> Floats:
    """The x with P(shape, x) = share; shapes are ½ or more than 1. O(√shape) each, O(1) from 100,000 on."""
    return _quantiles(shapes, share, NormalDist().inv_cdf(share))


@kernel
def _quantiles(shapes: Floats, share: float, deviations: float) -> Floats:
    out = np.empty(len(shapes))
    for i in range(len(shapes)):
        if shapes[i] >= _NEARLY_NORMAL:
            out[i] = _large_quantile(shapes[i], deviations)
        elif shapes[i] > 1.0:
            out[i] = inverse_lower_gamma(shapes[i], share)
        else:
            out[i] = _half_quantile(share)
    return out


@exact
def _large_quantile(shape: float, z: float) -> float:
    """The quantile of a large shape, z standard deviations up if it were normal: the series of Cornish and Fisher 1938.

    Its terms fall by z/√shape, and z is within ±8.3 for any share that a float tells from 0 and 1.
    """
    root = math.sqrt(shape)
    zz = z * z
    series = (zz - 1.0) / 3
    series += z * (zz - 7.0) / (36 * root)
    series -= ((3.0 * zz + 7.0) * zz - 16.0) / (810 * shape)
    series += z * ((9.0 * zz + 256.0) * zz - 433.0) / (38880 * shape * root)
    return shape + (root * z + series)


@kernel
def log_means(shapes: Floats) -> Floats:
    """E[ln X] for X ~ Gamma(shape, 1): the digamma function."""
    out = np.empty(len(shapes))
    for i in range(len(shapes)):
        out[i] = _digamma(shapes[i])
    return out


@exact
def _half_quantile(share: float) -> float:
    """The x with P(½, x) = erf(√x) = share, by Newton: erf is concave, so steps from 0 never overshoot."""
    root = 0.0
    for _ in range(200):
        step = (share - math.erf(root)) * 0.5 * math.sqrt(math.pi) * math.exp(root * root)
        root += step
        if abs(step) <= 1e-16 * root:
            break
    return root * root


@exact
def _digamma(x: float) -> float:
    """ψ(x) for x > 0: upwards by ψ(x) = ψ(x + 1) − 1/x, then the asymptotic series."""
    shift = 0.0
    while x < 8.0:
        shift += 1.0 / x
        x += 1.0
    r = 1.0 / (x * x)
    series = r * (1.0 / 12 - r * (1.0 / 120 - r * (1.0 / 252 - r * (1.0 / 240 - r * (1.0 / 132 - r * 691.0 / 32760)))))
    return math.log(x) - 0.5 / x - series - shift


def _checked(changes: Any, watched: Any, fake_time: float) -> tuple[Floats, Floats, float]:
    fake = check_positive(fake_time, "fake_time")
    counts, times = _counts(changes), _numbers(watched, "watched")
    if counts.ndim and times.ndim and counts.shape != times.shape:
        raise InvalidInput(f"has {len(times)} values but changes has {len(counts)}", field="watched")
    return counts, times, fake


def _counts(changes: Any) -> Floats:
    counts = _numbers(changes, "changes")
    legal = (counts <= _MOST_CHANGES) & (np.floor(counts) == counts)
    if not legal.all():
        row = int(np.argmin(legal)) if counts.ndim else None
        number = float(counts.flat[row or 0])
        problem = f"is {number!r}, but must be a whole number from 0 to {_MOST_CHANGES}"
        raise InvalidInput(problem, field="changes", row=row)
    return counts


def _numbers(column: Any, field: str) -> Floats:
    """One amount per page, or one alone."""
    if np.isscalar(column) or (isinstance(column, np.ndarray) and column.ndim == 0):
        return np.asarray(check_positive(column, field, may_be_zero=True))
    return check_amounts(column, field)
