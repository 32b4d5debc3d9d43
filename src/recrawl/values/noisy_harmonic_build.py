"""The grid of the table that hot paths read harmonic values with noisy signals from, and how it is made.

The table holds the ratio of the exact value to that of the smooth form (`smooth_cycle`), which is right where
many signals come per cycle. With x the threshold the ratio is smooth between the costs C_n and C_{n+1} of n and
n + 1 signals alone, and has kinks there that become sharp as recall λ → 1. So for each n from 1 to 20 there is
one block with the coordinates, all equally spaced,

    precision    π from 0 to 1
    certainty    ln(1 + 4θ), θ = λ/(1−λ), from 0 to recall 1 − e^{−8.5}
    stretch      ln(1 + Kη)/ln(1 + K), K = θ/(2n + 2), where η from 0 to 1 is the place of c between C_n and C_{n+1}

The stretch follows the width of the kinks. Below C_1 the value has a closed form, and above C_21 the ratio is 1
within 6e-4. To make the file again, after a change here or in the exact values:

    numpy.save(".../noisy_harmonic_table.npy", build_table())

and write the new digest into `noisy_harmonic_table`, which makes kernels that hold the old table void.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import exact, kernel
from recrawl.values.noisy_harmonic_cost import Floats, expected_cost
from recrawl.values.noisy_harmonic_cycle import Shape, cycle_at, smooth_cycle
from recrawl.values.special import inverse_ein

BLOCKS = 20
CERTAINTIES = 24
PRECISIONS = 4
STRETCHES = 18
MOST_CERTAIN = math.expm1(8.5)  # the largest θ
CERTAINTY_SCALE = 4.0
STRETCH_SCALE = 0.5

# Stand for 0: the ratio tends to a limit there.
_TINY = 1e-5


def build_table() -> NDArray[np.float32]:
    """The table, indexed by n − 1, certainty, precision and stretch; half a second."""
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
    """The exact ratio at the given place between C_n and C_{n+1}. O(1)."""
    low = expected_cost(0.0, n, precision)
    high = expected_cost(0.0, n + 1.0, precision)
    x = inverse_ein(low + place * (high - low))
    recall = theta / (1.0 + theta)
    load = recall / precision
    page = Shape(precision, load, load * (1.0 + theta), 1.0 / (1.0 + load * (1.0 - precision)))
    return cycle_at(page, x).value / smooth_cycle(page, x).value
