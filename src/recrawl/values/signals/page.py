"""One page with change-indicating signals, in the numbers that every formula about it needs.

A page changes at `change_rate` Δ. Each change comes with a signal with probability `recall` λ; signals with
no change behind them come at `false_signal_rate` ν (NCIS, Busa-Fekete et al. 2025). What follows from these:

    silent_rate    α = (1 − λ)Δ      changes that no signal announces
    signal_rate    γ = λΔ + ν        all signals, true and false
    precision      π = λΔ/γ          probability that a signal means a change
    signal_weight  b = ln(γ/ν)       how far one signal lowers the logarithm of the page's freshness

Scalar kernels; pure. `b` is what the NCIS paper calls αβ: it stays finite when recall is 1, where β does not.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from recrawl.jit import exact

# Signals weaker than this come so often that their number tells nothing: it differs from its mean by less
# than the last digit of a float.
_RAREST = 1e-300  # the recall below which signals count as none: a subnormal has no digits to compute with
_WEAKEST = 1e-30
_LARGEST = 1e300
# Signals per cycle below which signals make no difference.
FEWEST_SIGNALS = 1e-15


class SignalPage(NamedTuple):
    """A page and its signals; rates are per unit time.

    A page whose signals carry nothing (recall 0, no changes at all, or nothing but noise) has `signal_rate`,
    `false_signal_rate`, `precision` and `signal_weight` 0: it is a page without signals. `signal_weight` is
    infinite where there are no false signals, and `silent_rate` 0 where every change is announced.
    """

    change_rate: float
    silent_rate: float
    signal_rate: float
    false_signal_rate: float
    precision: float
    signal_weight: float


class Shape(NamedTuple):
    """A page with α > 0 and γ > 0, up to its unit of time.

    `signals_per_change` is κ = γ/Δ, `signals_per_silent_change` is k = γ/α, and `p` is Δ/(Δ + ν).
    """

    precision: float
    signals_per_change: float
    signals_per_silent_change: float
    p: float


class Cycle(NamedTuple):
    """What a policy does that crawls when the expected cost reaches a threshold.

    `duration` is the expected time between crawls, `value` what one more crawl per unit time is worth, and `growth` the
    derivative of the duration in the threshold. Under freshness the threshold is the level; under harmonic cost it is
    the cost, and all three are in units of 1/Δ.
    """

    duration: float
    value: float
    growth: float


@exact
def signal_page(change_rate: float, recall: float, false_signal_rate: float) -> SignalPage:
    """Return the page with these parameters. O(1).

    >>> page = signal_page(2.0, 0.5, 1.0)
    >>> page.silent_rate, page.signal_rate, page.precision
    (1.0, 2.0, 0.5)
    """
    # Whole numbers from Python would make another type of page.
    change_rate, false_signal_rate = float(change_rate), float(false_signal_rate)
    announced_rate = recall * change_rate
    # ln(γ/ν) = ln(1 + λΔ/ν): exact for weak signals and for strong ones.
    weight = math.log1p(announced_rate / false_signal_rate) if false_signal_rate > 0.0 else math.inf
    if announced_rate == 0.0 or recall < _RAREST or weight < _WEAKEST:
        return SignalPage(change_rate, change_rate, 0.0, 0.0, 0.0, 0.0)
    signal_rate = announced_rate + false_signal_rate
    return SignalPage(
        change_rate,
        (1.0 - recall) * change_rate,
        signal_rate,
        false_signal_rate,
        announced_rate / signal_rate,
        weight,
    )


@exact
def shape_of(page: SignalPage) -> Shape:
    """Return the shape of a page. O(1)."""
    return Shape(
        page.precision,
        min(page.signal_rate / page.change_rate, _LARGEST),
        min(page.signal_rate / page.silent_rate, _LARGEST),
        1.0 / (1.0 + page.false_signal_rate / page.change_rate),
    )


@exact
def is_plain(page: SignalPage) -> bool:
    """Return whether the page has no signals, or so few or empty ones that plans need not count on them."""
    informative = page.precision * page.signal_rate
    return not informative > FEWEST_SIGNALS * page.silent_rate or math.isinf(page.signal_rate)
