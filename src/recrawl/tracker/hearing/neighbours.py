"""Sections: pages of one folder and shape, which often change together. One found changed is a signal for the others.

A page belongs to its section from its first fetch on in this life of the tracker. Of a large section the latest pages
to be fetched are told, and a section is told again only after some time: a site that was changed as a whole is one
signal, not one for each page that shows it.
"""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

from recrawl.tracker.hearing.page_facts import Numbers
from recrawl.web.address import STORED_RULES, read_address
from recrawl.web.refusal import Refused
from recrawl.web.source_links import section_of

MOST_PAGES = 100
EVERY_S = 60.0
_NONE = -1
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
        self._of_page: NDArray[np.int32] = np.full(0, _NONE, dtype=np.int32)

    def __len__(self) -> int:
        return len(self._numbers)

    def fetched(self, page: int, url: str) -> int | None:
        """Note a page that was fetched; the number of its section. O(length of the address), amortised."""
        if page >= len(self._of_page):
            more = max(page + 1, len(self._of_page) * 3 // 2) - len(self._of_page)
            self._of_page = np.concatenate([self._of_page, np.full(more, _NONE, dtype=np.int32)])
        number = int(self._of_page[page])
        if number != _NONE:
            return number
        address = read_address(url, STORED_RULES)
        if isinstance(address, Refused):
            return None
        number = self._number(hash(section_of(address)))
        left = self._sections[number].enter(page)
        if left is not None:
            self._of_page[left] = _NONE
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
        number = int(self._of_page[page]) if page < len(self._of_page) else _NONE
        if number != _NONE:
            self._of_page[page] = _NONE
            section = self._sections[number]
            section.pages.remove(page)
            section.next = 0
            if not section.pages:
                del self._numbers[section.key]
                self._free.append(number)
