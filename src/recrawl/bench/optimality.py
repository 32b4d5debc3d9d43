"""How far a plan is from the conditions every optimum meets: one number, for tests and benchmarks.

At an optimum the marginal value of a crawl equals what the page pays for it (price times cost, plus its host's
surcharge), is no more than that for a page at its floor and no less for a page at its ceiling; the budget is spent,
and no cap is exceeded. The marginal values come from the value functions, not from the laws that found the rates: a
page crawled at even intervals is crawled just when its value reaches the price.
O(pages), with temporary arrays.
"""

from __future__ import annotations

import math

import numpy as np

from recrawl.pages import Floats
from recrawl.planning.limits import even_floor, fit_limits
from recrawl.planning.plan import Plan
from recrawl.planning.signals import signal_columns
from recrawl.planning.solvers import EVEN_SHARE_KEPT, fading
from recrawl.values import freshness_value, harmonic_value, saturating_value
from recrawl.values.signals.page import signal_page
from recrawl.values.signals.planning import freshness_value_at_rate, harmonic_value_at_rate


def optimality_gap(plan: Plan) -> float:
    """The largest relative violation of the optimality conditions; 0 for a perfect plan."""
    pages, rates = plan.question.pages, plan.rates
    floor = even_floor(pages, plan.budget, EVEN_SHARE_KEPT if plan.solver == "blc-eps" else 0.0)
    limits = fit_limits(pages, plan.budget, plan.question.host_caps, floor)
    if not len(pages) or plan.budget == 0 or limits.full:
        return abs(plan.used - plan.budget) / plan.budget if limits.full else float(np.abs(rates).max(initial=0.0))
    least, most = marginal_values(plan)
    pays = _what_pages_pay(plan)
    low = limits.low if limits.low.size else np.zeros(len(pages))
    high = limits.high if limits.high.size else np.full(len(pages), math.inf)
    with np.errstate(all="ignore"):
        too_low = np.where(rates < high, (least - pays) / np.maximum(pays, 1e-300), 0.0)
        too_high = np.where(rates > low, (pays - most) / np.maximum(pays, 1e-300), 0.0)
    worst = max(float(too_low.max()), float(too_high.max()), 0.0)
    if plan.price > 0:
        worst = max(worst, abs(plan.used - plan.budget) / plan.budget)
    outside = np.maximum(low - rates, rates - high) / np.maximum(rates, 1e-300)
    return max(worst, float(outside.max()), _cap_violation(plan))


def marginal_values(plan: Plan) -> tuple[Floats, Floats]:
    """The least and most that one more crawl per unit time of each page is worth (they differ at corners).

    The least is what more crawls would bring, the most what fewer would lose. 0 for pages that no crawl helps.
    """
    pages, rates = plan.question.pages, plan.rates
    if plan.solver == "signals":
        return _signal_values(plan)
    importance, change_rate = pages.importance, pages.change_rate
    with np.errstate(all="ignore"):
        if plan.solver == "even" and plan.objective == "harmonic":
            value = harmonic_value(importance, change_rate, _intervals(rates))
        elif plan.solver == "even":
            return _fading_values(plan)
        elif plan.solver == "lambdacrawl":
            return _mixed_values(plan)
        elif plan.solver == "azar-discrete":
            value = importance * change_rate / (rates + change_rate - rates * change_rate) ** 2
            return np.where(rates < 1, _clean(value), 0.0), _clean(value)
        else:
            value = importance * change_rate / (rates + change_rate) ** 2
    return _clean(value), _clean(value)


def _fading_values(plan: Plan) -> tuple[Floats, Floats]:
    pages, rates = plan.question.pages, plan.rates
    if plan.objective == "freshness":
        value = freshness_value(pages.importance, pages.change_rate, _intervals(rates))
        return value, value
    gain, decay, windowed = fading(pages)
    value = saturating_value(gain, decay, _intervals(rates))
    if not windowed.size:
        return value, value
    with np.errstate(all="ignore"):
        step = _clean(gain / decay)
    full = rates >= decay * (1 - 1e-12)
    return np.where(windowed, np.where(full, 0.0, step), value), np.where(windowed, step, value)


def _mixed_values(plan: Plan) -> tuple[Floats, Floats]:
    pages, rates = plan.question.pages, plan.rates
    with np.errstate(all="ignore"):
        value = _clean(pages.importance * pages.change_rate / (rates * (rates + pages.change_rate)))
        announced = pages.announced()
        if announced is None:
            return value, value
        told = _clean(pages.importance / rates)
    full = rates >= pages.change_rate * (1 - 1e-12)
    least = np.where(announced, np.where(full, 0.0, told), value)
    return least, np.where(announced, np.where(rates > pages.change_rate * (1 + 1e-12), 0.0, told), value)


def _signal_values(plan: Plan) -> tuple[Floats, Floats]:
    """The lowest and highest marginal value of a crawl at these rates (equal where the rate is no corner)."""
    pages = plan.question.pages
    recall, false_signals = signal_columns(pages)
    value_at = harmonic_value_at_rate if plan.objective == "harmonic" else freshness_value_at_rate
    low, high = np.zeros(len(pages)), np.zeros(len(pages))
    for i in range(len(pages)):
        page = signal_page(pages.change_rate[i], recall[i], false_signals[i])
        values: tuple[float, float] = value_at(page, plan.rates[i])
        low[i], high[i] = pages.importance[i] * np.array(values)
    return low, high


def _intervals(rates: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return 1.0 / rates


def _clean(value: Floats) -> Floats:
    return np.nan_to_num(value, nan=0.0, posinf=math.inf)


def _what_pages_pay(plan: Plan) -> Floats:
    pages = plan.question.pages
    pays = np.full(len(pages), plan.price) if pages.cost is None else plan.price * pages.cost
    if pages.hosts is not None and plan.host_prices:
        extra = np.array([plan.host_prices.get(name, plan.price) - plan.price for name in pages.hosts.names])
        pays = pays + extra[pages.hosts.codes]
    return pays


def _cap_violation(plan: Plan) -> float:
    caps = plan.question.host_caps or {}
    used = plan.host_use
    worst = 0.0
    for name, cap in caps.items():
        if cap > 0 and used[name] > cap:
            worst = max(worst, used[name] / cap - 1)
        if name in plan.host_prices:
            worst = max(worst, abs(used[name] / cap - 1))
    return worst
