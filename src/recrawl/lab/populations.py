"""Synthetic page populations, by law and seed, for demonstrations, benchmarks and tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Shares of the pages and the range of changes per day in each band.
_BANDS = ((0.35, 0.001, 0.01), (0.40, 0.01, 0.2), (0.20, 0.2, 2.0), (0.05, 2.0, 7.0))
_ANNOUNCED_SHARE = 0.04


def web_population(pages: int, seed: int = 20260823) -> dict[str, NDArray[np.float64]]:
    """Draw pages shaped like a large web index.

    Importance is lognormal (sd 2), so a few pages hold most of it. Change rates are log-uniform within four bands
    from once in three years to seven times a day. Four pages in a hundred announce every change
    (`recall` and `precision` 1).

    >>> columns = web_population(1000)
    >>> sorted(columns), len(columns["importance"])
    (['change_rate', 'importance', 'precision', 'recall'], 1000)
    """
    random = np.random.Generator(np.random.PCG64([seed, pages]))
    importance = np.exp(random.normal(0.0, 2.0, pages))
    band = random.choice(len(_BANDS), size=pages, p=[share for share, _, _ in _BANDS])
    low = np.log([low for _, low, _ in _BANDS])[band]
    high = np.log([high for _, _, high in _BANDS])[band]
    change_rate = np.exp(low + (high - low) * random.random(pages))
    announced = (random.random(pages) < _ANNOUNCED_SHARE).astype(np.float64)
    return {
        "importance": importance,
        "change_rate": change_rate,
        "recall": announced,
        "precision": announced.copy(),
    }
