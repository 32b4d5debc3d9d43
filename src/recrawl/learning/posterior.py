"""What is known of each page's change rate: the population prior and the page's own crawls, joined.

A posterior is computed at the rates of the prior's grid. Where crawls tell the rate more finely than the grid's step,
the likelihood, which is smooth, is read between the grid's rates, so that a million crawls are not wasted.
Pages are worked through in blocks: beside the answer, the memory needed does not grow with their number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.jit import kernel
from recrawl.learning.grid import (
    NODES,
    NUMBERS,
    GridTable,
    Nodes,
    RatePrior,
    exponentials,
    grid_table,
    place_nodes,
    share_of_nodes,
    sum_up,
)
from recrawl.learning.histories import Histories
from recrawl.learning.inputs import HostColumn, check_made, check_share
from recrawl.learning.online_filter import rows_of_prior
from recrawl.learning.prior import Evidence, Indices, Rows, fill_log_likelihood, groups_of, rows_of, summed_up
from recrawl.pages import Floats

_BLOCK = 1 << 17
_LEAST_WEIGHT = 1e-100


@dataclass(frozen=True, slots=True)
class RatePosterior:
    """What is known of change rates, one entry per page, per unit time.

    `low` and `high` are the ends of the credible interval. `log_mean` is the mean of the rate's natural logarithm:
    its exponential is the best guess where errors count by their factor.
    """

    mean: Floats
    median: Floats
    low: Floats
    high: Floats
    log_mean: Floats

    def __len__(self) -> int:
        return len(self.mean)


def posterior(
    prior: RatePrior, histories: Histories, hosts: HostColumn | None = None, level: float = 0.9
) -> RatePosterior:
    """Join the prior with the crawls of each page; a page without crawls has the prior of its host.

    Args:
        prior: from `fit_prior`, on these or on other pages.
        histories: crawls of the pages.
        hosts: the host of each page, where the prior knows hosts.
        level: how much the credible interval holds.

    O(observations + grid · pages), on regular schedules O(observations). Rates beyond the grid are taken for its
    nearest end.

    >>> from recrawl.learning.histories import read_histories
    >>> from recrawl.learning.prior import fit_prior
    >>> seen = read_histories([[1.0] * 8, [1.0] * 8], [[0] * 8, [1, 1, 0, 1, 1, 0, 1, 1]])
    >>> known = posterior(fit_prior(seen), seen)
    >>> bool(known.mean[0] < 0.3 < 1 < known.mean[1]), bool((known.low < known.median).all())
    (True, True)
    """
    check_made(prior, RatePrior, "prior", "fit_prior")
    check_made(histories, Histories, "histories", "read_histories")
    tail = (1 - check_share(level, "level")) / 2
    table = grid_table(prior.grid)
    # No rate is ruled out: crawls that contradict every other weight still have an answer.
    priors = np.maximum(np.vstack([prior.weights, prior.host_weights]), _LEAST_WEIGHT)
    prior_rows = rows_of_prior(prior, hosts, len(histories))
    numbers = np.empty((NUMBERS, len(histories)))
    for begin in range(0, len(histories), _BLOCK):
        end = min(begin + _BLOCK, len(histories))
        rows = rows_of(histories, begin, end)
        evidence = summed_up(rows.offsets, rows.gaps, rows.changed)
        groups = groups_of(evidence, prior_rows[begin:end])
        of_group = _posteriors(table, rows, evidence, groups.first, prior_rows[begin:end], priors, tail)
        numbers[:, begin:end] = of_group[groups.of_page].T
    mean, median, low, high, log_mean = numbers
    return RatePosterior(mean, median, low, high, log_mean)


@kernel
def _posteriors(
    table: GridTable,
    rows: Rows,
    evidence: Evidence,
    pages: Indices,
    prior_rows: Indices,
    priors: Floats,
    tail: float,
) -> Floats:
    """The five numbers of each of these pages."""
    points = len(table.rates)
    likelihood = np.empty(points)
    grid = Nodes(np.empty(points), table.rates, np.empty(points))
    for k in range(points):
        grid.log_rates[k] = table.log_lowest + table.step * k
    fine = Nodes(np.empty(NODES), np.empty(NODES), np.empty(NODES))
    out = np.empty((len(pages), NUMBERS))
    on_nodes = np.empty(NUMBERS)
    for i in range(len(pages)):
        prior = priors[prior_rows[pages[i]]]
        fill_log_likelihood(table, rows, evidence, pages[i], likelihood)
        share = share_of_nodes(likelihood)
        if share < 1.0:
            exponentials(likelihood, grid.weights)
            for k in range(points):
                grid.weights[k] *= prior[k]
            sum_up(grid, tail, out[i])
        if share > 0.0:
            place_nodes(table, likelihood, prior, fine)
            sum_up(fine, tail, on_nodes)
            for number in range(NUMBERS):
                out[i, number] = on_nodes[number] if share == 1.0 else _mixed(out[i, number], on_nodes[number], share)
    return out


@kernel
def _mixed(one: float, other: float, share: float) -> float:
    return one + share * (other - one)
