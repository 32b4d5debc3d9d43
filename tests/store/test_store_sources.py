"""The contract: sources, and what the roles of pages mean for each call."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from store_samples import NOW, PostgresMaker, SqliteMaker, StoreMaker, add, lease_all, new_pages, opened, result_of, run

from recrawl.errors import InvalidInput
from recrawl.store.postgres.backup import restore_postgres
from recrawl.store.postgres.connection import Limits, connect
from recrawl.store.rows import NewPage, PageEdit, PageRow, SourceRow
from recrawl.store.sqlite.backup import restore_sqlite
from recrawl.store.store import Store
from recrawl.tracker.commands.export import fetch_rows, page_rows

HUB = NewPage("https://example.org/news", "example.org", importance=0.0, source="https://example.org/", role="source")
AS_PAGE = replace(HUB, group="g", importance=3.0, max_interval_s=60.0, source="user", added_at=NOW, role="page")


async def add_hub(store: Store, **fields: object) -> int:
    """A page that is only a source, and its row."""
    [(page_id, _new)] = await store.add_pages([HUB])
    await store.add_sources([SourceRow(page_id, "hub", "https://example.org/", added_at=NOW, **fields)])  # type: ignore[arg-type]
    return page_id


async def row_of(store: Store, page_id: int) -> PageRow:
    [row] = await store.read_pages([page_id])
    return row


async def learned_hub(store: Store) -> PageRow:
    """A source that was fetched."""
    page_id = await add_hub(store)
    [(page, lease)] = await lease_all(store, [page_id])
    assert await store.complete([result_of(page, lease, belief=b"b", memory=b"m", failures=2)]) == ["applied"]
    return await row_of(store, page_id)


def test_a_source_is_not_among_the_pages_unless_it_is_asked_for(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            one, two = await add(store, 2, group="g")
            hub = await add_hub(store)
            [(other, _new)] = await store.add_pages(
                [replace(HUB, url="https://other/", host="other", group="g")],
            )
            assert (await row_of(store, hub)).role == "source"
            assert [row.id for row in await store.list_pages()] == [one, two]
            assert [row.id for row in await store.list_pages(role=None)] == [one, two, hub, other]
            assert [row.id for row in await store.list_pages(role="source")] == [hub, other]
            assert [row.id for row in await store.list_pages(hub, 1, role="source")] == [other]
            assert [row.id for row in await store.list_pages(host="example.org", role="source")] == [hub]
            assert [row.id for row in await store.list_pages(group="g", role=None)] == [one, two, other]
            assert [row.id for row in await store.list_pages(group="g")] == [one, two]
            assert [row.id for row in await store.list_pages(group="g", host="other", role="source")] == [other]
            assert await store.list_pages(group="g", host="other") == []
            assert (await store.load_schedule()).page_id.tolist() == [one, two]

    run(story())


def test_addresses_are_found_by_role_and_state(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            one, two = await add(store, 2)
            hub = await add_hub(store)
            await store.edit_pages([PageEdit(two, state="retired")])
            first, second = (page.url for page in new_pages(2))
            urls = [HUB.url, first, second, first, "https://example.org/unknown"]
            assert await store.find_pages(urls) == {first: one}
            assert await store.find_pages(urls, role="source") == {HUB.url: hub}
            assert await store.find_pages(urls, role=None) == {first: one, HUB.url: hub}
            assert await store.find_pages(urls, retired=True) == {first: one, second: two}
            assert await store.find_pages(urls, role=None, retired=True) == {first: one, second: two, HUB.url: hub}

    run(story())


def test_counts_leave_out_what_is_only_a_source(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            one, two, three = await add(store, 3)
            hub = await add_hub(store)
            await store.add_pages([replace(HUB, url="https://example.org/gone")])
            await store.add_sources([SourceRow(one, "feed"), SourceRow(two, "sitemap", state="retired")])
            await store.edit_pages([PageEdit(hub + 1, state="retired"), PageEdit(three, state="removed")])
            await store.pause("host", "example.org", NOW)
            await lease_all(store, [hub])
            counts = await store.counts()
            assert counts.pages == {"active": 2, "removed": 1, "quarantined": 0, "retired": 0}
            assert (counts.leases, counts.sources, counts.last_page_id) == (1, 2, hub + 1)
            assert await store.count_paused() == 2
            assert await store.check() == []

    run(story())


def test_a_source_added_as_a_page_becomes_one_and_keeps_what_is_known(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            before = await learned_hub(store)
            assert await store.add_pages([AS_PAGE, AS_PAGE]) == [(before.id, True), (before.id, False)]
            wished = {name: getattr(AS_PAGE, name) for name in ("group", "importance", "source", "added_at", "role")}
            assert await row_of(store, before.id) == replace(before, max_interval_s=60.0, **wished)
            assert [source.page_id for source in await store.sources()] == [before.id]
            assert (await store.load_schedule()).page_id.tolist() == [before.id]

    run(story())


def test_a_page_added_as_a_source_stays_the_page_it_is(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            [(page_id, _new)] = await store.add_pages([AS_PAGE])
            before = await row_of(store, page_id)
            assert await add_hub(store) == page_id
            assert await store.add_pages([HUB]) == [(page_id, False)]
            assert await row_of(store, page_id) == before
            assert (await store.load_schedule()).page_id.tolist() == [page_id]
            assert len(await store.sources()) == 1

    run(story())


def test_what_is_added_as_both_at_once_is_a_page(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            assert await store.add_pages([HUB, AS_PAGE, HUB]) == [(1, True), (1, False), (1, False)]
            row = await row_of(store, 1)
            assert (row.role, row.importance, row.group) == ("page", 3.0, "g")

    run(story())


def test_a_retired_page_is_taken_up_in_the_role_that_is_asked_for(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            [(page_id, _new)] = await store.add_pages([AS_PAGE])
            for wanted in (HUB, AS_PAGE, HUB):
                await store.edit_pages([PageEdit(page_id, state="retired", reason="crawled once")])
                assert await store.add_pages([wanted]) == [(page_id, True)]
                row = await row_of(store, page_id)
                assert (row.state, row.reason, row.role) == ("active", "", wanted.role)
                assert row.importance == wanted.importance

    run(story())


def test_leases_results_history_and_signals_are_the_same_for_sources(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            page_id = await add_hub(store)
            await store.add_signals([page_id], "websub", NOW)
            [(page, lease)] = await lease_all(store, [page_id])
            assert page.role == "source"
            assert await store.heartbeat([lease.token], NOW + 9) == [lease.token]
            assert await store.complete([result_of(page, lease)]) == ["applied"]
            assert await store.pending_signals() == []
            assert [seen.token for seen in await store.observations(page_id)] == [lease.token]
            [(page, lease)] = await lease_all(store, [page_id])
            [crashed] = await store.crashed([lease.token])
            assert (crashed.role, crashed.crashes) == ("source", 1)

    run(story())


def test_sources_come_back_as_they_were_saved_without_their_memory(store_maker: StoreMaker) -> None:
    full = SourceRow(1, "feed", "https://example.org/", "retired", "it yields nothing", NOW, 7, 5, 3, NOW + 1, b"\0m")

    async def story() -> None:
        async with opened(store_maker) as store:
            await add(store, 2)
            await store.save_sources([SourceRow(2, "sitemap"), full])
            assert await store.sources() == [replace(full, memory=None), SourceRow(2, "sitemap")]
            assert await store.source_memory(1) == b"\0m"
            assert await store.source_memory(2) is None
            assert await store.source_memory(99) is None
            assert await store.source_memories([99, 2, 1]) == {1: b"\0m"}
            assert await store.source_memories([]) == {}
            await store.save_sources([replace(full, polls=8, memory=None), replace(full, polls=9, memory=None)])
            assert (await store.sources())[0].polls == 9
            assert await store.source_memory(1) == b"\0m"
            await store.save_sources([replace(full, memory=b""), replace(full, memory=None)])
            assert await store.source_memory(1) == b""
            await store.save_sources([])
        async with opened(store_maker, owner=False) as store:
            assert await store.sources() == [replace(full, memory=None), SourceRow(2, "sitemap")]

    run(story())


def test_a_source_is_added_once_and_a_retired_one_taken_up_anew(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            await add(store, 2)
            first = SourceRow(1, "hub", "user", added_at=NOW, polls=4, memory=b"m")
            assert await store.add_sources([first, replace(first, kind="feed"), SourceRow(2, "feed")]) == [
                True, False, True,
            ]  # fmt: skip
            assert await store.add_sources([replace(first, kind="sitemap")]) == [False]
            assert (await store.sources())[0] == replace(first, memory=None)
            await store.save_sources([replace(first, state="retired", reason="empty", memory=None)])
            again = SourceRow(1, "feed", "https://example.org/", added_at=NOW + 5)
            assert await store.add_sources([again, again]) == [True, False]
            assert (await store.sources())[0] == replace(again, polls=4)
            assert await store.source_memory(1) == b"m"
            assert await store.add_sources([]) == []

    run(story())


@pytest.mark.parametrize("call", ["add_sources", "save_sources"])
def test_what_cannot_be_a_source_is_refused_whole(store_maker: StoreMaker, call: str) -> None:
    bad = {
        r"page_id\[1\] is 99": SourceRow(99, "hub"),
        r"kind\[1\] is 'page'": SourceRow(1, "page"),  # type: ignore[arg-type]
        r"state\[1\] is 'gone'": SourceRow(1, "hub", state="gone"),  # type: ignore[arg-type]
    }

    async def story() -> None:
        async with opened(store_maker) as store:
            await add(store, 1)
            for sentence, row in bad.items():
                with pytest.raises(InvalidInput, match=sentence):
                    await getattr(store, call)([SourceRow(1, "hub"), row])
            assert await store.sources() == []
            with pytest.raises(InvalidInput, match=r"role\[0\] is 'hub'"):
                await store.add_pages([replace(HUB, role="hub")])  # type: ignore[arg-type]

    run(story())


def test_a_result_writes_its_source_if_it_is_applied(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            page_id = await add_hub(store, memory=b"old")
            [(page, lease)] = await lease_all(store, [page_id])
            [known] = await store.sources()
            told = replace(known, polls=1, found=3, signals=2, useful_at=NOW + 1, memory=b"new")
            result = replace(result_of(page, lease), source=told)
            assert await store.complete([result]) == ["applied"]
            assert await store.sources() == [replace(told, memory=None)]
            assert await store.source_memory(page_id) == b"new"
            late = replace(result, source=replace(told, polls=99, memory=b"late"))
            assert await store.complete([late]) == ["duplicate"]
            [(page, lease)] = await lease_all(store, [page_id])
            assert await store.complete([replace(result_of(page, lease), source=None)]) == ["applied"]
            assert await store.sources() == [replace(told, memory=None)]
            assert await store.source_memory(page_id) == b"new"

    run(story())


def test_a_source_stays_when_its_page_is_retired(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            page_id = await add_hub(store, memory=b"m")
            before = await store.sources()
            await store.edit_pages([PageEdit(page_id, state="retired")])
            assert await store.sources() == before
            assert await store.source_memory(page_id) == b"m"
            assert await store.check() == []

    run(story())


def test_a_backup_holds_sources_and_roles(store_maker: StoreMaker, tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            page_id = await add_hub(store, memory=b"m")
            before = [await store.sources(), await store.list_pages(role=None)]
            await store.backup(tmp_path / "copy")
            await store.edit_pages([PageEdit(page_id, state="retired")])
        if isinstance(store_maker, PostgresMaker):
            copy: StoreMaker = store_maker
            await _empty(store_maker)
            await restore_postgres(tmp_path / "copy", copy.where)
        else:
            copy = SqliteMaker(tmp_path / "restored")
            await restore_sqlite(tmp_path / "copy", tmp_path / "restored")
        async with opened(copy) as store:
            assert [await store.sources(), await store.list_pages(role=None)] == before
            assert await store.source_memory(page_id) == b"m"
            assert await store.check() == []

    run(story())


def test_exports_leave_out_what_is_only_a_source(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            [page_id] = await add(store, 1)
            hub = await learned_hub(store)
            [(page, lease)] = await lease_all(store, [page_id])
            await store.complete([result_of(page, lease)])
            assert [row["url"] async for row in page_rows(store)] == [page.url]
            assert [row["url"] async for row in fetch_rows(store)] == [hub.url, page.url]
            assert [row["url"] async for row in fetch_rows(store, crawls_only=True)] == [page.url]

    run(story())


async def _empty(maker: PostgresMaker) -> None:
    connection = await connect(maker.where, Limits(), "test")
    await connection.execute("DROP SCHEMA recrawl CASCADE")
    await connection.close()
