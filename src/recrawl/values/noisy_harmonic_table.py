"""The table of `noisy_harmonic_build`, read from its file once, and interpolation in it.

The table becomes a constant of the kernels that read it. It belongs to the package: the digest below names it, so
that kernels compiled for another table are not taken for current.
"""

from __future__ import annotations

import math
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import exact
from recrawl.values.noisy_harmonic_build import (
    CERTAINTIES,
    CERTAINTY_SCALE,
    MOST_CERTAIN,
    PRECISIONS,
    STRETCH_SCALE,
    STRETCHES,
)

TABLE_SHA256 = "c06858a4ed7cc80a2e1ba4c584b3f04e311bcf590184d6857c92bf05fa63090d"
_CERTAINTY_STEPS = (CERTAINTIES - 1) / math.log1p(CERTAINTY_SCALE * MOST_CERTAIN)


def _read_table() -> NDArray[np.float32]:
    with resources.files("recrawl.values").joinpath("noisy_harmonic_table.npy").open("rb") as file:
        table: NDArray[np.float32] = np.load(file)
    return table


_TABLE = _read_table()


@exact
def table_ratio(n: int, theta: float, precision: float, place: float) -> float:
    """Exact value over smooth value at this place (0 to 1) between the costs of n and n + 1 signals, n ≤ 20.

    Cubic interpolation in three coordinates, error below 6e-4. O(1), about 60 ns.
    """
    theta = min(theta, MOST_CERTAIN)
    row, u = _cell(math.log1p(CERTAINTY_SCALE * theta) * _CERTAINTY_STEPS, CERTAINTIES)
    column, v = _cell(precision * (PRECISIONS - 1), PRECISIONS)
    steepness = STRETCH_SCALE * theta / (n + 1.0)
    if steepness > 1e-6:
        place = math.log1p(steepness * place) / math.log1p(steepness)
    first, w = _cell(place * (STRETCHES - 1), STRETCHES)
    rows = _cubic(u)
    columns = _cubic(v)
    points = _cubic(w)
    total = 0.0
    for i in range(4):
        line = 0.0
        for j in range(4):
            cell = _TABLE[n - 1, row + i, column + j]
            part = points[0] * cell[first] + points[1] * cell[first + 1]
            part += points[2] * cell[first + 2] + points[3] * cell[first + 3]
            line += columns[j] * part
        total += rows[i] * line
    return total


@exact
def _cell(place: float, size: int) -> tuple[int, float]:
    """The first of the four grid points around a place, and the place counted from there."""
    first = int(min(max(place - 1.0, 0.0), size - 4.0))
    return first, place - first


@exact
def _cubic(t: float) -> tuple[float, float, float, float]:
    """Lagrange's weights of the points 0, 1, 2, 3."""
    a, b, c = t - 1.0, t - 2.0, t - 3.0
    return -a * b * c / 6.0, t * b * c * 0.5, -t * a * c * 0.5, t * a * b / 6.0
