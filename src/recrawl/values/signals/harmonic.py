"""Harmonic staleness with noisy change-indicating signals: the n-th missed change costs 1/n. Scalar kernels.

A page that was crawled τ ago and has had n signals since has missed Poisson(ατ) + Binomial(n, π) changes (names
in `page`; the cost is LambdaCrawl's, Kolobov et al. 2019, the signals are those of NCIS, Busa-Fekete et al. 2025).
Without signals a crawl is worth (μ/Δ) h(Δτ), and if every change is announced without false alarms (μ/Δ) n: V has no
bound, so a page that changes is never starved.

The best policy crawls when the expected cost c(ατ, n) reaches a threshold. For a threshold that a page with n
signals reaches at a = A_n, with k = γ/α and T_n the gains of `harmonic_cost`,

    duration  ψ(c) = (1/γ) Σ_n P(n+1, kA_n)      expected time between crawls
    value     V(c) = ∫₀^c ψ = (1/γ) Σ_n T_n       what one more crawl per unit time is worth

Few of the terms need work:

* Where kA_n is far above n, P is 1 and T_n = c − M_n, with M_n the mean cost just before signal n + 1,

      M_n = ln(1 + 1/k) + C_n(p),   C_n(p) = Σ_{j≤n} (1 − (1−p)^j)/j,   p = Δ/(Δ + ν),
      Σ_{i<n} M_i = n M_n − Σ_{j≤n} (1 − (1−p)^j)

  (substitute q = (1 − πu)k/(k + u) in the integral over u). Far above, the terms vanish.
* For many signals per cycle (π → 0 or x → ∞) the duration is that of a page without signals, but for
  the last signal's overshoot:

      Δψ = x + (λπ/2) x/(eˣ − 1),   ΔV = h(x) + (λπ/2)(1 − e^{−x}),   Ein(x) = c

  with a relative error below 0.32 λ³/N² for N signals per cycle. (With recall near 1 the duration is a
  staircase of N steps, smooth only on the whole.) It is used where that is below 2.2e-6.

The threshold of a given value or duration is found by Newton's method on ln x: both grow like powers of x between 1
and 2, except for kinks where recall is near 1. Both functions rise, so a bracket keeps the iteration safe, and its last
step is taken along the tangent instead of by another evaluation.

Everything is per unit importance, in units of the mean time between changes 1/Δ, and the threshold is named by
x. Kernels that end in `_kernel` take any legal page with its importance.
"""

from __future__ import annotations

import math

import numpy as np

from recrawl.jit import exact
from recrawl.values.gamma import share
from recrawl.values.laws import growing_due, growing_value
from recrawl.values.signals.harmonic_cost import Threshold, boundary, expected_cost, gain, threshold
from recrawl.values.signals.page import (
    FEWEST_SIGNALS,
    Cycle,
    Shape,
    SignalPage,
    is_plain,
    shape_of,
    signal_page,
)
from recrawl.values.signals.table import (
    quick_boundary,
    quick_cost,
    quick_inverse_ein,
    quick_threshold,
    quick_value,
)
from recrawl.values.special import ein, excess, h, inverse_ein, inverse_h, product, quotient

_EPSILON = 1e-14
_FRESH_EPSILON = 1e-16
# P(n, z) is 1 within 1e-13 where z − n ≥ √(60z), by Chernoff's bound.
_FAR = 60.0
_LATEST = 0.55  # signals beyond n after which a threshold is surely reached
_COUNTABLE = 1e15  # beyond this a float no longer counts one by one
# Signals per cycle above which all cycles are smooth.
_MOST_SIGNALS = 1e8
# The smooth form takes over from this number times λ^{3/2} signals per cycle on, where its error, 0.32 λ³/N², is
# 2.2e-6, and where N signals deviate by more than one from their mean, which blurs the steps that single signals make.
_MANY = 380.0
_BLURRED = 1.0
# Up to this much more of both, the sums and the smooth form are mixed: value and duration have no leap anywhere.
_MIXED = 0.25

# A step along the tangent leaves an error of the order of its square.
_CLOSE = 1e-12
_STEEP = 20.0
_CORNER = 5e-13
_LEVEL = 1e-9
_SAME = 2e-16
_MOST_STEPS = 200
# Below this many expected changes V would underflow on the way, and every signal counts.
_TINY = 1e-140
# Above this many V is μ/Δ times their number, to the last digit.
_ENDLESS = 1e17


@exact
def cycle_at(page: Shape, x: float) -> Cycle:
    """Return the cycle of the policy that crawls when the cost reaches Ein(x), x > 0. O(1), however many signals."""
    if page.signals_per_silent_change * x < FEWEST_SIGNALS:
        return rare_cycle(page, x)
    part = smooth_part(page, x)
    if part == 1.0:
        return smooth_cycle(page, x)
    whole = _whole_sums(page, threshold(page.precision, x))
    if part == 0.0:
        return whole
    smooth = smooth_cycle(page, x)
    return Cycle(
        whole.duration + part * (smooth.duration - whole.duration),
        whole.value + part * (smooth.value - whole.value),
        whole.growth + part * (smooth.growth - whole.growth),
    )


@exact
def smooth_part(page: Shape, x: float) -> float:
    """Return the weight of the smooth form at this threshold: 0 if sums are taken, 1 if not, between where both are."""
    expected = page.signals_per_change * x
    if expected > _MOST_SIGNALS:
        return 1.0
    deviation = math.sqrt(expected) * (page.signals_per_change / page.signals_per_silent_change)
    many = _MANY * math.pow(page.signals_per_change * page.precision, 1.5)
    reached = min(expected / many, deviation / _BLURRED)
    return min(max((reached - 1.0) / _MIXED, 0.0), 1.0)


@exact
def rare_cycle(page: Shape, x: float) -> Cycle:
    """Return the cycle where signals are too rare to count: that of the silent changes alone. O(1)."""
    stretch = page.signals_per_silent_change / page.signals_per_change
    return Cycle(stretch * x, stretch * h(x), -stretch * x / math.expm1(-x))


@exact
def smooth_cycle(page: Shape, x: float) -> Cycle:
    """Return the cycle for many signals. O(1)."""
    overshoot = 0.5 * page.signals_per_change * page.precision * page.precision
    if x > 700.0:
        return Cycle(1.0 * x, x - 1.0 + overshoot, 1.0 * x)
    lag = x / math.expm1(x)
    bend = lag * (1.0 - lag * math.exp(x)) / x  # d lag/dx
    slope = -math.expm1(-x) / x
    value = h(x) - overshoot * math.expm1(-x)
    return Cycle(x + overshoot * lag, value, (1.0 + overshoot * bend) / slope)


@exact
def fresh_time(page: Shape, x: float) -> float:
    """Return Δ times the expected fresh time of a cycle with the threshold Ein(x), x > 0. O(1) terms.

    The page is fresh while no change was missed. With S_n = P(n+1, (k+1)A_n) that is (1/κ) Σ_n (1−p)ⁿ k/(k+1) S_n. For
    many signals a cycle is over when about x changes are expected: 1 − e^{−x − (λπ/2)(x + x/(eˣ−1))}.
    """
    if page.signals_per_silent_change * x < FEWEST_SIGNALS:
        return -math.expm1(-x) * (page.signals_per_silent_change / page.signals_per_change)
    part = smooth_part(page, x)
    smooth = 0.0
    if part > 0.0:
        lag = x / math.expm1(x) if x < 700.0 else 0.0
        smooth = -math.expm1(-x - 0.5 * page.signals_per_change * page.precision * page.precision * (x + lag))
        if part == 1.0:
            return smooth
    whole = _summed_fresh_time(page, threshold(page.precision, x))
    return whole + part * (smooth - whole)


@exact
def _summed_fresh_time(page: Shape, case: Threshold) -> float:
    """Return the fresh time, term by term."""
    n = full_terms(page, case.x)
    total = page.signals_per_change * hit_chance(n, page.p)
    step = -page.precision * (1.0 + lead(page, case.x))
    guess = case.x + n * step
    while True:
        a = boundary(case, n, guess).a
        weight = (1.0 - hit_chance(n, page.p)) * (
            page.signals_per_silent_change / (page.signals_per_silent_change + 1.0)
        )
        term = weight * share(n, (page.signals_per_silent_change + 1.0) * a).more
        if term <= _FRESH_EPSILON * total:
            return total / page.signals_per_change
        total += term
        guess = a + step
        n += 1.0


@exact
def mean_steps(n: float, p: float) -> float:
    """Return Σ_{j≤n} (1 − (1−p)^j), as a smooth function of n. O(1)."""
    if p == 1.0:
        return n
    weight = -n * math.log1p(-p)
    return (h(weight) - n * excess(-p)) / p - math.expm1(-weight)


@exact
def harmonic_steps_at_value(page: SignalPage, value: float) -> float:
    """Return the least number of signals, 1 or more, whose V reaches `value`, where every change is announced. O(1)."""
    target = value * page.signal_rate
    # Σ (1 − (1−π)^j) is h(πn)/π and a little more: never more than 1 a step.
    n: float = max(1.0, np.floor(inverse_h(page.precision * target) / page.precision))
    if n > _COUNTABLE:
        return n
    for _ in range(50):
        step = float(np.ceil((mean_steps(n, page.precision) - target) / hit_chance(n, page.precision))) - 1.0
        if step <= 0.0:
            break
        n = max(1.0, n - step)
    while mean_steps(n, page.precision) < target:
        n += 1.0
    while n > 1.0 and mean_steps(n - 1.0, page.precision) >= target:
        n -= 1.0
    return n


@exact
def lead(page: Shape, x: float) -> float:
    """Return how far a grows less than linearly per signal along a threshold: A_n ≈ x − nπ(1 + lead). O(1)."""
    if x < 1e-3:
        return 0.25 * page.precision
    rest = x / math.expm1(x) if x < 700.0 else 0.0
    return 0.5 * page.precision * (1.0 - rest) / x


@exact
def full_terms(page: Shape, x: float) -> float:
    """Return a number of first terms with P(n+1, kA_n) = 1 within 1e-13. O(1)."""
    z = page.signals_per_silent_change * x
    if z - math.sqrt(_FAR * z) < 1.0:
        return 0.0
    # A_n ≥ x − (n + 0.55)π: at π = 1 the threshold is reached at x = n + ½ + 1/(24n) and less.
    # With z = k(x − (n + 0.55)π), z − √(80z) ≥ n + 1 is a quadratic inequality in √z.
    loss = page.signals_per_silent_change * page.precision
    stretch = 1.0 + 1.0 / loss
    root = (math.sqrt(_FAR) + math.sqrt(_FAR + 4.0 * stretch * (z / loss + _LATEST))) / (2.0 * stretch)
    return float(max(1.0, np.floor((z - root * root) / loss - _LATEST) + 1.0))


@exact
def _whole_sums(page: Shape, case: Threshold) -> Cycle:
    """Return the cycle, term by term."""
    full = full_terms(page, case.x)
    durations, growth = full, 0.0
    gains = _full_gains(page, case.cost, full)
    step = -page.precision * (1.0 + lead(page, case.x))
    bend = 0.0
    guess = case.x + full * step
    n = full
    while True:
        edge = boundary(case, n, guess)
        z = page.signals_per_silent_change * edge.a
        if z <= 0.0:
            break
        shares = share(n, z)
        if shares.more <= _EPSILON * durations:
            break
        durations += shares.more
        gains += gain(case, n, edge.a, z, shares)
        growth += page.signals_per_silent_change * shares.exactly / edge.slope
        if n > full:
            bend += edge.a - guess
        step += bend
        guess = edge.a + step
        n += 1.0
    return Cycle(durations / page.signals_per_change, gains / page.signals_per_change, growth / page.signals_per_change)


@exact
def _full_gains(page: Shape, cost: float, n: float) -> float:
    """Return the sum Σ_{i<n} (c − M_i), the gains of the first n terms where their share is 1."""
    gains = n * (cost - math.log1p(1.0 / page.signals_per_silent_change))
    # Of one term nothing is left of the rest, and the cost may be much smaller than it.
    return gains - (n * expected_cost(0.0, n, page.p) - mean_steps(n, page.p)) if n > 1.0 else gains


@exact
def hit_chance(n: float, p: float) -> float:
    """Return 1 − (1−p)ⁿ. O(1)."""
    if p == 1.0:
        return 1.0 if n > 0.0 else 0.0
    return -math.expm1(n * math.log1p(-p))


@exact
def threshold_at_value(page: Shape, value: float, guess: float) -> tuple[float, Cycle]:
    """Return the x whose cycle has this ΔV > 0, and the cycle. Two or three evaluations from a guess good to 1e-3."""
    x = guess
    low = 0.0
    high = math.inf
    cycle = cycle_at(page, x)
    for _ in range(_MOST_STEPS):
        rise = -math.expm1(-x)  # dc/d ln x
        lack = value - cycle.value
        step = _log_ratio(value, cycle.value) * cycle.value / (cycle.duration * rise)
        bend = cycle.growth * rise / cycle.duration  # d ln ψ/d ln x
        low, high = (x, high) if lack > 0.0 else (low, x)
        close = _is_close(page, x, step, bend)
        if close or abs(step) <= _SAME or high - low <= _SAME * x:
            duration = cycle.duration + cycle.growth * (lack / cycle.duration)
            return x * math.exp(step), Cycle(duration, value, cycle.growth)
        x = _next(x, step, low, high)
        cycle = cycle_at(page, x)
    return x, cycle


@exact
def threshold_at_duration(page: Shape, duration: float) -> tuple[float, Cycle]:
    """Return the x whose cycle has this Δψ > 0, and the cycle. A few evaluations, a few dozen for recall near 1."""
    x = duration
    low = 0.0
    high = math.inf
    cycle = cycle_at(page, x)
    for _ in range(_MOST_STEPS):
        climb = -cycle.growth * math.expm1(-x)
        lack = duration - cycle.duration
        step = _log_ratio(duration, cycle.duration) * cycle.duration / max(climb, 1e-300)
        low, high = (x, high) if lack > 0.0 else (low, x)
        if abs(lack) <= _CORNER * duration or high - low <= _SAME * x:
            break
        if not _is_steep(page) and _is_close(page, x, step, climb / cycle.duration):
            value = cycle.value + (lack / cycle.growth) * (cycle.duration + 0.5 * lack)
            return x * math.exp(step), Cycle(duration, value, cycle.growth)
        x = _next(x, step, low, high)
        cycle = cycle_at(page, x)
    return x, cycle


@exact
def _is_steep(page: Shape) -> bool:
    """Return whether the duration is nearly a staircase, so that a tangent at its corners tells little."""
    return page.signals_per_silent_change * page.precision > _STEEP


@exact
def _is_close(page: Shape, x: float, step: float, bend: float) -> bool:
    """Return whether a step of ln x can be taken along the tangent, where d ln ψ/d ln x is `bend`."""
    if _is_steep(page):
        return abs(step) <= _LEVEL and bend * abs(step) <= _CORNER
    # The slopes change on the scale of the step that a signal makes, smoothed by silent changes.
    scale = page.signals_per_change / (
        page.signals_per_silent_change * math.sqrt(max(1.0, page.signals_per_change * x))
    )
    return step * step * (1.0 + bend) <= _CLOSE * scale


@exact
def _next(x: float, step: float, low: float, high: float) -> float:
    """Return the next trial: Newton's, or one inside the bracket."""
    trial = x * math.exp(min(max(step, -3.0), 3.0))
    if low < trial < high:
        return trial
    return math.sqrt(low) * math.sqrt(high) if low > 0.0 else 0.1 * high


@exact
def _log_ratio(a: float, b: float) -> float:
    """Return ln(a/b), accurate where they are close."""
    return math.log1p((a - b) / b) if 0.5 * b < a < 2.0 * b else math.log(a) - math.log(b)


@exact
def noisy_harmonic_value_kernel(
    importance: float, change_rate: float, recall: float, false_signal_rate: float, elapsed: float, signals: float
) -> float:
    """Return `noisy_harmonic_value` of one page."""
    return _value(importance, change_rate, recall, false_signal_rate, elapsed, signals, False)


@exact
def noisy_harmonic_value_fast_kernel(
    importance: float, change_rate: float, recall: float, false_signal_rate: float, elapsed: float, signals: float
) -> float:
    """Return `noisy_harmonic_value` of one page from the table: relative error below 1e-3."""
    return _value(importance, change_rate, recall, false_signal_rate, elapsed, signals, True)


@exact
def noisy_harmonic_due_kernel(
    importance: float, change_rate: float, recall: float, false_signal_rate: float, signals: float, price: float
) -> float:
    """Return `noisy_harmonic_due` of one page."""
    return _due(importance, change_rate, recall, false_signal_rate, signals, price, False)


@exact
def noisy_harmonic_due_fast_kernel(
    importance: float, change_rate: float, recall: float, false_signal_rate: float, signals: float, price: float
) -> float:
    """Return `noisy_harmonic_due` of one page from the table: relative error below 1e-3."""
    return _due(importance, change_rate, recall, false_signal_rate, signals, price, True)


@exact
def _value(
    importance: float,
    change_rate: float,
    recall: float,
    false_signal_rate: float,
    elapsed: float,
    signals: float,
    fast: bool,
) -> float:
    if importance == 0.0 or change_rate == 0.0:
        return 0.0
    page = signal_page(1.0, recall, false_signal_rate / change_rate)
    if _signals_say_nothing(page) or (signals == 0.0 and is_plain(page)):
        return growing_value(importance, change_rate, elapsed)
    return _page_value(page, importance, change_rate, elapsed, signals, fast)


@exact
def _page_value(
    page: SignalPage, importance: float, change_rate: float, elapsed: float, signals: float, fast: bool
) -> float:
    """Return V of a page with signals; the unit of time of `page` is 1/change_rate."""
    if page.silent_rate == 0.0:
        return quotient(importance, mean_steps(signals, page.precision) / page.signal_rate, change_rate)
    silent = page.silent_rate * (change_rate * elapsed)
    missed = silent + signals * page.precision
    if missed > _ENDLESS:
        return importance * (page.silent_rate * elapsed) + quotient(importance, signals * page.precision, change_rate)
    if missed < _TINY:
        return _first_value(page, importance, elapsed, silent) if signals == 0.0 and silent > 0.0 else 0.0
    return quotient(importance, _value_after(shape_of(page), silent, signals, fast), change_rate)


@exact
def _value_after(page: Shape, silent: float, signals: float, fast: bool) -> float:
    """Return ΔV after the expected silent changes and n signals. O(1)."""
    if fast:
        cost = quick_cost(silent, signals, page.precision)
        return quick_value(page, quick_inverse_ein(cost) if signals > 0.0 else silent, cost)
    x = inverse_ein(expected_cost(silent, signals, page.precision)) if signals > 0.0 else silent
    return cycle_at(page, x).value


@exact
def _first_value(page: SignalPage, importance: float, elapsed: float, silent: float) -> float:
    """Return V where hardly any change is expected: μτ h(γτ)/(γτ k)."""
    ratio = page.signal_rate / page.silent_rate
    signals = ratio * silent
    if signals < 1e-100:
        return product(importance, elapsed, 0.5 * silent)
    return product(importance, elapsed, h(signals) / signals / ratio) if signals < math.inf else 0.0


@exact
def _due(
    importance: float,
    change_rate: float,
    recall: float,
    false_signal_rate: float,
    signals: float,
    price: float,
    fast: bool,
) -> float:
    if importance == 0.0 or change_rate == 0.0 or price == 0.0 or price == math.inf:
        return growing_due(importance, change_rate, price)
    page = signal_page(1.0, recall, false_signal_rate / change_rate)
    if _signals_say_nothing(page) or (signals == 0.0 and is_plain(page)):
        return growing_due(importance, change_rate, price)
    return _page_due(page, importance, change_rate, signals, price, fast)


@exact
def _page_due(
    page: SignalPage, importance: float, change_rate: float, signals: float, price: float, fast: bool
) -> float:
    """Return when a page with signals is due; the unit of time of `page` is 1/change_rate."""
    target = quotient(price, change_rate, importance)
    if page.silent_rate == 0.0:
        return 0.0 if mean_steps(signals, page.precision) / page.signal_rate >= target else math.inf
    if target > _ENDLESS:
        rest = price / importance - signals * (page.precision / change_rate)
        return max(0.0, rest) / page.silent_rate
    if target < _TINY * _TINY:
        pace = math.sqrt(importance) * math.sqrt(page.silent_rate) * math.sqrt(change_rate)
        return math.sqrt(2.0) * math.sqrt(price) / pace if signals == 0.0 else 0.0
    return _wait(shape_of(page), signals, target, fast) / page.silent_rate / change_rate


@exact
def _wait(page: Shape, signals: float, target: float, fast: bool) -> float:
    """Return the expected silent changes at which ΔV meets the target, with n signals; 0 if it has already. O(1)."""
    rare = page.signals_per_silent_change * page.precision <= FEWEST_SIGNALS
    x = inverse_h(target) if rare else quick_threshold(page, target)
    if fast:
        return quick_boundary(x, signals, page.precision)
    if not rare:
        x, _ = threshold_at_value(page, target, x)
    if signals == 0.0:
        return x
    if ein(x) <= expected_cost(0.0, signals, page.precision):
        return 0.0
    return boundary(threshold(page.precision, x), signals, x - signals * page.precision).a


@exact
def _signals_say_nothing(page: SignalPage) -> bool:
    """Return whether there are no signals, or more and weaker ones than floats can count."""
    return page.precision == 0.0 or math.isinf(page.signal_rate)
