"""The book of what is heard: counts signals, tells the scheduler, keeps them in the store, and learns whom to trust.

    heard ──> counted by page and kind ──> scheduler, for kinds that are trusted on the page's host
       │                └─ the next crawl of the page audits them ──> trust ──> scheduler
       └──> store: one row a page and kind, in batches

Signals never create pages, and promise nothing: they raise the odds, and the price decides. Signals of one kind for one
page within a moment count once. Signals within `delay` after a crawl are dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from recrawl.errors import InvalidInput, StoreError
from recrawl.pages import Floats
from recrawl.scheduling.types import Signal
from recrawl.store.changes import SignalStore
from recrawl.store.columns import ScheduleColumns
from recrawl.store.rows import HostRow, PageRow, PendingSignal
from recrawl.tracker.clock import DAY_S
from recrawl.tracker.hosts import HostBook
from recrawl.tracker.kinds import NEIGHBOUR, NOW, OTHER
from recrawl.tracker.schedule import Schedule
from recrawl.tracker.settings.settings import SignalRules
from recrawl.tracker.signals.page_counts import JustHeard, Numbers, PageFacts, Sections, SignalCounts
from recrawl.tracker.signals.trust import Audit, HostTrust, KindTrust, among, from_bytes, trust_of_bytes
from recrawl.tracker.visit import InFlight, Visit

_MOST_SAID_AGAIN = 100  # signals of a page and kind that are said again
_TOLD_AT_ONCE = 20_000  # pages, in about 40 ms
_SAVED_AT_ONCE = 500  # hosts, in about 20 ms
_LONGEST_KIND = 40
_FIRST = frozenset({"user", "import", ""})


class SignalTracker:
    """What is heard of pages.

    Args:
        schedule: learns of signals and of their quality.
        hosts: of the tracker.
        in_flight: visits, which note what is heard of their pages.
        store: keeps signals until a fetch answers them.
        rules: of the settings.
    """

    def __init__(
        self, schedule: Schedule, hosts: HostBook, in_flight: InFlight, store: SignalStore, rules: SignalRules
    ) -> None:
        self._schedule = schedule
        self._hosts = hosts
        self._in_flight = in_flight
        self._store = store
        self._rules = rules
        self._facts = PageFacts()
        self._counts = SignalCounts(self._facts)
        self.trust = HostTrust(self._counts.kinds, rules.delay_s / DAY_S, self._facts.count_of)
        self._sections = Sections()
        self._unkept: dict[str, dict[int, float]] = {}  # when it was heard, by kind and page
        self._listened: set[str] = set()  # kinds that the scheduler knows
        self._just_heard = JustHeard()
        self._flushing = asyncio.Lock()
        self._saving: set[int] = set()
        self._untold: list[Numbers] = []  # pages whose trust has changed
        self.held: set[int] = set()
        """Pages that are left alone since their servers call them fresh, until somebody says that they changed."""

    # pages

    def enter(self, pages: Numbers, hosts: Numbers, last: Floats) -> None:
        """Note pages that are tracked, by number of their host; `last` copy in Unix seconds, NaN for none."""
        self._facts.enter(pages, hosts, last)

    def load_pages(self, columns: ScheduleColumns) -> None:
        """Note pages of the store that are about to be scheduled. O(pages)."""
        numbers = np.array([self._hosts.of(name).number for name in columns.hosts], dtype=np.int64)
        self.enter(columns.page_id, numbers[columns.host] if len(columns) else numbers, columns.fetched_at)

    def entered(self, pages: Numbers, now: float) -> None:
        """Pages are in the scheduler from now on: tell it whom they trust, and what was heard. O(pages)."""
        if not self.trust.hosts or not len(pages):
            return
        rows = self._rows_of(pages)
        trusting = rows >= 0
        trusting[trusting] = (self.trust.recall[rows[trusting]] > 0).any(axis=1)
        self._tell(pages[trusting], rows[trusting], now)

    def left(self, page: int) -> None:
        """A page is tracked no longer."""
        self._sections.drop(page)
        self.held.discard(page)

    # hearing

    def heard(self, page_ids: ArrayLike, kind: str, now: float, *, durable: bool = True) -> int:
        """Pages are said to have changed; how many of them were not crawled just now.

        What is heard again within a moment counts once. Durable after `flush`. O(pages).

        Args:
            page_ids: of the store; a page without a copy has nothing to lose, and counts nothing.
            kind: any name.
            now: Unix seconds.
            durable: whether it is to outlive a restart.
        """
        kind = kind[:_LONGEST_KIND] or OTHER
        if not self._rules.hears(kind) or kind == NOW:
            return 0
        pages = self._not_just_crawled(np.unique(np.asarray(page_ids, dtype=np.int64)), now)
        if not len(pages):
            return 0
        kind = self._counts.kinds[self._counts.number(kind)]  # kinds beyond the bound are counted as one
        if kind != NEIGHBOUR:  # a change of another page is a guess; the server speaks of this page
            self._let_go(pages)
        fresh = self._just_heard.fresh(pages, kind, now)
        # A fetch may have begun since the last one was heard, and would seem to answer both.
        again = self._in_flight.among(set(pages.tolist()).difference(fresh)) if len(self._in_flight) else []
        if durable and (fresh or again):
            heard = (*fresh, *(visit.page.id for visit in again))
            self._unkept.setdefault(kind, {}).update(dict.fromkeys(heard, now))
        number = self._counts.number(kind)
        fresh += [visit.page.id for visit in again if not _heard_later(visit, number, now)]
        counted = self._facts.known(np.array(fresh, dtype=np.int64))
        if len(counted):
            self._count(counted, kind, now)
        return len(pages)

    def hold(self, page: int, until: float) -> None:
        """Leave a page alone until a time that was just crawled, unless something was heard of it since. O(1)."""
        if not self._counts.of(page).any() and self._schedule.hold(page, until):
            self.held.add(page)

    def _let_go(self, pages: Numbers) -> None:
        """Let pages be crawled again that were held. O(pages), O(1) while no page is held."""
        held = self.held.intersection(pages.tolist()) if self.held else set()
        if held:
            self.held -= held
            self._schedule.let_go(held)

    def _not_just_crawled(self, pages: Numbers, now: float) -> Numbers:
        """Those whose last crawl is longer ago than the delay, or that have none."""
        if not self._rules.delay_s:
            return pages
        known = self._facts.known(pages)
        early = known[now - self._facts.last[known] < self._rules.delay_s]
        return np.setdiff1d(pages, early, assume_unique=True)

    def _count(self, pages: Numbers, kind: str, now: float) -> None:
        number = self._counts.number(kind)
        self._counts.add(number, pages)
        self.trust.listen(np.unique(self._facts.host[pages]), self._counts.kinds, number)
        if len(self._in_flight):
            for visit in self._in_flight.among(pages.tolist()):
                visit.heard.append((now, number))
        self._say(pages, np.ones(len(pages), dtype=np.int64), self._counts.kinds[number], now)

    def _say(self, pages: Numbers, times: Numbers, kind: str, now: float) -> None:
        if kind in self._listened:
            self._schedule.signal(pages, times, kind, now)

    async def flush(self) -> None:
        """Keep what was heard: durable when this returns. What cannot be written is kept for the next time.

        Raises:
            StoreError: if the store cannot write.
        """
        async with self._flushing:  # what another is writing is durable too when this returns
            await self._flush()

    async def _flush(self) -> None:
        unkept, self._unkept = self._unkept, {}
        while unkept:
            kind, heard = unkept.popitem()
            try:
                # Of a page in flight the time matters: what it heard before the fetch began is answered by it.
                for visit in self._in_flight.among(heard):
                    await self._store.add_signals([visit.page.id], kind, heard.pop(visit.page.id))
                if heard:
                    await self._store.add_signals(list(heard), kind, max(heard.values()))
            except StoreError:
                unkept[kind] = heard
                for again, pages in unkept.items():
                    self._unkept[again] = {**pages, **self._unkept.get(again, {})}
                raise

    def restore(self, pending: Sequence[PendingSignal], now: float) -> None:
        """Go on with signals that no fetch has answered, of pages that were entered. O(signals)."""
        by_kind: dict[str, list[PendingSignal]] = {}
        for each in pending:
            if self._rules.hears(each.kind) and each.kind != NOW:
                by_kind.setdefault(each.kind, []).append(each)
        for kind, signals in by_kind.items():
            counts = {each.page_id: each.count for each in signals}
            pages = self._facts.known(np.array(sorted(counts), dtype=np.int64))
            if len(pages):
                number = self._counts.number(kind)
                times = np.array([counts[page] for page in pages.tolist()], dtype=np.int64)
                self._counts.add(number, pages, times)
                self.trust.listen(np.unique(self._facts.host[pages]), self._counts.kinds, number)
                self._say(pages, np.minimum(times, _MOST_SAID_AGAIN), self._counts.kinds[number], now)

    # crawls

    def crawled(
        self,
        page: PageRow,
        at: float,
        began: float,
        changed: bool | None,
        heard_in_flight: Sequence[tuple[float, int]] = (),
    ) -> None:
        """Audit what was heard by a copy that came, and that the scheduler knows of.

        O(kinds), and O(pages of the section) for a page that had changed.

        Args:
            page: its row before.
            at: when the visit ended.
            began: when its first request began.
            changed: None for a first copy.
            heard_in_flight: when signals came during the visit, and their kinds.
        """
        self.held.discard(page.id)
        seen_until = began + self._rules.delay_s
        later = [kind for heard_at, kind in heard_in_flight if heard_at > seen_until]
        host = self._hosts.of(page.host).number
        row = self.trust.row_of(host) if self.trust.hosts else None  # most trackers hear nothing
        last = page.fetched_at
        if changed is not None and last is not None and began > last and row is not None:
            gap = began - last
            heard = self._counts.of(page.id)
            for kind in later:
                heard[kind] = max(heard[kind] - 1, 0)
            usual = self.trust.usual(row, self._counts.usual(page.id, began, gap))
            self.trust.note(Audit(row, gap / DAY_S, changed, heard, usual))
        if page.id >= len(self._facts):
            self.enter(np.array([page.id]), np.array([host]), np.array([began]))
        self._just_heard.forget(page.id)
        self._counts.crawled(page.id, began, later)
        self._facts.copied(page.id, began)
        for heard_of in self._unkept.values():
            if heard_of.get(page.id, np.inf) <= began:
                del heard_of[page.id]
        for kind in set(later):  # the scheduler has forgotten them
            times = np.array([later.count(kind)], dtype=np.int64)
            self._say(np.array([page.id]), times, self._counts.kinds[kind], at)
        if self._rules.hears(NEIGHBOUR):
            self._tell_neighbours(page, at, found_changed=bool(changed))

    def _tell_neighbours(self, page: PageRow, at: float, *, found_changed: bool) -> None:
        section = self._sections.fetched(page.id, page.url)
        if section is not None and found_changed:
            others = self._sections.neighbours(section, page.id, at)
            if len(others):
                self.heard(others, NEIGHBOUR, at, durable=False)

    def trigger_of(self, page: PageRow) -> str:
        """Why a page is taken now: the kind of the strongest signal, the source that led to it, or the schedule."""
        if page.fetched_at is None:
            return "schedule" if page.source in _FIRST else f"found by {page.source}"[:500]
        row = self.trust.row_of(self._hosts.of(page.host).number) if self.trust.hosts else None
        if row is None:
            return "schedule"
        heard = self._counts.of(page.id)
        strength = heard * self.trust.precision[row, : len(heard)] * (self.trust.recall[row, : len(heard)] > 0)
        return self._counts.kinds[int(np.argmax(strength))] if strength.any() else "schedule"

    # trust

    def relearn(self, now: float) -> int:
        """Look at trust again where there are enough new audits, and tell the pages; of how many hosts it changed.

        Of large hosts some pages are told with each call, so that nobody waits for long.
        """
        rows = self.trust.relearn()
        if len(rows):
            hosts = np.array([self.trust.hosts[row] for row in rows.tolist()], dtype=np.int64)
            self._untold.append(self._facts.pages_of(hosts))
        if self._untold:
            pages, rest = np.split(self._untold.pop(0), [_TOLD_AT_ONCE])
            if len(rest):
                self._untold.insert(0, rest)
            self._tell(pages, self._rows_of(pages), now)
        return len(rows)

    def _rows_of(self, pages: Numbers) -> Numbers:
        """The rows of the hosts of pages in `trust`, -1 for none. O(pages + hosts)."""
        hosts = self._facts.host[pages]
        row_of_host = np.full(max(*self.trust.hosts, int(hosts.max(initial=0)), 0) + 1, -1)
        row_of_host[self.trust.hosts] = np.arange(len(self.trust.hosts))
        return row_of_host[hosts]

    def _tell(self, pages: Numbers, rows: Numbers, now: float) -> None:
        """Tell the scheduler how far pages trust each kind, and then what was heard since their last crawls."""
        known = self._schedule.listening(pages)
        if not len(known):
            return
        pages, rows = pages[known], rows[known]
        kinds = [kind for number, kind in enumerate(self.trust.kinds) if self.trust.recall[rows, number].any()]
        kinds = [*kinds, *sorted(self._listened.difference(kinds))]
        places = [self.trust.kinds.index(kind) for kind in kinds]
        recall, precision = self.trust.recall[rows], self.trust.precision[rows]
        quality = {
            kind: Signal(recall[:, place], precision[:, place]) for kind, place in zip(kinds, places, strict=True)
        }
        self._schedule.trust(pages, quality)
        self._listened.update(kinds)
        for kind, place in zip(kinds, places, strict=True):
            waiting = np.minimum(self._counts.waiting(place, pages), _MOST_SAID_AGAIN)
            if waiting.any():
                self._say(pages, waiting, kind, now)

    # keeping

    def load(self, rows: Sequence[HostRow]) -> list[str]:
        """Go on with what was learned of hosts, before pages are entered; sentences on what could not be read."""
        unreadable = []
        for row in rows:
            if row.learned is None:
                continue
            try:
                kept = from_bytes(row.learned)
                known = [self._counts.kinds[self._counts.number(kind)] for kind in kept.kinds]
                wide = among(known, kept.memory, self._counts.kinds)
                number = self._hosts.of(row.name).number
                self.trust.restore(number, self._counts.kinds, wide, followed=kept.followed)
            except InvalidInput as error:
                unreadable.append(f"what was learned of the signals of {row.name} is forgotten: {error}")
        self.trust.relearn_all()
        return unreadable

    def to_save(self, most: int = _SAVED_AT_ONCE) -> list[HostRow]:
        """Rows of hosts of which something was learned, at most `most`, to be stored; then call `saved`."""
        rows = sorted(self.trust.unsaved)[:most]
        names = {state.number: state for state in self._hosts} if rows else {}
        kept = []
        self._saving.update(rows)
        self.trust.unsaved.difference_update(rows)
        for row in rows:
            learned = self.trust.to_bytes(row)
            state = names.get(self.trust.hosts[row])
            if learned is not None and state is not None:
                kept.append(replace(state.row(), learned=learned))
        return kept

    def saved(self, *, done: bool) -> None:
        """What `to_save` gave is stored, or could not be, and is given again."""
        if not done:
            self.trust.unsaved.update(self._saving)
        self._saving.clear()

    def heard_of(self, page: int) -> Mapping[str, int]:
        """Signals heard of a page since its last crawl, by kind."""
        counts = self._counts.of(page).tolist()
        return {kind: count for kind, count in zip(self._counts.kinds, counts, strict=True) if count}

    def trust_in(self, host: str) -> Sequence[KindTrust]:
        """How far the kinds of signals are trusted that a host sent, with errors."""
        state = self._hosts.find(host)
        row = None if state is None else self.trust.row_of(state.number)
        if row is None:
            return []
        return trust_of_bytes(self.trust.to_bytes(row), self.trust.listened(row))


def _heard_later(visit: Visit, kind: int, now: float) -> bool:
    """Let the last signal of a kind that came during a visit be heard now; return whether there was one."""
    for place in reversed(range(len(visit.heard))):
        if visit.heard[place][1] == kind:
            visit.heard[place] = now, kind
            return True
    return False
