"""Results on their way to the store: many in one transaction, kept and tried again until they are durable.

Full batches go at once, the rest after a moment. The rows of hosts are built when a batch is written. A store that is
busy, full or away holds results up, never drops them: a result keeps its lease's token, so that written twice it counts
once. While too many wait, nothing more is taken. When the process must end, what could not be written is given up:
nobody was told that it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from recrawl.errors import StoreError, StoreTaken
from recrawl.store.rows import Answer, Result, SourceRow
from recrawl.store.store import Store
from recrawl.tracker.clock import TIMING, Timing
from recrawl.tracker.hosts import HostBook
from recrawl.tracker.kinds import NOW
from recrawl.tracker.usage import Accounts
from recrawl.tracker.visit import Visit

MOST_AT_ONCE = 256
ENOUGH = 64


class Committer:
    """Writes results in batches.

    Args:
        store: where to.
        hosts: whose rows are written along.
        accounts: counts that are written along.
        on_trouble: told in a sentence when the store cannot write, and with "" when it can again.
        timing: how long it waits.
    """

    def __init__(
        self,
        store: Store,
        hosts: HostBook,
        accounts: Accounts,
        on_trouble: Callable[[str], None],
        timing: Timing = TIMING,
    ) -> None:
        self._store = store
        self._hosts = hosts
        self._accounts = accounts
        self._on_trouble = on_trouble
        self._timing = timing
        self._waiting: list[Visit] = []
        self._writing = 0
        self._wake = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._closing = False
        self._give_up_at = float("inf")
        self.trouble = ""
        self.abandoned = 0
        self.writing = asyncio.Lock()
        """Held while a batch is written, and by those who change in the store what a result brings too."""
        self.latest_source: Callable[[SourceRow], SourceRow] = lambda row: row
        """Gives the row of a source as it is when it is written."""

    def __len__(self) -> int:
        """Results that are not durable yet."""
        return len(self._waiting) + self._writing

    def put(self, visit: Visit) -> asyncio.Future[Answer | None]:
        """Queue a visit that was decided; return its future, which is done when it is durable."""
        if visit.durable is None:
            visit.durable = asyncio.get_running_loop().create_future()
        self._waiting.append(visit)
        self._empty.clear()
        if len(self._waiting) >= ENOUGH or len(self._waiting) == 1:
            self._wake.set()
        return visit.durable

    async def run(self) -> None:
        """Write batches until `close`, and the rest then."""
        while True:
            await self._wake.wait()
            if not self._waiting:
                self._wake.clear()
                self._empty.set()
                if self._closing:
                    return
                continue
            if len(self._waiting) < ENOUGH and not self._closing:
                await self._a_little()
            batch, self._waiting = self._waiting[:MOST_AT_ONCE], self._waiting[MOST_AT_ONCE:]
            self._writing = len(batch)
            await self._write(batch)
            self._writing = 0

    async def _a_little(self) -> None:
        """Wait for a full batch, at most `commit_s`."""
        self._wake.clear()
        try:
            async with asyncio.timeout(self._timing.commit_s):
                await self._wake.wait()
        except TimeoutError:
            pass
        self._wake.set()

    async def flushed(self) -> None:
        """Wait until nothing waits."""
        await self._empty.wait()

    def close(self, patience_s: float) -> None:
        """Let `run` end when all is written, or when the store has not taken it for so long."""
        self._closing = True
        self._give_up_at = asyncio.get_running_loop().time() + patience_s
        self._wake.set()

    async def _write(self, batch: list[Visit]) -> None:
        retry_s = self._timing.commit_retry_s
        tallies, again = self._accounts.to_write(), False
        while True:
            try:
                async with self.writing:
                    await self._keep_bodies(batch)
                    marks = self._hosts.marks(visit.page.host for visit in batch)
                    answers = await self._store.complete([self._result(visit) for visit in batch], tallies)
            except StoreTaken as error:
                self._accounts.keep(tallies)
                self._abandon(batch)
                self._say(str(error))
                raise
            except StoreError as error:
                self._say(str(error))
                if self._closing and asyncio.get_running_loop().time() >= self._give_up_at:
                    self._accounts.keep(tallies)
                    self._abandon(batch)
                    return
                await asyncio.sleep(retry_s)
                again = True
                retry_s = min(2 * retry_s, self._timing.commit_longest_retry_s)
                continue
            except Exception as error:  # one of them cannot be stored at all: the others must not suffer
                self._accounts.keep(tallies)
                await self._one_by_one(batch, error)
                return
            self._say("")
            applied = {visit.page.host for visit, answer in zip(batch, answers, strict=True) if answer == "applied"}
            self._hosts.saved({name: marks[name] for name in applied}, robots=False)
            # The store counts with the first result that it applies. Results of pages that have left meanwhile are
            # stale: if the batch has no others, its counts wait for the next. Sent again, a duplicate is a result that
            # was applied, and counted, though the answer was lost.
            if "applied" not in answers and not (again and "duplicate" in answers):
                self._accounts.keep(tallies)
            for visit, answer in zip(batch, answers, strict=True):
                if visit.durable is not None and not visit.durable.done():
                    visit.durable.set_result(answer)
            return

    def _result(self, visit: Visit) -> Result:
        """Return what is written of a visit, with what is known of its host and its source by now."""
        source = None if visit.source is None else self.latest_source(visit.source)
        answered = NOW if visit.trigger == NOW else ""
        host = self._hosts.of(visit.page.host).row()
        events = tuple(visit.events)
        return Result(visit.seen, visit.row, host, events, visit.version, source, answered, visit.began_at)

    async def _one_by_one(self, batch: list[Visit], error: Exception) -> None:
        """Write results one by one; set the error on those that cannot be stored."""
        if len(batch) == 1:
            (visit,) = batch
            if visit.durable is not None and not visit.durable.done():
                visit.durable.set_exception(error)
            return
        for place, visit in enumerate(batch):
            try:
                await self._write([visit])
            except StoreTaken:  # nothing more is written: nobody may wait for the rest
                self._abandon(batch[place + 1 :])
                raise

    async def _keep_bodies(self, batch: list[Visit]) -> None:
        """Write bodies before the results that name them."""
        for visit in batch:
            if visit.version is not None and visit.version.body_digest is not None:
                await self._store.put_body(visit.version.body_digest, visit.answer.body)

    def _abandon(self, batch: list[Visit]) -> None:
        """Cancel results that cannot be written: none was reported as durable, and their pages are fetched again."""
        self.abandoned += len(batch) + len(self._waiting)
        for visit in (*batch, *self._waiting):
            if visit.durable is not None:
                visit.durable.cancel()
        self._waiting.clear()
        self._empty.set()

    def _say(self, trouble: str) -> None:
        if trouble != self.trouble:
            self.trouble = trouble
            self._on_trouble(trouble)
