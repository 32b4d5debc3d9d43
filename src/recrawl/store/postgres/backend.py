"""The connections of a PostgreSQL store: a small pool to read, one connection for what the owner writes.

Every wait has an end: for a connection, a statement, a lock, a turn. A server that hangs costs `StoreLost` after a
bounded time, never the loop. The owner holds a session lock and a generation number; each of its transactions locks
the ledger row of that generation, so that an owner that was replaced cannot write, whatever it believes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import asyncpg  # type: ignore[import-untyped]

from recrawl.errors import StoreBusy, StoreError, StoreLost, StoreTaken
from recrawl.store.opening import safe_name
from recrawl.store.postgres.errors import FOREIGN_ERRORS, in_our_words, store_errors
from recrawl.store.postgres_connection import LOCK, SQL, Connection, Limits, connect, settings, use_durable_commits
from recrawl.store.unbroken import to_the_end

_CLOSED = "this store was closed: open it again"
_MOVE_COUNTERS = "UPDATE recrawl.ledger SET last_token = {:d}, last_cursor = {:d}, observations = {:d}; "
"""Sent together with COMMIT, which saves a round trip; such a pair takes no parameters."""


@dataclass(slots=True)
class Writing:
    """A transaction of the owner; the counters are as they stand in it, and written back when they moved."""

    connection: Connection
    last_token: int
    last_cursor: int
    observations: int
    before: tuple[int, int, int]


class PostgresLink:
    """Connections of one store, shared by all its parts."""

    def __init__(self, dsn: str, limits: Limits) -> None:
        self.name = safe_name(dsn)
        self.generation = 0
        self.store_id = ""
        self.limits = limits
        self.awaited_bodies: set[bytes] = set()
        """Bodies that were put and that no version names yet: `forget` leaves them."""
        self._dsn = dsn
        self._pool: Any = None
        self._writer: Connection | None = None
        self._turn = asyncio.Lock()
        self._lost = ""
        self._closed = False

    # ---- reading

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Connection]:
        """A connection to read with, each statement for itself."""
        if self._closed:
            raise StoreError(_CLOSED)
        with store_errors(self.name):
            pool = await self._open_pool()
            connection = await pool.acquire(timeout=self.limits.connect_s)
            try:
                yield connection
            except (OSError, asyncio.CancelledError):
                # It may still wait for an answer that will never come.
                connection.terminate()
                raise
            finally:
                await pool.release(connection, timeout=self.limits.connect_s)

    @asynccontextmanager
    async def reading_at_once(self) -> AsyncIterator[Connection]:
        """A connection that sees everything as it is now, for as long as it takes."""
        async with self.reading() as connection:
            await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                await connection.execute(f"SET LOCAL statement_timeout = {int(self.limits.long_s * 1000)}")
                yield connection
            except (OSError, asyncio.CancelledError):
                connection.terminate()
                raise
            finally:
                if not connection.is_closed():
                    await connection.execute("ROLLBACK")

    async def fetch(self, query: str, *values: object) -> list[Any]:
        """All rows of a named query."""
        async with self.reading() as connection:
            return await connection.fetch(SQL[query], *values)

    async def _open_pool(self) -> Any:
        if self._pool is None:
            self._pool = asyncpg.create_pool(
                self._dsn,
                min_size=0,
                max_size=self.limits.readers,
                timeout=self.limits.connect_s,
                command_timeout=self.limits.statement_s + 1.0,
                server_settings=settings(self.limits, "reader"),
                init=use_durable_commits,
                reset=_leave_as_it_is,
            )
        await self._pool
        return self._pool

    # ---- writing

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Writing]:
        """One transaction of the owner: all of it is durable when the block ends, or nothing was written."""
        self._must_own()
        await self._take_turn()
        try:
            with store_errors(self.name):
                connection = await self._owned_connection()
                try:
                    writing = await self._begin(connection)
                    yield writing
                    await self._commit(writing)
                except BaseException as error:
                    await self._abandon(connection, error)
                    raise
        finally:
            self._turn.release()

    async def write(self, query: str, *values: object) -> list[Any]:
        """A transaction of one named query; its rows."""
        async with self.writing() as writing:
            return await writing.connection.fetch(SQL[query], *values)

    async def _begin(self, connection: Connection) -> Writing:
        await connection.execute("BEGIN")
        ledger = await connection.fetchrow(SQL["enter_as_owner"], self.generation)
        if ledger is None:
            raise self._fence_off()
        last_token, last_cursor, observations = ledger
        return Writing(connection, last_token, last_cursor, observations, (last_token, last_cursor, observations))

    async def _commit(self, writing: Writing) -> None:
        counters = (writing.last_token, writing.last_cursor, writing.observations)
        move = "" if counters == writing.before else _MOVE_COUNTERS.format(*counters)
        await writing.connection.execute(f"{move}COMMIT")

    async def become_owner(self, connection: Connection) -> None:
        """Take the lock and the next generation, or raise `StoreBusy`."""
        if not await _try_lock(connection, self.limits):
            holder = await connection.fetchrow(SQL["who_owns"], *LOCK)
            who = "" if holder is None else f" ({holder['application_name']}, process {holder['pid']} of the server)"
            raise StoreBusy(f"{self.name} is in use by another tracker{who}: stop it first, or use another database")
        self.generation = int(await connection.fetchval(SQL["next_generation"]))
        await connection.execute("SELECT set_config('application_name', $1, false)", self._owner_name())
        await connection.execute(SQL["make_desk"])
        self._writer = connection

    async def close(self) -> None:
        """Let go of the lock and all connections, after the write under way."""
        _done, given_up = await to_the_end(self._close())
        if given_up:
            raise asyncio.CancelledError

    async def _close(self) -> None:
        await self._take_turn()
        try:
            self._closed = True
            if self._writer is not None:
                with suppress(Exception):
                    await self._writer.close(timeout=self.limits.connect_s)
                self._writer = None
            if self._pool is not None:
                with suppress(Exception):
                    await asyncio.wait_for(self._pool.close(), self.limits.connect_s)
                self._pool.terminate()
        finally:
            self._turn.release()

    def _owner_name(self) -> str:
        """Ours alone: no other session has this generation."""
        return f"recrawl owner {self.generation}"

    def _must_own(self) -> None:
        if self._closed:
            raise StoreError(_CLOSED)
        if self._lost:
            raise StoreTaken(self._lost)
        if self.generation == 0:
            raise StoreBusy(
                f"{self.name} was opened to read: only its owner writes; post an order, or open it as owner"
            )

    async def _take_turn(self) -> None:
        try:
            await asyncio.wait_for(self._turn.acquire(), self.limits.connect_s + self.limits.statement_s)
        except TimeoutError:
            raise StoreBusy(f"{self.name} is busy with a long write: try again") from None

    async def _owned_connection(self) -> Connection:
        self._must_own()
        if self._writer is None or self._writer.is_closed():
            self._writer = None
            connection = await connect(self._dsn, self.limits, f"owner {self.generation}")
            try:
                await self._reclaim(connection)
            except BaseException:
                connection.terminate()
                raise
            self._writer = connection
        return self._writer

    async def _reclaim(self, connection: Connection) -> None:
        """Take the lock again after a lost connection, if nobody has become owner since."""
        await use_durable_commits(connection)
        if await connection.fetchval(SQL["current_generation"]) != self.generation:
            raise self._fence_off()
        # The server may not have noticed yet that our old session is dead.
        await connection.execute(SQL["end_old_session"], *LOCK, self._owner_name())
        if not await _try_lock(connection, self.limits):
            raise StoreLost(f"{self.name} still holds the lock of a session that is gone: try again")
        if await connection.fetchval(SQL["current_generation"]) != self.generation:
            raise self._fence_off()
        await connection.execute(SQL["make_desk"])

    def _fence_off(self) -> StoreTaken:
        self._lost = f"{self.name} has another owner now: this one may not write any more; stop it"
        return StoreTaken(self._lost)

    async def _abandon(self, connection: Connection, error: BaseException) -> None:
        """Undo the transaction, or let go of the connection if it cannot be told to."""
        lost = isinstance(error, FOREIGN_ERRORS) and isinstance(in_our_words(error, self.name), StoreLost)
        if not lost and not connection.is_closed():
            try:
                async with asyncio.timeout(self.limits.lock_s):
                    await connection.execute("ROLLBACK")
            except FOREIGN_ERRORS:
                lost = True
        if lost or connection.is_closed():
            connection.terminate()
            self._writer = None


async def _try_lock(connection: Connection, limits: Limits) -> bool:
    """Take the owner's lock; False if who holds it is alive, or does not let go in time.

    The session of a process that has just died ends as soon as it is done with what it does. One that is idle for a
    while, or begins something new, has someone at its other end.
    """
    clock = asyncio.get_running_loop().time
    began = clock()
    idle_since: float | None = None
    first_query: object = None
    while not await connection.fetchval(SQL["try_owner_lock"], *LOCK):
        holder = await connection.fetchrow(SQL["who_owns"], *LOCK)
        if holder is not None:
            first_query = first_query or holder["query_start"]
            idle_since = None if holder["state"] == "active" else idle_since or clock()
            is_idle = idle_since is not None and clock() - idle_since >= limits.idle_s
            if is_idle or holder["query_start"] != first_query:
                return False
        if clock() - began >= limits.owner_s:
            return False
        await asyncio.sleep(0.02)
    return True


async def _leave_as_it_is(_connection: Any) -> None:
    """Nothing of a session is changed while reading, so nothing has to be put back."""
