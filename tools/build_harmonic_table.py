"""Build the table of harmonic values with noisy signals that `recrawl.values.signals.table` reads.

    python tools/build_harmonic_table.py src/recrawl/values/signals/table.npy

Run this after a change of the grid or of the exact values, and write the digest that it prints into
`TABLE_SHA256`: that makes kernels which hold the old table void.
"""

from __future__ import annotations

import hashlib
import math
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import exact, kernel
from recrawl.pages import Floats
from recrawl.values.signals.harmonic import cycle_at, smooth_cycle
from recrawl.values.signals.harmonic_cost import expected_cost
from recrawl.values.signals.page import Shape
from recrawl.values.signals.table import (
    BLOCKS,
    CERTAINTIES,
    CERTAINTY_SCALE,
    MOST_CERTAIN,
    PRECISIONS,
    STRETCH_SCALE,
    STRETCHES,
)
from recrawl.values.special import inverse_ein

# Used instead of 0, where the ratio tends to a limit.
_TINY = 1e-5


def build_table() -> NDArray[np.float32]:
    """Return the table, indexed by n − 1, certainty, precision and stretch; half a second."""
    blocks = np.arange(1.0, BLOCKS + 1.0)
    certainties = np.linspace(0.0, math.log1p(CERTAINTY_SCALE * MOST_CERTAIN), CERTAINTIES)
    thetas = np.maximum(np.expm1(certainties) / CERTAINTY_SCALE, _TINY)
    precisions = np.maximum(np.linspace(0.0, 1.0, PRECISIONS), _TINY)
    stretches = np.linspace(0.0, 1.0, STRETCHES)
    table = np.empty((BLOCKS, CERTAINTIES, PRECISIONS, STRETCHES))
    _fill(blocks, thetas, precisions, stretches, table)
    return table.astype(np.float32)


@kernel
def _fill(blocks: Floats, thetas: Floats, precisions: Floats, stretches: Floats, table: Floats) -> None:
    for i in range(len(blocks)):
        for j in range(len(thetas)):
            steepness = STRETCH_SCALE * thetas[j] / (blocks[i] + 1.0)
            for k in range(len(precisions)):
                for m in range(len(stretches)):
                    place = math.expm1(stretches[m] * math.log1p(steepness)) / steepness
                    table[i, j, k, m] = exact_ratio(blocks[i], thetas[j], precisions[k], min(place, 1.0))


@exact
def exact_ratio(n: float, theta: float, precision: float, place: float) -> float:
    """Return the exact ratio at the given place between C_n and C_{n+1}. O(1)."""
    low = expected_cost(0.0, n, precision)
    high = expected_cost(0.0, n + 1.0, precision)
    x = inverse_ein(low + place * (high - low))
    recall = theta / (1.0 + theta)
    load = recall / precision
    page = Shape(precision, load, load * (1.0 + theta), 1.0 / (1.0 + load * (1.0 - precision)))
    return cycle_at(page, x).value / smooth_cycle(page, x).value


def main(path: Path) -> None:
    """Write the table and print its digest."""
    np.save(path, build_table())
    print(hashlib.sha256(path.read_bytes()).hexdigest())  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]))
