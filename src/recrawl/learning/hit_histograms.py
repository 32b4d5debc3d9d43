"""Hits of new pages by age, summed over the pages of each content source, in bounded memory.

Time runs in steps of one bin (20 minutes in the paper). Each source keeps three rows of bins: hits by the age of the
page, how many pages were watched at that age, and how many pages appeared in each of the last steps. Average hits at
an age are hits over pages watched at that age, so young pages do not pull the average of old ages down (ECHO,
Lefortier et al. 2013, section 4.2.1).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.jit import kernel
from recrawl.learning.inputs import check_amounts, check_codes, check_count, check_positive, check_real, check_times
from recrawl.learning.interest import DEFAULT_PROFIT, TWENTY_MINUTES, InterestFit, fit_interest
from recrawl.pages import Floats

Singles = NDArray[np.float32]

_MOST_BINS = 1_000_000
_MOST_HITS = 1e15  # at once: sums of many such are still exact enough
_MOST_STEPS = 2**53  # beyond, one bin more is lost in rounding


class HitHistograms:
    """Hits by page age of many sources. Memory: 20 bytes per source and bin; 10 kB per source for a week of 20 minutes.

    Args:
        sources: how many content sources; they are numbered from 0.
        start: the time at which counting begins.
        bin_width: length of a bin, in the caller's unit of time; the default is 20 minutes if that is days.
        bins: how many bins of age are kept; hits on older pages are not counted.
        half_life: time after which what was counted has lost half its weight; None if nothing is to fade.

    Call `advance` before recording what happened since: pages, then hits. Times do not go back.

    >>> histograms = HitHistograms(sources=1, start=0.0, bin_width=1.0, bins=3)
    >>> histograms.add_pages([0, 0], times=[0.0, 0.0])
    >>> histograms.add_hits([0], ages=[0.5], hits=[4])
    >>> histograms.advance(2.0)
    >>> histograms.cumulative_hits().tolist()  # two pages, watched for two bins
    [[2.0, 2.0, 2.0]]
    """

    def __init__(
        self,
        sources: int,
        start: float,
        *,
        bin_width: float = TWENTY_MINUTES,
        bins: int = 504,
        half_life: float | None = None,
    ) -> None:
        sources, bins = check_count(sources, "sources"), check_count(bins, "bins", least=1, most=_MOST_BINS)
        self.bin_width = check_positive(bin_width, "bin_width")
        life = math.inf if half_life is None else check_positive(half_life, "half_life", may_be_infinite=True)
        self._start = check_real(start, "start")
        self._keep = 0.5 ** (self.bin_width / life)
        self._now = self._start
        self._steps = 0  # whole bins since the start
        # Of millions of hits counted one by one none is lost, which single precision would not promise.
        self._hits: Floats = np.zeros((sources, bins))
        self._watched: Floats = np.zeros((sources, bins))
        self._born: Singles = np.zeros((sources, bins + 1), np.float32)  # by step of birth, the next step included
        self._touched = np.zeros(sources, np.bool_)

    def __len__(self) -> int:
        return len(self._hits)

    @property
    def bins(self) -> int:
        """How many bins of age are kept."""
        return int(self._hits.shape[1])

    @property
    def bytes_per_source(self) -> int:
        """Memory that a source takes, however many pages and hits it has had."""
        return sum(row.nbytes for row in (self._hits, self._watched, self._born)) // max(len(self), 1)

    def advance(self, now: float) -> None:
        """Let time pass. O(sources · bins) per step; a step of more than all bins costs no more than all bins."""
        moment = check_real(now, "now")
        if moment < self._now:
            raise InvalidInput(f"is {moment!r}, earlier than {self._now!r}: time does not go back", field="now")
        passed = (moment - self._start) / self.bin_width
        if passed > _MOST_STEPS:
            problem = f"is {moment!r}, more than {_MOST_STEPS:g} bins after {self._start!r}: use a larger bin_width"
            raise InvalidInput(problem, field="now")
        self._now = moment
        ahead = math.floor(passed) - self._steps
        for _ in range(min(ahead, self.bins + 1)):
            self._step()
        self._fade(ahead - (self.bins + 1))
        self._steps = max(self._steps, math.floor(passed))

    def add_pages(self, sources: Any, times: Any) -> None:
        """Count new pages: the source each was found on and when it appeared, no later than now. O(pages).

        A page that appeared before counting began is not counted: the hits of its first days are not known. Nor
        should its hits be.
        """
        codes = check_codes(sources, "sources", len(self))
        moments = check_times(times, "times", len(codes))
        if (moments > self._now).any():
            row = int(np.argmax(moments > self._now))
            raise InvalidInput(
                f"is {float(moments[row])!r}, later than {self._now!r}: advance first", field="times", row=row
            )
        place = (moments - self._start) / self.bin_width
        counted = place >= 0
        whole = np.floor(place[counted]).astype(np.int64)
        part = (place[counted] - whole).astype(np.float32)
        # A page born within a step is watched in each bin partly in one step and partly in the next.
        self._add_born(codes[counted], whole, 1 - part)
        self._add_born(codes[counted], whole + 1, part)

    def add_hits(self, sources: Any, ages: Any, hits: Any) -> None:
        """Count hits: the source of the page, its age when it was hit, how many hits. O(rows)."""
        codes = check_codes(sources, "sources", len(self))
        age = check_amounts(ages, "ages", len(codes))
        number = check_amounts(hits, "hits", len(codes), largest=_MOST_HITS)
        counted = age < self.bins * self.bin_width
        place = np.minimum((age[counted] / self.bin_width).astype(np.int64), self.bins - 1)
        np.add.at(self._hits, (codes[counted], place), number[counted])
        self._touched[codes[counted]] = True

    def watched(self) -> Floats:
        """Pages watched at each age, sources by bins, whatever has faded taken off; a page half through counts half."""
        part = (self._now - self._start) / self.bin_width - self._steps
        return self._watched + part * self._cohorts()

    def hits(self) -> Floats:
        """Hits at each age, sources by bins."""
        return self._hits.copy()

    def cumulative_hits(self) -> Floats:
        """Average hits that a page has gathered by the end of each bin; flat where no page was watched."""
        watched = self.watched()
        average = np.divide(self._hits, watched, out=np.zeros(watched.shape), where=watched > 0)
        total: Floats = np.cumsum(average, axis=1)
        return total

    def take_touched(self) -> NDArray[np.int64]:
        """The sources that had hits since this was last asked."""
        touched = np.flatnonzero(self._touched)
        self._touched[:] = False
        return touched

    def _step(self) -> None:
        """One bin of time: every page is watched for one bin more, at the age it has now."""
        self._fade(1)
        self._watched += self._cohorts()
        self._steps += 1
        self._born[:, (self._steps + 1) % (self.bins + 1)] = 0.0

    def _cohorts(self) -> Singles:
        """Pages by age: those born in this step come first."""
        ages = (self._steps - np.arange(self.bins)) % (self.bins + 1)
        return self._born[:, ages]

    def _add_born(self, sources: NDArray[np.int64], steps: NDArray[np.int64], pages: Singles) -> None:
        """Add pages to the steps in which they were born; to those past they add what was watched since."""
        kept = steps > self._steps - self.bins
        np.add.at(self._born, (sources[kept], steps[kept] % (self.bins + 1)), pages[kept])
        _watch_from(self._watched, sources, self._steps - steps, pages)

    def _fade(self, steps: int) -> None:
        if self._keep < 1 and steps > 0:
            with np.errstate(under="ignore"):
                self._hits *= self._keep**steps
                self._watched *= self._keep**steps


class Interest:
    """Profit and decay of every source, fitted anew when hits have come in.

    Args:
        histograms: the hits; the caller goes on recording there.
        default_decay: the decay of a source of which nothing is known, per unit time.
        default_profit: its profit.

    >>> histograms = HitHistograms(sources=2, start=0.0, bin_width=0.1, bins=40)
    >>> histograms.add_pages([0] * 100, times=[0.0] * 100)
    >>> histograms.advance(4.0)
    >>> ages = (np.arange(40) + 0.5) * 0.1
    >>> histograms.add_hits([0] * 40, ages, hits=500 * np.exp(-2 * ages))
    >>> interest = Interest(histograms)
    >>> fit = interest.refit()
    >>> fit.profit.round(1).tolist(), fit.decay.round(1).tolist()
    ([25.0, 0.0], [2.0, 1.0])
    """

    def __init__(
        self, histograms: HitHistograms, *, default_decay: float = 1.0, default_profit: float = DEFAULT_PROFIT
    ) -> None:
        if not isinstance(histograms, HitHistograms):
            raise InvalidInput(f"is a {type(histograms).__name__}, but must be HitHistograms", field="histograms")
        self._histograms = histograms
        # A source with no profit or no decay would never be judged again.
        self.default_decay = check_positive(default_decay, "default_decay")
        self.default_profit = check_positive(default_profit, "default_profit")
        sources = len(histograms)
        self._fit = InterestFit(np.full(sources, self.default_profit), np.full(sources, self.default_decay))

    @property
    def fit(self) -> InterestFit:
        """The latest fit."""
        return self._fit

    def refit(self, *, everything: bool = False) -> InterestFit:
        """Fit the sources that had hits since the last call, or all of them. O(bins) per source, about 80 passes.

        Pages that gather no hits lower the profit of their source only when it is fitted: ask for everything now and
        then.
        """
        touched = self._histograms.take_touched()
        rows = np.arange(len(self._histograms)) if everything else touched
        if len(rows):
            own = fit_interest(
                self._histograms.hits()[rows],
                self._histograms.watched()[rows],
                self._histograms.bin_width,
                default_decay=self.default_decay,
                default_profit=self.default_profit,
            )
            fit = InterestFit(self._fit.profit.copy(), self._fit.decay.copy())
            fit.profit[rows], fit.decay[rows] = own
            self._fit = fit
        return self._fit


@kernel
def _watch_from(watched: Floats, sources: NDArray[np.int64], ages: NDArray[np.int64], pages: Singles) -> None:
    """Count pages as watched at every age they have been through."""
    for row in range(sources.size):
        for place in range(min(ages[row], watched.shape[1])):
            watched[sources[row], place] += pages[row]
