"""The greedy gain of WIC and the index that does better in the long run (WIC, Pandey et al. 2004).

Both are for pages that change with the same probability in every instant; `wic_utilities.py` is for probabilities that
vary. The greedy crawls what would capture most now, u(elapsed); the index also asks what waiting would add.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from recrawl.pages import Floats
from recrawl.values import shape_g, shape_h


def stationary_gain(
    importance: ArrayLike,
    probability: ArrayLike,
    instants: ArrayLike,
    urgency: ArrayLike = 1.0,
    overwrites: ArrayLike = False,
) -> Floats:
    """Return what a crawl yields m instants after the last one, for a page with the same chance of a change in each.

    u(m) = μπ(1 − qᵐ)/(1 − q), with q = urgency for changes that append and urgency·(1 − π) for changes that overwrite
    each other; μπm for q = 1. WIC's greedy takes the largest u. O(elements).

    >>> stationary_gain(1.0, 0.5, [1, 2, 3], urgency=0.5).tolist()
    [0.5, 0.75, 0.875]
    """
    scale, lost, m = _stationary(importance, probability, instants, urgency, overwrites)
    with np.errstate(divide="ignore", invalid="ignore"):
        kept = -np.expm1(m * np.log1p(-lost)) / lost
    return np.asarray(scale * np.where(m == 0, 0.0, np.where(lost == 0, m, kept)))


def stationary_index(
    importance: ArrayLike,
    probability: ArrayLike,
    instants: ArrayLike,
    urgency: ArrayLike = 1.0,
    overwrites: ArrayLike = False,
) -> Floats:
    """Return what the crawl is worth in the long run: V(m) = u(m) − m(u(m+1) − u(m)), u as in `stationary_gain`.

    Crawling the page with the largest V, instead of the largest u, is the best in the long run. With L = −ln q it is
    μπ(g(mL) + m·h(L)·qᵐ)/(1 − q): a sum of positive terms. O(elements).

    >>> stationary_index(1.0, 0.5, [1, 2, 3], urgency=0.5).round(6).tolist()
    [0.25, 0.5, 0.6875]
    """
    scale, lost, m = _stationary(importance, probability, instants, urgency, overwrites)
    inside = (lost > 0) & (lost < 1)
    rest = np.where(inside, lost, 0.5)
    step = -np.log1p(-rest)
    index = (shape_g(m * step) + m * shape_h(step) * np.exp(-m * step)) / rest
    return np.asarray(scale * np.where(inside, index, np.where((lost == 1) & (m > 0), 1.0, 0.0)))


def _stationary(
    importance: ArrayLike, probability: ArrayLike, instants: ArrayLike, urgency: ArrayLike, overwrites: ArrayLike
) -> tuple[Floats, Floats, Floats]:
    """μπ, 1 − q and m, as arrays of one shape."""
    weight, chance, m, ratio, over = np.broadcast_arrays(
        *(np.asarray(value, dtype=np.float64) for value in (importance, probability, instants, urgency, overwrites))
    )
    return weight * chance, (1.0 - ratio) + ratio * np.where(over != 0, chance, 0.0), m
