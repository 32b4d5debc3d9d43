"""The prior of a running crawler: weights of the rates on a grid, fitted by EM to the states of its pages.

One pass of EM shares every page out over the rates by its posterior and takes the sums for the new weights. Scratch
memory is one row of likelihoods per page; callers hand in a bounded number of pages.

The state of a page holds no prior, so no history is kept for the fit. It takes fewer passes than `prior.fit_prior` and
is drawn to the prior before. A page that changed at every crawl has no finite rate estimate; the population bounds it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from recrawl.jit import kernel
from recrawl.learning.filter import fill_lasting
from recrawl.learning.filter_state import FilterState, lasting_gaps
from recrawl.learning.grid import GridTable, RatePrior, exponentials, grid_table
from recrawl.pages import Floats

_SETTLED = 1e-7


_PASSES = 40  # fewer stay near what was believed before, if that was far off
_SMOOTHING = 0.03
_IMAGINARY_SHARE = 0.1  # of the pages


class Pull(NamedTuple):
    """What holds EM: imaginary pages shared out by `towards`, and the share each weight gives to both neighbours."""

    towards: Floats
    pages: float
    smoothing: float


@kernel
def fit_weights(likelihood: Floats, counts: Floats, pull: Pull, passes: int) -> Floats:
    """Fit weights, starting where the pull leads; a row of likelihoods counts as `counts` pages.

    O(passes · rows · points), less if the weights settle before.
    """
    points = likelihood.shape[1]
    weights: Floats = pull.towards / _total(pull.towards)
    towards = pull.pages * weights
    total = _total(counts) + pull.pages
    sums = np.empty(points)
    for _ in range(passes):
        sums[:] = 0.0
        for i in range(len(counts)):
            row = likelihood[i]
            seen = 0.0
            for k in range(points):
                seen += row[k] * weights[k]
            share = counts[i] / seen
            for k in range(points):
                sums[k] += share * row[k]
        for k in range(points):
            sums[k] = (weights[k] * sums[k] + towards[k]) / total
        moved = _smooth(sums, pull.smoothing, weights)
        if moved < _SETTLED:
            break
    return weights


@kernel
def _total(values: Floats) -> float:
    """The sum. Of the method, numba compiles four functions more."""
    total = 0.0
    for k in range(len(values)):
        total += values[k]
    return total


@kernel
def _smooth(fresh: Floats, share: float, weights: Floats) -> float:
    """Take over the fresh weights, each giving a share to both neighbours; tells how much moved in all."""
    last = len(weights) - 1
    moved = 0.0
    for k in range(last + 1):
        left = fresh[max(k - 1, 0)]
        right = fresh[min(k + 1, last)]
        weight = fresh[k] + share * (left - 2.0 * fresh[k] + right)
        moved += abs(weight - weights[k])
        weights[k] = weight
    return moved


def fit_population(state: FilterState, before: RatePrior) -> RatePrior:
    """The prior of pages of which this was learned, one for all hosts. O(pages · grid).

    Args:
        state: of the pages; those never crawled twice say nothing.
        before: what is believed without them; its grid is kept.

    >>> from recrawl.learning.filter_state import empty_state
    >>> from recrawl.learning.grid import rate_grid
    >>> grid = rate_grid(1e-3, 1e3)
    >>> pages = empty_state(50)
    >>> pages["unchanged_time"] = 1000.0
    >>> even = RatePrior(grid, np.full(grid.points, 1 / grid.points), np.empty((0, grid.points)))
    >>> bool(fit_population(pages, even).weights[grid.rates < 0.01].sum() > 0.8)
    True
    """
    grid = before.grid
    seen = state[(state["changes"] > 0) | (state["unchanged_time"] > 0)]
    nobody = np.empty((0, grid.points))
    if not len(seen):
        return RatePrior(grid, before.weights, nobody)
    pull = Pull(before.weights, _IMAGINARY_SHARE * len(seen), _SMOOTHING)
    weights = fit_weights(_likelihoods(grid_table(grid), seen), np.ones(len(seen)), pull, _PASSES)
    return RatePrior(grid, weights, nobody)


@kernel
def _likelihoods(table: GridTable, state: FilterState) -> Floats:
    """The likelihood of each page at the rates of the grid; the highest of a page is 1."""
    out = np.empty((len(state), len(table.rates)))
    for i in range(len(state)):
        fill_lasting(table, np.float64(state[i]["unchanged_time"]), lasting_gaps(state[i]), out[i])
        exponentials(out[i], out[i])
    return out
