"""Crawls when time and noisy signals together say so: the thresholds that spend the budget best.

Freshness is the optimum of NCIS (Busa-Fekete et al. 2025) with a continuous threshold per page; harmonic staleness
with noisy signals is our own. Pages without signals get their evenly spaced optimum. A page that is always
announced, or whose signals are never wrong, jumps from one rate to another at some price: the market shares ties.
"""

from __future__ import annotations

import numpy as np

from recrawl.jit import kernel
from recrawl.pages import Floats, Objective, Pages
from recrawl.planning.draft import Draft
from recrawl.planning.laws import GIVEN
from recrawl.values.signals.page import signal_page
from recrawl.values.signals.planning import (
    freshness_costs_at_rate,
    freshness_rate_at_value,
    freshness_value_at_rate,
    harmonic_costs_at_rate,
    harmonic_rate_at_value,
    harmonic_value_at_rate,
)


def draft(pages: Pages, objective: Objective) -> Draft:
    """Draft the optimum with noisy signals."""
    recall, false_signals = signal_columns(pages)
    fill = _fill_harmonic if objective == "harmonic" else _fill_freshness

    def refill(prices: Floats, rates: Floats, slopes: Floats) -> None:
        fill(pages.importance, pages.change_rate, recall, false_signals, prices, rates, slopes)

    return Draft(GIVEN, "signals", pages.importance, pages.change_rate, refill=refill)


def signal_columns(pages: Pages) -> tuple[Floats, Floats]:
    """Recall and false signal rate of every page; zeros where no page has signals."""
    false_signals = pages.false_signals()
    if pages.recall is None or false_signals is None:
        return np.zeros(len(pages)), np.zeros(len(pages))
    return pages.recall, false_signals


def costs(pages: Pages, objective: Objective, rates: Floats) -> tuple[float, float]:
    """Harmonic and binary cost of the threshold policies that have these rates, summed over pages."""
    recall, false_signals = signal_columns(pages)
    add_up = _add_harmonic if objective == "harmonic" else _add_freshness
    binary, harmonic = add_up(pages.importance, pages.change_rate, recall, false_signals, rates)
    return harmonic, binary


@kernel
def _fill_freshness(
    importance: Floats, change_rate: Floats, recall: Floats, false_signals: Floats, prices: Floats, rates: Floats,
    slopes: Floats,
) -> None:  # fmt: skip
    for i in range(importance.size):
        rates[i], slopes[i] = 0.0, 0.0
        if importance[i] > 0.0 and change_rate[i] > 0.0:
            page = signal_page(change_rate[i], recall[i], false_signals[i])
            rates[i], slopes[i] = freshness_rate_at_value(page, prices[i] / importance[i])


@kernel
def _fill_harmonic(
    importance: Floats, change_rate: Floats, recall: Floats, false_signals: Floats, prices: Floats, rates: Floats,
    slopes: Floats,
) -> None:  # fmt: skip
    for i in range(importance.size):
        rates[i], slopes[i] = 0.0, 0.0
        if importance[i] > 0.0 and change_rate[i] > 0.0:
            page = signal_page(change_rate[i], recall[i], false_signals[i])
            rates[i], slopes[i] = harmonic_rate_at_value(page, prices[i] / importance[i])


@kernel
def _add_freshness(
    importance: Floats, change_rate: Floats, recall: Floats, false_signals: Floats, rates: Floats
) -> tuple[float, float]:
    binary, harmonic = 0.0, 0.0
    for i in range(importance.size):
        if importance[i] > 0.0 and change_rate[i] > 0.0:
            page = signal_page(change_rate[i], recall[i], false_signals[i])
            page_binary, page_harmonic = freshness_costs_at_rate(page, rates[i])
            binary += importance[i] * page_binary
            harmonic += importance[i] * page_harmonic
    return binary, harmonic


@kernel
def _add_harmonic(
    importance: Floats, change_rate: Floats, recall: Floats, false_signals: Floats, rates: Floats
) -> tuple[float, float]:
    binary, harmonic = 0.0, 0.0
    for i in range(importance.size):
        if importance[i] > 0.0 and change_rate[i] > 0.0:
            page = signal_page(change_rate[i], recall[i], false_signals[i])
            page_binary, page_harmonic = harmonic_costs_at_rate(page, rates[i])
            binary += importance[i] * page_binary
            harmonic += importance[i] * page_harmonic
    return binary, harmonic


def marginal_values(pages: Pages, objective: Objective, rates: Floats) -> tuple[Floats, Floats]:
    """The lowest and highest marginal value of a crawl at these rates (equal where the rate is no corner)."""
    recall, false_signals = signal_columns(pages)
    value_at = harmonic_value_at_rate if objective == "harmonic" else freshness_value_at_rate
    low, high = np.zeros(len(pages)), np.zeros(len(pages))
    for i in range(len(pages)):
        page = signal_page(pages.change_rate[i], recall[i], false_signals[i])
        values: tuple[float, float] = value_at(page, rates[i])
        low[i], high[i] = pages.importance[i] * np.array(values)
    return low, high
