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
from recrawl.learning.crawl_log import check_codes, check_times
from recrawl.pages import Floats, check_number

Singles = NDArray[np.float32]

TWENTY_MINUTES = 1 / 72
"""The bins of the paper, in days."""


class HitHistograms:
    """Hits by page age of many sources. Memory: 12 bytes per source and bin; 6 kB per source for a week of 20 minutes.

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
        self.bin_width = check_number(bin_width, "bin_width")
        if self.bin_width == 0 or bins < 1:
            raise InvalidInput("must be longer than 0, and there must be a bin", field="bin_width")
        if half_life is not None and not half_life > 0:
            raise InvalidInput(f"is {half_life!r}, but must be longer than 0", field="half_life")
        self._start = float(check_times([start], "start", 1)[0])
        self._keep = 1.0 if half_life is None else 0.5 ** (self.bin_width / half_life)
        self._now = self._start
        self._steps = 0  # whole bins since the start
        self._hits: Singles = np.zeros((sources, bins), np.float32)
        self._watched: Singles = np.zeros((sources, bins), np.float32)
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
        moment = float(check_times([now], "now", 1)[0])
        if moment < self._now:
            raise InvalidInput(f"is {moment!r}, earlier than {self._now!r}: time does not go back", field="now")
        self._now = moment
        ahead = math.floor((moment - self._start) / self.bin_width) - self._steps
        for _ in range(min(ahead, self.bins + 1)):
            self._step()
        self._fade(ahead - (self.bins + 1))
        self._steps = max(self._steps, math.floor((moment - self._start) / self.bin_width))

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
        age = check_times(ages, "ages", len(codes))
        number = check_times(hits, "hits", len(codes))
        for field, column in (("ages", age), ("hits", number)):
            if (column < 0).any():
                row = int(np.argmax(column < 0))
                raise InvalidInput(f"is {float(column[row])!r}, but must be 0 or more", field=field, row=row)
        counted = age < self.bins * self.bin_width
        place = np.minimum((age[counted] / self.bin_width).astype(np.int64), self.bins - 1)
        np.add.at(self._hits, (codes[counted], place), number[counted].astype(np.float32))
        self._touched[codes[counted]] = True

    def watched(self) -> Floats:
        """Pages watched at each age, sources by bins, whatever has faded taken off; a page half through counts half."""
        part = np.float32((self._now - self._start) / self.bin_width - self._steps)
        return (self._watched + part * self._cohorts()).astype(np.float64)

    def hits(self) -> Floats:
        """Hits at each age, sources by bins."""
        return self._hits.astype(np.float64)

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
            self._hits *= np.float32(self._keep**steps)
            self._watched *= np.float32(self._keep**steps)


@kernel
def _watch_from(watched: Singles, sources: NDArray[np.int64], ages: NDArray[np.int64], pages: Singles) -> None:
    """Count pages as watched at every age they have been through."""
    for row in range(sources.size):
        for place in range(min(ages[row], watched.shape[1])):
            watched[sources[row], place] += pages[row]
