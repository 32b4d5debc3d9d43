"""The expected harmonic cost of a page with noisy signals, and where it reaches a threshold.

The changes missed since the last crawl are Poisson(a) + Binomial(n, π): a = ατ silent changes are expected,
and each of the n signals means a change with probability π. The n-th missed change costs 1/n, so the expected
cost is

    c(a, n) = E H(Poisson(a) + Binomial(n, π)) = ∫₀¹ (1 − e^{−au}(1 − πu)ⁿ)/u du

A Gauss–Legendre rule on [0, 1] gives it to the last digit as long as a + nπ ≤ 40. Beyond that it is, with
s = a + nπ, r = π/s and φ = nπ/s,

    c = ln s + γ_E + Σ_{1≤i≤m} Q_mi φⁱ rᵐ

where the Q are the coefficients in e^{−su} exp(−nπ(πu²/2 + π²u³/3 + …)), integrated term by term.

A *threshold* is named by x, the number of expected changes at which a page without signals has that cost:
c = Ein(x). All of this works for n that is not whole too. Scalar kernels; pure.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import exact
from recrawl.values.special import EULER_GAMMA, ein, exp_of_minus

Floats = NDArray[np.float64]

# Sizes of the rules, and up to which a + nπ each is exact to rounding.
_SIZES = (8, 12, 16, 24, 44, 64, 80)
_REACH = (3.0, 8.0, 16.0, 40.0, 150.0, 320.0, 500.0)
QUADRATURE_REACH = _REACH[-1]
# From here on the series for large a + nπ is exact to rounding, and quicker.
_TAIL_FROM = 40.0
_ORDER = 10
# Thresholds below this need every digit of what is lost.
_SMALL = 0.02


def _rules() -> tuple[Floats, Floats]:
    """The nodes and weights of all rules on [0, 1], one after the other."""
    rules = [np.polynomial.legendre.leggauss(size) for size in _SIZES]
    nodes = np.concatenate([0.5 + 0.5 * nodes for nodes, _ in rules])
    return nodes, np.concatenate([0.5 * weights for _, weights in rules])


def _tail_coefficients() -> Floats:
    """The Q of the series for large a + nπ, as an array indexed by m − 1 and i − 1."""
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
    """The threshold c = Ein(x). O(1)."""
    first, last = _rule(x)
    nodes = _NODES[first:last]
    work = np.empty((5, last - first))
    for i in range(last - first):
        work[0, i] = math.log1p(-precision * nodes[i])
    weights = _WEIGHTS[first:last]
    return Threshold(precision, x, ein(x), nodes, weights, work[0], work[1], work[2], work[3], work[4])


@exact
def expected_cost(a: float, n: float, precision: float) -> float:
    """The expected cost c(a, n). O(1).

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
    """Where a page with n signals reaches the threshold; a is 0 if it has passed it already. O(1).

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
    """First node and last (exclusive) of the smallest rule that is exact for a + nπ = s; none if s is large."""
    first = 0
    for i in range(len(_SIZES)):
        if s <= _REACH[i]:
            return first, first + _SIZES[i]
        first += _SIZES[i]
    return 0, 0


@exact
def _tail_cost(s: float, announced: float, precision: float) -> tuple[float, float]:
    """The cost for s = a + nπ ≥ 40, where announced = nπ, and its logarithmic slope s·∂c/∂a."""
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
    """The boundary for thresholds beyond the reach of quadrature, by Newton's method on ln s."""
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
