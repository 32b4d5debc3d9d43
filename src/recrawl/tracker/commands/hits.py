"""Access logs on their way to what is known of sources: read once, in bounded memory, and counted by age of pages.

A reader of logs (`LogReader`) needs to look into the store, not to own it; what comes out is small, and is counted
by the owner of the store (`count`). Hits from before the last that was counted for a source are left out: the same
log twice changes nothing, and logs are to be given in the order of time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from recrawl.pages import Floats
from recrawl.store.store import Store
from recrawl.tracker.commands.commands import SourceHits
from recrawl.tracker.discovery.memory import Memory, from_bytes, to_bytes
from recrawl.tracker.discovery.source import is_found
from recrawl.tracker.discovery.value import BIN_S, BINS, HitCounts, count_hits, pack_counts, unpack_counts
from recrawl.tracker.signals.access_log import Hit

if TYPE_CHECKING:
    from recrawl.tracker.discovery.discovery import Discovery

_BATCH = 5000
_MOST_KNOWN = 500_000
_DAY_S = 86_400.0


@dataclass(slots=True)
class HitReport:
    """What became of hits, all numbers of hits.

    Args:
        counted: on pages that sources found.
        named: on pages that the user named, from which nothing follows for new pages.
        unknown: on addresses that are not tracked.
        earlier: from before hits that were counted already.
        sources: how many sources have pages in the log.
    """

    counted: float = 0.0
    named: float = 0.0
    unknown: float = 0.0
    earlier: float = 0.0
    sources: int = 0


@dataclass(slots=True)
class _Known:
    """A page that was hit: its source, None if it has none; when it was found; under which name it is paced."""

    source: int | None
    born: float
    host: str


@dataclass(slots=True)
class LogReader:
    """Sorts hits to sources; `read` may be called for one file after another, `counts` at the end.

    Args:
        store: to look into.
        report: what became of the hits.
    """

    store: Store
    report: HitReport = field(default_factory=HitReport)
    _pages: dict[str, _Known | None] = field(default_factory=dict)
    _sources: dict[str, int] | None = None
    _until: dict[int, float] = field(default_factory=dict)
    _hits: dict[int, Floats] = field(default_factory=dict)
    _hosts: set[str] = field(default_factory=set)
    _since: float = np.inf
    _last: float = -np.inf

    async def read(self, hits: Iterable[Hit]) -> None:
        """Take in the hits of a log. O(hits)."""
        stream = iter(hits)
        while some := list(islice(stream, _BATCH)):
            await self._look_up([hit.url for hit in some])
            for hit in some:
                self._count(hit)

    async def counts(self) -> list[SourceHits]:
        """What is to be counted, by source, with the pages that were watched. O(pages of the hosts)."""
        births: dict[int, list[float]] = {}
        for host in sorted(self._hosts):
            after = 0
            while pages := await self.store.list_pages(after, 1000, host=host):
                after = pages[-1].id
                for page in pages:
                    source = (self._sources or {}).get(page.source) if is_found(page) else None
                    if source is not None:
                        births.setdefault(source, []).append(page.added_at)
        counted = []
        for source, born in births.items():
            since = max(self._since, await self._counted_until(source))
            if since < self._last:
                watched = count_hits(born, (), since, self._last).watched
                hits = self._hits.get(source, np.zeros(BINS))
                counted.append(SourceHits(source, since, self._last, pack_counts(hits), pack_counts(watched)))
        self.report.sources = len(counted)
        return counted

    async def _look_up(self, urls: Sequence[str]) -> None:
        if self._sources is None:
            rows = await self.store.sources()
            addresses = {page.id: page.url for page in await self.store.read_pages([row.page_id for row in rows])}
            self._sources = {url: number for number, url in addresses.items()}
        if len(self._pages) > _MOST_KNOWN:
            self._pages.clear()
        new = list({url for url in urls if url not in self._pages})
        self._pages.update(dict.fromkeys(new))
        found = await self.store.find_pages(new, role="page", retired=True) if new else {}
        for page in await self.store.read_pages(list(found.values())):
            source = self._sources.get(page.source) if is_found(page) else None
            self._pages[page.url] = _Known(source, page.added_at, page.host)
            if source is not None:
                self._hosts.add(page.host)
                await self._counted_until(source)

    async def _counted_until(self, source: int) -> float:
        if source not in self._until:
            self._until[source] = from_bytes(await self.store.source_memory(source)).hits_until
        return self._until[source]

    def _count(self, hit: Hit) -> None:
        page = self._pages.get(hit.url)
        if page is not None:  # a log is about as long as what it says of pages that are known
            self._since, self._last = min(self._since, hit.at), max(self._last, hit.at)
        if page is None:
            self.report.unknown += hit.hits
        elif page.source is None:
            self.report.named += hit.hits
        elif hit.at <= self._until[page.source]:
            self.report.earlier += hit.hits
        else:
            self.report.counted += hit.hits
            age = hit.at - page.born
            place = int(max(age, 0.0) // BIN_S)  # a page is older than we know it: hits from before are its first
            if place < BINS and age > -_DAY_S:
                self._hits.setdefault(page.source, np.zeros(BINS))[place] += hit.hits


async def count(store: Store, sources: Discovery | None, counts: Sequence[SourceHits]) -> int:
    """Add hits to what is known of sources, in the store and in a tracker that runs; of how many sources."""
    async with nullcontext() if sources is None else sources.writing:
        saved = await _count(store, sources, counts)
    if sources is not None:
        sources.appraise_all()
    return saved


async def _count(store: Store, sources: Discovery | None, counts: Sequence[SourceHits]) -> int:
    rows = {row.page_id: row for row in await store.sources()}
    saved = []
    for each in counts:
        if each.page_id not in rows:
            continue
        kept = from_bytes(await store.source_memory(each.page_id))
        running = None if sources is None else sources.book.of_page(each.page_id)
        memory = kept if running is None else running.memory
        if not _add(memory, each):
            continue
        if running is not None and sources is not None:
            sources.book.counted(running)
        whole = _copy_with(memory, kept.listed)
        saved.append(replace(rows[each.page_id] if running is None else running.row, memory=to_bytes(whole)))
    if saved:
        await store.save_sources(saved)
    return len(saved)


def _add(memory: Memory, counted: SourceHits) -> bool:
    """Add counts to a memory; False if they lie before what was counted already."""
    if counted.since < memory.hits_until or not counted.until > counted.since:
        return False
    known = HitCounts(unpack_counts(memory.hits), unpack_counts(memory.watched))
    total = known + HitCounts(unpack_counts(counted.hits), unpack_counts(counted.watched))
    memory.hits, memory.watched = pack_counts(total.hits), pack_counts(total.watched)
    memory.hits_until = counted.until
    return True


def _copy_with(memory: Memory, listed: bytes) -> Memory:
    """A memory with its list, which a running tracker does not hold."""
    copied = from_bytes(to_bytes(memory))
    copied.listed = listed
    return copied
