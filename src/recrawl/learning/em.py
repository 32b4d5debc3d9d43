"""EM for a distribution of rates on a grid: from likelihoods of pages to weights of rates.

One pass shares every page out over the rates by its posterior and takes the sums for the new weights. Scratch memory
is one row of likelihoods per page handed in; callers hand in a bounded number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from recrawl.jit import kernel
from recrawl.learning.evidence import Evidence, Indices
from recrawl.learning.likelihood import GridTable, Rows, fill_log_likelihood
from recrawl.learning.summary import exponentials
from recrawl.pages import Floats

_SETTLED = 1e-7


class Members(NamedTuple):
    """Pages of several hosts: those of host h are `pages[begins[h]:ends[h]]`."""

    pages: Indices
    begins: Indices
    ends: Indices


class Pull(NamedTuple):
    """What holds EM: imaginary pages shared out by `towards`, and the share each weight gives to both neighbours."""

    towards: Floats
    pages: float
    smoothing: float


@kernel
def likelihoods(table: GridTable, rows: Rows, evidence: Evidence, pages: Indices) -> Floats:
    """The likelihood of each of these pages at the rates of the grid; the highest of a page is 1."""
    points = len(table.rates)
    out = np.empty((len(pages), points))
    for i in range(len(pages)):
        row = out[i]
        fill_log_likelihood(table, rows, evidence, pages[i], row)
        exponentials(row, row)
    return out


@kernel
def fit_weights(likelihood: Floats, counts: Floats, pull: Pull, passes: int) -> Floats:
    """Fit weights, starting where the pull leads; a row of likelihoods counts as `counts` pages.

    O(passes · rows · points), less if the weights settle before.
    """
    points = likelihood.shape[1]
    weights: Floats = pull.towards / pull.towards.sum()
    towards = pull.pages * weights
    total = counts.sum() + pull.pages
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
def fit_each(table: GridTable, rows: Rows, evidence: Evidence, members: Members, pull: Pull, passes: int) -> Floats:
    """Fit weights to the pages of each host alone. O(passes · pages · points)."""
    out = np.empty((len(members.begins), len(table.rates)))
    for host in range(len(members.begins)):
        pages = members.pages[members.begins[host] : members.ends[host]]
        out[host] = fit_weights(likelihoods(table, rows, evidence, pages), np.ones(len(pages)), pull, passes)
    return out


@kernel
def foresight(table: GridTable, rows: Rows, evidence: Evidence, members: Members, pull: Pull, passes: int) -> float:
    """How well weights fitted to every other page of a host foresee its other pages: a sum of log-likelihoods."""
    total = 0.0
    for host in range(len(members.begins)):
        pages = members.pages[members.begins[host] : members.ends[host]]
        likelihood = likelihoods(table, rows, evidence, pages)
        fitted = likelihood[::2].copy()
        weights = fit_weights(fitted, np.ones(len(fitted)), pull, passes)
        for i in range(1, len(pages), 2):
            seen = 0.0
            for k in range(len(weights)):
                seen += likelihood[i, k] * weights[k]
            total += np.log(seen)
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
