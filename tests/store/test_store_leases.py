"""The contract: leases and results."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from store_samples import NOW, StoreMaker, add, changed_result, fetch, lease_all, opened, result_of, run

from recrawl.store.rows import HostRow, LeaseRow, Observation, PageEdit, PageRow


def test_a_lease_names_page_worker_and_time(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            [page_id] = await add(store, 1)
            [(page, lease)] = await store.lease([page_id], "w1", NOW, NOW + 60)
            assert lease == LeaseRow(page_id, lease.token, "w1", NOW, NOW + 60)
            assert page.last_token == lease.token > page.settled_token
            assert await store.leases() == [lease]
            assert await store.read_pages([page_id]) == [page]

    run(story())


def test_a_page_has_one_lease_at_most(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            ids = await add(store, 4)
            await store.edit_pages([PageEdit(ids[3], state="retired")])
            first = await store.lease([ids[0], ids[1], ids[0], 999, ids[3]], "w1", NOW, NOW + 60)
            assert [page.id for page, _lease in first] == ids[:2]
            second = await store.lease(ids, "w2", NOW + 9999, NOW + 10_000)
            assert [page.id for page, _lease in second] == [ids[2]]
            assert await store.lease(ids, "w3", NOW, NOW) == []
            assert await store.lease([], "w3", NOW, NOW) == []

    run(story())


def test_sixteen_workers_never_hold_the_same_page(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            ids = await add(store, 60)

            async def work(number: int) -> list[tuple[int, int]]:
                mine = []
                for start in range(number % 7, len(ids), 7):
                    leased = await store.lease(ids[start : start + 5], f"w{number}", NOW, NOW + 60)
                    mine += [(lease.page_id, lease.token) for _page, lease in leased]
                return mine

            taken = [lease for mine in await asyncio.gather(*map(work, range(16))) for lease in mine]
            assert sorted(page_id for page_id, _token in taken) == ids
            assert len({token for _page, token in taken}) == len(ids)

    run(story())


def test_tokens_rise_over_the_whole_life_of_a_store(store_maker: StoreMaker) -> None:
    async def story() -> None:
        tokens: list[int] = []
        for round_number in range(3):
            async with opened(store_maker) as store:
                ids = await add(store, 3)
                for _ in range(2):
                    leased = await store.lease(ids, "w", NOW, NOW + 60)
                    tokens += [lease.token for _page, lease in leased]
                    await store.release([lease.token for _page, lease in leased])
                assert len(tokens) == 6 * (round_number + 1)
        assert tokens == sorted(set(tokens))

    run(story())


def test_a_lease_notes_what_hosts_allow_next(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            ids = await add(store, 2)
            await store.lease(ids[:1], "w", NOW, NOW + 60, [HostRow("example.org", 2.0, NOW + 2), HostRow("other")])
            await store.lease(ids[1:], "w", NOW, NOW + 60, [HostRow("example.org", 2.0, NOW + 4)])
            hosts = {host.name: host for host in await store.hosts()}
            assert hosts == {"example.org": HostRow("example.org", 2.0, NOW + 4), "other": HostRow("other")}

    run(story())


def test_heartbeats_prolong_leases_that_are_still_good(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            one, two, three = (lease for _page, lease in await lease_all(store, await add(store, 3)))
            await store.release([one.token])
            asked = [three.token, one.token, two.token]
            assert await store.heartbeat(asked, NOW + 7200) == [three.token, two.token]
            assert await store.leases() == [replace(two, until=NOW + 7200), replace(three, until=NOW + 7200)]

    run(story())


def test_a_lease_that_was_given_back_can_be_had_again(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            [page_id] = await add(store, 1)
            [(page, lease)] = await lease_all(store, [page_id])
            assert await store.release([lease.token, 999]) == 1
            assert await store.release([lease.token]) == 0
            [row] = await store.read_pages([page_id])
            assert row.last_token == lease.token
            assert await store.complete([result_of(page, lease)]) == ["stale"]
            [(_page, second)] = await lease_all(store, [page_id])
            assert second.token > lease.token

    run(story())


def test_a_result_is_written_whole(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            [page_id] = await add(store, 1)
            [(page, lease)] = await lease_all(store, [page_id])
            result = changed_result(page, lease)
            everything = replace(
                result,
                page=replace(
                    result.page, state="removed", reason="gone", not_before=NOW + 5, missing=2, missing_since=NOW,
                    failures=4, crashes=1, etag=b'"\xff"', last_modified=b"yesterday", validated_url="https://x/",
                    raw_digest=b"r" * 16, text_digest=b"t" * 16, links_digest=b"l" * 16, metadata_digest=b"m" * 16,
                    memory=b"\0memory", belief=b"\0belief", outcome="gone",
                ),
            )  # fmt: skip
            assert await store.complete([everything], {"fetches": 1}) == ["applied"]
            [row] = await store.read_pages([page_id])
            assert row == replace(everything.page, last_token=lease.token, settled_token=lease.token)
            assert await store.leases() == []
            assert await store.observations(page_id) == [everything.observation]
            assert await store.hosts() == [everything.host]
            assert [change.event for change in await store.changes()] == list(everything.changes)
            assert await store.read_text(page_id) == b"text 1"
            assert await store.tallies() == {"fetches": 1}

    run(story())


def test_a_result_leaves_what_users_decide_and_the_tokens(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            [page_id] = await add(store, 1, importance=2.0)
            [(page, lease)] = await lease_all(store, [page_id])
            await store.edit_pages([PageEdit(page_id, importance=5.0, group="g", max_interval_s=9.0)])
            await store.complete([result_of(page, lease)])
            [row] = await store.read_pages([page_id])
            assert (row.importance, row.group, row.max_interval_s) == (5.0, "g", 9.0)
            assert row.last_token == row.settled_token == lease.token

    run(story())


def test_a_field_that_is_none_again_is_written_as_none(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            [page_id] = await add(store, 1)
            [(page, lease)] = await lease_all(store, [page_id])
            await store.complete([result_of(page, lease, etag=b"e", memory=b"m", belief=b"b", not_before=NOW)])
            [(page, lease)] = await lease_all(store, [page_id])
            assert (page.etag, page.memory, page.belief, page.not_before) == (b"e", b"m", b"b", NOW)
            await store.complete([result_of(page, lease, etag=None, memory=None, belief=None, not_before=None)])
            [row] = await store.read_pages([page_id])
            assert (row.etag, row.memory, row.belief, row.not_before) == (None, None, None, None)

    run(story())


async def _everything(store: object) -> object:
    return [
        await getattr(store, name)()
        for name in ("list_pages", "leases", "all_observations", "changes", "hosts", "tallies", "pending_signals")
    ]


def test_the_same_result_again_is_a_duplicate_and_changes_nothing(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            ids = await add(store, 2)
            results = [changed_result(*leased) for leased in await lease_all(store, ids)]
            assert await store.complete([*results, results[0]], {"n": 2}) == ["applied", "applied", "duplicate"]
            before = await _everything(store)
            assert await store.complete(results, {"n": 2}) == ["duplicate", "duplicate"]
            assert await _everything(store) == before

    run(story())


def test_a_result_that_was_written_long_ago_is_still_a_duplicate(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            [page_id] = await add(store, 1)
            old = changed_result(*(await lease_all(store, [page_id]))[0])
            assert await store.complete([old]) == ["applied"]
            [(page, lease)] = await lease_all(store, [page_id])
            assert await store.complete([old]) == ["duplicate"]
            assert await store.complete([changed_result(page, lease, at=NOW + 5)]) == ["applied"]
            await fetch(store, page_id, at=NOW + 9)
            before = await _everything(store)
            assert await store.complete([old]) == ["duplicate"]
            assert await _everything(store) == before

    run(story())


def test_a_result_whose_lease_is_gone_is_stale_and_changes_nothing(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            ids = await add(store, 3)
            leased = await lease_all(store, ids)
            results = [changed_result(*one) for one in leased]
            await store.crashed([leased[0][1].token])
            await lease_all(store, ids[:1])
            await store.edit_pages([PageEdit(ids[1], state="retired")])
            forged = replace(results[2], observation=replace(results[2].observation, token=10**9))
            of_nobody = replace(results[2], observation=Observation(999, 1, NOW, "ok"))
            none = replace(results[2], observation=replace(results[2].observation, token=0))
            before = await _everything(store)
            assert await store.complete([*results[:2], forged, of_nobody, none], {"n": 1}) == ["stale"] * 5
            assert await _everything(store) == before
            assert await store.complete(results) == ["stale", "stale", "applied"]

    run(story())


def test_a_token_tells_what_became_of_its_result(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            applied, released = await lease_all(store, await add(store, 2))
            await store.complete([changed_result(*applied)])
            await store.release([released[1].token])
            assert await store.answer_for(applied[1].token) == "duplicate"
            assert await store.answer_for(released[1].token) == "stale"
            assert await store.answer_for(10**9) == "stale"

    run(story())


def test_counters_rise_also_without_results(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            await store.complete([], {"requests": 3})
            await store.raise_tallies({"requests": 2, "bytes": 2**40})
            await store.raise_tallies({})
            assert await store.tallies() == {"requests": 5, "bytes": 2**40}

    run(story())


def test_a_crash_ends_the_lease_and_is_counted(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            ids = await add(store, 2)
            tokens = [lease.token for _page, lease in await lease_all(store, ids)]
            rows = await store.crashed([tokens[1], 999, tokens[0]])
            assert [(row.id, row.crashes, row.last_token) for row in rows] == [
                (ids[1], 1, tokens[1]),
                (ids[0], 1, tokens[0]),
            ]
            assert await store.leases() == []
            assert await store.crashed(tokens) == []
            [row] = await store.crashed([lease.token for _page, lease in await lease_all(store, ids[:1])])
            assert row.crashes == 2

    run(story())


def test_texts_from_the_web_that_are_no_unicode_do_not_stop_a_batch(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            ids = await add(store, 2)
            good, bad = (changed_result(*leased) for leased in await lease_all(store, ids))
            odd = replace(
                bad, observation=replace(bad.observation, reason="half \ud800"), page=replace(bad.page, reason="\udfff")
            )
            assert await store.complete([good, odd]) == ["applied", "applied"]
            [seen] = await store.observations(ids[1])
            assert seen.reason == "half \ufffd"
            assert await store.complete([good, odd]) == ["duplicate", "duplicate"]

    run(story())


def test_what_returned_is_there_after_opening_again(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            ids = await add(store, 3)
            await fetch(store, ids[0])
            await lease_all(store, ids[1:])
            await store.add_signals(ids, "ping", NOW)
            await store.raise_tallies({"n": 1})
            before = await _everything(store)
            columns = await store.load_schedule()
        async with opened(store_maker) as store:
            assert await _everything(store) == before
            assert (await store.load_schedule()).page_id.tolist() == columns.page_id.tolist()

    run(story())


def test_rows_are_of_plain_types(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            [page_id] = await add(store, 1)
            await fetch(store, page_id)
            [row] = await store.read_pages([page_id])
            [seen] = await store.observations(page_id)
            assert isinstance(row, PageRow)
            assert type(row.importance) is float
            assert type(row.raw_digest) in (bytes, type(None))
            assert type(seen.at) is float
            assert type((await store.changes())[0].event.old_digest) is bytes

    run(story())
