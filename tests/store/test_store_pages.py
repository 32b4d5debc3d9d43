"""The contract: pages, by id and by address."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from store_samples import NOW, StoreMaker, add, fetch, lease_all, new_pages, opened, result_of, run

from recrawl.errors import InvalidInput
from recrawl.store.rows import NOT_SAID, HostRow, NewChange, NewPage, PageEdit, PageRow
from recrawl.store.store import Store


def test_pages_are_added_once_and_in_the_order_given(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            first, second, third = new_pages(3)
            answers = await store.add_pages([second, first, second])
            assert [new for _id, new in answers] == [True, True, False]
            assert answers[0][0] == answers[2][0] != answers[1][0]
            again = await store.add_pages([first, third])
            assert again[0] == (answers[1][0], False)
            assert again[1][1]
            assert await store.add_pages([]) == []

    run(story())


def test_a_page_comes_back_as_it_was_added(store_maker: StoreMaker) -> None:
    page = NewPage(
        "https://example.org/ä?q=%2F", "example.org:8080", "news", 2.5, "harmonic", 60.0, 86_400.0, "import", NOW
    )

    async def story() -> None:
        async with opened(store_maker) as store:
            [(page_id, _new)] = await store.add_pages([page])
            expected = PageRow(page_id, page.url, page.host, "news", 2.5, "harmonic", 60.0, 86_400.0, "import", NOW)
            assert await store.read_pages([page_id]) == [expected]

    run(story())


def test_pages_are_read_in_the_order_asked_and_unknown_ones_left_out(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            one, two, three = await add(store, 3)
            rows = await store.read_pages([three, 999, one, three])
            assert [row.id for row in rows] == [three, one, three]
            assert await store.read_pages([]) == []
            assert two not in [row.id for row in rows]

    run(story())


def test_a_retired_page_is_taken_up_anew_with_what_was_learned(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            [page_id] = await add(store, 1, group="old")
            [(page, lease)] = await lease_all(store, [page_id])
            await store.complete([result_of(page, lease, belief=b"learned", failures=3, crashes=2, missing=1)])
            await store.edit_pages([PageEdit(page_id, state="retired", reason="asked")])
            assert await store.find_pages([page.url]) == {}
            again = replace(new_pages(1)[0], group="new", importance=3.0, source="import", added_at=NOW + 9)
            assert await store.add_pages([again, again]) == [(page_id, True), (page_id, False)]
            [row] = await store.read_pages([page_id])
            assert (row.state, row.reason, row.group, row.importance) == ("active", "", "new", 3.0)
            assert (row.source, row.added_at) == ("import", NOW + 9)
            assert (row.belief, row.visits) == (b"learned", 1)
            assert (row.failures, row.crashes, row.missing, row.missing_since, row.not_before) == (0, 0, 0, None, None)

    run(story())


def test_a_page_added_again_keeps_its_settings(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            [page_id] = await add(store, 1, importance=2.0)
            await store.add_pages([replace(new_pages(1)[0], importance=9.0)])
            [row] = await store.read_pages([page_id])
            assert row.importance == 2.0

    run(story())


def test_an_edit_changes_what_it_names_and_nothing_else(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            one, two = await add(store, 2, importance=2.0, max_interval_s=5.0)
            edit = PageEdit(one, group="g", importance=0.0, objective="binary", state="quarantined", reason="it broke")
            unknown = PageEdit(999, importance=1.0)
            assert await store.edit_pages([edit, unknown, PageEdit(one, not_before=NOW)]) == 2
            first, second = await store.read_pages([one, two])
            assert (first.group, first.importance, first.objective) == ("g", 0.0, "binary")
            assert (first.state, first.reason, first.not_before) == ("quarantined", "it broke", NOW)
            assert first.max_interval_s == 5.0
            assert second == replace(first, **{name: getattr(second, name) for name in _edited()})
            assert second.state == "active"

    run(story())


def _edited() -> list[str]:
    return ["id", "url", "group", "importance", "objective", "state", "reason", "not_before"]


def test_a_page_that_is_retired_loses_its_lease_and_its_signals(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            one, two = await add(store, 2)
            leased = await lease_all(store, [one, two])
            await store.add_signals([one, two], "ping", NOW)
            await store.edit_pages([PageEdit(one, state="retired")])
            assert [lease.page_id for lease in await store.leases()] == [two]
            assert [signal.page_id for signal in await store.pending_signals()] == [two]
            assert await store.complete([result_of(*leased[0])]) == ["stale"]
            await store.add_signals([one, 999], "ping", NOW)
            assert len(await store.pending_signals()) == 1

    run(story())


def test_pages_are_found_by_address(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            one, two = await add(store, 2)
            urls = [page.url for page in new_pages(3)]
            assert await store.find_pages(urls) == {urls[0]: one, urls[1]: two}
            assert await store.find_pages([]) == {}

    run(story())


def test_an_address_with_a_character_that_is_none_is_refused(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            for url in ("https://example.org/\0", "https://example.org/\ud800"):
                with pytest.raises(InvalidInput, match=r"url\[1\]"):
                    await store.add_pages([*new_pages(1), NewPage(url, "example.org")])
                assert await store.find_pages([url]) == {}
            assert (await store.counts()).pages["active"] == 0

    run(story())


def test_pages_are_listed_by_id_and_by_host_and_group(store_maker: StoreMaker) -> None:
    pages = [NewPage(f"https://{host}/{n}", host, group) for n in range(3) for host in "ab" for group in ("", "g")
             if n != 1 or group]  # fmt: skip
    unique = list({page.url: page for page in pages}.values())

    async def story() -> None:
        async with opened(store_maker) as store:
            ids = [page_id for page_id, _new in await store.add_pages(unique)]
            await store.edit_pages([PageEdit(ids[0], state="retired")])
            everything = await store.list_pages()
            assert [row.id for row in everything] == sorted(ids)
            assert [row.id for row in await store.list_pages(ids[0], 2)] == sorted(ids)[1:3]
            for host in ("a", "b", "none"):
                for group in ("", "g", "none"):
                    found = await store.list_pages(host=host, group=group)
                    assert found == [row for row in everything if row.host == host and row.group == group]
            assert await store.list_pages(host="a") == [row for row in everything if row.host == "a"]
            assert await store.list_pages(group="g") == [row for row in everything if row.group == "g"]

    run(story())


def test_the_schedule_has_a_row_for_each_page_that_is_tracked(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            pages = [
                NewPage("https://a/1", "a", "g", 2.0, "harmonic", 5.0, 50.0),
                NewPage("https://b/2", "b", "", 1.0),
                NewPage("https://a/3", "a"),
                NewPage("https://a/4", "a"),
            ]
            ids = [page_id for page_id, _new in await store.add_pages(pages)]
            [(page, lease)] = await lease_all(store, ids[:1])
            await store.complete([result_of(page, lease, belief=b"\1\2\3", failures=2, not_before=NOW + 60)])
            await store.edit_pages([PageEdit(ids[2], state="retired"), PageEdit(ids[3], state="removed")])
            columns = await store.load_schedule()
            assert columns.page_id.tolist() == [ids[0], ids[1], ids[3]]
            assert len(columns) == 3
            assert [columns.hosts[place] for place in columns.host] == ["a", "b", "a"]
            assert [columns.objectives[place] for place in columns.objective] == ["harmonic", None, None]
            assert columns.importance.tolist() == [2.0, 1.0, 1.0]
            np.testing.assert_equal(columns.min_interval_s, [5.0, np.nan, np.nan])
            assert columns.max_interval_s.tolist() == [50.0, np.inf, np.inf]
            np.testing.assert_equal(columns.fetched_at, [NOW + 1, np.nan, np.nan])
            np.testing.assert_equal(columns.not_before, [NOW + 60, np.nan, np.nan])
            assert columns.failures.tolist() == [2, 0, 0]
            assert columns.held.tolist() == [False, False, False]
            assert columns.belief.tolist() == [[1, 2, 3], [0, 0, 0], [0, 0, 0]]

    run(story())


def test_a_least_interval_of_0_is_told_from_one_of_which_nothing_is_said(store_maker: StoreMaker) -> None:
    async def said(store: Store) -> list[float | None]:
        rows, columns = await store.list_pages(), await store.load_schedule()
        expected = [np.nan if row.min_interval_s is None else row.min_interval_s for row in rows]
        np.testing.assert_equal(columns.min_interval_s, expected)
        return [row.min_interval_s for row in rows]

    async def story() -> None:
        async with opened(store_maker) as store:
            new = [NewPage(f"https://a/{n}", "a", min_interval_s=low) for n, low in enumerate([None, 0.0, 5.0])]
            ids = [page_id for page_id, _new in await store.add_pages(new)]
            assert await said(store) == [None, 0.0, 5.0]
            await store.edit_pages([PageEdit(page_id, importance=2.0) for page_id in ids])
            assert await said(store) == [None, 0.0, 5.0]
            lows = (0.0, 60.0, NOT_SAID)
            await store.edit_pages([PageEdit(n, min_interval_s=low) for n, low in zip(ids, lows, strict=True)])
            assert await said(store) == [0.0, 60.0, None]
            await store.edit_pages([PageEdit(n, state="retired") for n in ids])
            await store.add_pages([replace(page, min_interval_s=0.0) for page in new])
            assert await said(store) == [0.0, 0.0, 0.0]
        async with opened(store_maker) as store:
            assert await said(store) == [0.0, 0.0, 0.0]
            assert await store.check() == []

    run(story())


def test_the_schedule_of_many_pages_says_what_their_rows_say(store_maker: StoreMaker) -> None:
    pages = [
        NewPage(f"https://h{n % 7}/{n}", f"h{n % 7}", objective="harmonic" if n % 11 == 0 else None,
                min_interval_s=(0.5, None, 0.0)[n % 3], max_interval_s=60.0 if n % 6 == 0 else None,
                importance=n / 3, role="source" if n % 97 == 0 else "page")
        for n in range(1, 1301)
    ]  # fmt: skip

    async def story() -> None:
        async with opened(store_maker) as store:
            ids = [page_id for page_id, _new in await store.add_pages(pages)]
            await store.complete(
                [
                    result_of(page, lease, belief=bytes([page.id % 250]) * (3 + page.id % 2), failures=page.id % 3,
                              not_before=NOW if page.id % 4 == 0 else None)
                    for page, lease in await lease_all(store, [page_id for page_id in ids if 500 < page_id < 700])
                ]
            )  # fmt: skip
            await store.edit_pages([PageEdit(page_id, state="retired") for page_id in ids[:1000:13]])
            await store.edit_pages([PageEdit(page_id, state="quarantined") for page_id in ids[1:1000:13]])
            rows = [row for row in await store.list_pages(limit=2000) if row.state != "retired"]
            found = await store.load_schedule()
            assert len(rows) == len(found) > 1000
            for name in ("importance", "failures"):
                assert getattr(found, name).tolist() == [getattr(row, name) for row in rows], name
            assert found.page_id.tolist() == [row.id for row in rows]
            assert [found.hosts[place] for place in found.host] == [row.host for row in rows]
            assert [found.objectives[place] for place in found.objective] == [row.objective for row in rows]
            assert found.max_interval_s.tolist() == [row.max_interval_s or np.inf for row in rows]
            for name in ("min_interval_s", "fetched_at", "not_before"):
                expected = [np.nan if getattr(row, name) is None else getattr(row, name) for row in rows]
                np.testing.assert_equal(getattr(found, name), expected)
            assert found.held.tolist() == [row.state == "quarantined" for row in rows]
            assert [bytes(row) for row in found.belief] == [(row.belief or b"").ljust(4, b"\0") for row in rows]

    run(story())


def test_an_empty_store_has_an_empty_schedule(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            columns = await store.load_schedule()
            assert len(columns) == 0
            assert columns.belief.shape == (0, 0)
            assert columns.page_id.dtype == np.int64
            assert columns.host.dtype == np.int32
            assert columns.objective.dtype == np.int16
            assert columns.failures.dtype == np.int32
            assert columns.held.dtype == np.bool_

    run(story())


def test_pauses_hold_pages_until_they_end(store_maker: StoreMaker) -> None:
    pages = [NewPage("https://a/1", "a"), NewPage("https://b/2", "b", "g"), NewPage("https://c/3", "c")]

    async def story() -> None:
        async with opened(store_maker) as store:
            ids = [page_id for page_id, _new in await store.add_pages([*pages, NewPage("https://d/4", "d")])]
            await store.pause("host", "a", NOW)
            await store.pause("group", "g", NOW)
            await store.pause("page", "https://c/3", NOW)
            await store.pause("page", "https://c/3", NOW + 1)
            await store.pause("host", "never seen", NOW)
            assert (await store.load_schedule()).held.tolist() == [True, True, True, False]
            assert await store.count_paused() == 3
            assert len(await store.paused()) == 4
            await store.edit_pages([PageEdit(ids[3], state="quarantined")])
            assert (await store.load_schedule()).held.tolist() == [True, True, True, True]
            assert await store.resume("page", "https://c/3")
            assert not await store.resume("page", "https://c/3")
            assert await store.resume("host", "a")
            assert sorted(await store.paused()) == [("group", "g"), ("host", "never seen")]
            assert (await store.load_schedule()).held.tolist() == [False, True, False, True]
            assert await store.count_paused() == 1

    run(story())


def test_counts_add_up(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            ids = await add(store, 6)
            edits = [PageEdit(ids[0], state="retired"), PageEdit(ids[1], state="removed")]
            await store.edit_pages([*edits, PageEdit(ids[2], state="quarantined")])
            await fetch(store, ids[3])
            await lease_all(store, ids[4:])
            await store.save_hosts([HostRow("another")])
            counts = await store.counts()
            assert counts.pages == {"active": 3, "removed": 1, "quarantined": 1, "retired": 1}
            assert (counts.leases, counts.observations, counts.last_cursor, counts.hosts) == (2, 1, 1, 2)

    run(story())


def test_pages_of_a_host_that_were_asked_last_come_first(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            ids = await add(store, 5)
            await store.add_pages([NewPage("https://other.example/", "other.example")])
            for at, page_id in enumerate([ids[3], ids[0], ids[2], ids[0]]):
                await fetch(store, page_id, at=NOW + at)
            assert [page.id for page in await store.asked_last("example.org", 10)] == [ids[0], ids[2], ids[3]]
            assert [page.id for page in await store.asked_last("example.org", 1)] == [ids[0]]
            assert await store.asked_last("nobody.example", 10) == []

    run(story())


def test_a_page_that_left_by_the_log_is_removed_until_it_comes(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            ids = await add(store, 3)
            urls = [page.url for page in await store.read_pages(ids)]
            await store.append_changes(
                [NewChange("removed", NOW, urls[0], ids[0]), NewChange("changed", NOW, urls[1], ids[1])]
            )
            await store.edit_pages([PageEdit(number, state="retired", reason="x") for number in ids])
            await add(store, 3)
            assert [(page.state, page.reason) for page in await store.read_pages(ids)] == [
                ("removed", ""),
                ("active", ""),
                ("active", ""),
            ]

    run(story())
