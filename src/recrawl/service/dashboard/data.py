"""What the pages show, read from the store and the tracker: bounded work for each, whatever the number of pages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from recrawl.store.contract import Store
from recrawl.store.packing import unpacked
from recrawl.store.rows import CHANGE_KINDS, Change, NewChange, PageRow
from recrawl.tracker.settings.settings import Settings
from recrawl.web.change.diff import TextDiff, diff_text
from recrawl.web.url.address import STORED_RULES, Address, read_address
from recrawl.web.url.canonical import host_key

SHOWN = 50
DIFFS_SHOWN = 8
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
