"""Which pages become sources: what the user named, what its host offers, what sources name; and their way in.

Feeds and sitemaps that pages name are found when the pages are read (`reading.py`). A found page that is one link away
from a named page and a few days old is read for links too: a page that is new is an article; one that stays and is
linked from the main page is likely a section, whose links change (ECHO, Lefortier et al. 2013). What it yields shows
whether it was worth it: pages without yield retire.

An index of sitemaps that dates them saves polls: one that has not changed is only audited. An index that drops a
sitemap, or its date, or is gone, says nothing of it any more; one that did not tell of a change is not asked about that
sitemap again. Sitemaps are taken within bounds, for an index is written by a stranger.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from recrawl.store.rows import NewPage, PageRow, SourceKind, SourceRow
from recrawl.store.store import Store
from recrawl.tracker.admission import PageRequest, Rejected, admit, follows, group_of, is_held
from recrawl.tracker.clock import DAY_S, TrackerClock
from recrawl.tracker.discovery.ingest import belongs, root_of, signature
from recrawl.tracker.discovery.memory import Memory, to_bytes
from recrawl.tracker.discovery.reading import Named
from recrawl.tracker.discovery.source import USUAL_PLACE, Source, SourceBook, is_found, is_named, waits_s, worth_of
from recrawl.tracker.discovery.value import differs
from recrawl.tracker.hosts import HostBook
from recrawl.tracker.schedule import Schedule
from recrawl.tracker.settings.settings import DiscoveryRules, Settings
from recrawl.web.feeds.sources import main_page, sources_of_robots, usual_places
from recrawl.web.robots.entry import RobotsEntry
from recrawl.web.url.address import STORED_RULES, Address, read_address


class SourceMarket:
    """Enters sources, and tells the scheduler what they are worth.

    Args:
        schedule: where they compete.
        book: all sources.
        rules: of discovery.
        clock: of the tracker.
    """

    def __init__(self, schedule: Schedule, book: SourceBook, rules: DiscoveryRules, clock: TrackerClock) -> None:
        self._schedule = schedule
        self._book = book
        self._rules = rules
        self._clock = clock
        self._bounds: dict[int, tuple[float, float]] = {}  # by page: the waits that were told

    def enter(self, source: Source, page: PageRow) -> None:
        """Let a source compete. O(1)."""
        if self._schedule.has_source(page.id):
            return
        worth = worth_of(source, self._book, self._rules, self._clock.now())
        waits = waits_s(source, self._rules)
        self._schedule.enter_source(page, worth, waits)
        source.told = worth
        source.held_until, source.failures = page.not_before or 0.0, page.failures
        self._hold(source)
        self._bounds[source.row.page_id] = waits

    def appraise(self, source: Source) -> None:
        """Tell the scheduler what a source is worth now, if that is not what it was told. O(1)."""
        page_id, now = source.row.page_id, self._clock.now()
        if not self._schedule.has_source(page_id):
            return
        worth = worth_of(source, self._book, self._rules, now)
        waits = waits_s(source, self._rules)
        same = source.told is not None and not differs(source.told, worth)
        if same and self._bounds.get(page_id) == waits:
            return
        self._schedule.update_source(page_id, worth, waits)
        source.told = worth
        self._bounds[page_id] = waits
        if source.held_until > now:  # an update has let go of it
            self._hold(source)

    def _hold(self, source: Source) -> None:
        """Keep a source from being polled too soon; one in flight is held when it lands."""
        if source.failures or source.held_until:
            self._schedule.hold_source(source.row.page_id, source.failures, source.held_until or None)


class SourceCandidate(NamedTuple):
    """A source to be.

    Args:
        kind: what it seems to be.
        address: where it is.
        found_by: how it came to be known: `user`, `main-page`, `robots`, `usual-place`, or the address of a source.
        changed_at: when the index that names it says that it changed.
        parent: the address of that index.
    """

    kind: SourceKind
    address: Address
    found_by: str
    changed_at: float | None = None
    parent: str = ""


def from_robots(robots: RobotsEntry | None, page: Address) -> list[SourceCandidate]:
    """The sitemaps that the robots.txt of a host names."""
    if robots is None:
        return []
    return [SourceCandidate("sitemap", link.address, "robots") for link in sources_of_robots(robots.answer, page)]


def lacking(kinds: Collection[SourceKind], rules: DiscoveryRules) -> list[SourceKind]:
    """Kinds of lists that are to be read, and of which a host has none."""
    wanted: list[tuple[SourceKind, bool]] = [("sitemap", rules.sitemaps), ("feed", rules.feeds)]
    return [kind for kind, is_read in wanted if is_read and kind not in kinds]


def from_place(page: Address, kinds: Collection[SourceKind]) -> list[SourceCandidate]:
    """Where such lists often are."""
    return [SourceCandidate(link.kind, link.address, USUAL_PLACE) for link in usual_places(page) if link.kind in kinds]


_EXPLORE_S = 3600.0


@dataclass(kw_only=True)
class SourceFinder:
    """Makes sources.

    Args:
        store: keeps them.
        schedule: has those that are read.
        hosts: know what robots.txt names.
        book: all sources.
        market: where they compete.
        settings: of the tracker.
        clock: of the tracker.
    """

    store: Store
    schedule: Schedule
    hosts: HostBook
    book: SourceBook
    market: SourceMarket
    settings: Settings
    clock: TrackerClock

    def __post_init__(self) -> None:
        self._explored: set[int] = set()  # named pages
        self._explored_at: dict[str, float] = {}  # by origin

    def is_root(self, page: PageRow) -> bool:
        """Whether the user named a page, or one that has moved here, and its site is followed."""
        named = is_named(page)
        if not named and is_found(page):
            before = self.book.at(page.source)
            named = (
                before is not None
                and before.row.found_by in ("user", "import")
                and not self.schedule.has_source(before.row.page_id)
            )
        return named and follows(page.group, self.settings)

    async def explore(self, page: PageRow) -> None:
        """Make sources of a page that the user named, and of what its host is known to offer. O(1) if it was lately."""
        address = read_address(page.url, STORED_RULES)
        rules, now = self.settings.discovery, self.clock.now()
        if not isinstance(address, Address):
            return
        if page.id in self._explored and now - self._explored_at.get(address.origin, 0.0) < _EXPLORE_S:
            return
        self._explored.add(page.id)
        self._explored_at[address.origin] = now
        root = root_of(address)
        wanted: list[SourceCandidate] = []
        if rules.hubs:
            await self.add([SourceCandidate("hub", main_page(address), "main-page")], root, 0)
            hubs = sum(source.row.kind == "hub" and source.is_active for source in self.book.of_host(page.host))
            if hubs < max(rules.most_hubs, 1) and page.source != "import":  # lists of pages are no lists of hubs
                wanted.append(SourceCandidate("hub", address, "user"))
        if rules.sitemaps:
            wanted += from_robots(self.hosts.robots_of(address), address)
        await self.add(wanted, root, 0)
        if not rules.hubs:  # nothing that would be read for what it names
            await self.guess(address, root, page.host)

    async def guess(self, address: Address, root: str, host: str) -> None:
        """Look where sitemaps and feeds often are, for kinds that nothing names. Once for each host."""
        kinds = {source.row.kind for source in self.book.of_host(host)}
        await self.add(from_place(address, lacking(kinds, self.settings.discovery)), root, 0)

    async def add(self, wanted: Sequence[SourceCandidate], root: str, depth: int) -> None:
        """Make sources of addresses of one site, but for those that are sources or may not be fetched."""
        await self.add_all([(each, root, depth) for each in wanted])

    async def add_all(self, wanted: Iterable[tuple[SourceCandidate, str, int]]) -> None:
        """Make sources of addresses, each with the root of its site and its depth, in a handful of store calls."""
        now, rules = self.clock.now(), signature(self.settings.discovery)
        pages: dict[str, NewPage] = {}
        memories: dict[str, tuple[SourceCandidate, Memory]] = {}
        for each, root, depth in wanted:
            new = admit(PageRequest(each.address.url, source=each.found_by), self.settings, now)
            if isinstance(new, Rejected) or new.url in pages or self.book.at(new.url) is not None:
                continue
            page = NewPage(new.url, new.host, new.group, 0.0, source=each.found_by, added_at=now, role="source")
            pages[new.url] = page
            memories[new.url] = (
                each,
                Memory(root=root, depth=depth, rules=rules, parent=each.parent, said_at=each.changed_at),
            )
        if not pages:
            return
        ids = [page_id for page_id, _ in await self.store.add_pages(list(pages.values()))]
        rows = {
            page_id: SourceRow(page_id, each.kind, each.found_by, added_at=now, memory=to_bytes(memory))
            for page_id, (each, memory) in zip(ids, memories.values(), strict=True)
        }
        await self.store.add_sources(list(rows.values()))
        known = await self.store.read_pages(ids)
        for row in known:
            if self.book.at(row.url) is None:  # else someone else was faster
                self.book.put(self.source(replace(rows[row.id], memory=None), row, memories[row.url][1]))
        await self._enter(known)

    async def enter(self, page_ids: set[int]) -> None:
        """Put the entries of these pages into the scheduler, if they are sources that nothing holds."""
        await self._enter(await self.store.read_pages(sorted(page_ids)))

    async def _enter(self, pages: Sequence[PageRow]) -> None:
        paused = set(await self.store.paused()) if pages else set()
        new: list[tuple[SourceCandidate, str, int]] = []
        for page in pages:
            if is_held(page, paused):
                continue
            source = self.book.of_page(page.id)
            address = read_address(page.url, STORED_RULES)
            if source is not None:
                self.market.enter(source, page)
            elif page.role == "source" and isinstance(address, Address):
                # It is there only for what it leads to, as those of `news` groups are.
                new.append((SourceCandidate("hub", address, page.source), root_of(address), 0))
        if new:
            await self.add_all(new)

    def source(self, row: SourceRow, page: PageRow, memory: Memory) -> Source:
        """What a source is while the tracker runs."""
        group = group_of(page.url, self.settings.groups)
        importance = 1.0 if group is None or group.importance is None else group.importance
        return Source(row, page.url, page.host, memory, max(importance, 1e-9))


_BATCH = 1000


async def hubs_among(
    store: Store, book: SourceBook, settings: Settings, now: float
) -> list[tuple[SourceCandidate, str, int]]:
    """Pages that are to become hubs, with root and depth. O(pages of the hosts that have room for hubs)."""
    rules = settings.discovery
    if not rules.hubs or rules.depth < 2:
        return []
    chosen = []
    for host in sorted({source.host for source in book if source.row.kind == "hub" and source.memory.depth == 0}):
        room = rules.most_hubs - sum(each.row.kind == "hub" and each.is_active for each in book.of_host(host))
        after = 0
        while room > 0 and (pages := await store.list_pages(after, _BATCH, host=host)):
            after = pages[-1].id
            for page in pages:
                parent = book.at(page.source)
                if room <= 0 or not is_found(page) or parent is None or book.of_page(page.id) is not None:
                    continue
                old = page.visits > 0 and page.state == "active" and now - page.added_at >= rules.hub_age_s
                address = read_address(page.url, STORED_RULES)
                near = parent.row.kind == "hub" and parent.memory.depth == 0 and follows(page.group, settings)
                if old and near and isinstance(address, Address):
                    chosen.append((SourceCandidate("hub", address, parent.url), parent.memory.root, 1))
                    room -= 1
    return chosen


MOST_SITEMAPS = 1000
"""Of a host."""


class Indexes:
    """Reads what indexes name.

    Args:
        rules: of discovery.
        book: all sources.
        market: is told what their word is worth.
        explorer: makes sources.
    """

    def __init__(self, rules: DiscoveryRules, book: SourceBook, market: SourceMarket, explorer: SourceFinder) -> None:
        self._rules = rules
        self._book = book
        self._market = market
        self._explorer = explorer

    async def read(self, index: Source, named: Sequence[Named], now: float) -> Counter[str]:
        """Make sources of the sitemaps of an index, within bounds, and note what it says of those that are known.

        Returns how many were not taken, by rule.
        An index named by an index is ignored: the sitemap protocol forbids nesting, and it could recurse without end.
        """
        memory, refused = index.memory, Counter[str]()
        if memory.parent:
            refused["nested-index"] = len(named)
            return refused
        new: list[SourceCandidate] = []
        room = MOST_SITEMAPS - sum(each.row.kind == "sitemap" for each in self._book.of_host(index.host))
        for child in named:
            known = self._book.at(child.address.url)
            if known is not None:
                self._hear_of(known, index, child.at, now)
            elif not belongs(child.address, memory.root, self._rules):
                refused["out-of-scope"] += 1
            elif room <= 0:
                refused["sitemap-cap"] += 1
            else:
                room -= 1
                new.append(SourceCandidate("sitemap", child.address, index.url, child.at, index.url))
        await self._explorer.add(new, memory.root, memory.depth)
        urls = {child.address.url for child in named}
        self.fall_silent(each for each in self._book.below(index) if each.url not in urls)
        return refused

    def _hear_of(self, sitemap: Source, index: Source, at: float | None, now: float) -> None:
        """Note when a sitemap changed, as its index says."""
        if at is None and sitemap.memory.parent == index.url:
            self.fall_silent([sitemap])
        elif at is not None and (sitemap.memory.said_at or 0.0) < at <= now + DAY_S and not sitemap.memory.alone:
            self._book.adopt(sitemap, index)
            sitemap.memory.said_at, sitemap.news_at = at, now
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
