"""How fast a store leases pages and commits results, against a bare loop that only inserts the observations.

Results go in batches of 256, each one transaction that is durable when it returns. One in ten brings a change: an
event and a new text. The bare loop writes the same observations in the same batches, as durably, into one table
without an index, and does nothing else: no lease, no page, no host, no event, no second look at what was written.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import astuple, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, TypeVar

from recrawl.bench.measure import RUNS
from recrawl.store.rows import HostRow, LeaseRow, NewChange, NewPage, NewVersion, Observation, PageRow, Result
from recrawl.store.store import Store, open_store

BATCH = 256
_HOSTS = 50
_NOW = 1_790_000_000.0
_BELIEF = bytes(range(96))
_TEXT = bytes(1000)
Item = TypeVar("Item")


class Speeds(NamedTuple):
    """Of a store, in rows a second on the clock: the best of some rounds each."""

    leases: float
    commits: float
    bare: float


def sqlite_speeds(pages: int) -> Speeds:
    """Of SQLite, in a temporary folder."""
    with TemporaryDirectory(prefix="recrawl-bench-") as folder:
        leases, commits = asyncio.run(_store_speeds(str(Path(folder) / "data"), pages))
        return Speeds(leases, commits, _bare_sqlite(Path(folder) / "bare.db", pages))


def postgres_speeds(dsn: str, bare_dsn: str, pages: int) -> Speeds:
    """Of PostgreSQL, in two empty databases."""

    async def both() -> Speeds:
        leases, commits = await _store_speeds(dsn, pages)
        return Speeds(leases, commits, await _bare_postgres(bare_dsn, pages))

    return asyncio.run(both())


async def _store_speeds(where: str, pages: int) -> tuple[float, float]:
    store = await open_store(where, owner=True)
    try:
        added = await store.add_pages(
            [NewPage(f"https://h{n % _HOSTS}.example/page/{n}", f"h{n % _HOSTS}.example") for n in range(pages)]
        )
        ids = [number for number, _ in added]
        leases, commits = [], []
        for turn in range(RUNS):
            lease_s, commit_s = await _round(store, ids, _NOW + 1000.0 * turn)
            leases.append(pages / lease_s)
            commits.append(pages / commit_s)
        return max(leases), max(commits)
    finally:
        await store.close()


async def _round(store: Store, ids: Sequence[int], now: float) -> tuple[float, float]:
    """Seconds to lease all pages, and to commit a result for each."""
    leased: list[tuple[PageRow, LeaseRow]] = []
    started = time.perf_counter()
    for batch in _batches(ids):
        leased += await store.lease(batch, "bench", now, now + 300.0)
    lease_s = time.perf_counter() - started
    batches = list(_batches([_result(page, lease, now) for page, lease in leased]))
    started = time.perf_counter()
    answers = [await store.complete(batch, {"taken": len(batch)}) for batch in batches]
    commit_s = time.perf_counter() - started
    assert all(answer == "applied" for each in answers for answer in each)
    return lease_s, commit_s


def _batches(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    for start in range(0, len(items), BATCH):
        yield items[start : start + BATCH]


def _observation(page_id: int, token: int, at: float) -> Observation:
    return Observation(
        page_id, token, at, "ok", "unchanged", status=200, gap_s=1000.0, wire_bytes=10_240, elapsed_s=0.2, worker="b"
    )


def _result(page: PageRow, lease: LeaseRow, now: float) -> Result:
    changed = page.id % 10 == 0
    seen = replace(_observation(page.id, lease.token, now), verdict="changed" if changed else "unchanged")
    row = replace(
        page,
        attempted_at=now,
        fetched_at=now,
        outcome="ok",
        raw_digest=lease.token.to_bytes(16, "big") if changed else page.raw_digest,
        belief=_BELIEF,
        visits=page.visits + 1,
        changes=page.changes + changed,
        version=page.version + changed,
    )
    host = HostRow(page.host, 1.0, now + 1.0)
    if not changed:
        return Result(seen, row, host)
    event = NewChange("changed", now, page.url, page.id, now - 1000.0, b"o" * 16, b"n" * 16, "schedule", "{}")
    return Result(seen, row, host, (event,), NewVersion(row.version, now, b"n" * 16, _TEXT))


_COLUMNS = [field.name for field in fields(Observation)]


def _bare_rows(pages: int) -> list[tuple[object, ...]]:
    return [astuple(_observation(n, n, _NOW)) for n in range(1, pages + 1)]


def _bare_sqlite(path: Path, pages: int) -> float:
    insert = f"INSERT INTO seen VALUES ({', '.join('?' * len(_COLUMNS))})"
    rows = _bare_rows(pages)
    speeds = []
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"CREATE TABLE seen ({', '.join(_COLUMNS)})")
        for _ in range(RUNS):
            started = time.perf_counter()
            for batch in _batches(rows):
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany(insert, batch)
                connection.execute("COMMIT")
            speeds.append(pages / (time.perf_counter() - started))
    return max(speeds)


_KINDS = {"int": "bigint", "float": "float8", "str": "text"}


async def _bare_postgres(dsn: str, pages: int) -> float:
    import asyncpg

    rows = _bare_rows(pages)
    kinds = [_KINDS.get(type(value).__name__, "text") for value in rows[0]]
    named = zip(_COLUMNS, kinds, strict=True)
    connection = await asyncpg.connect(dsn)
    speeds = []
    try:
        await connection.execute(f"CREATE TABLE seen ({', '.join(f'{name} {kind}' for name, kind in named)})")
        insert = f"INSERT INTO seen VALUES ({', '.join(f'${place + 1}' for place in range(len(_COLUMNS)))})"
        for _ in range(RUNS):
            started = time.perf_counter()
            for batch in _batches(rows):
                await connection.executemany(insert, batch)  # one transaction
            speeds.append(pages / (time.perf_counter() - started))
    finally:
        await connection.close()
    return max(speeds)
