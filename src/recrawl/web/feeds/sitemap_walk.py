"""Walking sitemap indexes to their sitemaps: which file to fetch next, and when to stop.

No IO: the caller fetches what `next_file` names and hands the parsed file to `found`. A file is read once, however
often it is named; depth, files and addresses are capped, and a cap that was hit is told.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from recrawl.web.feeds.sitemap import Sitemap, SitemapEntry


@dataclass(frozen=True, slots=True)
class WalkLimits:
    """Caps for one site: levels of indexes, files, addresses; whether files of other hosts are followed."""

    max_depth: int = 10
    max_files: int = 1_000
    max_entries: int = 1_000_000
    follow_foreign: bool = False


@dataclass(slots=True)
class SitemapWalk:
    """The state of one walk. Memory: one entry for each file, none for pages.

    >>> walk = SitemapWalk(["https://example.com/sitemap.xml"])
    >>> walk.next_file(), walk.next_file()
    ('https://example.com/sitemap.xml', None)
    """

    start: Iterable[str]
    limits: WalkLimits = field(default_factory=WalkLimits)
    problems: list[str] = field(default_factory=list)
    entries_seen: int = 0
    _depths: dict[str, int] = field(default_factory=dict)
    _waiting: deque[str] = field(default_factory=deque)

    def __post_init__(self) -> None:
        for url in self.start:
            self._offer(url, 1)

    def next_file(self) -> str | None:
        """The address of the next sitemap file to fetch, or None when the walk is over."""
        return self._waiting.popleft() if self._waiting else None

    def found(self, url: str, sitemap: Sitemap) -> tuple[SitemapEntry, ...]:
        """Take in a fetched file: an index queues its files, a list of pages is given back, cut at the cap."""
        if sitemap.kind == "index":
            for entry in sitemap.entries:
                if self.limits.follow_foreign or not entry.foreign:
                    self._offer(entry.url, self._depths.get(url, 1) + 1)
            return ()
        room = self.limits.max_entries - self.entries_seen
        kept = tuple(entry for entry in sitemap.entries if self.limits.follow_foreign or not entry.foreign)[:room]
        self.entries_seen += len(kept)
        if self.entries_seen >= self.limits.max_entries:
            self._waiting.clear()
            self._tell(f"the sitemaps hold more than {self.limits.max_entries} addresses; the rest is not read")
        return kept

    def _offer(self, url: str, depth: int) -> None:
        if url in self._depths:
            return
        if depth > self.limits.max_depth:
            self._tell(f"sitemap indexes are nested more than {self.limits.max_depth} deep; the rest is not read")
        elif len(self._depths) >= self.limits.max_files:
            self._tell(f"there are more than {self.limits.max_files} sitemap files; the rest is not read")
        else:
            self._depths[url] = depth
            self._waiting.append(url)

    def _tell(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)
