"""Finds sources, reads them when they are fetched, and keeps what they bring: pages, signals, further sources.

    page that the user named ──> its host: main page, robots.txt, named feeds, usual places ──> sources
    source that was fetched ──> read (`reading.py`) ──> pages and signals (`ingest.py`) ──> its worth (`value.py`)

What a source remembers is written in the transaction of its fetch; pages that it
led to are added before, and adding twice is adding once, so a crash between the two loses nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass, replace

from recrawl.errors import StoreError
from recrawl.log import room_log
from recrawl.store.rows import NewChange, PageEdit, PageRow, SourceRow
from recrawl.store.store import Store
from recrawl.tracker.admission import any_follows
from recrawl.tracker.clock import DAY_S, TrackerClock
from recrawl.tracker.discovery.finder import Indexes, SourceCandidate, SourceFinder, SourceMarket, hubs_among
from recrawl.tracker.discovery.ingest import DAY_CAP, Add, Ingest, Taken, signature
from recrawl.tracker.discovery.memory import (
    NOTHING,
    SeenUrls,
    from_bytes,
    hashes_of,
    pack_listed,
    read_memories,
    to_bytes,
    unpack_listed,
    without,
)
from recrawl.tracker.discovery.reading import Read, SourceReader
from recrawl.tracker.discovery.source import (
    USUAL_PLACE,
    Source,
    SourceBook,
    after_poll,
    idle_reason,
    interest_of,
    is_found,
    kinds_of_source,
    note_changes,
    note_first_fetch,
)
from recrawl.tracker.discovery.value import at_age
from recrawl.tracker.discovery.websub import Subscriptions
from recrawl.tracker.hosts import HostBook
from recrawl.tracker.schedule import Schedule
from recrawl.tracker.settings.settings import Settings
from recrawl.tracker.signals.signals import SignalTracker
from recrawl.tracker.usage import Usage
from recrawl.tracker.visit import LONGEST_FRESH_S, Visit, says_missing
from recrawl.web.change.digests import raw_digest
from recrawl.web.fetch.protocol import Channel
from recrawl.web.url.address import STORED_RULES, Address, read_address

_LOG = room_log("tracker")
NOT_FETCHED = "could not be fetched"
UNUSABLE = "unusable-address"
"""The rule under which entries without an address that may be tracked are counted."""
_TEND_S = 60.0
_PROMOTE_S = 3600.0
_ENOUGH_AUDITS = 5.0  # with signals of a kind, before it is called useless
_SMALL_BYTES = 16_384
_WRITE_EVERY = 8  # polls that brought nothing, of a source with a long list


@dataclass(kw_only=True)
class Discovery:
    """The sources of a tracker.

    The tracker calls it at three places: `read` while a page is in flight, `completed` when the scheduler was told how
    the visit ended, and `tend` now and then. Where no site is followed it has no sources, and all three do nothing.

    Args:
        store: keeps them.
        schedule: where they compete.
        hosts: of the tracker.
        signals: told which pages have changed.
        writing: held by those who read what a source remembers, and write it: a poll may be written beside.
        usage: charged for requests to hubs.
        settings: of the tracker.
        clock: of the tracker.
        add: tracks pages from now on.
    """

    store: Store
    schedule: Schedule
    hosts: HostBook
    signals: SignalTracker
    writing: asyncio.Lock
    usage: Usage
    settings: Settings
    clock: TrackerClock
    add: Add

    def __post_init__(self) -> None:
        settings, clock = self.settings, self.clock
        self.book = SourceBook()
        self.market = SourceMarket(self.schedule, self.book, settings.discovery, clock)
        self._explorer = SourceFinder(
            store=self.store,
            schedule=self.schedule,
            hosts=self.hosts,
            book=self.book,
            market=self.market,
            settings=settings,
            clock=clock,
        )
        self._intake = Ingest(self.store, self.hosts, self.book, settings, clock, self.add)
        self._indexes = Indexes(settings.discovery, self.book, self.market, self._explorer)
        self._reader = SourceReader(settings.address_rules)
        self.subscriptions = Subscriptions(settings, self.book, self.usage, clock)
        self._missing: list[tuple[Source, str]] = []  # to be retired at the next occasion
        self._retiring = asyncio.Lock()  # by one caller at a time
        self._tended_at = self._promoted_at = clock.now()
        self._beside: asyncio.Task[None] | None = None
        self.enabled = any_follows(settings)
        """Whether any site is followed; else there are no sources, and nothing is done."""

    @property
    def refused(self) -> dict[str, int]:
        """Addresses that were not taken, by rule."""
        return self.book.refused

    # hooks of the loop

    async def load(self) -> None:
        """Enter the sources of the store into the scheduler; the pages are there already."""
        if not self.enabled:
            return
        rows = {row.page_id: row for row in await self.store.sources()}
        pages = {page.id: page for page in await self.store.read_pages(list(rows))}
        async for page_id, memory in read_memories(self.store, [page_id for page_id in rows if page_id in pages]):
            memory.listed = b""  # read again when it is needed
            self.book.put(self._explorer.source(rows[page_id], pages[page_id], memory))
        after = 0
        while loaded := await self.store.list_pages(after, 1000, role="source"):
            after = loaded[-1].id
            await self.enter({page.id for page in loaded})
        await self.enter({page_id for page_id in rows if not self.schedule.has_source(page_id)})
        await self._value_once()
        self.subscriptions.load()

    def channel_of(self, page: PageRow) -> Channel:
        """How a page is fetched."""
        source = self.book.of_page(page.id) if self.enabled and page.role == "source" else None
        return "page" if source is None or source.row.kind == "hub" else source.row.kind

    async def read(self, visit: Visit) -> None:
        """Read the page of an examined visit if it is a source: add what it leads to, tell what it signals.

        Fills the row of the source, which goes into the transaction of the visit. To be called while the page is in
        flight, so that a crash loses nothing: what is added twice is added once.
        """
        if not self.enabled:
            return
        try:
            visit.source = await self._read(visit)
        except StoreError:
            raise
        except Exception:  # a source that cannot be read is still a page
            _LOG.exception("%s could not be read as a source", visit.page.url)

    async def _read(self, visit: Visit) -> SourceRow | None:
        page, now = visit.page, self.clock.now()
        source = self.book.of_page(page.id)
        if visit.verdict is None:
            return None if source is None else await self._not_fetched(source, visit, now)
        if self._explorer.is_root(page):
            await self._explorer.explore(page)
            source = self.book.of_page(page.id)
        return None if source is None else await self._poll(source, visit, now)

    async def _not_fetched(self, source: Source, visit: Visit, now: float) -> SourceRow | None:
        """Note why a sitemap or feed could not be fetched; return the row to be written, None if it says so already."""
        problem = f"{NOT_FETCHED}: {visit.outcome}{f', {visit.reason}' if visit.reason else ''}"
        guessed = source.row.found_by == USUAL_PLACE and not source.row.polls
        if source.row.kind == "hub" or visit.outcome == "deferred" or guessed or source.memory.problem == problem:
            return None
        self.book.was_read(source, problem, source.memory.refused, now)
        return _with_memory(source, from_bytes(await self.store.source_memory(source.row.page_id)).listed)

    def latest(self, row: SourceRow) -> SourceRow:
        """A row that `read` gave, as it is by now: hits and subscriptions may have come since. O(bytes)."""
        source = self.book.of_page(row.page_id)
        return row if source is None or row.memory is None else _with_memory(source, from_bytes(row.memory).listed)

    def completed(self, visit: Visit) -> None:
        """Note that a source is not there, that its page has left, or whether a page that it found is there.

        The scheduler was told, also of the other entry of the page. If the page was retired, its entries have left.
        """
        if not self.enabled:
            return
        after, seen = visit.row, visit.seen
        self._note_first(visit, missing=says_missing(seen.outcome))
        source = self.book.of_page(visit.page.id)
        if source is None:
            return
        source.held_until, source.failures = after.not_before or 0.0, after.failures
        if visit.settle_as == "retired":
            self._missing.append((source, after.reason or "its page is no longer tracked"))
        elif source.is_active and says_missing(seen.outcome):
            guessed = source.row.found_by == USUAL_PLACE and not source.row.polls
            if guessed or after.state == "removed":
                self._missing.append((source, "is not there" if guessed else "is gone"))

    def _note_first(self, visit: Visit, *, missing: bool) -> None:
        """Note what the first fetch of a found page says of its source; it is written with the next poll of that."""
        page = visit.page
        finder = self.book.at(page.source) if is_found(page) else None
        if finder is None or page.attempted_at is not None:
            return
        if missing or visit.row.fetched_at is not None:
            note_first_fetch(finder.memory, not missing)

    async def enter(self, page_ids: set[int]) -> None:
        """Put the entries of these pages into the scheduler, if they are sources that nothing holds."""
        if self.enabled:
            await self._explorer.enter(page_ids)

    def close(self) -> None:
        """End what runs beside."""
        self._reader.close()
        if self._beside is not None:
            self._beside.cancel()

    async def tend(self, *, at_once: bool = False) -> None:
        """What is due by itself: sources that are gone, hubs among older pages, subscriptions, worth. Now and then."""
        if not self.enabled:
            return
        now = self.clock.now()
        async with self._retiring:
            while self._missing:
                await self.retire(*self._missing[0])
                del self._missing[0]
        if now - self._tended_at < _TEND_S and not at_once:
            return
        self._tended_at = now
        self.appraise_all()
        if self._beside is None or self._beside.done():
            self._beside = asyncio.create_task(self._tend_beside(promote=at_once))
        if at_once:
            await self._beside

    def appraise_all(self) -> None:
        """Tell the scheduler what sources are worth, where that has changed. O(sources)."""
        for source in self.book:
            self._trust(source)
            self.market.appraise(source)

    async def _tend_beside(self, *, promote: bool) -> None:
        """What takes its time, and may not hold up others: asking hubs of WebSub, looking for hubs among pages."""
        now = self.clock.now()
        await self._try("renewing subscriptions", self._tend_subscriptions(now))
        if promote or now - self._promoted_at >= _PROMOTE_S:
            await self._try("looking for pages that are hubs", self._promote(now))

    async def _try(self, what: str, work: Awaitable[None]) -> None:
        """Do what is tried again a minute later if it fails, and say why it did."""
        try:
            await work
        except StoreError as error:
            _LOG.warning("%s waits for the store: %s", what, error)
        except Exception:
            _LOG.exception("%s ended in an error that should not be", what)

    async def _tend_subscriptions(self, now: float) -> None:
        await self.subscriptions.tend(now)
        await self._save_subscriptions()

    async def _promote(self, now: float) -> None:
        await self._explorer.add_all(await hubs_among(self.store, self.book, self.settings, now))
        self._promoted_at = now

    # reading

    async def _poll(self, source: Source, visit: Visit, now: float) -> SourceRow:
        """Read a source, keep what it brings, and say what is to be written of it."""
        page, result = visit.page, visit.answer
        kept = from_bytes(await self.store.source_memory(source.row.page_id)).listed
        taken, listed = Taken(), None
        digest = raw_digest(result.body) if result.has_page else b""
        if result.has_page and not self._was_read(source, digest):
            before = self._listed(source, kept)
            read = await self._reader.read(source.row, result, before, now)
            taken = await self._keep(source, page, read, now)
            listed = without(read.findings.listed, hashes_of(taken.put_off))
            source.memory.digest = b"" if taken.put_off else digest
        elif source.memory.problem.startswith(NOT_FETCHED):
            self.book.was_read(source, "", source.memory.refused, now)
        self._tell(source, taken, now)
        if (taken.found or taken.changed) and source.memory.said_at is not None and not source.has_news:
            self._indexes.disbelieve(source)
        after_poll(source, now, len(taken.found), len(taken.changed), len(result.body), visit.began_at)
        is_list = source.row.kind != "hub"
        respected = is_list or self.settings.respect_max_age
        source.memory.fresh_s = min(result.fresh_for_s, LONGEST_FRESH_S) if respected else 0.0
        useful = bool(taken.found or taken.changed)
        if useful and not source.is_active:
            source.row = replace(source.row, state="active", reason="")
        reason = idle_reason(source, self.settings.discovery, now)
        if reason:
            await self._say_retired(source, reason, now)
        self._trust(source)
        self.market.appraise(source)
        if listed is not None:
            kept = pack_listed(listed)
        elif len(kept) > _SMALL_BYTES and source.row.polls % _WRITE_EVERY:
            return source.row  # a long list that stays is not written again each time; this poll brought nothing
        return _with_memory(source, kept)

    def _tell(self, source: Source, taken: Taken, now: float) -> None:
        """Tell of tracked pages that have changed."""
        pushed = source.memory.pushed_at > source.polled_at
        kind = "websub" if pushed else "feed" if source.row.kind == "feed" else "sitemap"
        if taken.changed:
            self.signals.heard(list(taken.changed), kind, now)
            note_changes(source.memory, taken.gains)

    async def _keep(self, source: Source, page: PageRow, read: Read, now: float) -> Taken:
        """Bring what was read to the store, and to what is known of further sources."""
        taken = await self._intake.take_in(source, read.findings)
        memory, rules = source.memory, self.settings.discovery
        self._value_found(source, taken.found)
        refused = taken.refused + await self._name(source, read, now)
        if memory.rules == signature(rules) and not read.findings.children:
            # A list names each address once, but what waits for another day is offered again, as is all of an index.
            refused.update({rule: count for rule, count in memory.refused.items() if rule not in (DAY_CAP, UNUSABLE)})
        refused[UNUSABLE] = read.findings.unusable  # a parser counts all entries of a list at each reading
        self.book.was_read(source, read.findings.problem, refused, now)
        if read.hubs is not None:
            self.subscriptions.found(source, read.hubs)
        if (
            memory.depth == 0
            and source.row.kind == "hub"
            and isinstance(address := read_address(page.url, STORED_RULES), Address)
        ):
            await self._explorer.guess(address, memory.root, page.host)
        memory.rules = signature(rules)
        return taken

    async def _name(self, source: Source, read: Read, now: float) -> Counter[str]:
        """Make sources of what a source names: feeds and sitemaps of a page, sitemaps of an index.

        Returns how many sitemaps of an index were not taken, by rule.
        """
        rules, memory = self.settings.discovery, source.memory
        wanted = [
            SourceCandidate(link.kind, link.address, source.url)
            for link in read.sources
            if (rules.feeds if link.kind == "feed" else rules.sitemaps) and memory.depth == 0
        ]
        await self._explorer.add(wanted, memory.root, memory.depth)
        return await self._indexes.read(source, read.findings.children, now) if read.findings.children else Counter()

    def _was_read(self, source: Source, digest: bytes) -> bool:
        """Whether what came was read before, byte for byte and by the same rules."""
        memory = source.memory
        return memory.digest == digest and memory.rules == signature(self.settings.discovery)

    def _listed(self, source: Source, kept: bytes) -> SeenUrls:
        """What a source listed so far; nothing if the rules have changed, so that all is looked at again."""
        same = source.memory.rules == signature(self.settings.discovery)
        return unpack_listed(kept) if same else NOTHING

    # worth

    def _trust(self, source: Source) -> None:
        """Look up how true the signals of its kinds are on its host; the best of them counts."""
        known = [self.precision(source.host, kind) for kind in kinds_of_source(source.row.kind)]
        told = [each for each in known if each is not None]
        if told:
            source.precision = max(told)

    def precision(self, host: str, kind: str) -> float | None:
        """The share of signals of a kind that are true on a host; None while nothing is known of that kind."""
        trust, state = self.signals.trust, self.hosts.find(host)
        row = None if state is None else trust.row_of(state.number)
        if row is None or kind not in trust.kinds:
            return None
        place = trust.kinds.index(kind)
        if float(trust.recall[row, place]) > 0.0:
            return float(trust.precision[row, place])
        return 0.0 if row in trust.looked_at and trust.audited(row, place) >= _ENOUGH_AUDITS else None

    def _value_found(self, source: Source, found: Mapping[int, float]) -> None:
        """Let pages that were just found compete at what a page of their source is worth, at its age."""
        schedule, now = self.schedule, self.clock.now()
        full, decay = interest_of(source, self.book, self.settings.discovery)
        known = [page_id for page_id in found if schedule.has(page_id)]
        tracked = [page_id for page_id in known if page_id not in schedule.unvalued]
        if not self.book.hits_of(source.host).hits.any():
            known = [page_id for page_id in known if page_id in schedule.unvalued]
            tracked = []
        schedule.unvalued.difference_update(found)
        if known:
            profit = [at_age(full, decay, (now - found[page_id]) / DAY_S) for page_id in known]
            schedule.value_first_crawls(known, profit, decay)
        schedule.track_after(tracked)

    async def _value_once(self) -> None:
        """Value pages to be crawled once that were loaded before their sources were known."""
        schedule = self.schedule
        waiting, schedule.unvalued = schedule.unvalued, set()
        for page in await self.store.read_pages(sorted(waiting)):
            source = self.book.at(page.source)
            if source is not None and schedule.has(page.id):
                full, decay = interest_of(source, self.book, self.settings.discovery)
                profit = at_age(full, decay, (self.clock.now() - page.added_at) / DAY_S)
                schedule.value_first_crawls([page.id], [profit], decay)

    # coming and going

    async def retire(self, source: Source, reason: str) -> None:
        """Read a source no longer, but for a rare look; an event says why."""
        now = self.clock.now()
        await self._say_retired(source, reason, now)
        if not source.row.polls:  # it was never there: no copy, whose age would say when to look again
            source.held_until = now + self.settings.discovery.audit_s
            await self.store.edit_pages([PageEdit(source.row.page_id, not_before=source.held_until)])
        self.market.appraise(source)
        await self._save([source.row])

    async def _say_retired(self, source: Source, reason: str, now: float) -> None:
        if not source.is_active:
            return
        if source.row.polls:  # a guess that was wrong is nobody's loss
            detail = json.dumps({"reason": reason[:500], "kind": source.row.kind})
            event = NewChange("source_retired", now, source.url, page_id=source.row.page_id, detail=detail)
            await self.store.append_changes([event])  # first: an event may come twice, and must not be missing
        source.row = replace(source.row, state="retired", reason=reason[:500])
        self._indexes.fall_silent(self.book.below(source))

    async def _save_subscriptions(self) -> None:
        """Write subscriptions that have changed, with all else that is remembered."""
        unsaved, self.subscriptions.unsaved = self.subscriptions.unsaved, {}
        try:
            async with self.writing:
                rows = []
                for page_id, source in unsaved.items():
                    kept = from_bytes(await self.store.source_memory(page_id)).listed
                    rows.append(_with_memory(source, kept))
                await self._save(rows)
        except BaseException:
            self.subscriptions.unsaved = {**unsaved, **self.subscriptions.unsaved}
            raise

    async def _save(self, rows: Iterable[SourceRow]) -> None:
        kept = list(rows)
        if kept:
            await self.store.save_sources(kept)


def _with_memory(source: Source, listed: bytes) -> SourceRow:
    """The row with all that is remembered; the list is not kept here."""
    source.memory.listed = listed
    kept = to_bytes(source.memory)
    source.memory.listed = b""
    return replace(source.row, memory=kept)
