"""Change rates of pages whose every change is known: from a feed, a version history, a site that announces them.

U changes in a time T have a Gamma posterior once the rate has the prior of half a change in half a unit of time:
Gamma(U + ½, T + ½), with mean (U + ½)/(T + ½) (LambdaCrawl, Kolobov et al. 2019, with half a day).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.jit import exact, kernel
from recrawl.learning.posterior import RatePosterior
from recrawl.pages import LARGEST, Floats
from recrawl.values.inverse_gamma import inverse_lower_gamma

_FAKE_CHANGES = 0.5
_MOST_CHANGES = 2**53


def complete_rate(changes: Any, watched: Any, fake_time: float = 0.5) -> Floats:
    """The rate of each page, (U + ½)/(T + ½). O(pages).

    Args:
        changes: how many changes were seen, one number per page or one alone.
        watched: for how long, in the caller's unit of time.
        fake_time: the time of the imaginary half change; the paper has half a day.

    >>> complete_rate([0, 9], [9.5, 9.5]).tolist()
    [0.05, 0.95]
    """
    counts, times = _checked(changes, watched, fake_time)
    rates: Floats = (counts + _FAKE_CHANGES) / (times + fake_time)
    return rates


def complete_posterior(changes: Any, watched: Any, fake_time: float = 0.5, level: float = 0.9) -> RatePosterior:
    """What is known of each page's rate; `mean` is `complete_rate`. O(pages · √changes).

    >>> known = complete_posterior([4], [9.5])
    >>> known.mean.round(3).tolist(), known.low.round(3).tolist(), known.high.round(3).tolist()
    ([0.45], [0.166], [0.846])
    """
    if not 0 < level < 1:
        raise InvalidInput(f"is {level!r}, but must be between 0 and 1", field="level")
    counts, times = _checked(changes, watched, fake_time)
    shape, time = np.broadcast_arrays(np.atleast_1d(counts) + _FAKE_CHANGES, np.atleast_1d(times) + fake_time)
    tail = (1 - level) / 2
    shape = np.ascontiguousarray(shape)
    median, low, high = (gamma_quantiles(shape, share) / time for share in (0.5, tail, 1 - tail))
    return RatePosterior(shape / time, median, low, high, log_means(shape) - np.log(time))


@kernel
def gamma_quantiles(shapes: Floats, share: float) -> Floats:
    """The x with P(shape, x) = share; shapes are ½ or more than 1."""
    out = np.empty(len(shapes))
    for i in range(len(shapes)):
        out[i] = inverse_lower_gamma(shapes[i], share) if shapes[i] > 1.0 else _half_quantile(share)
    return out


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


def _checked(changes: Any, watched: Any, fake_time: float) -> tuple[Floats, Floats]:
    if not 0 < fake_time <= LARGEST:
        raise InvalidInput(f"is {fake_time!r}, but must be above 0", field="fake_time")
    counts, times = _numbers(changes, "changes", _MOST_CHANGES), _numbers(watched, "watched", LARGEST)
    _refuse(counts != np.floor(counts), counts, "changes", "must be a whole number")
    if counts.ndim and times.ndim and counts.shape != times.shape:
        raise InvalidInput(f"has {len(times)} values but changes has {len(counts)}", field="watched")
    return counts, times


def _numbers(column: Any, field: str, largest: float) -> Floats:
    array = np.asarray(column)
    if (array.dtype.kind not in "fiu" and array.size) or array.ndim > 1:
        raise InvalidInput("must be numbers, one per page", field=field)
    numbers = array.astype(np.float64)
    _refuse(~((numbers >= 0) & (numbers <= largest)), numbers, field, f"must be 0 to {largest:g}")
    return numbers


def _refuse(bad: NDArray[np.bool_], numbers: Floats, field: str, rule: str) -> None:
    if np.any(bad):
        row = int(np.argmax(bad))
        raise InvalidInput(f"is {float(numbers.flat[row])!r}, but {rule}", field=field, row=row)
