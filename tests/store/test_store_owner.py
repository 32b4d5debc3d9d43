"""The contract: one owner at a time, visitors and their orders, hosts, facts, backups."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from store_samples import NOW, StoreMaker, add, fetch, lease_all, new_pages, opened, run

from recrawl.errors import RecrawlError, StoreBusy, StoreError
from recrawl.store.rows import HostRow, Order


def test_a_second_owner_is_refused_while_there_is_one(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            with pytest.raises(StoreBusy, match="another tracker"):
                await store_maker.open()
            assert await add(store, 1) == [1]
        async with opened(store_maker) as store:
            assert (await store.counts()).pages["active"] == 1

    run(story())


@pytest.mark.parametrize("turns", [1, 2, 3, 5, 8, 13])
def test_whoever_gives_up_while_opening_or_closing_owns_nothing(store_maker: StoreMaker, turns: int) -> None:
    async def give_up(task: asyncio.Task[object]) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def story() -> None:
        opening = asyncio.create_task(store_maker.open())
        await give_up(opening)
        if not opening.cancelled():
            await opening.result().close()
        store = await store_maker.open()
        await give_up(asyncio.create_task(store.close()))
        async with opened(store_maker) as again:
            assert again.generation > store.generation

    run(story())


def test_generations_rise_and_the_store_keeps_its_identity(store_maker: StoreMaker) -> None:
    async def story() -> None:
        found = []
        for _ in range(3):
            async with opened(store_maker) as store:
                found.append((store.generation, store.store_id))
                assert store.name
        generations = [generation for generation, _id in found]
        assert generations == sorted(set(generations))
        assert generations[0] > 0
        assert len({store_id for _generation, store_id in found}) == 1
        assert found[0][1]

    run(story())


def test_visitors_read_and_leave_orders_and_nothing_else(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store, opened(store_maker, owner=False) as visitor:
            assert visitor.generation == 0
            assert visitor.store_id == store.store_id
            [page_id] = await add(store, 1)
            assert [row.id for row in await visitor.list_pages()] == [page_id]
            order = await visitor.post("add", b'{"urls": []}', NOW)
            assert await store.orders() == [Order(order, "add", b'{"urls": []}', NOW)]
            assert await visitor.reply_to(order) is None
            await store.answer(order, b"done", NOW + 1)
            assert await store.orders() == []
            assert await visitor.reply_to(order) == b"done"
            assert await visitor.reply_to(999) is None
            for attempt in (visitor.add_pages(new_pages(2)), visitor.release([1]), visitor.save_facts({"a": "b"})):
                with pytest.raises(StoreError, match="owner"):
                    await attempt
            assert (await store.counts()).pages["active"] == 1

    run(story())


def test_orders_wait_in_the_order_they_came_also_without_an_owner(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker):
            pass
        async with opened(store_maker, owner=False) as visitor:
            posted = [await visitor.post("remove", b"%d" % number, NOW) for number in range(3)]
        async with opened(store_maker) as store:
            waiting = await store.orders(2)
            assert [order.id for order in waiting] == posted[:2]
            assert [order.payload for order in waiting] == [b"0", b"1"]
            await store.answer(posted[0], b"", NOW)
            assert [order.id for order in await store.orders()] == posted[1:]
            assert await store.reply_to(posted[0]) == b""
            assert await store.post("own", b"", NOW) > posted[2]

    run(story())


def test_where_there_is_no_store_none_is_made_unless_asked(store_maker: StoreMaker) -> None:
    async def story() -> None:
        for owner in (True, False):
            with pytest.raises(StoreError, match="no store"):
                await store_maker.open(owner=owner, create=False)

    run(story())


def test_a_store_that_was_closed_says_so(store_maker: StoreMaker) -> None:
    async def story() -> None:
        store = await store_maker.open()
        await store.close()
        with pytest.raises(StoreError, match="closed"):
            await store.add_pages(new_pages(1))

    run(story())


def test_calls_under_way_are_finished_before_closing(store_maker: StoreMaker) -> None:
    async def story() -> None:
        store = await store_maker.open()
        adding = [asyncio.create_task(store.add_pages(new_pages(n))) for n in range(1, 9)]
        await asyncio.sleep(0)
        await store.close()
        done = await asyncio.gather(*adding, return_exceptions=True)
        promised = max((len(answer) for answer in done if not isinstance(answer, BaseException)), default=0)
        async with opened(store_maker) as again:
            assert (await again.counts()).pages["active"] >= promised

    run(story())


def test_one_call_that_fails_does_not_spoil_those_beside_it(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            ids = await add(store, 3)
            bad = store.save_hosts([HostRow("good"), HostRow("bad", min_gap_s="soon")])  # type: ignore[arg-type]
            calls = [fetch(store, page_id) for page_id in ids]
            *answers, failure = await asyncio.gather(*calls, bad, return_exceptions=True)
            assert answers == ["applied"] * 3
            assert isinstance(failure, (RecrawlError, TypeError, ValueError))
            assert [host.name for host in await store.hosts()] == ["example.org"]

    run(story())


def test_hosts_are_written_whole_but_for_what_is_costly_to_learn(store_maker: StoreMaker) -> None:
    rows = [HostRow("a:8080", 1.5, NOW, NOW + 1, 3, NOW - 1, b"\0robots", NOW + 2, b"learned"), HostRow("b")]

    async def story() -> None:
        async with opened(store_maker) as store:
            await store.save_hosts([HostRow("a:8080", 9.0, robots=b"old"), *rows])
            assert sorted(await store.hosts(), key=lambda host: host.name) == rows
            await store.save_hosts([HostRow("a:8080")])
            await store.save_hosts([])
            kept = HostRow("a:8080", robots=b"\0robots", robots_until=NOW + 2, learned=b"learned")
            assert (await store.hosts())[0] == kept
            await store.save_hosts([HostRow("b", robots=b"new", robots_until=NOW), HostRow("b", 2.0)])
            assert (await store.hosts())[1] == HostRow("b", 2.0, robots=b"new", robots_until=NOW)

    run(story())


def test_facts_are_kept_by_name(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            assert await store.facts() == {}
            await store.save_facts({"settings": "abc", "ü": "1"})
            await store.save_facts({"settings": "def"})
            await store.save_facts({})
            assert await store.facts() == {"settings": "def", "ü": "1"}

    run(story())


def test_a_store_at_work_checks_clean(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            assert await store.check() == []
            ids = await add(store, 4)
            await fetch(store, ids[0])
            await lease_all(store, ids[1:])
            assert await store.check() == []

    run(story())


def test_a_backup_is_made_while_others_write_and_never_over_something(store_maker: StoreMaker, tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            ids = await add(store, 20)
            await asyncio.gather(store.backup(tmp_path / "copy"), *(fetch(store, page_id) for page_id in ids))
            assert (tmp_path / "copy").stat().st_size > 0
            with pytest.raises(RecrawlError, match="copy"):
                await store.backup(tmp_path / "copy")

    run(story())
