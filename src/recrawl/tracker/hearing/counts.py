"""How many signals were heard of each page, since its last crawl and ever. Kinds that nobody hears take no room."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from recrawl.learning.trust_tracker import usual_signals
from recrawl.pages import Floats
from recrawl.tracker.hearing.kinds import MOST_KINDS, NEIGHBOUR, OTHER
from recrawl.tracker.hearing.page_facts import Numbers, PageFacts

_MOST = np.iinfo(np.uint16).max  # more say nothing new
Counts = NDArray[np.int64]


class SignalCounts:
    """Counts by kind and page; 6 bytes a page and kind, and 8 a page, once anything was heard.

    Args:
        facts: of the pages.
    """

    def __init__(self, facts: PageFacts) -> None:
        self._facts = facts
        self.kinds: list[str] = []
        self._heard: list[NDArray[np.uint16]] = []
        self._ever: list[NDArray[np.uint32]] = []  # up to the last crawl, for what is usual
        self._since: Floats = np.empty(0)  # when listening to a page began
        self.number(NEIGHBOUR)

    @property
    def nbytes(self) -> int:
        """Memory that is taken."""
        heard, ever = (sum(column.nbytes for column in columns) for columns in (self._heard, self._ever))
        return self._since.nbytes + heard + ever

    def number(self, kind: str) -> int:
        """The number of a kind, which is new if it was not heard before."""
        if kind not in self.kinds:
            if len(self.kinds) >= MOST_KINDS and kind != OTHER:
                return self.number(OTHER)
            self.kinds.append(kind)
            self._heard.append(np.zeros(0, dtype=np.uint16))
            self._ever.append(np.zeros(0, dtype=np.uint32))
        return self.kinds.index(kind)

    def add(self, kind: int, pages: Numbers, times: int | Counts = 1) -> None:
        """Count signals for different pages that have a copy. O(pages), amortised."""
        self._make_room(kind)
        column = self._heard[kind]
        column[pages] = np.minimum(column[pages].astype(np.int64) + times, _MOST)

    def of(self, page: int) -> Counts:
        """Signals heard of a page since its last crawl, by kind. O(kinds)."""
        return np.array([column[page] if page < len(column) else 0 for column in self._heard], dtype=np.int64)

    def waiting(self, kind: int, pages: Numbers) -> Counts:
        """Signals of a kind heard since the last crawl, by page. O(pages)."""
        found = np.zeros(len(pages), dtype=np.int64)
        column = self._heard[kind]
        held = pages < len(column)
        found[held] = column[pages[held]]
        return found

    def usual(self, page: int, at: float, gap: float) -> Floats:
        """Signals that a page usually has in such a time, the last one included, by kind. O(kinds)."""
        ever = np.array([
            float(ever[page]) + float(heard[page]) if page < len(ever) else 0.0
            for ever, heard in zip(self._ever, self._heard, strict=True)
        ])  # fmt: skip
        since = self._since[page] if page < len(self._since) else np.nan
        listening = at - since if since < at else gap
        return usual_signals(ever, max(listening, gap), gap)

    def crawled(self, page: int, at: float, later: Sequence[int]) -> None:
        """A copy of a page came; signals of these kinds were heard later than it was made. O(kinds)."""
        if page < len(self._since) and np.isnan(self._since[page]):
            self._since[page] = at
        for kind, (heard, ever) in enumerate(zip(self._heard, self._ever, strict=True)):
            if page < len(heard) and heard[page]:
                after = min(later.count(kind), int(heard[page]))
                ever[page] += int(heard[page]) - after
                heard[page] = after

    def _make_room(self, kind: int) -> None:
        size = len(self._facts)
        if len(self._since) < size:
            # Of pages that were there already signals count since their last copy.
            self._since = np.concatenate([self._since, self._facts.last[len(self._since) :]])
        missing = size - len(self._heard[kind])
        if missing > 0:
            self._heard[kind] = np.concatenate([self._heard[kind], np.zeros(missing, dtype=np.uint16)])
            self._ever[kind] = np.concatenate([self._ever[kind], np.zeros(missing, dtype=np.uint32)])
