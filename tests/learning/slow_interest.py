"""The fit of interest as one would write it down: slow, plain, and for the tests alone."""

from __future__ import annotations

import math
import statistics

import numpy as np

from recrawl.pages import Floats


def calm_by_hand(hits: Floats, watched: Floats) -> Floats:
    """Hits of one source with every bin held to what its watched neighbours allow."""
    bins = np.flatnonzero(watched > 0)
    own = hits[bins]
    average = (own / watched[bins]).tolist()
    expected = np.array([
        statistics.median_low(average[i - min(i, 3) : i + min(i, 3) + 1]) for i in range(len(bins))
    ]) * watched[bins]  # fmt: skip
    larger = np.maximum(own, expected)
    told = larger > 0
    surprise = sorted(((own - expected)[told] ** 2 / larger[told]).tolist())
    usual = surprise[: math.ceil(0.75 * len(surprise))]
    unit = min(1.0, hits[hits > 0].min(initial=1.0))
    clump = max(sum(usual) / len(usual) / 0.368, unit) if usual else 0.0
    room = 3 * np.sqrt(clump * expected)
    calm = hits.copy()
    calm[bins] = np.clip(own, expected - room, expected + room + 2 * clump)
    return calm


def plain_fit(hits: Floats, watched: Floats, bin_width: float) -> tuple[Floats, Floats]:
    """Profit and decay of sources by least squares on cumulative hits as they are: the best decay on a fine grid."""
    bins = hits.shape[1]
    ages = np.arange(1, bins + 1)
    gathered = np.cumsum(np.divide(hits, watched, out=np.zeros(hits.shape), where=watched > 0), axis=1)
    weights = watched / watched.max(axis=1, keepdims=True)
    whole = (weights * gathered**2).sum(axis=1)
    number = np.where(watched > 0, hits, 0.0).sum(axis=1)
    best = np.full((3, len(hits)), np.inf)
    for decay in np.geomspace(0.05 / bins, 20.0, 1500):
        shape = -np.expm1(-decay * ages)
        cross, squares = (weights * gathered) @ shape, weights @ shape**2
        share = 1 - cross**2 / (squares * whole)
        loss = number * share + 0.1 * math.log10(decay / bin_width) ** 2
        better = loss < best[0]
        best[:, better] = np.array([loss, cross / squares, np.full(len(hits), decay)])[:, better]
    return best[1] + 0.01 / (watched.max(axis=1) + 1), best[2] / bin_width
