"""One signal count n at a time: what the sums over n add up for a page with noisy signals.

Between crawls the n-th signal comes at a = ατ with the density k·p(n−1, ka), p a Poisson term, k = γ/α. For a
threshold that a page with n signals reaches at A the sums need

    share  P = P(n+1, kA)                      the next signal comes before the threshold is reached
    gain   T = ∫₀^A P(n+1, ka) ∂c/∂a da        the share, integrated over all lower thresholds

T is a difference of nearly equal numbers in every closed form. With the moments

    b_j = ∫₀^A k p(n, ka) (1 − a/A)^j da,   z b_{j+1} = j b_{j−1} + (z − n − 1 − j) b_j,   z = kA,

and ∂c/∂a = ∫₀¹ e^{−au}(1 − πu)ⁿ du expanded around A it is a sum of positive numbers,

    T = A ∫₀¹ e^{−Au}(1 − πu)ⁿ Σ_j b_{j+1} (Au)^j/(j+1)! du

b_0 is the share. The recurrence is run upwards while its terms are positive and downwards from far above after
that, where they are positive the other way round: neither loses digits. The moments are kept as b_j scale^j/j!,
so that none overflows. Scalar kernels; pure.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from recrawl.jit import exact
from recrawl.values.gamma import lower_gamma, poisson_term, rising_series
from recrawl.values.noisy_harmonic_cost import QUADRATURE_REACH, Floats, Threshold, expected_cost

_DIRECT = 20.0
_RECIPROCALS = np.concatenate([np.zeros(1), 1.0 / np.arange(1.0, 700.0)])
_PANEL_NODES, _PANEL_WEIGHTS = np.polynomial.legendre.leggauss(16)


class Share(NamedTuple):
    """The probability P(n+1, z) that more than n signals came where z were expected, and of n exactly."""

    more: float
    exactly: float


@exact
def share(n: float, z: float) -> Share:
    """Both probabilities, for n ≥ 0 whole or not. O(√n), quicker for small whole n."""
    if z == 0.0 or n >= _DIRECT or z > 700.0 or n != math.floor(n):
        return Share(lower_gamma(n + 1.0, z), poisson_term(n, z))
    term = math.exp(-z)
    fewer = term
    for i in range(1, int(n) + 1):
        term *= z / i
        fewer += term
    if z > n + 1.0:
        return Share(1.0 - fewer, term)
    return Share(term * z / (n + 1.0) * rising_series(n + 1.0, z), term)


@exact
def gain(case: Threshold, n: float, a: float, z: float, shares: Share) -> float:
    """The gain T at n, where the threshold is reached at a, z = ka; right after `boundary` for this n."""
    if case.x > QUADRATURE_REACH:
        return _gain_by_panels(case, n, a, z)
    # e^{Au} is expanded around the a that matter: with many signals expected these are close to A.
    reach = a * min(1.0, max(0.0, 1.0 - (n - 8.0 * math.sqrt(n)) / z))
    size = int(9.0 + reach + 7.0 * math.sqrt(reach))
    scale = max(a, 1.0)
    moments = _moments(n, z, scale, size, shares)
    for i in range(len(case.nodes)):
        case.points[i] = case.nodes[i] * (a / scale)
        case.series[i] = 0.0
    for j in range(size, 0, -1):  # nodes innermost: they are independent, so the processor takes several at once
        for i in range(len(case.nodes)):
            case.series[i] = case.series[i] * case.points[i] + moments[j]
    total = 0.0
    for i in range(len(case.nodes)):
        total += case.weights[i] * case.decays[i] * case.series[i]
    return total * (a / scale)


@exact
def _moments(n: float, z: float, scale: float, size: int, shares: Share) -> Floats:
    """The scaled moments b_j scale^j/j! for j = 0 … size. O(size)."""
    moments = np.empty(size + 1)
    moments[0] = shares.more
    # Upwards an error grows by the second root of the recurrence in each step: harmless while below 1.
    middle = 0.5 * (n + 1.0 + size - z)
    worst = (middle + math.sqrt(middle * middle + z * size)) / z
    rising = size if worst <= 1.0 else int(min(float(size), max(0.0, z - n - 1.0)))
    if rising >= 1:
        moments[1] = scale * (shares.more * (1.0 - (n + 1.0) / z) + shares.exactly)
    for j in range(1, rising):
        total = scale * moments[j - 1] + (z - n - 1.0 - j) * moments[j]
        moments[j + 1] = total * (scale / z * _RECIPROCALS[j + 1])
    if rising < size:
        _fall(moments, n, z, scale, rising)
    return moments


@exact
def _fall(moments: Floats, n: float, z: float, scale: float, rising: int) -> None:
    """Fill the moments above `rising` by the recurrence downwards, in proportion to the one at `rising`."""
    size = len(moments) - 1
    known = moments[rising]
    start = size + 8 + int(0.6 * min(z, 60.0))
    middle = 0.5 * (n + 1.0 + start - z)
    here = 1e-60  # on the way it grows by up to 180 decades, or falls by up to 220
    above = here * scale * (math.sqrt(middle * middle + z * start) - middle) / (z * (start + 1.0))
    for j in range(start, rising, -1):
        if j <= size:
            moments[j] = here
        here, above = (z / (scale * scale) * (j + 1) * above + (n + 1.0 + j - z) / scale * here), here
    factor = known / here
    for j in range(rising + 1, size + 1):
        moments[j] *= factor


@exact
def _gain_by_panels(case: Threshold, n: float, a: float, z: float) -> float:
    """The gain as ∫ k p(n, ka)(c − c(a, n)) da, for thresholds beyond the reach of quadrature in u."""
    k = z / a
    low = max(0.0, n - 9.0 * math.sqrt(n + 1.0)) / k
    high = min(a, (n + 9.0 * math.sqrt(n + 1.0) + 45.0) / k)
    total = 0.0
    # Panels that double in length away from 0, where c(·, n) bends most, and are never wider than the density.
    widest = 4.5 * math.sqrt(n + 1.0) / k
    left = low
    while left < high:
        width = min(widest, 1.0 + left + n * case.precision, high - left)
        for i in range(len(_PANEL_NODES)):
            point = left + 0.5 * width * (1.0 + _PANEL_NODES[i])
            lack = case.cost - expected_cost(point, n, case.precision)
            total += 0.5 * width * _PANEL_WEIGHTS[i] * k * poisson_term(n, k * point) * lack
        left += width
    return total
