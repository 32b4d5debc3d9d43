"""Floods: signals of one kind for one page that come within a moment are one."""

from __future__ import annotations

from recrawl.tracker.hearing.page_facts import Numbers

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
