"""Which threshold of a page with noisy signals has a given value, and which a given duration.

Newton's method on the logarithm of x, which names the threshold (see `noisy_harmonic_cycle`): value and
duration grow like powers of x between 1 and 2, but for kinks where recall is near 1. Both functions rise, so a
bracket keeps the iteration safe, and its last step is taken along the tangent instead of by another evaluation.

Scalar kernels for pages with α > 0 and γ > 0; pure; units as in `noisy_harmonic_cycle`.
"""

from __future__ import annotations

import math

from recrawl.jit import exact
from recrawl.values.noisy_harmonic_cycle import Cycle, Shape, cycle_at

# A step along the tangent leaves an error of the order of its square.
_CLOSE = 1e-12
_STEEP = 20.0
_CORNER = 5e-13
_LEVEL = 1e-9
_SAME = 2e-16
_MOST_STEPS = 200


@exact
def threshold_at_value(page: Shape, value: float, guess: float) -> tuple[float, Cycle]:
    """The x whose cycle has this ΔV > 0, and the cycle. Two or three evaluations from a guess good to 1e-3."""
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
    """The x whose cycle has this Δψ > 0, and the cycle. A few evaluations, a few dozen for recall near 1."""
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
    """Whether the duration is nearly a staircase, so that a tangent at its corners tells little."""
    return page.ratio * page.precision > _STEEP


@exact
def _is_close(page: Shape, x: float, step: float, bend: float) -> bool:
    """Whether a step of ln x can be taken along the tangent, where d ln ψ/d ln x is `bend`."""
    if _is_steep(page):
        return abs(step) <= _LEVEL and bend * abs(step) <= _CORNER
    # The slopes change on the scale of the step that a signal makes, smoothed by silent changes.
    scale = page.load / (page.ratio * math.sqrt(max(1.0, page.load * x)))
    return step * step * (1.0 + bend) <= _CLOSE * scale


@exact
def _next(x: float, step: float, low: float, high: float) -> float:
    """The next trial: Newton's, or one inside the bracket."""
    trial = x * math.exp(min(max(step, -3.0), 3.0))
    if low < trial < high:
        return trial
    return math.sqrt(low) * math.sqrt(high) if low > 0.0 else 0.1 * high


@exact
def _log_ratio(a: float, b: float) -> float:
    """ln(a/b), accurate where they are close."""
    return math.log1p((a - b) / b) if 0.5 * b < a < 2.0 * b else math.log(a) - math.log(b)
