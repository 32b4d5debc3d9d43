"""The sources of a store, as `recrawl sources` shows them: what they bring, what that is worth, what they cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from recrawl.store.rows import PageRow, SourceRow
from recrawl.store.store import Store
from recrawl.tracker.admission import group_of
from recrawl.tracker.clock import DAY_S, iso
from recrawl.tracker.discovery.memory import read_memories
from recrawl.tracker.discovery.source import (
    Source,
    SourceBook,
    cost_of,
    interest_of,
    kinds_of_source,
    new_pages_per_day,
    worth_of,
)
from recrawl.tracker.settings.settings import Settings
from recrawl.tracker.signals.trust import KindTrust, trust_of_bytes

if TYPE_CHECKING:
    from recrawl.tracker.tracker import Tracker


async def list_sources(store: Store, settings: Settings, tracker: Tracker | None, now: float) -> dict[str, Any]:
    """All sources in plain values, those that brought most first, and how many addresses were not taken, by rule.

    Args:
        store: where they are.
        settings: by which they are valued.
        tracker: that runs, None if none does.
        now: Unix seconds.
    """
    rows = await store.sources()
    pages = {page.id: page for page in await store.read_pages([row.page_id for row in rows])}
    named = [] if tracker is not None else await store.hosts(sorted({page.host for page in pages.values()}))
    learned = {row.name: row.learned for row in named if row.learned}
    book = await _book_of(store, settings, rows, pages)
    said = []
    for source in book:
        page = pages[source.row.page_id]
        if tracker is None:
            trust: Sequence[KindTrust] = trust_of_bytes(learned[page.host]) if page.host in learned else []
        else:
            trust = tracker.signals.trust_in(page.host)
        facts = _facts(source, page, book, settings, now)
        said.append({**facts, "trust": _trust(source, trust), **_next(source, tracker)})
    said.sort(key=lambda each: (each["state"] != "active", -each["found"], each["url"]))
    return {"sources": said, "refused": book.refused}


async def book_of(store: Store, tracker: Tracker) -> SourceBook:
    """The sources of a tracker that runs; read from the store if it follows no site."""
    if tracker.discovery.enabled:
        return tracker.discovery.book
    rows = await store.sources()
    pages = {page.id: page for page in await store.read_pages([row.page_id for row in rows])}
    return await _book_of(store, tracker.settings, rows, pages)


async def some_sources(
    store: Store, tracker: Tracker, book: SourceBook, page_ids: Sequence[int]
) -> dict[int, dict[str, Any]]:
    """The same of some sources of `book_of` while a tracker runs, by page. O(those)."""
    pages = {page.id: page for page in await store.read_pages(page_ids)}
    said = {}
    for page_id, page in pages.items():
        source = book.of_page(page_id)
        if source is not None:
            facts = _facts(source, page, book, tracker.settings, tracker.clock.now())
            trust = _trust(source, tracker.signals.trust_in(page.host))
            said[page_id] = {**facts, "trust": trust, **_next(source, tracker)}
    return said


async def _book_of(
    store: Store, settings: Settings, rows: Sequence[SourceRow], pages: Mapping[int, PageRow]
) -> SourceBook:
    """The sources of a store as a tracker would have them."""
    book, known = SourceBook(), {row.page_id: row for row in rows if row.page_id in pages}
    async for page_id, memory in read_memories(store, list(known)):
        page = pages[page_id]
        group = group_of(page.url, settings.groups)
        importance = 1.0 if group is None or group.importance is None else group.importance
        book.put(Source(known[page_id], page.url, page.host, memory, max(importance, 1e-9)))
    return book


def _facts(source: Source, page: PageRow, book: SourceBook, settings: Settings, now: float) -> dict[str, Any]:
    row = source.row
    worth = worth_of(source, book, settings.discovery, now)
    profit, decay = interest_of(source, book, settings.discovery)
    return {
        "url": source.url,
        "kind": row.kind,
        "state": row.state if page.state != "retired" else "retired",
        "reason": row.reason or page.reason or None,
        "problem": source.memory.problem or None,
        "problem_at": iso(source.memory.problem_at or None),
        "found_by": row.found_by,
        "tracked": page.role == "page",
        "polls": row.polls,
        "last_polled": iso(source.polled_at or None),
        "found": row.found,
        "refused": dict(source.memory.refused),
        "new_pages_per_day": new_pages_per_day(source),
        "profit": profit,
        "decay_per_day": decay,
        "signals": row.signals,
        "worth_per_day": worth.profit * worth.rate,
        "cost": cost_of(source, settings.discovery),
        "pushed": source.is_pushed(now),
    }


def _trust(source: Source, trust: Sequence[KindTrust]) -> dict[str, Any] | None:
    """How far the signals of its kinds are believed on its host: of the most telling one."""
    kinds = kinds_of_source(source.row.kind)
    found = next((each for each in trust if each.kind in kinds), None)
    return None if found is None else found._asdict()


def _next(source: Source, tracker: Tracker | None) -> dict[str, Any]:
    """When it is polled next, as far as a tracker that runs knows."""
    said = None if tracker is None else tracker.schedule.explain_source(source.row.page_id, tracker.clock.now())
    if said is None:
        return {"value": None, "price": None, "due_at": None}
    due = None if said.due is None or said.due * DAY_S > 2e11 else iso(said.due * DAY_S)
    return {"value": said.value, "price": said.price, "due_at": due}
