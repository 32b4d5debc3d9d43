"""What the pages show, read from the store and the tracker: bounded work for each, whatever the number of pages."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from recrawl.service.dashboard.rendering import duration
from recrawl.service.monitor.activity import HOST_CLASSES, HostClass, HostFigures, class_of, figures_of
from recrawl.service.monitor.monitor import Vitals
from recrawl.store.bodies import unpacked
from recrawl.store.rows import CHANGE_KINDS, Change, NewChange, PageRow, SourceRow
from recrawl.store.store import Store
from recrawl.tracker.discovery.source import SourceBook
from recrawl.tracker.hosts import HostState
from recrawl.tracker.settings.settings import Settings
from recrawl.tracker.tracker import Tracker
from recrawl.web.change.diff import TextDiff, diff_text
from recrawl.web.url.address import STORED_RULES, Address, read_address
from recrawl.web.url.canonical import host_key

SHOWN = 50
DIFFS_SHOWN = 8
LINES_SHOWN = 200
PROBLEMS_SHOWN = 20
_ORDER_S = 10.0
_LONG_S = 0.01
_KEPT_TIMES = 100.0  # as long as it took to read them
_BLOCK = 500
_MOST_SCANNED = 1000  # so that a page is there within 50 ms, whatever is searched for
_MOST_TEXT_BYTES = 2_000_000


class Event(NamedTuple):
    """An event as it is shown: what its detail says in words, and the diff if it was asked for and can be had."""

    cursor: int
    event: NewChange
    said: str
    diff: TextDiff | None = None


@dataclass(frozen=True, slots=True)
class Events:
    """Some events, the newest first.

    Args:
        events: those.
        kind: that was asked for, "" for all.
        before: the cursor they come before; None for the newest.
        older: the cursor to go on before; None if these are the last.
        last: the cursor of the newest event there is.
    """

    events: Sequence[Event]
    kind: str
    before: int | None
    older: int | None
    last: int


async def read_events(store: Store, kind: str = "", before: int | None = None, shown: int = SHOWN) -> Events:
    """The newest events of a kind before a cursor; looks at a thousand at most."""
    wanted = next((each for each in CHANGE_KINDS if each == kind), None)
    last = await store.last_cursor()
    top = last + 1 if before is None else max(min(before, last + 1), 1)
    floor = max(top - 1 - max(_MOST_SCANNED, shown), 0)
    kinds = None if wanted is None else [wanted]
    found = await store.changes(floor, shown, before=top, kinds=kinds, newest_first=True)
    reached = found[-1].cursor if len(found) == shown else floor + 1
    events = [event_of(each) for each in found]
    return Events(events, wanted or "", before, reached if reached > 1 else None, last)


async def with_diffs(store: Store, events: Sequence[Event], most: int = DIFFS_SHOWN) -> list[Event]:
    """The same, the first few changes among them with what changed."""
    shown = []
    for each in events:
        if most > 0 and each.event.kind == "changed":
            most -= 1
            shown.append(each._replace(diff=await diff_of(store, each.event)))
        else:
            shown.append(each)
    return shown


def event_of(change: Change) -> Event:
    """A change as it is shown, without its diff."""
    return Event(change.cursor, change.event, _said(change.event))


def _said(event: NewChange) -> str:
    """The detail of an event in words."""
    with suppress(ValueError, AttributeError):
        detail = json.loads(event.detail)
        return ", ".join(f"{name} {value}" for name, value in detail.items())[:500]
    return ""


async def diff_of(store: Store, event: NewChange) -> TextDiff | None:
    """What a change changed; None if one of the texts is not kept any more."""
    if event.page_id is None:
        return None
    number = await _version_of(store, event)
    if number is None:
        return None
    old, new = await store.read_text(event.page_id, number - 1), await store.read_text(event.page_id, number)
    before, after = _text(old), _text(new)
    return None if before is None or after is None else diff_text(before, after)


async def _version_of(store: Store, event: NewChange) -> int | None:
    """Which version an event published: that of its time, or else of its digest."""
    assert event.page_id is not None
    versions = await store.versions(event.page_id)
    for number, at, digest in versions:
        if abs(at - event.detected_at) < 1e-3 and digest == event.new_digest:
            return number
    return next((number for number, _, digest in versions if digest == event.new_digest), None)


def _text(kept: bytes | None) -> bytes | None:
    text = None if kept is None else unpacked(kept)
    return None if text is None else text[:_MOST_TEXT_BYTES]


@dataclass(frozen=True, slots=True)
class PageList:
    """Some pages in the order of their ids.

    Args:
        pages: those.
        query, host, group: as asked.
        after: the id to go on after; None if these are the last.
        scanned: whether more was looked at than may be at once, so that there may be more behind `after`.
    """

    pages: Sequence[PageRow]
    query: str
    host: str
    group: str
    after: int | None
    scanned: bool = False


async def list_of_pages(
    store: Store, settings: Settings, query: str, host: str, group: str, after: int = 0
) -> PageList:
    """Pages by the beginning of their address, by host or by group; looks at a thousand at most."""
    prefix, named = query.strip(), host.strip().lower()
    if prefix and not after and (found := await store.find_pages([prefix])):
        return PageList(await store.read_pages(list(found.values())), query, host, group, None)
    whole = prefix if "://" in prefix else f"https://{prefix}" if "." in prefix else ""
    address = read_address(whole, STORED_RULES)
    if not named and isinstance(address, Address):
        named = host_key(address, settings.pace_by)
    pages: list[PageRow] = []
    scanned = 0
    while scanned < _MOST_SCANNED:
        size = _BLOCK if prefix else SHOWN + 1
        block = await store.list_pages(after, size, group=group.strip() or None, host=named or None)
        for each in block:
            if len(pages) == SHOWN:
                return PageList(pages, query, host, group, after)
            after = each.id
            scanned += 1
            if _fits(each.url, prefix):
                pages.append(each)
        if len(block) < size:
            return PageList(pages, query, host, group, None)
    return PageList(pages, query, host, group, after, scanned=True)


def _fits(url: str, prefix: str) -> bool:
    return not prefix or url.startswith(prefix) or url.partition("://")[2].startswith(prefix)


@dataclass(frozen=True, slots=True)
class PageFacts:
    """A page with all that there is to tell.

    Args:
        page: its row.
        explained: why it is, or is not, crawled now, as `explain.py` has it.
        sentences: the same for people.
        events: its last ones, the newest first.
        versions: number, time and digest of those kept, the newest first.
    """

    page: PageRow
    explained: dict[str, Any]
    sentences: Sequence[str]
    events: Sequence[Event]
    versions: Sequence[tuple[int, float, bytes]]


async def events_of_page(store: Store, page_id: int) -> list[Event]:
    """The last events of a page, the newest first, the newest change with its diff."""
    found = await store.changes(0, SHOWN, page_id, newest_first=True)
    events = [event_of(each) for each in found]
    return await with_diffs(store, events, most=3)


async def text_of(store: Store, page_id: int, version: int | None) -> bytes | None:
    """The text of a version, if it is kept."""
    return _text(await store.read_text(page_id, version))


class HostLine(NamedTuple):
    """A host as the table shows it; `trust` is kind, recall and precision of its signals."""

    name: str
    kind: HostClass
    failures: int
    gap_s: float
    at_once: int
    until: float | None
    robots: str
    figures: HostFigures
    trust: Sequence[tuple[str, float, float]] = ()


class SourceLine(NamedTuple):
    """A source as the table shows it."""

    page_id: int
    url: str
    kind: str
    state: str
    reason: str
    found_by: str
    polls: int
    found: int
    signals: int
    useful_at: float | None
    problem: str = ""
    refused: Mapping[str, int] = MappingProxyType({})

    @property
    def not_taken(self) -> int:
        """Addresses that it named and that were not taken."""
        return sum(self.refused.values())

    @property
    def rules(self) -> str:
        """By which rules they were not taken."""
        return ", ".join(f"{rule} {count:,}" for rule, count in self.refused.items())

    @property
    def per_poll(self) -> float | None:
        """New pages for each poll."""
        return self.found / self.polls if self.polls else None


class ProblemLine(NamedTuple):
    """What was wrong with a source when it was last read."""

    page_id: int
    url: str
    kind: str
    problem: str
    at: float


class SourceProblems(NamedTuple):
    """The newest problems of sources, how many sources have one, and addresses that were not taken, by rule."""

    newest: Sequence[ProblemLine]
    sources: int
    refused: Mapping[str, int]


@dataclass(slots=True)
class HostOrder:
    """Hosts with most to tell first, kept for some seconds if none comes: sorting them is O(hosts · log hosts)."""

    made_at: float = float("-inf")
    states: list[HostState] = field(default_factory=list)

    def of(self, tracker: Tracker, vitals: Vitals) -> list[HostState]:
        """The hosts of a tracker: those in trouble, then by how many pages they have."""
        if time.monotonic() - self.made_at > _ORDER_S or len(self.states) != len(tracker.hosts):
            self.states = sorted(
                tracker.hosts,
                key=lambda state: (
                    -HOST_CLASSES.index(class_of(state, vitals.at)),
                    -figures_of(tracker, state, vitals.hosts.sums).pages,
                    state.name,
                ),
            )
            self.made_at = time.monotonic()
        return self.states


def host_lines(
    tracker: Tracker, vitals: Vitals, states: Sequence[HostState], kind: str, query: str
) -> tuple[list[HostLine], int]:
    """Those of a class and with a text in their name, and how many more there are. O(hosts)."""
    wanted = query.strip().lower()
    fitting = [
        state
        for state in states
        if (not kind or class_of(state, vitals.at) == kind) and (not wanted or wanted in state.name)
    ]
    return [_line(tracker, state, vitals) for state in fitting[:LINES_SHOWN]], max(len(fitting) - LINES_SHOWN, 0)


def _line(tracker: Tracker, state: HostState, vitals: Vitals) -> HostLine:
    now = vitals.at
    figures: HostFigures = figures_of(tracker, state, vitals.hosts.sums)
    return HostLine(
        state.name,
        class_of(state, now),
        state.failures,
        state.min_gap_s,
        tracker.hosts.max_in_flight(state.name),
        state.blocked_until if state.blocked_until > now else None,
        _robots(state, now, tracker.clock.pace),
        figures,
        _trust(tracker, state),
    )


def _robots(state: HostState, now: float, pace: float) -> str:
    """What robots.txt said last, of the origin that was asked last."""
    if not state.robots:
        return "not asked yet"
    entry = max(state.robots.values(), key=lambda each: each.fetched_at)
    said = {"rules": "rules", "unavailable": "none", "unreachable": "unreachable"}[entry.answer.kind]
    delay = "" if entry.answer.crawl_delay_s is None else f", delay {duration(entry.answer.crawl_delay_s, pace)}"
    left = entry.expires_at - now
    return f"{said}{delay}, {f'holds {duration(left, pace)}' if left > 0 else 'to be asked again'}"


def _trust(tracker: Tracker, state: HostState) -> Sequence[tuple[str, float, float]]:
    """Kind, recall and precision of the signals of a host, where they are learned."""
    trust = tracker.signals.trust
    row = trust.row_of(state.number)
    if row is None:
        return ()
    told = zip(trust.kinds, trust.recall[row].tolist(), trust.precision[row].tolist(), strict=False)
    return [(kind, recall, precision) for kind, recall, precision in told if recall > 0]


@dataclass(slots=True)
class SourceOrder:
    """Sources that found most for each poll, kept for a moment where there are many: reading all is O(sources)."""

    good_until: float = float("-inf")
    rows: list[SourceRow] = field(default_factory=list)
    hidden: int = 0

    async def of(self, store: Store) -> tuple[list[SourceRow], int]:
        """Those that are shown, and how many more there are."""
        started = time.monotonic()
        if started >= self.good_until:
            rows = sorted(
                await store.sources(), key=lambda each: (each.state != "active", -each.found / max(each.polls, 1))
            )
            self.rows, self.hidden = rows[:LINES_SHOWN], max(len(rows) - LINES_SHOWN, 0)
            ended = time.monotonic()
            took_s = ended - started
            self.good_until = ended + (min(_KEPT_TIMES * took_s, _ORDER_S) if took_s > _LONG_S else 0.0)
        return self.rows, self.hidden


async def source_lines(
    store: Store, order: SourceOrder, book: SourceBook | None = None
) -> tuple[list[SourceLine], int]:
    """Sources, those that found most for each poll first, and how many more there are.

    Args:
        store: where they are.
        order: in which they are shown.
        book: of a tracker that reads them, which has what is wrong with them and what was not taken.
    """
    shown, hidden = await order.of(store)
    urls = {page.id: page.url for page in await store.read_pages([row.page_id for row in shown])}
    known = {} if book is None else {row.page_id: book.of_page(row.page_id) for row in shown}
    memories = {number: source.memory for number, source in known.items() if source is not None}
    lines = [
        SourceLine(
            row.page_id,
            urls.get(row.page_id, ""),
            row.kind,
            row.state,
            row.reason,
            row.found_by,
            row.polls,
            row.found,
            row.signals,
            row.useful_at,
            memories[row.page_id].problem if row.page_id in memories else "",
            memories[row.page_id].refused if row.page_id in memories else {},
        )
        for row in shown
    ]
    return lines, hidden


def source_problems(book: SourceBook | None) -> SourceProblems:
    """What is wrong with the sources of a tracker, and what it did not take."""
    if book is None:
        return SourceProblems([], 0, {})
    found = book.problems
    lines = [
        ProblemLine(each.row.page_id, each.url, each.row.kind, each.memory.problem, each.memory.problem_at)
        for each in found[:PROBLEMS_SHOWN]
    ]
    return SourceProblems(lines, len(found), book.refused)
