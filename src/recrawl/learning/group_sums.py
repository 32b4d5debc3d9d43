"""Sums and shares per group: the two small steps that every pooled estimate takes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.pages import Floats


def group_sums(group: NDArray[np.int64], values: NDArray[Any], groups: int) -> Floats:
    """Sum values, or each column of values, per group. O(rows · columns).

    >>> group_sums(np.array([0, 1, 1]), np.array([1.0, 2.0, 3.0]), 3).tolist()
    [1.0, 5.0, 0.0]
    """
    if values.ndim == 1:
        return np.bincount(group, values, groups).astype(np.float64, copy=False)
    sums = np.empty((groups, values.shape[1]))
    for column in range(values.shape[1]):
        sums[:, column] = np.bincount(group, values[:, column], groups)
    return sums


def share_of(part: Floats, whole: Floats) -> Floats:
    """Divide, with 0/0 = 0.

    >>> share_of(np.array([1.0, 0.0]), np.array([4.0, 0.0])).tolist()
    [0.25, 0.0]
    """
    return np.divide(part, whole, out=np.zeros(np.broadcast_shapes(part.shape, whole.shape)), where=whole > 0)
