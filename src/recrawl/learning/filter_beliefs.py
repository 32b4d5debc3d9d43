"""What the filter believes of a page's change rate, read from its state when asked for.

The five numbers of the batch posterior, and the Gamma distribution with the same mean and variance: its shape and
exposure are what `values/uncertain.py` takes. Values by that Gamma are on average within 1 % of those by the whole
posterior for pages crawled daily 14 times and then left alone for ten days, 10 % if left alone for a hundred.
Matching the mean logarithm instead of the variance is worse.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import kernel
from recrawl.learning.filter_memory import lasting_gaps, recent_of
from recrawl.learning.filter_state import FilterState
from recrawl.learning.filter_turns import turned_share
from recrawl.learning.filter_weights import Law, fill_lasting, fill_recent
from recrawl.learning.narrow import NODES, place_nodes, share_of_nodes
from recrawl.learning.summary import NUMBERS, Nodes, exponentials, sum_up
from recrawl.pages import Floats

BELIEF_NUMBERS = NUMBERS + 2
"""Mean, median, low, high, mean of the logarithm, then shape and exposure of the Gamma distribution."""

_LEAST_SHARE = 1e-3  # less is nothing
_LEAST_VARIANCE = 1e-9  # relative to the square of the mean


@kernel
def believe(state: FilterState, law: Law, page: int, tail: float) -> Floats:
    """The numbers of one page, with `tail` of the weight below its low end and as much above its high. O(grid)."""
    numbers: Floats = believe_many(state, law, np.array([page]), tail)[0]
    return numbers


@kernel
def believe_many(state: FilterState, law: Law, pages: NDArray[np.int64], tail: float) -> Floats:
    """The numbers of these pages, one row each. O(pages · grid)."""
    points = len(law.log_rates)
    likelihood = np.empty(points)
    grid = Nodes(law.log_rates, law.table.rates, np.empty(points))
    fine = Nodes(np.empty(NODES), np.empty(NODES), np.empty(NODES))
    by_nodes = np.empty(BELIEF_NUMBERS)
    out = np.empty((len(pages), BELIEF_NUMBERS))
    for i in range(len(pages)):
        page = state[pages[i]]
        prior = law.priors[page["prior_row"]]
        fill_lasting(law.table, np.float64(page["unchanged_time"]), lasting_gaps(page), likelihood)
        turned = turned_share(page, law.doubt)
        has_turned = turned > _LEAST_SHARE
        on_nodes = 0.0 if has_turned else share_of_nodes(likelihood)
        if on_nodes < 1.0:
            exponentials(likelihood, grid.weights)
            for k in range(points):
                grid.weights[k] *= prior[k]
            if has_turned:
                fill_recent(law.table, recent_of(page), likelihood)
                exponentials(likelihood, likelihood)
                _mix(grid.weights, likelihood, turned)
            _sum_up_all(grid, tail, out[i])
        if on_nodes > 0.0:
            place_nodes(law.table, likelihood, prior, fine)
            _sum_up_all(fine, tail, by_nodes)
            for k in range(BELIEF_NUMBERS):
                out[i, k] = by_nodes[k] if on_nodes == 1.0 else out[i, k] + on_nodes * (by_nodes[k] - out[i, k])
    return out


@kernel
def _sum_up_all(nodes: Nodes, tail: float, out: Floats) -> None:
    """Write the numbers of one page. O(nodes)."""
    sum_up(nodes, tail, out[:NUMBERS])
    mean = out[0]
    total = 0.0
    squares = 0.0
    for k in range(len(nodes.weights)):
        off = nodes.rates[k] / mean - 1.0
        total += nodes.weights[k]
        squares += nodes.weights[k] * off * off
    out[5] = 1.0 / max(squares / total, _LEAST_VARIANCE)
    out[6] = out[5] / mean


@kernel
def _mix(weights: Floats, others: Floats, share: float) -> None:
    """Mix a share of other weights into these."""
    ours = (1.0 - share) / weights.sum()
    theirs = share / others.sum()
    for k in range(len(weights)):
        weights[k] = ours * weights[k] + theirs * others[k]
