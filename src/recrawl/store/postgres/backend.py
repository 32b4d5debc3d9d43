"""A store on a PostgreSQL server: a small pool of connections to read, one connection for what the owner writes.

The address names a database (`postgresql://user:password@host:port/database`); the store is the schema `recrawl` in it.
It needs a session of its own: a pooler in between must be in session mode. Servers from version 13 on will do.

Every wait has an end: for a connection, a statement, a lock, a turn. A server that hangs costs `StoreLost` after a
bounded time, never the loop. The owner holds a session lock and a generation number; each of its transactions locks
the ledger row of that generation, so that an owner that was replaced cannot write, whatever it believes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import asyncpg

from recrawl.errors import StoreBusy, StoreError, StoreLost, StoreTaken
from recrawl.store.bodies import check_digest, pack_body, unpack_body
from recrawl.store.columns import ScheduleColumns
from recrawl.store.crash_points import crash_point
from recrawl.store.postgres.address import safe_name
from recrawl.store.postgres.backup import write_backup
from recrawl.store.postgres.connection import (
    LOCK,
    SQL,
    Connection,
    Limits,
    connect,
    settings,
    use_durable_commits,
)
from recrawl.store.postgres.errors import FOREIGN_ERRORS, in_our_words, store_errors
from recrawl.store.postgres.schedule import read_schedule
from recrawl.store.postgres.schema import find_version, make_tables, migrate
from recrawl.store.queries import load_migrations, load_statements
from recrawl.store.steps import (
    Count,
    CrashPoints,
    Each,
    Many,
    Names,
    Rows,
    Start,
    Step,
    Take,
    Value,
    clean,
    uncancellable,
)
from recrawl.store.store import Store

DEFAULT_LIMITS = Limits()
_CLOSED = "this store was closed: open it again"
_MOVE_COUNTERS = "UPDATE recrawl.ledger SET last_token = {:d}, last_cursor = {:d}, observations = {:d}; "
"""Sent together with COMMIT, which saves a round trip; such a pair takes no parameters."""
_STATEMENTS = load_statements("postgres")
_BODIES_SWEPT = 500
_BODIES_CHECKED = 20


@dataclass(slots=True)
class Transaction:
    """What runs the steps of operations on a connection.

    In a transaction of the owner the counters are as they stand in it, and written back when they moved.
    """

    connection: Connection
    last_token: int = 0
    last_cursor: int = 0
    observations: int = 0
    timeout_s: float | None = None  # of a statement; None for that of the connection

    async def drive(self, start: Start[Value]) -> Value:
        """Run an operation: do its steps, one after the other, and send it the answers."""
        steps, answer = start(), None
        try:
            while True:
                answer = await self.take(steps.send(answer))
        except StopIteration as ended:
            value: Value = ended.value
            return value

    async def take(self, step: Step) -> Any:  # noqa: PLR0911 - a table
        """Do a step; its answer."""
        match step:
            case Rows(query, values):
                statement = _STATEMENTS[query]
                if statement.skipped:
                    return []
                return await self.connection.fetch(statement.sql, *_cleaned(values), timeout=self.timeout_s)
            case Each(query, keys):
                columns = list(zip(*keys, strict=True))
                return await self.connection.fetch(SQL[query], *map(_cleaned, columns)) if columns else []
            case Many():
                await self._run_many(step)
            case Count(query, values):
                status = await self.connection.execute(SQL[query], *_cleaned(values))
                return int(status.rsplit(" ", 1)[-1])
            case Take(counter, count):
                return await self._numbers(counter, count)
            case Names(hosts, others):
                if hosts:
                    await self.connection.fetch(SQL["name_hosts"], sorted({clean(host) for host in hosts}))
                return {name: name for names in (hosts, others) for name in names}
        return None

    async def _run_many(self, step: Many) -> None:
        """Hand rows to a statement as one array for each column, or by COPY."""
        statement = _STATEMENTS[step.query]
        if statement.skipped:
            return
        taken = zip(*(step.rows if statement.takes is None else map(statement.takes, step.rows)), strict=True)
        heads = list(zip(*step.heads, strict=True))[statement.drops :]
        columns = [_cleaned(column) for column in (*heads, *taken)]
        if not columns:
            return
        if statement.table:
            await self.connection.copy_records_to_table(
                statement.table, records=list(zip(*columns, strict=True)), columns=statement.columns
            )
            columns = []
        if statement.sql:
            # Prepared, which `execute` without values would not be: planning costs as much as doing it.
            await self.connection.fetch(statement.sql, *columns)

    async def _numbers(self, counter: str, count: int) -> int:
        if counter == "page":
            return int(await self.connection.fetchval(SQL["take_page_ids"], count))
        if counter == "observation":
            self.observations += count
            return 0
        if counter == "token":
            self.last_token += count
            return self.last_token - count + 1
        self.last_cursor += count
        return self.last_cursor - count + 1


class PostgresBackend:
    """An open PostgreSQL store, made by `open_postgres`."""

    def __init__(self, dsn: str, limits: Limits) -> None:
        self.name = safe_name(dsn)
        self.generation = 0
        self.store_id = ""
        self.limits = limits
        self._awaited_bodies: set[bytes] = set()  # put, and not yet named by a version: sweeps leave them
        self._dsn = dsn
        self._pool: asyncpg.Pool[asyncpg.Record] | None = None
        self._writer: Connection | None = None
        self._turn = asyncio.Lock()
        self._lost = ""
        self._closed = False

    # ---- operations

    async def read(self, start: Start[Value], *, snapshot: bool = False) -> Value:
        """Run an operation, each statement for itself, or all in one snapshot."""
        async with self.reading_at_once() if snapshot else self.reading() as connection:
            return await Transaction(connection, timeout_s=self.limits.long_s if snapshot else None).drive(start)

    async def write(self, start: Start[Value], points: CrashPoints | None = None, *, visitor: bool = False) -> Value:
        """Run an operation in a transaction of the owner; a visitor has one statement, on a connection to read."""
        if visitor:
            return await self.read(start)
        async with self.writing() as transaction:
            value = await transaction.drive(start)
            if points is not None:
                crash_point(points.before)
        if points is not None:
            crash_point(points.after)
        return value

    def address_keys(self, urls: Iterable[str]) -> list[bytes]:
        """What addresses are found by, in the order given."""
        return list(map(url_key, urls))

    async def load_schedule(self) -> ScheduleColumns:
        """All tracked pages as columns."""
        async with self.reading_at_once() as connection:
            return await read_schedule(connection, self.limits.long_s)

    async def put_body(self, digest: bytes, body: bytes) -> None:
        """Keep a body as a row."""
        check_digest(digest, body)
        packed = await asyncio.to_thread(pack_body, body)
        self._awaited_bodies.add(digest)
        async with self.writing() as transaction:
            await transaction.connection.execute(SQL["body_put"], digest, packed)
            crash_point("blob-tmp")
        crash_point("blob-renamed")

    async def read_body(self, digest: bytes) -> bytes | None:
        """A body, if it is kept and whole."""
        async with self.reading() as connection:
            packed = await connection.fetchval(SQL["body_read"], digest)
        return None if packed is None else await asyncio.to_thread(unpack_body, digest, packed)

    def bodies_decided(self, digests: Collection[bytes]) -> None:
        """Results that name these bodies were applied or refused."""
        self._awaited_bodies.difference_update(digests)

    async def sweep_bodies(self) -> None:
        """Delete bodies that no version names and no result under way may name."""
        last: bytes | None = b""
        while last is not None:
            async with self.writing() as transaction:
                # Looked at only now: a body that is in the table by this time is among those that are awaited.
                awaited = list(self._awaited_bodies)
                last = await transaction.connection.fetchval(SQL["bodies_swept"], awaited, last, _BODIES_SWEPT)

    async def check(self, start: Start[list[str]]) -> list[str]:
        """Sentences on what is wrong with the tables and the bodies, as one snapshot sees them."""
        async with self.reading_at_once() as connection:
            found = await Transaction(connection, timeout_s=self.limits.long_s).drive(start)
            damaged, last = 0, b""
            while bodies := await connection.fetch(SQL["bodies_after"], last, _BODIES_CHECKED):
                for digest, packed in bodies:
                    damaged += await asyncio.to_thread(unpack_body, digest, packed) is None
                last = bodies[-1]["digest"]
        return [*found, f"{damaged} bodies are damaged"] if damaged else found

    async def backup(self, path: Path) -> None:
        """Write a consistent copy."""
        async with self.reading_at_once() as connection:
            await write_backup(connection, path, self.limits.long_s)

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

    async def _open_pool(self) -> asyncpg.Pool[asyncpg.Record]:
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
    async def writing(self) -> AsyncIterator[Transaction]:
        """One transaction of the owner: all of it is durable when the block ends, or nothing was written."""
        self._must_own()
        await self._take_turn()
        try:
            with store_errors(self.name):
                connection = await self._owned_connection()
                try:
                    before = await self._begin(connection)
                    transaction = Transaction(connection, *before)
                    yield transaction
                    counters = (transaction.last_token, transaction.last_cursor, transaction.observations)
                    move = "" if counters == before else _MOVE_COUNTERS.format(*counters)
                    await connection.execute(f"{move}COMMIT")
                except BaseException as error:
                    await self._abandon(connection, error)
                    raise
        finally:
            self._turn.release()

    async def _begin(self, connection: Connection) -> tuple[int, int, int]:
        """Begin a transaction as owner; the counters."""
        await connection.execute("BEGIN")
        ledger = await connection.fetch(SQL["enter_as_owner"], self.generation)
        if not ledger:
            raise self._fence_off()
        [(last_token, last_cursor, observations)] = ledger
        return last_token, last_cursor, observations

    async def become_owner(self, connection: Connection) -> None:
        """Take the lock and the next generation, or raise `StoreBusy`."""
        if not await _try_lock(connection, self.limits):
            holder = await connection.fetchrow(SQL["who_owns"], *LOCK)
            who = "" if holder is None else f" ({holder['application_name']}, process {holder['pid']} of the server)"
            raise StoreBusy(f"{self.name} is in use by another tracker{who}: stop it first, or use another database")
        self.generation = int(await connection.fetchval(SQL["next_generation"]))
        await connection.execute("SELECT set_config('application_name', $1, false)", self._owner_name())
        await connection.execute(SQL["make_staging"])
        self._writer = connection

    async def close(self) -> None:
        """Release the lock and all connections, after the write under way."""
        _done, given_up = await uncancellable(self._close())
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
        await connection.execute(SQL["make_staging"])

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


async def open_postgres(dsn: str, *, owner: bool, create: bool = True, limits: Limits = DEFAULT_LIMITS) -> Store:
    """Open a store on a PostgreSQL server.

    Args:
        dsn: its address; the database must exist.
        owner: take the lock and write; otherwise only read, and leave orders.
        create: make the tables if there are none, if we are to own them.
        limits: how long to wait.
    """
    backend = PostgresBackend(dsn, limits)
    with store_errors(safe_name(dsn)):
        connection = await connect(dsn, limits, "owner" if owner else "visitor")
        try:
            await _prepare(backend, connection, owner=owner, create=create)
        except BaseException:
            connection.terminate()
            raise
        if not owner:
            await connection.close(timeout=limits.connect_s)
    return Store(backend)


async def _prepare(backend: PostgresBackend, connection: Connection, *, owner: bool, create: bool) -> None:
    steps = load_migrations("postgres")
    version = await find_version(connection, backend.name)
    if version == 0:
        if not create or not owner:
            raise StoreError(f"there is no store in {backend.name}: begin one with `recrawl add` or `recrawl track`")
        await make_tables(connection, backend.name)
    elif version < len(steps) and not owner:
        problem = "was written by an older recrawl: start the tracker once to bring it up to date"
        raise StoreError(f"{backend.name} {problem}")
    if owner:
        await use_durable_commits(connection)
        await backend.become_owner(connection)
        await migrate(connection, backend.name, steps[version or len(steps) :])
    [ledger] = await connection.fetch(SQL["read_ledger"])
    backend.store_id = str(ledger["store_id"])


def url_key(url: str) -> bytes:
    """What an address is found by: a digest, since an index over texts has a bound to their length."""
    return blake2b(url.encode("utf-8", "surrogatepass"), digest_size=20).digest()


def _cleaned(values: Sequence[Any]) -> Sequence[Any]:
    """Values whose texts PostgreSQL can hold; most have none to clean, which one look at all of them together tells."""
    texts = [value for value in values if isinstance(value, str)]
    if not texts:
        return values
    together = "".join(texts)
    if together.isascii() and "\0" not in together:
        return values
    return [clean(value) if isinstance(value, str) else value for value in values]
