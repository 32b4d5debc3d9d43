"""SQL in files, and the thread that shares a transaction among calls."""

from __future__ import annotations

import asyncio
import threading
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from store_samples import SqliteMaker, opened, run

import recrawl.store
from recrawl.errors import InvalidInput
from recrawl.store.opening import open_store
from recrawl.store.queries import load_migrations, load_queries, split_queries
from recrawl.store.sqlite import SqliteStore
from recrawl.store.sqlite_session import Session

DIALECTS = {"sqlite": "sqlite*.py", "postgres": "postgres*.py"}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_query_is_used_and_every_use_has_a_query(dialect: str) -> None:
    folder = Path(next(iter(recrawl.store.__path__)))
    code = "".join(file.read_text() for file in folder.glob(DIALECTS[dialect]))
    unused = [name for name in load_queries(dialect) if f'"{name}"' not in code]
    assert unused == []


def test_every_query_of_sqlite_can_be_prepared() -> None:
    with closing(apsw.Connection(":memory:")) as connection:
        for step in load_migrations("sqlite"):
            connection.execute(step.sql)
        connection.execute(load_queries("sqlite")["packed_create"])
        for name, sql in load_queries("sqlite").items():
            if name != "packed_create":
                list(connection.execute("EXPLAIN " + sql, _nulls(sql)))


def _nulls(sql: str) -> list[None]:
    numbered = [number for number in range(30) if f"?{number}" in sql]
    return [None] * (max(numbered) if numbered else sql.count("?"))


def test_a_query_needs_a_purpose_and_a_statement() -> None:
    for text in ("-- name: a\nSELECT 1;", "-- name: a\n-- For nothing.\n", "-- name: a"):
        with pytest.raises(ValueError, match="'a'"):
            list(split_queries(text))


@pytest.mark.parametrize("where", ["", "mysql://host/name", "sqlite:///file", "http://x", "a\0b"])
def test_an_address_that_is_no_store_is_refused(where: str) -> None:
    with pytest.raises(InvalidInput, match="store"):
        run(open_store(where, owner=True))


def test_calls_that_wait_share_one_transaction(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(SqliteMaker(tmp_path / "data")) as store:
            assert isinstance(store, SqliteStore)
            begun: list[str] = []
            started, gate = threading.Event(), threading.Event()

            def wait(session: Session) -> None:
                def note(_cursor: apsw.Cursor, sql: str, _bindings: object) -> bool:
                    begun.append(sql)
                    return True

                started.set()
                gate.wait(30)
                session.connection.set_exec_trace(note)

            first = asyncio.create_task(store._engine.write(wait))
            await asyncio.to_thread(started.wait, 30)
            calls = [asyncio.create_task(store.raise_tallies({"n": 1})) for _ in range(50)]
            await asyncio.sleep(0)
            gate.set()
            await asyncio.gather(first, *calls)
            assert await store.tallies() == {"n": 50}
            assert begun.count("BEGIN IMMEDIATE") == begun.count("COMMIT") - 1 == 1

    run(story())


def test_a_caller_who_gives_up_stops_nobody(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(SqliteMaker(tmp_path / "data")) as store:
            assert isinstance(store, SqliteStore)
            gate = threading.Event()
            first = asyncio.create_task(store._engine.write(lambda _session: gate.wait(30)))
            given_up = asyncio.create_task(store.raise_tallies({"n": 1}))
            await asyncio.sleep(0)
            given_up.cancel()
            gate.set()
            assert await first
            await store.raise_tallies({"n": 1})
            assert (await store.tallies())["n"] in (1, 2)

    run(story())
