"""Reads of a part of a store: what they give, in both stores, and that they cost no more than what they give."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import pytest
from postgres_server import PostgresServer
from store_samples import NOW, SqliteMaker, StoreMaker, add, fail, fetch, lease_all, new_pages, opened, result_of, run

from recrawl.store.queries import load_migrations, load_queries
from recrawl.store.rows import (
    PAGE_STATES,
    ChangeKind,
    HostRow,
    NewChange,
    NewPage,
    PageEdit,
    PageState,
    PendingSignal,
    SourceRow,
)
from recrawl.store.sqlite.backend import SqliteBackend
from recrawl.store.store import Store, open_store


async def counted(store: Store) -> tuple[dict[PageState, int], int]:
    """Pages by state, and hosts, one by one."""
    pages = Counter(row.state for row in await store.list_pages(limit=10_000))
    return {state: pages[state] for state in PAGE_STATES}, len(await store.hosts())


async def agree(store: Store) -> dict[PageState, int]:
    """The counts that are kept are those of the rows."""
    counts = await store.counts()
    assert (counts.pages, counts.hosts) == await counted(store)
    assert await store.check() == []
    return counts.pages


def test_counts_follow_pages_through_all_states_and_roles(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            assert set((await agree(store)).values()) == {0}
            ids = await add(store, 10)
            sources = [NewPage(f"https://example.org/feed{i}", "example.org", role="source") for i in range(3)]
            [first, second, _] = [page_id for page_id, _ in await store.add_pages(sources)]
            await store.add_sources([SourceRow(first, "feed"), SourceRow(second, "feed")])
            await add(store, 10)  # known already
            assert (await agree(store))["active"] == 10
            edits = [
                PageEdit(ids[0], state="retired"),
                PageEdit(ids[0], state="quarantined"),
                PageEdit(99, state="retired"),
            ]
            await store.edit_pages([*edits, PageEdit(ids[1], state="retired"), PageEdit(first, state="retired")])
            assert await agree(store) == {"active": 8, "removed": 0, "quarantined": 1, "retired": 1}
            await store.edit_pages([PageEdit(ids[2], importance=3.0)])
            await store.add_pages([*new_pages(2), *(replace(each, role="page") for each in sources)])
            assert await agree(store) == {"active": 12, "removed": 0, "quarantined": 1, "retired": 0}
            for state in ("removed", "removed", "active"):
                leased = await lease_all(store, ids[3:7])
                await store.complete([result_of(page, lease, state=state) for page, lease in leased])
                assert (await agree(store))["removed"] == (4 if state == "removed" else 0)
            await store.save_hosts([HostRow("a"), HostRow("b"), HostRow("a", 2.0)])
            await store.save_hosts([HostRow("b"), HostRow("c")])
            await fetch(store, ids[5])  # brings a host
            await agree(store)
            assert (await store.counts()).hosts == 4
        async with opened(store_maker) as store:
            assert (await agree(store))["active"] == 12

    run(story())


def test_the_number_of_the_last_fetch(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            assert await store.last_observation() == 0
            for page_id in await add(store, 3):
                await fetch(store, page_id)
            assert await store.last_observation() == (await store.all_observations())[-1][0]
            await store.forget(NOW + 1000, 5)
            assert await store.last_observation() == 0

    run(story())


def test_pages_are_found_by_their_state(store_maker: StoreMaker) -> None:
    """Those that are fetched only as sources are no pages."""

    async def story() -> None:
        async with opened(store_maker) as store:
            ids = await add(store, 6)
            [(source, _)] = await store.add_pages([NewPage("https://example.org/feed", "example.org", role="source")])
            await store.edit_pages([PageEdit(page_id, state="removed") for page_id in (ids[4], ids[1], source)])
            await store.edit_pages([PageEdit(ids[2], state="retired")])
            assert await store.page_ids("removed") == [ids[1], ids[4]]
            assert await store.page_ids("retired") == [ids[2]]
            assert await store.page_ids("quarantined") == []
            assert await store.page_ids("active") == [ids[0], ids[3], ids[5]]

    run(story())


def test_hosts_are_read_by_name_and_in_stretches(store_maker: StoreMaker) -> None:
    """By name they are whole; in stretches without what is large, in one order on every machine."""
    names = ["a.example", "a.example:8080", "b-b.example", "bb.example", "x.example"]

    async def story() -> None:
        async with opened(store_maker) as store:
            rows = [HostRow(name, 1.0, robots=b"r" + name.encode(), learned=b"l") for name in names]
            await store.save_hosts(rows)
            assert await store.hosts(["x.example", "nobody", "a.example"]) == [rows[0], rows[4]]
            assert await store.hosts([]) == []
            plain = [replace(row, robots=None, learned=None) for row in rows]
            assert await store.list_hosts() == plain
            assert await store.list_hosts("a.example", 2) == plain[1:3]
            assert await store.list_hosts("x.example") == []

    run(story())


def test_hosts_in_trouble_are_found(store_maker: StoreMaker) -> None:
    troubled = [HostRow("a", failures=2), HostRow("b", degraded_since=NOW), HostRow("c", blocked_until=NOW + 1)]

    async def story() -> None:
        async with opened(store_maker) as store:
            await store.save_hosts([*troubled, HostRow("d", blocked_until=NOW), HostRow("e", robots=b"r")])
            assert await store.troubled_hosts(NOW) == troubled

    run(story())


def test_signals_of_some_pages(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            one, two, three = await add(store, 3)
            await store.add_signals([one, two, three], "ping", NOW)
            await store.add_signals([two], "feed", NOW)
            assert await store.pending_signals([two, 99]) == [
                PendingSignal(two, "feed", 1, NOW, NOW),
                PendingSignal(two, "ping", 1, NOW, NOW),
            ]
            assert await store.pending_signals([]) == []
            assert await store.count_signals() == len(await store.pending_signals()) == 4

    run(story())


def test_events_between_cursors_by_kind_and_page_in_both_orders(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            one, two = await add(store, 2)
            kinds: tuple[ChangeKind, ...] = ("changed", "removed", "restored")
            pages = (one, two)
            events = [NewChange(kinds[i % 3], NOW + i, f"https://example.org/{i}", pages[i % 2]) for i in range(12)]
            await store.append_changes(events)
            everything = await store.changes()
            assert [each.event for each in everything] == events

            async def cursors(*args: Any, **options: Any) -> list[int]:
                return [each.cursor for each in await store.changes(*args, **options)]

            assert await cursors(newest_first=True) == list(range(12, 0, -1))
            assert await cursors(2, 3, newest_first=True) == [12, 11, 10]
            assert await cursors(2, before=6) == [3, 4, 5]
            assert await cursors(2, 2, before=6, newest_first=True) == [5, 4]
            assert await cursors(0, 2, one, newest_first=True) == [11, 9]
            assert await cursors(3, 9, two, before=10) == [4, 6, 8]
            assert await cursors(kinds=["removed"]) == [2, 5, 8, 11]
            assert await cursors(kinds=["removed", "changed"], before=6, newest_first=True) == [5, 4, 2, 1]
            assert await cursors(0, 5, two, kinds=["removed"], newest_first=True) == [8, 2]
            assert await cursors(kinds=[]) == []
            assert await store.changes(5, 1, newest_first=True) == everything[-1:]

    run(story())


def test_paused_pages_are_counted_once(store_maker: StoreMaker) -> None:
    """Although page, group and host are paused; only those that are active."""

    async def story() -> None:
        async with opened(store_maker) as store:
            ids = await add(store, 6, group="g")
            others = [NewPage(f"https://other.org/{i}", "other.org", group="h") for i in range(4)]
            await store.add_pages(others)
            assert await store.count_paused() == 0
            await store.pause("page", "https://example.org/1", NOW)
            await store.pause("page", "https://nowhere.org/", NOW)
            assert await store.count_paused() == 1
            await store.pause("group", "g", NOW)
            await store.pause("host", "example.org", NOW)
            assert await store.count_paused() == 6
            await store.edit_pages([PageEdit(ids[0], state="retired")])
            await store.pause("host", "other.org", NOW)
            assert await store.count_paused() == 9

    run(story())


LARGE = {"pages", "addresses", "changes", "observations", "signals", "hosts", "host_notes", "versions"}
"""Tables that grow with the web."""
SQLITE_READS = (
    "changes_after", "changes_before", "changes_of_page", "changes_of_page_before", "observation_last", "hosts_named",
    "hosts_after", "signals_of", "page_ids_not_active", "page_ids_of_group", "page_ids_of_host", "count_rows",
    "count_rest", "count_paused", "change_last_cursor", "take_page_ids",
)  # fmt: skip
POSTGRES_READS: dict[str, tuple[object, ...]] = {
    "changes_after": (0, 9, 5, None),
    "changes_before": (0, 9, 5, ["changed"]),
    "changes_of_page": (0, 9, 5, None, 1),
    "changes_of_page_before": (0, 9, 5, None, 1),
    "observation_last": (),
    "hosts_named": (["a"],),
    "hosts_after": ("", 5),
    "signals_of": ([1],),
    "page_ids_not_active": ("removed",),
    "page_ids_of_group": (0, 5, None, "g"),
    "count_rows": (),
    "count_rest": (),
    "count_paused": ([1],),
}


@pytest.mark.parametrize("query", SQLITE_READS)
def test_sqlite_reads_by_an_index(query: str) -> None:
    """No large table is read from end to end."""
    sql = load_queries("sqlite")[query]
    with closing(apsw.Connection(":memory:")) as connection:
        for step in load_migrations("sqlite"):
            connection.execute(step.sql)
        places = [None] * max((number for number in range(10) if f"?{number}" in sql), default=0)
        plan = [row[3] for row in connection.execute("EXPLAIN QUERY PLAN " + sql, places)]
    assert plan
    assert not [step for step in plan if step.startswith("SCAN") and step.split()[1] in LARGE], plan
    assert not [step for step in plan if "TEMP B-TREE FOR ORDER BY" in step and query.startswith("changes")], plan


def test_postgres_reads_by_an_index(postgres: PostgresServer, database: str) -> None:
    """No large table is read from end to end, where the planner has a choice."""

    async def story() -> None:
        store = await open_store(postgres.dsn(database), owner=True)
        await store.close()
        connection = await asyncpg.connect(postgres.dsn(database))
        try:
            await connection.execute(
                "SET search_path = recrawl; SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan"
            )
            for query, values in POSTGRES_READS.items():
                text = await connection.fetchval(f"EXPLAIN (FORMAT JSON) {load_queries('postgres')[query]}", *values)
                whole = [step for step in _steps(json.loads(text)[0]["Plan"]) if step["Node Type"] == "Seq Scan"]
                assert not {step["Relation Name"] for step in whole} & LARGE, query
        finally:
            await connection.close()

    run(story())


def _steps(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan, *(step for part in plan.get("Plans", ()) for step in _steps(part))]


Reading = Callable[[Store], Awaitable[object]]
READINGS: dict[str, Reading] = {
    "counts": lambda store: store.counts(),
    "count_paused": lambda store: store.count_paused(),
    "last_observation": lambda store: store.last_observation(),
    "events of a page": lambda store: store.changes(0, 5, 1, newest_first=True),
    "last events": lambda store: store.changes(0, 5, newest_first=True),
    "hosts by name": lambda store: store.hosts(["host-1"]),
    "some hosts": lambda store: store.list_hosts("host-1", 5),
    "signals of a page": lambda store: store.pending_signals([1]),
    "removed pages": lambda store: store.page_ids("removed"),
    "pages of a group": lambda store: store.list_pages(0, 5, group="small"),
}


def test_reads_take_as_many_steps_in_a_large_store_as_in_a_small_one(tmp_path: Path) -> None:
    """Steps of SQLite's machine, which no clock or load changes; an index that is deeper may cost a few more."""

    async def steps_of(size: int) -> dict[str, int]:
        async with opened(SqliteMaker(tmp_path / str(size))) as store:
            await _filled(store, size)
            return {name: await _steps_taken(store, reading) for name, reading in READINGS.items()}

    small, large = run(steps_of(20)), run(steps_of(2000))
    assert {name: steps for name, steps in large.items() if steps > 1.5 * small[name] + 50} == {}


async def _filled(store: Store, size: int) -> None:
    await store.add_pages(new_pages(5, group="small"))
    ids = [page_id for page_id, _ in await store.add_pages(new_pages(size)[5:])]
    await store.edit_pages([PageEdit(ids[0], state="removed")])
    await store.edit_pages([PageEdit(page_id, state="retired") for page_id in ids[size // 2 :]])
    await store.pause("group", "small", NOW)
    await store.append_changes([NewChange("changed", NOW, "https://example.org/1", i % 2 + 1) for i in range(size)])
    await store.save_hosts([HostRow(f"host-{i}", robots=b"r" * 100) for i in range(size)])
    await store.add_signals(range(1, size // 2), "ping", NOW)
    for _ in range(3):
        await fail(store, 1, at=NOW)


async def _steps_taken(store: Store, reading: Reading) -> int:
    """Steps of all statements of a read."""
    assert isinstance(store.backend, SqliteBackend)
    taken: list[int] = []

    def note(event: dict[str, Any]) -> None:
        taken.append(event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"])

    profile = apsw.SQLITE_TRACE_PROFILE
    await reading(store)  # statements are prepared
    await store.backend.reader.do(lambda session: session.connection.trace_v2(profile, note))
    await reading(store)
    await store.backend.reader.do(lambda session: session.connection.trace_v2(0, None))
    assert taken
    return sum(taken)
