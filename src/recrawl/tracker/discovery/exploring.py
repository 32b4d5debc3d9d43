"""Which pages become sources: what the user named, what its host offers, what sources name; and their way in."""

from __future__ import annotations

from dataclasses import replace

from recrawl.store.contract import Store
from recrawl.store.rows import NewPage, PageRow, SourceRow
from recrawl.tracker.admission import Rejected, Wanted, follows, group_of, newcomer
from recrawl.tracker.desk import Desk
from recrawl.tracker.discovery.finding import Suggested, from_place, from_robots, is_found, is_named, lacking
from recrawl.tracker.discovery.market import SourceMarket
from recrawl.tracker.discovery.memory import Memory, to_bytes
from recrawl.tracker.discovery.scope import root_of, signature
from recrawl.tracker.discovery.source import Source, SourceBook
from recrawl.web.address import STORED_RULES, Address, read_address
from recrawl.web.source_links import main_page

_EXPLORE_S = 3600.0


class Explorer:
    """Makes sources.

    Args:
        store: keeps them.
        desk: settings, hosts, clock.
        book: all sources.
        market: where they compete.
    """

    def __init__(self, store: Store, desk: Desk, book: SourceBook, market: SourceMarket) -> None:
        self._store = store
        self._desk = desk
        self._book = book
        self._market = market
        self._explored: set[int] = set()  # named pages
        self._explored_at: dict[str, float] = {}  # by origin

    def is_root(self, page: PageRow) -> bool:
        """Whether the user named a page, or one that has moved here, and its site is followed."""
        named = is_named(page)
        if not named and is_found(page):
            before = self._book.at(page.source)
            named = before is not None and before.row.found_by in ("user", "import") and before.entry is None
        return named and follows(page.group, self._desk.settings)

    async def explore(self, page: PageRow) -> None:
        """Make sources of a page that the user named, and of what its host is known to offer. O(1) if it was lately."""
        address = read_address(page.url, STORED_RULES)
        rules, now = self._desk.settings.discovery, self._desk.clock.now()
        if not isinstance(address, Address):
            return
        if page.id in self._explored and now - self._explored_at.get(address.origin, 0.0) < _EXPLORE_S:
            return
        self._explored.add(page.id)
        self._explored_at[address.origin] = now
        root = root_of(address)
        if rules.hubs:
            await self.add(Suggested("hub", main_page(address), "main-page"), root, 0)
            hubs = sum(source.row.kind == "hub" and source.is_active for source in self._book.of_host(page.host))
            if hubs < max(rules.most_hubs, 1) and page.source != "import":  # lists of pages are no lists of hubs
                await self.add(Suggested("hub", address, "user"), root, 0)
        if rules.sitemaps:
            robots = self._desk.hosts.robots_of(address)
            for each in from_robots(robots, address):
                await self.add(each, root, 0)
        if not rules.hubs:  # nothing that would be read for what it names
            await self.guess(address, root, page.host)

    async def guess(self, address: Address, root: str, host: str) -> None:
        """Look where sitemaps and feeds often are, for kinds that nothing names. Once for each host."""
        kinds = {source.row.kind for source in self._book.of_host(host)}
        for each in from_place(address, lacking(kinds, self._desk.settings.discovery)):
            await self.add(each, root, 0)

    async def add(self, wanted: Suggested, root: str, depth: int) -> Source | None:
        """Make a source of an address; None if it is one, or may not be fetched."""
        desk, now = self._desk, self._desk.clock.now()
        new = newcomer(Wanted(wanted.address.url, source=wanted.found_by), desk.settings, now)
        if isinstance(new, Rejected) or self._book.at(new.url) is not None:
            return None
        plain = NewPage(new.url, new.host, new.group, 0.0, source=wanted.found_by, added_at=now, role="source")
        ((page_id, _),) = await self._store.add_pages([plain])
        memory = Memory(root=root, depth=depth, rules=signature(desk.settings.discovery), parent=wanted.parent)
        memory.said_at = wanted.changed_at
        row = SourceRow(page_id, wanted.kind, wanted.found_by, added_at=now, memory=to_bytes(memory))
        await self._store.add_sources([row])
        (page,) = await self._store.read_pages([page_id])
        if self._book.at(page.url) is not None:  # someone else was faster
            return None
        source = self.source(replace(row, memory=None), page, memory)
        self._book.put(source)
        await self.enter({page_id})
        return source

    async def adopt(self, page: PageRow) -> None:
        """Make a hub of a page that is there only for what it leads to, as those of `news` groups are."""
        address = read_address(page.url, STORED_RULES)
        if isinstance(address, Address):
            await self.add(Suggested("hub", address, page.source), root_of(address), 0)

    async def enter(self, page_ids: set[int]) -> None:
        """Put the entries of these pages into the scheduler, if they are sources that nothing holds."""
        pages = await self._store.read_pages(sorted(page_ids))
        paused = set(await self._store.paused()) if pages else set()
        for page in pages:
            keys = {("page", page.url), ("group", page.group), ("host", page.host)}
            if page.state in ("retired", "quarantined") or keys & paused:
                continue
            source = self._book.of_page(page.id)
            if source is not None:
                self._market.enter(source, page)
            elif page.role == "source":
                await self.adopt(page)

    def source(self, row: SourceRow, page: PageRow, memory: Memory) -> Source:
        """What a source is while the tracker runs."""
        group = group_of(page.url, self._desk.settings.groups)
        importance = 1.0 if group is None or group.importance is None else group.importance
        return Source(row, page.url, page.host, memory, max(importance, 1e-9))
