"""The pages of the NCIS paper (Busa-Fekete et al. 2025) and their signals, by seed.

Uniform pages are those of its figures 2 to 4, 8 and 9, web pages those of figure 5, whose data are not public. A
signal is drawn first and then found true or false; the true ones are the announced changes. Silent changes are never
drawn: given crawls and signals their effect has a closed form.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from recrawl.jit import exact
from recrawl.lab.worlds.laws import web_population
from recrawl.lab.worlds.world import Events, Ints
from recrawl.pages import Floats

_SEED = 2025


class NcisPages(NamedTuple):
    """Pages with one kind of signal; rates are per unit time."""

    importance: Floats
    change_rate: Floats
    recall: Floats
    false_signal_rate: Floats

    def signal_rate(self) -> Floats:
        """All signals, true and false."""
        return self.recall * self.change_rate + self.false_signal_rate

    def precision(self) -> Floats:
        """Chance that a signal means a change."""
        return self.recall * self.change_rate / self.signal_rate()


def generator(*key: int) -> np.random.Generator:
    """The random numbers of one repetition."""
    return np.random.Generator(np.random.PCG64([_SEED, *key]))


def uniform_pages(pages: int, random: np.random.Generator) -> NcisPages:
    """Importance and change rate uniform in (0, 1), recall ~ Beta(¼, ¼), false signals uniform in (0.1, 0.6)."""
    importance, change_rate = 1.0 - random.random((2, pages))  # never 0
    return NcisPages(importance, change_rate, random.beta(0.25, 0.25, pages), random.uniform(0.1, 0.6, pages))


def web_pages(pages: int, random: np.random.Generator) -> NcisPages:
    """Pages of a web index, 4 % of them with good signals; this stands in for the data set of figure 5.

    Good signals have precision in (0.7, 1) and recall in (0.6, 1), others precision in (0.05, 0.7) and recall in
    (0, 0.6), all uniform: the paper splits its own distributions so, but shows them as a histogram only.
    """
    columns = web_population(pages, seed=int(random.integers(2**31)))
    good = columns["recall"] > 0
    precision = np.where(good, random.uniform(0.7, 1.0, pages), random.uniform(0.05, 0.7, pages))
    recall = np.where(good, random.uniform(0.6, 1.0, pages), random.uniform(0.0, 0.6, pages))
    return with_precision(columns["importance"], columns["change_rate"], recall, precision)


def with_precision(importance: Floats, change_rate: Floats, recall: Floats, precision: Floats) -> NcisPages:
    """Pages whose false signals are as many as this precision means."""
    return NcisPages(importance, change_rate, recall, recall * change_rate * (1.0 - precision) / precision)


def corrupted(pages: NcisPages, noise: Floats, share: float) -> NcisPages:
    """Mix noise into precision and recall: what a policy with imperfect estimates believes."""
    precision, recall = ((1.0 - share) * truth + share * noise for truth in (pages.precision(), pages.recall))
    return with_precision(pages.importance, pages.change_rate, recall, precision)


def signal_times(rate: Floats, horizon: float, random: np.random.Generator) -> Events:
    """Poisson signals of each page from 0 to the horizon. O(signals)."""
    number = random.poisson(rate * horizon)
    offsets = np.concatenate([[0], np.cumsum(number)])
    times = np.empty(int(offsets[-1]))
    _spread(offsets, random.standard_exponential(len(times) + len(rate)), horizon, times)
    return Events(offsets, times)


@exact
def _spread(offsets: Ints, gaps: Floats, horizon: float, times: Floats) -> None:
    """Sorted uniform times by exponential gaps, one more than there are times."""
    for page in range(offsets.size - 1):
        first = offsets[page] + page
        last = offsets[page + 1] + page
        total = 0.0
        for i in range(first, last + 1):
            total += gaps[i]
        reached = 0.0
        for i in range(first, last):
            reached += gaps[i]
            times[i - page] = horizon * (reached / total)


def announced_changes(signals: Events, precision: Floats, random: np.random.Generator) -> Events:
    """The signals that are true, each with its page's precision. O(signals)."""
    true = random.random(len(signals.times)) < np.repeat(precision, np.diff(signals.offsets))
    before = np.concatenate([[0], np.cumsum(true)])
    return Events(before[signals.offsets], signals.times[true])


def delayed(signals: Events, mean_slots: float, slot: float, random: np.random.Generator) -> Events:
    """Signals that arrive late, by a Poisson number of slots each. O(signals)."""
    arrivals = signals.times + slot * random.poisson(mean_slots, len(signals.times))
    _sort_each(signals.offsets, arrivals)
    return Events(signals.offsets, arrivals)


@exact
def _sort_each(offsets: Ints, times: Floats) -> None:
    """Sort the times of each page in place; they are nearly sorted."""
    for page in range(offsets.size - 1):
        for i in range(offsets[page] + 1, offsets[page + 1]):
            time = times[i]
            j = i
            while j > offsets[page] and times[j - 1] > time:
                times[j] = times[j - 1]
                j -= 1
            times[j] = time
