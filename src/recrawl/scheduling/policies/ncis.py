"""The discrete policies of the NCIS paper (Busa-Fekete et al. 2025): argmax under five beliefs about signals.

    greedy          ignores signals
    greedy-cis      believes every signal
    greedy-cis+     believes signals of precision above 0.7 and recall above 0.6, ignores the others
    greedy-ncis     weighs signals by what they are worth
    ncis-approx-j   the same with the first j terms of its sums only

They differ in the value function alone. All are for binary freshness with one kind of signal: a page's signals of
several kinds count as signals of average weight, and a page of harmonic objective is valued by its freshness. A
learned change rate is taken at its mean. Content sources, new pages and changes that stay for a window have no
signals and are worth what the scheduler says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recrawl.scheduling.policies.argmax import Ranked
from recrawl.scheduling.table.records import LISTENS, NO_COPY, ONCE, SOURCE, WINDOW
from recrawl.values import (
    freshness_value,
    noisy_freshness_value,
    selective_freshness_value,
    trusting_freshness_value,
)

if TYPE_CHECKING:
    from recrawl.pages import Floats
    from recrawl.scheduling.table.pages import PageTable
    from recrawl.scheduling.table.records import Slots

_MOST = 1e300  # means "infinitely much" and can still be compared


class Listening(NamedTuple):
    """What the value functions of the paper read, one entry per page; `importance` is by unit of cost."""

    importance: Floats
    change_rate: Floats
    recall: Floats
    false_signal_rate: Floats
    elapsed: Floats
    signals: Floats


class Greedy(Ranked):
    """GREEDY: freshness without signals. O(pages) per step."""

    def worth(self, slots: Slots, now: float) -> Floats:
        """Value pages that can be fresh or stale by the paper, others as the scheduler does."""
        pages = self.table.pages[slots]
        other = np.isin(pages["law"], (WINDOW, SOURCE, ONCE))
        if not other.any():
            return self._worth_of_pages(slots, now)
        worth = np.empty(len(slots))
        worth[other] = self.table.values(slots[other], now, self.price())
        worth[~other] = self._worth_of_pages(slots[~other], now)
        return worth

    def value(self, pages: Listening) -> Floats:
        """The paper's value function."""
        values: Floats = freshness_value(pages.importance, pages.change_rate, pages.elapsed)
        return values

    def _worth_of_pages(self, slots: Slots, now: float) -> Floats:
        pages = _listening(self.table, slots, now)
        worth = self.value(pages)
        missing = self.table.pages["flags"][slots] & NO_COPY != 0
        if missing.any():
            worth[missing] = _worth_of_no_copy(pages.importance[missing], pages.change_rate[missing])
        return worth


class GreedyCis(Greedy):
    """GREEDY-CIS: every signal is a change."""

    def value(self, pages: Listening) -> Floats:
        """The value to one who believes every signal."""
        values: Floats = trusting_freshness_value(
            pages.importance, pages.change_rate, pages.recall, pages.elapsed, pages.signals
        )
        return values


class GreedyCisPlus(Greedy):
    """GREEDY-CIS+: good signals are changes, others nothing."""

    def value(self, pages: Listening) -> Floats:
        """The value to one who believes good signals and ignores others."""
        values: Floats = selective_freshness_value(*pages)
        return values


class GreedyNcis(Greedy):
    """GREEDY-NCIS: signals count for what they are worth."""

    def value(self, pages: Listening) -> Floats:
        """The exact value with noisy signals."""
        values: Floats = noisy_freshness_value(*pages)
        return values


class NcisApprox(Greedy):
    """G-NCIS-APPROX-j: GREEDY-NCIS with the first `terms` terms of its sums."""

    def __init__(self, table: PageTable, budget: float, seed: int, terms: int) -> None:
        super().__init__(table, budget, seed)
        self.terms = terms

    def value(self, pages: Listening) -> Floats:
        """The value by the first terms only."""
        values: Floats = noisy_freshness_value(*pages, terms=self.terms)
        return values


def _listening(table: PageTable, slots: Slots, now: float) -> Listening:
    pages = table.pages[slots]
    recall, precision = np.zeros(len(slots)), np.ones(len(slots))
    heard = np.zeros(len(slots))
    if len(table.signals):
        listens = pages["flags"] & LISTENS != 0
        signals = table.signals[slots[listens]]
        useful = (signals["recall"] > 0) & (signals["precision"] > 0)
        recall[listens] = np.where(useful, signals["recall"], 0.0)
        precision[listens] = np.where(useful, signals["precision"], 1.0)
        heard[listens] = _whole(pages["signals"][listens])
    return Listening(
        importance=pages["gain"],
        change_rate=pages["decay"],
        recall=recall,
        false_signal_rate=recall * pages["decay"] * (1 - precision) / precision,
        elapsed=np.maximum(now - pages["last"], 0.0),
        signals=heard,
    )


def _whole(heard: Floats) -> Floats:
    """Signals of several kinds as a whole number of average ones: at least one if there was any."""
    heard = heard.astype(np.float64)
    return np.where(heard > 0, np.maximum(np.floor(heard + 0.5), 1.0), 0.0)


def _worth_of_no_copy(importance: Floats, change_rate: Floats) -> Floats:
    """A page without a copy is stale: importance/change_rate, the most that freshness can be worth."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(importance > 0, np.minimum(importance / change_rate, _MOST), 0.0)
