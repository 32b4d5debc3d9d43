"""The expected harmonic cost of a page with noisy signals, where it reaches a threshold, and sums over signals.

The changes missed since the last crawl are Poisson(a) + Binomial(n, π): a = ατ silent changes are expected,
and each of the n signals means a change with probability π. The n-th missed change costs 1/n, so the expected
cost is

    c(a, n) = E H(Poisson(a) + Binomial(n, π)) = ∫₀¹ (1 − e^{−au}(1 − πu)ⁿ)/u du

A Gauss–Legendre rule on [0, 1] gives it to the last digit as long as a + nπ ≤ 40. Beyond that it is, with
s = a + nπ, r = π/s and φ = nπ/s,

    c = ln s + γ_E + Σ_{1≤i≤m} Q_mi φⁱ rᵐ

where the Q are the coefficients in e^{−su} exp(−nπ(πu²/2 + π²u³/3 + …)), integrated term by term. A *threshold* is
named by x, the number of expected changes at which a page without signals has that cost: c = Ein(x).

Between crawls the n-th signal comes at a = ατ with the density k·p(n−1, ka), p a Poisson term, k = γ/α. For a
threshold that a page with n signals reaches at A the sums of a cycle (see `harmonic`) need

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
from recrawl.pages import Floats
from recrawl.values.gamma import Share, poisson_term
from recrawl.values.special import EULER_GAMMA, ein, exp_of_minus

# Sizes of the rules, and up to which a + nπ each is exact to rounding.
_SIZES = (8, 12, 16, 24, 44, 64, 80)
_REACH = (3.0, 8.0, 16.0, 40.0, 150.0, 320.0, 500.0)
QUADRATURE_REACH = _REACH[-1]
# From here on the series for large a + nπ is exact to rounding, and quicker.
_TAIL_FROM = 40.0
_ORDER = 10
# Thresholds below this need every digit of what is lost.
_SMALL = 0.02
_RECIPROCALS = np.concatenate([np.zeros(1), 1.0 / np.arange(1.0, 700.0)])
_PANEL_NODES, _PANEL_WEIGHTS = np.polynomial.legendre.leggauss(16)


def _rules() -> tuple[Floats, Floats]:
    """Return the nodes and weights of all rules on [0, 1], one after the other."""
    rules = [np.polynomial.legendre.leggauss(size) for size in _SIZES]
    nodes = np.concatenate([0.5 + 0.5 * nodes for nodes, _ in rules])
    return nodes, np.concatenate([0.5 * weights for _, weights in rules])


def _tail_coefficients() -> Floats:
    """Return the Q of the series for large a + nπ, as an array indexed by m − 1 and i − 1."""
    # With f = nπ, exp(−f Σ π^{j−1}u^j/j) = Σ_j e_j u^j, where j e_j = −f Σ_l π^{l−1} e_{j−l} over l = 2 … j.
    # A term f^i π^m of e_j has i + m = j and contributes −(j − 1)! r^m φ^i.
    terms = np.zeros((2 * _ORDER + 1, 2 * _ORDER + 1, 2 * _ORDER + 1))  # of e_j, by i and m
    terms[0, 0, 0] = 1.0
    series = np.zeros((2 * _ORDER + 1, 2 * _ORDER + 1))
    for j in range(2, 2 * _ORDER + 1):
        for shift in range(2, j + 1):
            terms[j, 1:, shift - 1 :] -= terms[j - shift, :-1, : 2 * _ORDER + 2 - shift] / j
        series -= math.factorial(j - 1) * terms[j]
    return np.ascontiguousarray(series[1 : _ORDER + 1, 1 : _ORDER + 1].T)


_NODES, _WEIGHTS = _rules()
_TAIL = _tail_coefficients()


class Threshold(NamedTuple):
    """A cost that starts a crawl, for a page whose signals have this precision, ready for quadrature.

    `x` and `cost` name the threshold; `logs` are ln(1 − πu) at the nodes u. The rest is scratch space: after a
    call of `boundary`, `decays` holds e^{−au}(1 − πu)ⁿ at the nodes. There are no nodes where x is too large.
    """

    precision: float
    x: float
    cost: float
    nodes: Floats
    weights: Floats
    logs: Floats
    decays: Floats
    losses: Floats
    points: Floats
    series: Floats


class Boundary(NamedTuple):
    """The expected silent changes `a` at which a page with n signals reaches the threshold, and ∂c/∂a there."""

    a: float
    slope: float


@exact
def threshold(precision: float, x: float) -> Threshold:
    """Return the threshold c = Ein(x). O(1)."""
    first, last = _rule(x)
    nodes = _NODES[first:last]
    work = np.empty((5, last - first))
    for i in range(last - first):
        work[0, i] = math.log1p(-precision * nodes[i])
    weights = _WEIGHTS[first:last]
    return Threshold(precision, x, ein(x), nodes, weights, work[0], work[1], work[2], work[3], work[4])


@exact
def expected_cost(a: float, n: float, precision: float) -> float:
    """Return the expected cost c(a, n). O(1).

    >>> round(expected_cost(0.0, 3.0, 1.0), 12)  # H(3)
    1.833333333333
    """
    if n == 0.0 or precision == 0.0:
        return ein(a)
    s = a + n * precision
    if s > _TAIL_FROM:
        return _tail_cost(s, n * precision, precision)[0]
    first, last = _rule(s)
    total = 0.0
    for i in range(first, last):
        u = _NODES[i]
        total -= math.expm1(n * math.log1p(-precision * u) - a * u) * (_WEIGHTS[i] / u)
    return total


@exact
def boundary(case: Threshold, n: float, guess: float) -> Boundary:
    """Return where a page with n signals reaches the threshold; a is 0 if it has passed it already. O(1).

    Halley's method on the rising concave function c(·, n): one or two steps from a good guess.
    """
    if case.x > _TAIL_FROM + 1.0:
        edge = _tail_boundary(case, n, guess)
        _fill_decays(case, edge.a, n)
        return edge
    a = max(guess, 0.0)
    slope = 1.0
    for _ in range(60):
        _fill_decays(case, a, n)
        excess = -case.cost
        slope = 0.0
        bend = 0.0
        for i in range(len(case.nodes)):
            weighted = case.weights[i] * case.decays[i]
            excess += case.losses[i]
            slope += weighted
            bend += weighted * case.nodes[i]
        if a == 0.0 and excess >= 0.0:
            return Boundary(0.0, slope)
        step = excess / slope
        step /= 1.0 + 0.5 * step * bend / slope
        a = max(a - step, 0.0)
        if abs(step) <= 1e-5 * case.x:  # the error left is of the order of the step's cube
            for i in range(len(case.nodes)):
                case.decays[i] *= 1.0 + step * case.nodes[i] * (1.0 + 0.5 * step * case.nodes[i])
            slope += step * bend
            break
    return Boundary(a, slope)


@exact
def _fill_decays(case: Threshold, a: float, n: float) -> None:
    """Set `decays` to e^{−au}(1 − πu)ⁿ and `losses` to w(1 − e^{−au}(1 − πu)ⁿ)/u at the nodes u with weights w."""
    if case.x < _SMALL:  # what is lost must keep its digits
        for i in range(len(case.nodes)):
            gone = math.expm1(n * case.logs[i] - a * case.nodes[i])
            case.decays[i] = 1.0 + gone
            case.losses[i] = -gone * case.weights[i] / case.nodes[i]
    else:  # what is left must keep its digits; several nodes at once
        for i in range(len(case.nodes)):
            decay = exp_of_minus(min(a * case.nodes[i] - n * case.logs[i], 700.0))
            case.decays[i] = decay
            case.losses[i] = (1.0 - decay) * case.weights[i] / case.nodes[i]


@exact
def _rule(s: float) -> tuple[int, int]:
    """Return first node and last (exclusive) of the smallest rule that is exact for a + nπ = s; none if s is large."""
    first = 0
    for i in range(len(_SIZES)):
        if s <= _REACH[i]:
            return first, first + _SIZES[i]
        first += _SIZES[i]
    return 0, 0


@exact
def _tail_cost(s: float, announced: float, precision: float) -> tuple[float, float]:
    """Return the cost for s = a + nπ ≥ 40, where announced = nπ, and its logarithmic slope s·∂c/∂a."""
    share = announced / s
    r = precision / s
    series = 0.0
    fall = 0.0
    order = _ORDER if s < 150.0 else 6 if s < 1500.0 else 4
    for m in range(order - 1, -1, -1):
        inner = 0.0
        inner_fall = 0.0
        for i in range(m, -1, -1):
            inner = inner * share + _TAIL[m, i]
            inner_fall = inner_fall * share + _TAIL[m, i] * (m + i + 2)
        series = (series + inner * share) * r
        fall = (fall + inner_fall * share) * r
    return math.log(s) + EULER_GAMMA + series, 1.0 - fall


@exact
def _tail_boundary(case: Threshold, n: float, guess: float) -> Boundary:
    """Return the boundary for thresholds beyond the reach of quadrature, by Newton's method on ln s."""
    announced = n * case.precision
    s = max(guess, 0.0) + announced
    if s < _TAIL_FROM:
        s = case.x
    slope = 1.0
    for _ in range(60):
        cost, slope = _tail_cost(s, announced, case.precision)
        step = (cost - case.cost) / slope
        s *= math.exp(-step)
        if abs(step) <= 1e-9:
            break
    if s <= announced:
        return Boundary(0.0, slope / announced)
    return Boundary(s - announced, slope / s)


@exact
def gain(case: Threshold, n: float, a: float, z: float, shares: Share) -> float:
    """Return the gain T at n, where the threshold is reached at a, z = ka; right after `boundary` for this n."""
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
    """Return the scaled moments b_j scale^j/j! for j = 0 … size. O(size)."""
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
    """Return the gain as ∫ k p(n, ka)(c − c(a, n)) da, for thresholds beyond the reach of quadrature in u."""
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
