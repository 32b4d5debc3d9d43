"""Crawls when time and noisy signals together say so: the thresholds that spend the budget best.

Freshness is the optimum of NCIS (Busa-Fekete et al. 2025) with a continuous threshold per page; harmonic staleness
with noisy signals is our own. Pages without signals get their evenly spaced optimum. A page that is always
announced, or whose signals are never wrong, jumps from one rate to another at some price: the market shares ties.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from recrawl.jit import kernel
from recrawl.pages import Floats, Objective, Pages
from recrawl.planning.laws import GIVEN
from recrawl.planning.solvers import Draft
from recrawl.values.signals.page import signal_page
from recrawl.values.signals.planning import (
    freshness_costs_at_rate,
    freshness_rate_at_value,
    harmonic_costs_at_rate,
    harmonic_rate_at_value,
)


class SignalColumns(NamedTuple):
    """What the kernels read of pages."""

    importance: Floats
    change_rate: Floats
    recall: Floats
    false_signals: Floats


def draft(pages: Pages, objective: Objective) -> Draft:
    """Draft the optimum with noisy signals."""
    recall, false_signals = signal_columns(pages)
    harmonic = objective == "harmonic"

    def refill(prices: Floats, rates: Floats, slopes: Floats) -> None:
        _fill(
            harmonic, SignalColumns(pages.importance, pages.change_rate, recall, false_signals), prices, rates, slopes
        )

    return Draft(GIVEN, "signals", pages.importance, pages.change_rate, refill=refill)


def signal_columns(pages: Pages) -> tuple[Floats, Floats]:
    """Recall and false signal rate of every page; zeros where no page has signals."""
    false_signals = pages.false_signals()
    if pages.recall is None or false_signals is None:
        return np.zeros(len(pages)), np.zeros(len(pages))
    return pages.recall, false_signals


def costs(pages: Pages, objective: Objective, rates: Floats) -> tuple[float, float]:
    """Harmonic and binary cost of the threshold policies that have these rates, summed over pages."""
    columns = SignalColumns(pages.importance, pages.change_rate, *signal_columns(pages))
    binary, harmonic = _add(objective == "harmonic", columns, rates)
    return harmonic, binary


@kernel
def _fill(harmonic: bool, columns: SignalColumns, prices: Floats, rates: Floats, slopes: Floats) -> None:
    """Write rate and slope of every page at its price."""
    for i in range(columns.importance.size):
        rates[i], slopes[i] = 0.0, 0.0
        importance, change_rate = columns.importance[i], columns.change_rate[i]
        if importance > 0.0 and change_rate > 0.0:
            page = signal_page(change_rate, columns.recall[i], columns.false_signals[i])
            if harmonic:
                rates[i], slopes[i] = harmonic_rate_at_value(page, prices[i] / importance)
            else:
                rates[i], slopes[i] = freshness_rate_at_value(page, prices[i] / importance)


@kernel
def _add(harmonic: bool, columns: SignalColumns, rates: Floats) -> tuple[float, float]:
    """Add up the binary and the harmonic cost of every page at its rate."""
    binary_sum, harmonic_sum = 0.0, 0.0
    for i in range(columns.importance.size):
        importance, change_rate = columns.importance[i], columns.change_rate[i]
        if importance > 0.0 and change_rate > 0.0:
            page = signal_page(change_rate, columns.recall[i], columns.false_signals[i])
            if harmonic:
                page_binary, page_harmonic = harmonic_costs_at_rate(page, rates[i])
            else:
                page_binary, page_harmonic = freshness_costs_at_rate(page, rates[i])
            binary_sum += importance * page_binary
            harmonic_sum += importance * page_harmonic
    return binary_sum, harmonic_sum
