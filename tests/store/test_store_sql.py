"""SQL in files, and the thread that shares a transaction among calls."""

from __future__ import annotations

import ast
import asyncio
import threading
from contextlib import closing
from pathlib import Path
from textwrap import dedent

import apsw
import pytest
from store_samples import SqliteMaker, opened, run

import recrawl.store
from patience import PATIENCE_S, ticks
from recrawl.errors import InvalidInput
from recrawl.store.queries import load_migrations, load_queries, load_statements, split_queries
from recrawl.store.sqlite.backend import SqliteBackend
from recrawl.store.sqlite.session import Session
from recrawl.store.store import open_store

DIALECTS = ("sqlite", "postgres")
RUNNERS = {"rows", "one", "value", "rows_each", "cursor"}
"""Methods that are handed the name of a query."""
STEPS = {"Rows", "Each", "Many", "Count"}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_query_is_used_and_every_use_has_a_query(dialect: str) -> None:
    folder = Path(next(iter(recrawl.store.__path__)))
    others = {folder / other for other in DIALECTS} - {folder / dialect}
    files = [file for file in folder.rglob("*.py") if not others & set(file.parents)]
    used = set[str]().union(*(queries_in(file.read_text()) for file in files))
    assert sorted(set(load_statements(dialect)) - used) == []
    assert sorted(used - set(load_statements(dialect))) == []


def test_a_query_that_does_not_exist_is_seen_where_it_is_used() -> None:
    code = """
        session.rows("read", ("value",)); session.rows_each("one" if short else "two", ("value",))
        await connection.fetch(SQL["subscript"], text["size"])
        yield Rows("asked", ("value",)); yield Many("many" if short else "more", rows)
        yield from end_leases("ended", tokens)
        _CHECKS = {"checked": "{} rows"}; _TAKEN = {"counter": "taken"}
    """
    names = {"read", "one", "two", "subscript", "asked", "many", "more", "ended", "checked", "taken"}
    assert queries_in(dedent(code)) == names


def queries_in(code: str) -> set[str]:
    """Names of queries in a module: in steps, handed to what runs them, looked up, or kept in a table of them."""
    found: set[str] = set()
    runners = RUNNERS | STEPS | {"end_leases"}
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[query, *_]) if name in runners:
                found.update(texts_of(query))
            case ast.Subscript(
                value=ast.Name(id="SQL" | "queries") | ast.Call(func=ast.Name(id="load_queries")), slice=key
            ):
                found.update(texts_of(key))
            case ast.Assign(targets=[ast.Name(id="_CHECKS")], value=ast.Dict(keys=keys)):
                found.update(text for key in keys if key is not None for text in texts_of(key))
            case ast.Assign(targets=[ast.Name(id="_TAKEN")], value=ast.Dict(values=values)):
                found.update(text for value in values for text in texts_of(value))
    return {name for name in found if name.isidentifier() and name.islower()}  # others are statements themselves


def texts_of(node: ast.expr) -> list[str]:
    """A text, or both texts of a choice."""
    if isinstance(node, ast.IfExp):
        return [*texts_of(node.body), *texts_of(node.orelse)]
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


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
            assert isinstance(store.backend, SqliteBackend)
            begun: list[str] = []
            started, gate = threading.Event(), threading.Event()

            def wait(session: Session) -> None:
                def note(_cursor: apsw.Cursor, sql: str, _bindings: object) -> bool:
                    begun.append(sql)
                    return True

                started.set()
                gate.wait(PATIENCE_S)
                session.connection.set_exec_trace(note)

            first = asyncio.create_task(store.backend.writer.do(wait))
            await asyncio.to_thread(started.wait, PATIENCE_S)
            calls = [asyncio.create_task(store.raise_tallies({"n": 1})) for _ in range(50)]
            await asyncio.sleep(0)
            gate.set()
            await asyncio.gather(first, *calls)
            assert await store.tallies() == {"n": 50}
            assert begun.count("BEGIN IMMEDIATE") == begun.count("COMMIT") - 1 == 1

    run(story())


def test_what_was_handed_in_is_done_although_its_caller_gives_up(tmp_path: Path) -> None:
    """The caller is told that it gave up; the others, before and after, are served."""

    async def story() -> None:
        async with opened(SqliteMaker(tmp_path / "data")) as store:
            assert isinstance(store.backend, SqliteBackend)
            begun, gate = threading.Event(), threading.Event()

            def wait(_session: Session) -> bool:
                begun.set()
                return gate.wait(PATIENCE_S)

            first = asyncio.create_task(store.backend.writer.do(wait))
            await asyncio.to_thread(begun.wait, PATIENCE_S)
            given_up = asyncio.create_task(store.raise_tallies({"n": 1}))
            last = asyncio.create_task(store.raise_tallies({"n": 10}))
            await ticks()  # both are handed in, and wait for the thread
            given_up.cancel()
            with pytest.raises(asyncio.CancelledError):
                await given_up
            gate.set()
            assert await first
            await last
            assert (await store.tallies())["n"] == 11

    run(story())
