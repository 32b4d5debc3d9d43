"""Which pages the scheduler has: those of the store that are tracked and not held, as pages come, go and pause.

Everything that changes this goes through one lock, which taking pages holds as well: between what the scheduler hands
out and the lease that makes it durable nobody may withdraw a page.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

from recrawl.store.contract import Store
from recrawl.store.rows import NewPage, PageEdit, PageRow, PauseKind
from recrawl.tracker.clock import DAY_S
from recrawl.tracker.desk import Desk
from recrawl.tracker.loading import columns_of, load_pages
from recrawl.tracker.newcomers import Rejected, Wanted, newcomer

_BATCH = 1000
_UNTRACKED = ("retired", "quarantined")


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
        desk = self._desk
        async with self.lock:
            for number, low_s in lows_s.items():
                scheduled = desk.index.scheduled(number)
                if scheduled is not None and number not in desk.once:  # what is crawled once has none yet
                    desk.scheduler.update([scheduled], min_interval=low_s / DAY_S)

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
        held = {page.id for page in pages if _keys(page) & paused or page.state in _UNTRACKED}
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
            if desk.index.scheduled(page.id) is None
            and page.role == "page"
            and page.state not in _UNTRACKED
            and not _keys(page) & paused
        ]
        if missing:
            desk.captures.note(missing)
            load_pages(desk, columns_of(missing))
        if desk.sources is not None and pages:
            await desk.sources.enter(
                {page.id for page in pages if page.state not in _UNTRACKED and not _keys(page) & paused}
            )

    async def _leave(self, numbers: set[int]) -> None:
        await self._withdraw(numbers)
        if self._desk.sources is not None:
            self._desk.sources.leave(numbers)
        for number in numbers:
            self._desk.once.discard(number)
            self._desk.hearing.left(number)
            scheduled = self._desk.index.scheduled(number)
            if scheduled is not None:
                self._desk.scheduler.remove([scheduled])
                self._desk.index.drop(number)


def _keys(page: PageRow) -> set[tuple[PauseKind, str]]:
    """Under which names a page may be paused."""
    return {("page", page.url), ("group", page.group), ("host", page.host)}
