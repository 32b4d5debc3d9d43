"""How long a page with noisy signals stays fresh under a harmonic threshold policy.

The page is fresh while no change has been missed. With the names of `noisy_harmonic_cycle` and
S_n = P(n+1, (k+1)A_n), the expected fresh time of a cycle is Σ_n (γ(1−π))ⁿ/(γ+α)^{n+1} S_n, and Δ times it

    (1/κ) Σ_n (1−p)ⁿ k/(k+1) S_n = Σ_n (1 − (1−p)^{n+1}) (S_n − S_{n+1})

The first sum is taken where terms are few and the second, of bell-shaped terms, by every h-th term; see there.
For very many signals a cycle is over when about x changes are expected: 1 − e^{−x − (λπ/2)(x + x/(eˣ−1))}.

Scalar kernels; pure.
"""

from __future__ import annotations

import math

import numpy as np

from recrawl.jit import exact
from recrawl.values.noisy_harmonic_cost import Threshold, boundary, threshold
from recrawl.values.noisy_harmonic_cycle import (
    RARE,
    SMOOTH,
    STRIDED,
    Shape,
    full_terms,
    hit_by,
    lead,
    regime_of,
    stride_at,
)
from recrawl.values.noisy_harmonic_terms import share

_EPSILON = 1e-16


@exact
def fresh_time(page: Shape, x: float) -> float:
    """Δ times the expected fresh time of a cycle with the threshold Ein(x), x > 0. O(1) terms."""
    regime = regime_of(page, x)
    if regime == RARE:
        return -math.expm1(-x) * (page.ratio / page.load)
    if regime == SMOOTH:
        lag = x / math.expm1(x) if x < 700.0 else 0.0
        return -math.expm1(-x - 0.5 * page.load * page.precision * page.precision * (x + lag))
    case = threshold(page.precision, x)
    return _strided_sum(page, case) if regime == STRIDED else _whole_sum(page, case)


@exact
def _whole_sum(page: Shape, case: Threshold) -> float:
    """The fresh time, term by term."""
    n = full_terms(page, case.x)
    total = page.load * hit_by(n, page.hit)
    step = -page.precision * (1.0 + lead(page, case.x))
    guess = case.x + n * step
    while True:
        a = boundary(case, n, guess).a
        weight = (1.0 - hit_by(n, page.hit)) * (page.ratio / (page.ratio + 1.0))
        term = weight * share(n, (page.ratio + 1.0) * a).more
        if term <= _EPSILON * total:
            return total / page.load
        total += term
        guess = a + step
        n += 1.0


@exact
def _strided_sum(page: Shape, case: Threshold) -> float:
    """The fresh time by every h-th term."""
    stride = stride_at(page, case.x)
    middle = hit_by(float(np.floor(page.load * case.x)), page.hit)
    total = 0.0
    slope = -page.precision * (1.0 + lead(page, case.x))
    n = full_terms(page, case.x)
    guess = case.x + n * slope
    while True:
        after = boundary(case, n + 1.0, guess + slope).a
        a = boundary(case, n, after - slope).a
        more = share(n, (page.ratio + 1.0) * a).more
        if more <= _EPSILON:
            return middle + stride * total
        drop = more - share(n + 1.0, (page.ratio + 1.0) * after).more
        total += (hit_by(n + 1.0, page.hit) - middle) * drop
        slope = after - a
        guess = a + stride * slope
        n += stride
