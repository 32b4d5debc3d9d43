"""Indexes of sitemaps: which of their sitemaps become sources, and how far what they say of them is believed.

An index that dates its sitemaps saves polls: one that has not changed is only audited. An index that drops a sitemap,
or its date, or is gone, says nothing of it any more; one that did not tell of a change is not asked about that sitemap
again. Sitemaps are taken within bounds, for an index is written by a stranger.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from recrawl.tracker.clock import DAY_S
from recrawl.tracker.desk import Desk
from recrawl.tracker.discovery.exploring import Explorer
from recrawl.tracker.discovery.finding import Suggested
from recrawl.tracker.discovery.harvest import Named
from recrawl.tracker.discovery.market import SourceMarket
from recrawl.tracker.discovery.scope import belongs
from recrawl.tracker.discovery.source import Source, SourceBook

MOST_SITEMAPS = 1000
"""Of a host."""


class Indexes:
    """Reads what indexes name.

    Args:
        desk: has the rules.
        book: all sources.
        market: is told what their word is worth.
        explorer: makes sources.
    """

    def __init__(self, desk: Desk, book: SourceBook, market: SourceMarket, explorer: Explorer) -> None:
        self._desk = desk
        self._book = book
        self._market = market
        self._explorer = explorer

    async def read(self, index: Source, named: Sequence[Named], now: float) -> Counter[str]:
        """Make sources of the sitemaps of an index, within bounds, and note what it says of those that are known.

        Returns how many were not taken, by rule.
        An index below an index is none: the protocol knows no such thing, and they could go on for ever.
        """
        memory, refused = index.memory, Counter[str]()
        if memory.parent:
            refused["nested-index"] = len(named)
            return refused
        room = MOST_SITEMAPS - sum(each.row.kind == "sitemap" for each in self._book.of_host(index.host))
        for child in named:
            known = self._book.at(child.address.url)
            if known is not None:
                self._hear_of(known, index, child.at, now)
            elif not belongs(child.address, memory.root, self._desk.settings.discovery):
                refused["out-of-scope"] += 1
            elif room <= 0:
                refused["sitemap-cap"] += 1
            else:
                room -= 1
                wanted = Suggested("sitemap", child.address, index.url, child.at, index.url)
                await self._explorer.add(wanted, memory.root, memory.depth)
        urls = {child.address.url for child in named}
        self.fall_silent(each for each in self._book.below(index) if each.url not in urls)
        return refused

    def _hear_of(self, sitemap: Source, index: Source, at: float | None, now: float) -> None:
        """Note when a sitemap changed, as its index says."""
        if at is None and sitemap.memory.parent == index.url:
            self.fall_silent([sitemap])
        elif at is not None and (sitemap.memory.said_at or 0.0) < at <= now + DAY_S and not sitemap.memory.alone:
            self._book.adopt(sitemap, index)
            sitemap.memory.said_at = at
            self._market.appraise(sitemap)

    def fall_silent(self, sitemaps: Iterable[Source]) -> None:
        """The index above says no longer when these sitemaps change: they are read for themselves again."""
        for each in list(sitemaps):
            if each.memory.said_at is not None:
                each.memory.said_at = None
                self._market.appraise(each)

    def disbelieve(self, sitemap: Source) -> None:
        """An audit found changes of which the index had not told: it is not asked about this sitemap again."""
        sitemap.memory.alone = True
        self.fall_silent([sitemap])
