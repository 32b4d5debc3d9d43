"""One change feed for all open streams, and the bound on how many streams are open.

While a stream is open, one task looks for new events twice a second and keeps the last thousand. Streams read those:
the store is asked as often for a hundred streams as for one. A stream that starts further back reads the store until
it has caught up.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice

from recrawl.errors import StoreError
from recrawl.service.errors import ApiError
from recrawl.store.rows import Change
from recrawl.tracker.tracker import Tracker

MOST_STREAMS = 100
MOST_OF_A_CLIENT = 25
LOOK_S = 0.5
CHECK_S = 15.0
LONGEST_S = 3600.0
_BATCH = 200
_KEPT = 1000


class StreamSlots:
    """Counts open streams of one kind, of all clients and of each."""

    def __init__(self) -> None:
        self._of_client: Counter[str] = Counter()

    @property
    def open(self) -> int:
        """How many streams are open."""
        return self._of_client.total()

    def check(self, client: str) -> None:
        """Refuse a request while the most are open, of all clients or of this one."""
        if self.open >= MOST_STREAMS:
            raise ApiError(503, f"{MOST_STREAMS} streams are open already", headers={"Retry-After": "30"})
        if self._of_client[client] >= MOST_OF_A_CLIENT:
            problem = f"{MOST_OF_A_CLIENT} streams of this client are open already"
            raise ApiError(503, problem, headers={"Retry-After": "30"})

    @contextmanager
    def taken(self, client: str) -> Iterator[bool]:
        """Hold a slot for a client if one is free; yield whether it was.

        Entered by the generator of a stream, not by its handler: a generator that is never started holds nothing, and
        one that was started gives its slot back however it ends.
        """
        try:
            self.check(client)
        except ApiError:
            yield False
            return
        self._of_client[client] += 1
        try:
            yield True
        finally:
            self._of_client[client] -= 1
            if not self._of_client[client]:
                del self._of_client[client]


class ChangeFeed:
    """Gives the events of a running tracker to any number of streams.

    Args:
        tracker: in this process.
    """

    def __init__(self, tracker: Tracker) -> None:
        self.api_slots = StreamSlots()
        self.page_slots = StreamSlots()
        """Of the API and of open pages of the dashboard: neither can take the other's."""
        self._tracker = tracker
        self._recent: deque[Change] = deque(maxlen=_KEPT)
        self._last: int | None = None
        self._news = asyncio.Event()
        self._listeners = 0
        self._task: asyncio.Task[None] | None = None

    async def follow(
        self, cursor: int, is_allowed: Callable[[], Awaitable[bool]], beat_s: float = CHECK_S
    ) -> AsyncGenerator[list[Change], None]:
        """Yield events after a cursor in their order, a batch at a time.

        Ends with the tracker, after an hour, or when `is_allowed`, asked every 15 seconds, says no.

        Args:
            cursor: of the last event that the client has.
            is_allowed: whether the client may still listen.
            beat_s: yield an empty batch if nothing happened for this long.
        """
        clock = asyncio.get_running_loop().time
        started = checked = beat = clock()
        with self._listening() as looking:
            while not self._tracker.stopping and not looking.done() and clock() - started < LONGEST_S:
                found = await self._after(cursor)
                if found:
                    cursor = found[-1].cursor
                if clock() - checked >= CHECK_S:
                    checked = clock()
                    if not await is_allowed():
                        return
                if found or clock() - beat >= beat_s:
                    beat = clock()
                    yield found
                if len(found) < _BATCH:
                    await self._wait(cursor, min(beat + beat_s, checked + CHECK_S) - clock())

    async def _after(self, cursor: int) -> list[Change]:
        if self._last is not None and cursor >= self._last:
            return []
        if self._recent and self._recent[0].cursor <= cursor + 1:  # cursors have no gaps
            start = cursor + 1 - self._recent[0].cursor
            return list(islice(self._recent, start, start + _BATCH))
        try:
            return await self._tracker.store.changes(cursor, _BATCH)
        except StoreError:  # a client that is behind asks again, but not without a pause
            await self._tracker.pause(LOOK_S)
            return []

    async def _wait(self, cursor: int, seconds: float) -> None:
        """Wait until there is more than a cursor, or the time has passed."""
        if self._last is None or cursor >= self._last:
            news = self._news
            with suppress(TimeoutError):
                async with asyncio.timeout(max(seconds, 0.0)):
                    await news.wait()

    @contextmanager
    def _listening(self) -> Iterator[asyncio.Task[None]]:
        if self._task is None:
            self._task = asyncio.create_task(self._look(), name="change feed")
        self._listeners += 1
        try:
            yield self._task
        finally:
            self._listeners -= 1
            if not self._listeners:
                self._task.cancel()
                self._task = None
                self._last = None
                self._recent.clear()

    async def _look(self) -> None:
        """Read what is new, for all who listen."""
        try:
            while not self._tracker.stopping:
                with suppress(StoreError):
                    await self._look_once()
                await self._tracker.pause(LOOK_S)
        finally:
            self._wake()

    async def _look_once(self) -> None:
        store = self._tracker.store
        last, known = await store.last_cursor(), self._last
        if known is None or last - known > _KEPT:
            self._recent.clear()
        elif last > known:
            self._recent.extend(await store.changes(known, last - known))
        if last != known:
            self._last = last
            self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()
