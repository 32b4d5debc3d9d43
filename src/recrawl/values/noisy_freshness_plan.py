"""A page with noisy signals as a planner sees it: crawl rate for a value, value and costs for a crawl rate.

The policy of a page crawls when its level reaches a threshold (NCIS, Busa-Fekete et al. 2025), so rate, value and
costs are three functions of one threshold; see `noisy_freshness_sums`. Everything is per unit importance. Where a
rate lies between those of two thresholds the page follows both in turn, each for a share of the time: between the
steps of a page whose every change is announced, and between never and at every signal where no signal is false.

Scalar kernels for any legal page; pure.
"""

from __future__ import annotations

import math

from recrawl.jit import exact
from recrawl.values.noisy_freshness_costs import cycle_costs, step_costs
from recrawl.values.noisy_freshness_level import level_at_value, state_at_duration
from recrawl.values.noisy_freshness_steps import step_value, steps_at_rate, steps_at_value
from recrawl.values.noisy_freshness_sums import RARE
from recrawl.values.signal_page import SignalPage
from recrawl.values.special import ein, g, h, inverse_g

# Rates this close are one: where the rate hardly moves with the value, a value is known up to an interval.
_SAME = 1e-13
# The largest V·Δ whose level is known: closer to 1 the level is lost in rounding.
_LIMIT = 1.0 - 1e-15


@exact
def rate_at_value(page: SignalPage, value: float) -> tuple[float, float]:
    """The crawl rate whose marginal value is `value`, and its slope d rate / d ln value.

    Rate 0 from 1/Δ on; infinite at value 0, except where every change is announced: there rates are γ/n, n whole,
    and the slope is 0. Some three evaluations of a cycle.
    """
    if page.change_rate == 0.0 or value * page.change_rate >= _LIMIT:
        return 0.0, 0.0
    if page.silent_rate == 0.0:
        return page.signal_rate / steps_at_value(page, value), 0.0
    if value <= 0.0:
        return math.inf, -math.inf
    if is_plain(page):
        level = inverse_g(value * page.change_rate)
        rate = page.change_rate / level
        return rate, -rate * g(level) * math.exp(level) / (level * level)
    level, cycle = level_at_value(page, value)
    rate = 1.0 / cycle.duration
    return rate, -value * cycle.growth * rate * rate * rate * math.exp(level)


@exact
def value_at_rate(page: SignalPage, rate: float) -> tuple[float, float]:
    """The least and the most that the marginal value at this crawl rate can be; they differ at steps.

    At rate 0 both are 1/Δ, what the first crawl would bring. Elsewhere the interval belongs to all rates within
    1e-13 of this one, so it is narrow but not empty. O(log) evaluations of a cycle.
    """
    if page.change_rate == 0.0 or math.isinf(rate):
        return 0.0, 0.0
    most = 1.0 / page.change_rate
    if rate <= 0.0:
        return most, most
    if is_plain(page):
        value = g(page.change_rate / rate) / page.change_rate
        return value, value
    if page.silent_rate == 0.0:
        return _step_values(page, rate)
    low = _value_at_duration(page, (1.0 - _SAME) / rate)
    return low, max(low, _value_at_duration(page, (1.0 + _SAME) / rate))


@exact
def costs_at_rate(page: SignalPage, rate: float) -> tuple[float, float]:
    """Binary and harmonic cost rate, per unit importance, of the best freshness policy with this crawl rate.

    Without crawls they are 1 and infinity, for a page that never changes 0 and 0. O(log) evaluations of a cycle.
    """
    if page.change_rate == 0.0 or math.isinf(rate):
        return 0.0, 0.0
    if rate <= 0.0:
        return 1.0, math.inf
    if is_plain(page):
        x = page.change_rate / rate
        stale = h(x) / x if x > 0.0 else 0.0
        return stale, ein(x) - stale
    if math.isinf(page.signal_weight) and rate < page.signal_rate * (1.0 - _SAME):
        return 1.0 - rate / page.change_rate, math.inf
    if page.silent_rate == 0.0:
        return _mixed_step_costs(page, rate)
    signals, rest, cycle = state_at_duration(page, 1.0 / rate)
    return cycle_costs(page, signals, rest, cycle)


@exact
def is_plain(page: SignalPage) -> bool:
    """Whether the page has no signals, or such rare ones that plans need not count on them."""
    return page.signal_rate <= RARE * page.silent_rate


@exact
def _value_at_duration(page: SignalPage, duration: float) -> float:
    if math.isinf(page.signal_weight) and page.signal_rate * duration >= 1.0:
        return 1.0 / page.change_rate
    return state_at_duration(page, duration)[2].value


@exact
def _step_values(page: SignalPage, rate: float) -> tuple[float, float]:
    """The interval of values where every change is announced."""
    if rate > page.signal_rate * (1.0 + _SAME):
        return 0.0, 0.0
    if math.isinf(page.signal_weight):
        most = 1.0 / page.change_rate
        return (0.0 if rate >= page.signal_rate * (1.0 - _SAME) else most), most
    signals, share = steps_at_rate(page, rate)
    value = step_value(page, signals)
    return (min(value, step_value(page, signals - 1.0)) if share == 1.0 else value), value


@exact
def _mixed_step_costs(page: SignalPage, rate: float) -> tuple[float, float]:
    """Costs where every change is announced: two neighbouring steps, in turn."""
    if rate >= page.signal_rate * (1.0 - _SAME):
        return 0.0, 0.0
    signals, share = steps_at_rate(page, rate)
    binary, harmonic = step_costs(page, signals)
    if share == 1.0:
        return binary, harmonic
    more_binary, more_harmonic = step_costs(page, signals + 1.0)
    return share * binary + (1.0 - share) * more_binary, share * harmonic + (1.0 - share) * more_harmonic
