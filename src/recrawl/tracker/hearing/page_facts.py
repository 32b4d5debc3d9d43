"""What hearing must know of every page: its host, and when there was last a copy. 12 bytes a page."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recrawl.pages import Floats

Numbers = NDArray[np.int64]
_NONE = -1


class PageFacts:
    """By number of the store; times are Unix seconds, NaN while there is no copy."""

    def __init__(self) -> None:
        self.last: Floats = np.full(0, np.nan)
        self.host: NDArray[np.int32] = np.full(0, _NONE, dtype=np.int32)
        self._pages: Numbers = np.zeros(0, dtype=np.int64)  # by host

    def __len__(self) -> int:
        return len(self.last)

    def enter(self, pages: Numbers, hosts: Numbers, last: Floats) -> None:
        """Note pages, by number of their host. O(pages), amortised."""
        if not len(pages):
            return
        self._make_room(int(pages.max()) + 1)
        new = self.host[pages] == _NONE
        self._count(hosts[new])
        self.host[pages] = hosts
        self.last[pages] = last

    def copied(self, page: int, at: float) -> None:
        """A copy of a page came."""
        if page < len(self):
            self.last[page] = at

    def known(self, pages: Numbers) -> Numbers:
        """Those of these pages that are known and have a copy. O(pages)."""
        pages = pages[(pages >= 0) & (pages < len(self))]
        return pages[~np.isnan(self.last[pages])]

    def pages_of(self, hosts: Numbers) -> Numbers:
        """All pages of some hosts. O(all pages), a few milliseconds a million."""
        wanted = np.zeros(int(self.host.max(initial=0)) + 2, dtype=np.bool_)
        wanted[hosts[hosts < len(wanted) - 1]] = True
        return np.flatnonzero(wanted[self.host])  # -1, no host, is the last place

    def count_of(self, host: int) -> int:
        """How many pages a host has, or had."""
        return int(self._pages[host]) if host < len(self._pages) else 0

    def _count(self, hosts: Numbers) -> None:
        size = int(hosts.max(initial=-1)) + 1
        if size > len(self._pages):
            self._pages = np.concatenate([self._pages, np.zeros(size + len(self._pages) // 2, dtype=np.int64)])
        np.add.at(self._pages, hosts, 1)

    def _make_room(self, size: int) -> None:
        if size > len(self):
            more = max(size, len(self) * 3 // 2) - len(self)
            self.last = np.concatenate([self.last, np.full(more, np.nan)])
            self.host = np.concatenate([self.host, np.full(more, _NONE, dtype=np.int32)])
