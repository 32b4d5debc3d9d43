"""What signals need to know of every page: its host, its last copy, what was heard since, and its section of the site.

Columns by number of the store, 12 bytes a page before anything is heard.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from recrawl.learning.trust_tracker import usual_signals
from recrawl.pages import Floats
from recrawl.tracker.kinds import MOST_KINDS, NEIGHBOUR, OTHER
from recrawl.web.feeds.sources import section_of
from recrawl.web.refused import Refused
from recrawl.web.url.address import STORED_RULES, read_address

Numbers = NDArray[np.int64]
_NO_HOST = -1


class PageFacts:
    """By number of the store; times are Unix seconds, NaN while there is no copy."""

    def __init__(self) -> None:
        self.last: Floats = np.full(0, np.nan)
        self.host: NDArray[np.int32] = np.full(0, _NO_HOST, dtype=np.int32)
        self._pages: Numbers = np.zeros(0, dtype=np.int64)  # by host

    def __len__(self) -> int:
        return len(self.last)

    def enter(self, pages: Numbers, hosts: Numbers, last: Floats) -> None:
        """Note pages, by number of their host. O(pages), amortised."""
        if not len(pages):
            return
        self._make_room(int(pages.max()) + 1)
        new = self.host[pages] == _NO_HOST
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
            self.host = np.concatenate([self.host, np.full(more, _NO_HOST, dtype=np.int32)])


MOMENT_S = 1.0


class JustHeard:
    """Pages by kind that were heard of within the last moment or two. O(what is heard in that time)."""

    def __init__(self) -> None:
        self._now: dict[str, set[int]] = {}
        self._before: dict[str, set[int]] = {}
        self._since = -1e18

    def fresh(self, pages: Numbers, kind: str, now: float) -> list[int]:
        """Those of these pages that this kind was not heard of just now. O(pages)."""
        if now - self._since >= MOMENT_S:
            self._before = self._now if now - self._since < 2 * MOMENT_S else {}
            self._now, self._since = {}, now
        known, before = self._now.setdefault(kind, set()), self._before.get(kind, set())
        fresh = [page for page in pages.tolist() if page not in known and page not in before]
        known.update(fresh)
        return fresh

    def forget(self, page: int) -> None:
        """What is heard of a page from now on is fresh: what was heard before was answered. O(kinds)."""
        for pages in (*self._now.values(), *self._before.values()):
            pages.discard(page)


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


MOST_PAGES = 100
EVERY_S = 60.0
_NO_SECTION = -1
_NOTHING = np.empty(0, dtype=np.int64)


class Section:
    """Pages of a section: a ring of those that were fetched last."""

    __slots__ = ("key", "next", "pages", "told_at")

    def __init__(self, key: int) -> None:
        self.key = key
        self.pages = array("q")
        self.next = 0
        self.told_at = -1e18

    def enter(self, page: int) -> int | None:
        """Take in a page; the one that had to make room."""
        if len(self.pages) < MOST_PAGES:
            self.pages.append(page)
            return None
        left = self.pages[self.next]
        self.pages[self.next] = page
        self.next = (self.next + 1) % MOST_PAGES
        return left


class Sections:
    """All sections with pages that were fetched; about 300 bytes a section and 12 a page."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}  # of sections, by a hash of their names
        self._sections: list[Section] = []
        self._free: list[int] = []  # numbers of sections whose pages have all left
        self._of_page: NDArray[np.int32] = np.full(0, _NO_SECTION, dtype=np.int32)

    def __len__(self) -> int:
        return len(self._numbers)

    def fetched(self, page: int, url: str) -> int | None:
        """Note a page that was fetched; the number of its section. O(length of the address), amortised."""
        if page >= len(self._of_page):
            more = max(page + 1, len(self._of_page) * 3 // 2) - len(self._of_page)
            self._of_page = np.concatenate([self._of_page, np.full(more, _NO_SECTION, dtype=np.int32)])
        number = int(self._of_page[page])
        if number != _NO_SECTION:
            return number
        address = read_address(url, STORED_RULES)
        if isinstance(address, Refused):
            return None
        number = self._number(hash(section_of(address)))
        left = self._sections[number].enter(page)
        if left is not None:
            self._of_page[left] = _NO_SECTION
        self._of_page[page] = number
        return number

    def _number(self, key: int) -> int:
        number = self._numbers.get(key)
        if number is not None:
            return number
        if self._free:
            number = self._free.pop()
            self._sections[number] = Section(key)
        else:
            number = len(self._sections)
            self._sections.append(Section(key))
        self._numbers[key] = number
        return number

    def neighbours(self, number: int, page: int, now: float) -> Numbers:
        """The other pages of a section, if it is time to tell them that one has changed. O(pages of the section)."""
        section = self._sections[number]
        if len(section.pages) < 2 or now - section.told_at < EVERY_S:
            return _NOTHING
        section.told_at = now
        others: Numbers = np.array(section.pages, dtype=np.int64)
        return np.delete(others, np.flatnonzero(others == page))

    def drop(self, page: int) -> None:
        """A page is tracked no longer. O(pages of its section)."""
        number = int(self._of_page[page]) if page < len(self._of_page) else _NO_SECTION
        if number != _NO_SECTION:
            self._of_page[page] = _NO_SECTION
            section = self._sections[number]
            section.pages.remove(page)
            section.next = 0
            if not section.pages:
                del self._numbers[section.key]
                self._free.append(number)
