"""Which pages the scheduler has: they come, go, pause and move, and follow their groups when these change.

The rules of groups are kept as a fact of the store. When a tracker starts with others, pages are walked in batches. A
value that was the old group's (or the default of a page without one) becomes the new group's; one that the user gave
the page stays. A page that was put into a group by name stays in it while there is such a group.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass

import msgspec

from recrawl.store.columns import ScheduleColumns
from recrawl.store.rows import NOT_SAID, NewPage, PageEdit, PageRow, PauseKind
from recrawl.store.store import Store
from recrawl.tracker.admission import PageRequest, Rejected, admit, group_of, is_held
from recrawl.tracker.captures import Numbers
from recrawl.tracker.clock import TIMING, TrackerClock
from recrawl.tracker.schedule import Schedule, columns_of
from recrawl.tracker.settings.settings import GroupRule, Settings, TrackedObjective
from recrawl.tracker.visit import InFlight

FACT = "groups"
_BATCH = 1000


@dataclass(frozen=True, slots=True)
class _Values:
    """What a group says of its pages."""

    importance: float
    objective: str | None
    min_interval_s: float | None
    max_interval_s: float  # infinity for no bound


async def sync_groups(store: Store, settings: Settings) -> int:
    """Bring changed groups to the pages; how many were edited. O(1) if nothing changed, else O(pages · patterns).

    It is done before the fact is written: after a crash it is done again, and what was done stays.
    """
    kept = (await store.facts()).get(FACT)
    signature = signature_of(settings.groups)
    if kept == signature:
        return 0
    old = read_signature(kept)
    edited = after = 0
    while pages := await store.list_pages(after, _BATCH):
        after = pages[-1].id
        edits = [edit for page in pages if (edit := edit_of(page, old, settings)) is not None]
        if edits:
            edited += await store.edit_pages(edits)
    await store.save_facts({FACT: signature})
    return edited


def signature_of(groups: Sequence[GroupRule]) -> str:
    """The rules as text, the same for the same rules."""
    return json.dumps([asdict(group) for group in groups], sort_keys=True)


def read_signature(kept: str | None) -> tuple[GroupRule, ...]:
    """The rules of a signature; none if it cannot be read."""
    try:
        return tuple(msgspec.json.decode(kept or "[]", type=list[GroupRule]))
    except msgspec.MsgspecError:
        return ()


def edit_of(page: PageRow, old: Sequence[GroupRule], settings: Settings) -> PageEdit | None:
    """What changes of a page; None if nothing does."""
    if page.state == "retired":
        return None
    before, now = _by_name(old), _by_name(settings.groups)
    new = _new_group(page, old, settings.groups)
    if page.group not in ("", *before) and page.group in now:
        before = now  # nobody knows what its group said when it was added: take it for what it says now
    was = _values(before.get(page.group))
    will = _values(new)
    longest = math.inf if page.max_interval_s is None else page.max_interval_s
    edit = PageEdit(
        page.id,
        group=_changed(page.group, "" if new is None else new.name),
        importance=will.importance if page.importance == was.importance != will.importance else None,
        objective=_objective(page, was, will, settings.objective),
        min_interval_s=_least(page, was, will),
        # The store takes None for "as it is": infinity is no bound too.
        max_interval_s=will.max_interval_s if longest == was.max_interval_s != will.max_interval_s else None,
    )
    return None if edit == PageEdit(page.id) else edit


def _new_group(page: PageRow, old: Sequence[GroupRule], new: Sequence[GroupRule]) -> GroupRule | None:
    fitted = group_of(page.url, old)
    by_hand = page.group and (fitted is None or fitted.name != page.group)
    named = _by_name(new).get(page.group)
    return named if by_hand and named is not None else group_of(page.url, new)


def _by_name(groups: Sequence[GroupRule]) -> Mapping[str, GroupRule]:
    return {group.name: group for group in groups}


def _values(group: GroupRule | None) -> _Values:
    if group is None:
        return _Values(1.0, None, None, math.inf)
    importance = 1.0 if group.importance is None else group.importance
    longest = math.inf if group.max_interval_s is None else group.max_interval_s
    objective = None if group.objective == "news" else group.objective  # which is said of sources, not of pages
    return _Values(importance, objective, group.min_interval_s, longest)


def _objective(page: PageRow, was: _Values, will: _Values, usual: TrackedObjective) -> str | None:
    """The new objective of a page; None to leave it. Where the group says nothing it is the tracker's, by name."""
    if (page.objective or usual) != (was.objective or usual) or was.objective == will.objective:
        return None
    return will.objective or usual


def _least(page: PageRow, was: _Values, will: _Values) -> float | None:
    """The new least interval of a page; None to leave it."""
    if page.min_interval_s != was.min_interval_s or was.min_interval_s == will.min_interval_s:
        return None
    return NOT_SAID if will.min_interval_s is None else will.min_interval_s


def _changed(has: str, wanted: str) -> str | None:
    return wanted if has != wanted else None


@dataclass(slots=True, kw_only=True)
class PageRegistry:
    """Keeps the scheduler in line with the store.

    Args:
        store: the truth.
        schedule: has the pages that may be crawled.
        in_flight: visits, and the lock.
        settings: of the tracker.
        clock: of the tracker.
        withdraw: gives back pages that are in flight.
        on_load: called with pages of the store before they are scheduled.
        on_joined: called with pages that were scheduled.
        on_entered: called with pages that nothing holds, which may be sources.
        flush_s: how long pages that come back wait for their last result to be durable.
    """

    store: Store
    schedule: Schedule
    in_flight: InFlight
    settings: Settings
    clock: TrackerClock
    withdraw: Callable[[set[int]], Awaitable[None]]
    on_load: Callable[[ScheduleColumns], None]
    on_joined: Callable[[Numbers, float], None]
    on_entered: Callable[[set[int]], Awaitable[None]]
    flush_s: float = TIMING.flush_s

    def load(self, columns: ScheduleColumns) -> None:
        """Schedule pages of the store that nothing holds, with what was heard of them. O(pages)."""
        self.on_load(columns)
        self.on_joined(self.schedule.load(columns), self.clock.now())

    async def add(self, pages: Sequence[NewPage]) -> list[tuple[int, bool]]:
        """Track pages from now on; ids of the store, and whether each is new."""
        async with self.in_flight.lock:
            added = await self.store.add_pages(pages)
            await self._enter(await self.store.read_pages([number for number, new in added if new]))
        return added

    async def drop(self, numbers: Sequence[int]) -> None:
        """Remove pages from the scheduler; results of running fetches are discarded."""
        async with self.in_flight.lock:
            await self._leave(set(numbers))

    async def space_out(self, lows_s: Mapping[int, float]) -> None:
        """Let the scheduler have other least intervals of pages, by their ids in the store. O(pages)."""
        async with self.in_flight.lock:
            for number, low_s in lows_s.items():
                self.schedule.space_out(number, low_s)

    async def apply_pauses(self, kind: PauseKind, names: Sequence[str]) -> None:
        """Bring the scheduler in line after pauses of these names began or ended. O(their pages).

        Between two batches of pages others may take and add pages: the lock is not held for a whole group or host.
        """
        for name in names:
            after: int | None = 0
            while after is not None:
                async with self.in_flight.lock:
                    pages = await self._pages(kind, name, after)
                    await self._sync(pages)
                after = pages[-1].id if len(pages) == _BATCH else None

    async def move(self, page: PageRow, url: str) -> bool:
        """Track a page where it has moved, and no longer where it was; whether that is an address to track."""
        bounds = {"min_interval_s": page.min_interval_s, "max_interval_s": page.max_interval_s}
        wanted = PageRequest(url, page.importance, page.group or None, source=page.url, **bounds)
        new = admit(wanted, self.settings, self.clock.now())
        if isinstance(new, Rejected):
            return False
        await self.add([new])
        await self.store.edit_pages([PageEdit(page.id, state="retired", reason=f"moved to {url}")])
        await self.drop([page.id])
        return True

    async def _pages(self, kind: PauseKind, name: str, after: int) -> list[PageRow]:
        if kind == "page":
            found = await self.store.find_pages([name], role=None)
            return await self.store.read_pages(list(found.values()))
        if kind == "group":
            return await self.store.list_pages(after, _BATCH, group=name, role=None)
        return await self.store.list_pages(after, _BATCH, host=name, role=None)

    async def _sync(self, pages: Sequence[PageRow]) -> None:
        paused = set(await self.store.paused()) if pages else set()
        held = {page.id for page in pages if is_held(page, paused)}
        await self._leave(held)
        await self._enter([page for page in pages if page.id not in held], paused)

    async def _enter(self, pages: Sequence[PageRow], paused: Collection[tuple[PauseKind, str]] | None = None) -> None:
        """Hand pages to the scheduler: those that it does not have, and that nothing holds.

        Args:
            pages: their rows; read again if a result of one is being written.
            paused: all pauses, if the caller has read them under the lock.
        """
        if not pages:
            return
        ids = [page.id for page in pages]
        if await self._committed(ids):
            pages = await self.store.read_pages(ids)
        paused = set(await self.store.paused()) if paused is None else paused
        free = [page for page in pages if not is_held(page, paused)]
        missing = [page for page in free if page.role == "page" and not self.schedule.has(page.id)]
        if missing:
            self.schedule.note_captures(missing)
            self.load(columns_of(missing))
        await self.on_entered({page.id for page in free})

    async def _committed(self, page_ids: Sequence[int]) -> bool:
        """Wait for results of these pages that are being written; return whether there were any.

        A store in trouble must not hold up everyone: after some time what is newest comes later.
        """
        visits = [self.in_flight.by_page[page_id] for page_id in page_ids if page_id in self.in_flight.by_page]
        writing = [visit.durable for visit in visits if visit.completing and visit.durable is not None]
        if writing:
            await asyncio.wait(writing, timeout=self.flush_s)
        return bool(writing)

    async def _leave(self, numbers: set[int]) -> None:
        await self.withdraw(numbers)
        for number in numbers:
            self.schedule.leave(number)
