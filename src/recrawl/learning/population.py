"""The population prior from what the online filter has learned, while it runs: no history is kept for it.

The state of a page holds no prior, so the pages of a crawler tell, a few crawls each, how rates are spread over all of
them. That is fitted as `prior.py` does it, in fewer passes and drawn to what was believed before. A page whose every
crawl saw a change does not say how fast it is, but many of them do.
"""

from __future__ import annotations

import numpy as np

from recrawl.jit import kernel
from recrawl.learning.em import Pull, fit_weights
from recrawl.learning.filter_memory import lasting_gaps
from recrawl.learning.filter_state import FilterState
from recrawl.learning.filter_weights import fill_lasting
from recrawl.learning.likelihood import GridTable, grid_table
from recrawl.learning.prior import RatePrior
from recrawl.learning.summary import exponentials
from recrawl.pages import Floats

_PASSES = 40  # fewer stay near what was believed before, if that was far off
_SMOOTHING = 0.03
_IMAGINARY_SHARE = 0.1  # of the pages


def fit_population(state: FilterState, before: RatePrior) -> RatePrior:
    """The prior of pages of which this was learned, one for all hosts. O(pages · grid).

    Args:
        state: of the pages; those never crawled twice say nothing.
        before: what is believed without them; its grid is kept.

    >>> from recrawl.learning.filter_state import empty_state
    >>> from recrawl.learning.rate_grid import rate_grid
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
