"""Which pages the scheduler has: they come, go, pause and move, and follow their groups when these change.

The rules of groups are kept as a fact of the store. When a tracker starts with others, pages are walked in batches. A
value that was the old group's (or the default of a page without one) becomes the new group's; one that the user gave
the page stays. A page that was put into a group by name stays in it while there is such a group.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass

import msgspec
import numpy as np

from recrawl.store.contract import Store
from recrawl.store.overview import ScheduleColumns
from recrawl.store.rows import NOT_SAID, NewPage, PageEdit, PageRow, PauseKind
from recrawl.tracker.admission import Rejected, Wanted, group_of, is_held, newcomer
from recrawl.tracker.desk import Desk
from recrawl.tracker.schedule import columns_of
from recrawl.tracker.settings.settings import GroupRule, Settings, TrackedObjective

FACT = "groups"
_BATCH = 1000


@dataclass(frozen=True, slots=True)
class _Values:
    """What a group says of its pages."""

    importance: float
    objective: str | None
    min_interval_s: float | None
    max_interval_s: float  # infinity for no bound


async def regroup(store: Store, settings: Settings) -> int:
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


class Roster:
    """Keeps the scheduler in line with the store.

    Args:
        store: the truth.
        desk: has the scheduler.
        withdraw: gives back pages that are in flight, by their ids in the store.
    """

    def __init__(self, store: Store, desk: Desk, withdraw: Callable[[set[int]], Awaitable[None]]) -> None:
        self._store = store
        self._desk = desk
        self._withdraw = withdraw
        self.lock = asyncio.Lock()

    def load(self, columns: ScheduleColumns) -> None:
        """Schedule pages of the store that nothing holds, with what was heard of them. O(pages)."""
        desk = self._desk
        numbers = np.array([desk.hosts.of(name).number for name in columns.hosts], dtype=np.int64)
        hosts = numbers[columns.host] if len(columns) else numbers
        desk.hearing.enter(columns.page_id, hosts, columns.fetched_at)
        desk.hearing.entered(desk.schedule.load(columns), desk.clock.now())

    async def add(self, pages: Sequence[NewPage]) -> list[tuple[int, bool]]:
        """Track pages from now on; ids of the store, and whether each is new."""
        async with self.lock:
            added = await self._store.add_pages(pages)
            await self._enter(await self._store.read_pages([number for number, new in added if new]))
        return added

    async def drop(self, numbers: Sequence[int]) -> None:
        """Let pages go that are no longer tracked; fetches under way are in vain."""
        async with self.lock:
            await self._leave(set(numbers))

    async def space_out(self, lows_s: Mapping[int, float]) -> None:
        """Let the scheduler have other least intervals of pages, by their ids in the store. O(pages)."""
        async with self.lock:
            for number, low_s in lows_s.items():
                self._desk.schedule.space_out(number, low_s)

    async def hold_or_free(self, kind: PauseKind, names: Sequence[str]) -> None:
        """Bring the scheduler in line after pauses of these names began or ended. O(their pages)."""
        async with self.lock:
            for name in names:
                after = 0
                while pages := await self._pages(kind, name, after):
                    await self._sort_out(pages)
                    after = pages[-1].id
                    if kind == "page":
                        break

    async def move(self, page: PageRow, url: str) -> bool:
        """Track a page where it has moved, and no longer where it was; whether that is an address to track."""
        bounds = {"min_interval_s": page.min_interval_s, "max_interval_s": page.max_interval_s}
        wanted = Wanted(url, page.importance, page.group or None, source=page.url, **bounds)
        new = newcomer(wanted, self._desk.settings, self._desk.clock.now())
        if isinstance(new, Rejected):
            return False
        await self.add([new])
        await self._store.edit_pages([PageEdit(page.id, state="retired", reason=f"moved to {url}")])
        await self.drop([page.id])
        return True

    async def _pages(self, kind: PauseKind, name: str, after: int) -> list[PageRow]:
        if kind == "page":
            found = await self._store.find_pages([name], role=None)
            return await self._store.read_pages(list(found.values()))
        if kind == "group":
            return await self._store.list_pages(after, _BATCH, group=name, role=None)
        return await self._store.list_pages(after, _BATCH, host=name, role=None)

    async def _sort_out(self, pages: Sequence[PageRow]) -> None:
        paused = set(await self._store.paused())
        held = {page.id for page in pages if is_held(page, paused)}
        await self._leave(held)
        await self._enter([page for page in pages if page.id not in held])

    async def _enter(self, pages: Sequence[PageRow]) -> None:
        """Hand pages to the scheduler: those that it does not have, and that nothing holds."""
        desk = self._desk
        if any(page.id in desk.unwritten for page in pages):
            with suppress(TimeoutError):  # a store in trouble must not hold up everyone; what is newest comes later
                async with asyncio.timeout(desk.timing.flush_s):
                    await desk.committer.flushed()
            pages = await self._store.read_pages([page.id for page in pages])
        paused = set(await self._store.paused()) if pages else set()
        missing = [
            page
            for page in pages
            if page.role == "page" and not desk.schedule.has(page.id) and not is_held(page, paused)
        ]
        if missing:
            desk.schedule.captures.note(missing)
            self.load(columns_of(missing))
        if pages:
            await desk.sources.enter({page.id for page in pages if not is_held(page, paused)})

    async def _leave(self, numbers: set[int]) -> None:
        await self._withdraw(numbers)
        for number in numbers:
            self._desk.schedule.leave(number)
            self._desk.hearing.left(number)
