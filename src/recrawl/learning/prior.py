"""The population prior: what is known of a page's change rate before its first crawl.

Rates on the web spread over four decades, and no simple law fits them. So the prior is a weight for every rate of a
grid, fitted by EM to the crawls of all pages (nonparametric empirical Bayes, after Laird 1978). Left alone, EM ends in
a few spikes; each pass is therefore followed by a light smoothing (Silverman et al. 1990), and a few imaginary pages
hold the weights where the crawls say nothing. Hosts with enough pages get a prior of their own, drawn to that of the
population the more, the fewer pages they have.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

import numpy as np

from recrawl.errors import InvalidInput
from recrawl.learning.em import Pull, fit_weights, likelihoods
from recrawl.learning.evidence import evidence_of, groups_of
from recrawl.learning.histories import Histories
from recrawl.learning.host_column import HostColumn, number_hosts
from recrawl.learning.host_prior import fit_hosts
from recrawl.learning.inputs import check_made, shown
from recrawl.learning.likelihood import grid_table, rows_of
from recrawl.learning.rate_grid import RateGrid, grid_for, observed_spans
from recrawl.pages import Floats

PAGES_FITTED = 1 << 15
"""Larger populations are fitted to so many of their pages, drawn by a fixed seed: more pages tell hardly more."""

_PASSES = 300
_SMOOTHING = 0.03
_IMAGINARY_PAGES = 10.0
_SPANS_USED = 64


@dataclass(frozen=True, slots=True)
class RatePrior:
    """Weights of the grid's rates over the whole population, and over hosts that have enough pages."""

    grid: RateGrid
    weights: Floats
    host_weights: Floats  # one row per host in `host_rows`
    host_rows: Mapping[Hashable, int] = field(default_factory=dict)

    def cold(self, host: Hashable = None) -> Floats:
        """Weights for a page never crawled: those of its host, or of the population if the host has none. O(1)."""
        if not isinstance(host, Hashable):
            raise InvalidInput(f"is {shown(host)}, but must be a name or a number", field="host")
        row = self.host_rows.get(host)
        return self.weights if row is None else self.host_weights[row]


def fit_prior(histories: Histories, hosts: HostColumn | None = None, grid: RateGrid | None = None) -> RatePrior:
    """Fit the prior to the crawls of a population.

    Args:
        histories: crawls of the pages; pages without crawls say nothing and do no harm.
        hosts: the host of each page; without it there is one prior for all.
        grid: the rates to weigh; those that the crawls can tell apart if it is None.

    The same histories give the same prior. O(observations of the pages fitted + passes · grid · pages fitted), at
    most `PAGES_FITTED` pages for the population and a few thousand for a host.

    >>> from recrawl.learning.histories import read_histories
    >>> prior = fit_prior(read_histories(np.ones((50, 10)), np.arange(500).reshape(50, 10) % 10 == 0))
    >>> round(float(prior.weights.sum()), 9), round(float(prior.grid.rates[prior.weights.argmax()]), 2)
    (1.0, 0.11)
    """
    check_made(histories, Histories, "histories", "read_histories")
    if grid is not None:
        check_made(grid, RateGrid, "grid", "rate_grid")
    sample = _sampled(histories)
    grid = grid_for(sample) if grid is None else grid
    table = grid_table(grid)
    pull = Pull(base_weights(grid, sample), _IMAGINARY_PAGES, _SMOOTHING)
    evidence = evidence_of(sample)
    groups = groups_of(evidence, np.zeros(len(sample), dtype=np.int64))
    likelihood = likelihoods(table, rows_of(sample), evidence, groups.first)
    counts = np.bincount(groups.of_page, minlength=len(groups.first)).astype(np.float64)
    weights = fit_weights(likelihood, counts, pull, _PASSES)
    if hosts is None:
        return RatePrior(grid, weights, np.empty((0, grid.points)))
    host_weights, host_rows = fit_hosts(table, weights, histories, number_hosts(hosts, len(histories)))
    return RatePrior(grid, weights, host_weights, host_rows)


def base_weights(grid: RateGrid, histories: Histories) -> Floats:
    """Where weights start and are drawn to: even in the logarithm, fading where pages were not watched long enough.

    A page watched for T tells 1/(1 + 1/(ΔT)) of a rate Δ that two looks could tell; the root of that, as in the prior
    of Jeffreys, over the spans of the pages.
    """
    spans = observed_spans(histories)
    if not len(spans):
        return np.full(grid.points, 1 / grid.points)
    typical = np.quantile(spans, (np.arange(_SPANS_USED) + 0.5) / _SPANS_USED)
    expected = grid.rates[:, None] * typical
    weights = np.sqrt(expected / (1 + expected)).mean(axis=1)
    return np.asarray(weights / weights.sum())


def _sampled(histories: Histories) -> Histories:
    """At most `PAGES_FITTED` pages, drawn by a fixed seed, in their order."""
    if len(histories) <= PAGES_FITTED:
        return histories
    drawn = np.random.Generator(np.random.PCG64(0)).choice(len(histories), size=PAGES_FITTED, replace=False)
    return histories.pick(np.sort(drawn))
