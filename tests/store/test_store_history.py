"""The contract: what was seen, the change log, sinks and signals."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import asyncpg
import pytest
from store_samples import (
    NOW,
    SqliteMaker,
    StoreMaker,
    add,
    changed_result,
    fail,
    fetch,
    lease_all,
    opened,
    result_of,
    run,
)

from recrawl.errors import RecrawlError
from recrawl.store.bodies import body_digest
from recrawl.store.rows import CHANGE_KINDS, DeadLetter, NewChange, Observation, PendingSignal, Result, SinkRow
from recrawl.store.store import Store


def test_the_last_fetches_come_newest_first(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            one, two = await add(store, 2)
            for number in range(5):
                await fetch(store, one, at=NOW + number)
                await fetch(store, two, at=NOW + 100 + number)
            assert [seen.at - NOW for seen in await store.observations(one, 3)] == [4, 3, 2]
            assert [seen.at - NOW for seen in await store.observations(two)] == [104, 103, 102, 101, 100]
            assert await store.observations(999) == []
            assert await store.observations(one, 0) == []

    run(story())


def test_all_fetches_come_in_the_order_they_were_written(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            ids = await add(store, 3)
            for page_id in (ids[2], ids[0], ids[1]):
                await fetch(store, page_id)
            found = await store.all_observations()
            assert [seen.page_id for _number, seen in found] == [ids[2], ids[0], ids[1]]
            numbers = [number for number, _seen in found]
            assert numbers == sorted(set(numbers))
            assert await store.all_observations(numbers[0], 1) == found[1:2]
            assert await store.all_observations(numbers[-1]) == []

    run(story())


def test_an_observation_comes_back_field_by_field(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            [page_id] = await add(store, 1)
            [(page, lease)] = await lease_all(store, [page_id])
            seen = Observation(
                page_id, lease.token, NOW + 0.125, "network-error", None, "ping", None, "timeout", "no answer — 10 s",
                12.5, 3, 2**41, 10.25, "w-7",
            )  # fmt: skip
            await store.complete([replace(result_of(page, lease), observation=seen)])
            assert await store.observations(page_id) == [seen]

    run(story())


def test_texts_are_kept_by_version(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            one, two = await add(store, 2)
            for number in range(3):
                await fetch(store, one, at=NOW + number)
            assert await store.read_text(one) == b"text 3"
            assert await store.read_text(one, 2) == b"text 2"
            assert await store.read_text(one, 9) is None
            assert await store.read_text(two) is None
            assert await store.version_body(one) is None
            assert await store.versions(one) == [
                (3, NOW + 2, b"\3" * 16),
                (2, NOW + 1, b"\2" * 16),
                (1, NOW, b"\1" * 16),
            ]

    run(story())


def test_what_is_forgotten_is_gone_and_the_rest_stays(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            one, two = await add(store, 2)
            for number in range(4):
                await fetch(store, one, at=NOW + number)
            await fetch(store, two, at=NOW)
            rows = await store.list_pages()
            assert await store.forget(NOW + 2, 2) == 3 + 2
            assert [seen.at - NOW for seen in await store.observations(one)] == [3, 2]
            assert await store.observations(two) == []
            assert [version for version, _at, _digest in await store.versions(one)] == [4, 3]
            assert await store.read_text(one, 1) is None
            assert len(await store.versions(two)) == 1
            assert await store.list_pages() == rows
            assert (await store.counts()).observations == 2
            assert await store.last_cursor() == 5
            assert await store.forget(NOW + 2, 2) == 0
            assert await store.check() == []
            last = (await store.all_observations())[-1][0]
            await store.forget(NOW + 1000, 2)
            await fetch(store, one, at=NOW + 2000)
            assert (await store.all_observations())[0][0] > last
            assert [seen.at for seen in await store.observations(one)] == [NOW + 2000]

    run(story())


def test_bodies_are_kept_until_no_version_names_them(store_maker: StoreMaker) -> None:
    bodies = [b"<p>one</p>" * 1000, b"", bytes(range(256)) * 50]

    async def story() -> None:
        async with opened(store_maker) as store:
            [page_id] = await add(store, 1)
            for body in bodies:
                digest = body_digest(body)
                assert await store.read_body(digest) is None
                await store.put_body(digest, body)
                await store.put_body(digest, body)
                assert await store.read_body(digest) == body
                await _publish(store, page_id, digest)
            assert await store.version_body(page_id) == bodies[2]
            assert await store.version_body(page_id, 1) == bodies[0]
            assert await store.version_body(page_id, 9) is None
            await store.forget(0.0, 2)
            assert await store.version_body(page_id, 1) is None
            kept = [await store.read_body(body_digest(body)) for body in bodies]
            assert kept == [None, *bodies[1:]]
        async with opened(store_maker) as store:
            assert await store.read_body(body_digest(bodies[2])) == bodies[2]
            assert await store.check() == []

    run(story())


def test_a_body_of_a_result_that_came_too_late_is_swept(store_maker: StoreMaker) -> None:
    """The body was put for a result that the store refused: no version will ever name it."""
    late, kept = b"late" * 100, b"kept" * 100

    async def story() -> None:
        async with opened(store_maker) as store:
            one, two = await add(store, 2)
            [(page, lease)] = await lease_all(store, [one])
            await store.release([lease.token])
            await store.put_body(body_digest(late), late)
            await store.put_body(body_digest(kept), kept)
            await store.forget(0.0, 5)
            assert await store.read_body(body_digest(late)) == late  # its result may still come
            assert await store.complete([_with_body(changed_result(page, lease), body_digest(late))]) == ["stale"]
            await _publish(store, two, body_digest(kept))
            await store.forget(0.0, 5)
            assert await store.read_body(body_digest(late)) is None
            assert await store.read_body(body_digest(kept)) == kept

    run(story())


def test_a_damaged_body_is_whole_again_when_it_is_put_again(store_maker: StoreMaker) -> None:
    body = b"<p>whole</p>" * 100
    digest = body_digest(body)

    async def story() -> None:
        async with opened(store_maker) as store:
            await store.put_body(digest, body)
            await _damage(store_maker, digest)
            assert await store.read_body(digest) is None
            await store.put_body(digest, body)
            assert await store.read_body(digest) == body

    run(story())


async def _damage(maker: StoreMaker, digest: bytes) -> None:
    if isinstance(maker, SqliteMaker):
        [file] = maker.folder.glob(f"bodies/*/{digest.hex()}.zst")
        file.write_bytes(b"damaged")
        return
    connection = await asyncpg.connect(maker.where)
    try:
        await connection.execute("UPDATE recrawl.bodies SET body = 'damaged' WHERE digest = $1", digest)
    finally:
        await connection.close()


def _with_body(result: Result, digest: bytes) -> Result:
    assert result.version is not None
    return replace(result, version=replace(result.version, body_digest=digest))


async def _publish(store: Store, page_id: int, digest: bytes) -> None:
    [(page, lease)] = await lease_all(store, [page_id])
    await store.complete([_with_body(changed_result(page, lease), digest)])


def test_cursors_count_from_one_without_gaps_whatever_fails(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            ids = await add(store, 8)
            assert await store.last_cursor() == 0
            event = NewChange("network_down", NOW, "everything")
            broken = replace(event, detected_at="yesterday")  # type: ignore[arg-type]

            async def spoil() -> None:
                with pytest.raises((RecrawlError, TypeError, ValueError)):
                    await store.append_changes([event, broken])

            await asyncio.gather(
                *(fetch(store, page_id) for page_id in ids), spoil(), store.append_changes([event] * 3)
            )
            assert [change.cursor for change in await store.changes()] == list(range(1, 12))
            assert await store.last_cursor() == 11
        async with opened(store_maker) as store:
            assert await store.append_changes([event]) == [12]
            assert await store.append_changes([]) == []
            assert await store.check() == []

    run(story())


def test_events_come_back_as_they_were_and_keep_their_ids(store_maker: StoreMaker) -> None:
    events = [NewChange(kind, NOW + place, f"https://example.org/{place}") for place, kind in enumerate(CHANGE_KINDS)]
    full = NewChange("moved", NOW, "https://a/", 1, NOW - 9, b"o" * 16, b"n" * 16, "ping", '{"to": "https://b/ü"}', 7)

    async def story() -> None:
        async with opened(store_maker) as store:
            [page_id] = await add(store, 1)
            mine = replace(full, page_id=page_id)
            assert await store.append_changes([*events, mine]) == list(range(1, len(events) + 2))
            found = await store.changes()
            assert [change.event for change in found] == [*events, mine]
            assert len({change.id for change in found}) == len(found)
            assert all(store.store_id in change.id for change in found)
            assert await store.changes(after=3, limit=2) == found[3:5]
            assert await store.changes(page_id=page_id) == found[-1:]
            assert await store.changes(after=len(found), page_id=page_id) == []
        async with opened(store_maker, owner=False) as visitor:
            assert await visitor.changes() == found

    run(story())


def test_reading_on_from_the_cursor_before_a_time_misses_nothing_since(store_maker: StoreMaker) -> None:
    times = [1.0, 2.0, 5.0, 3.0, 5.0, 6.0]

    async def story() -> None:
        async with opened(store_maker) as store:
            assert await store.cursor_before(NOW) == 0
            await store.append_changes([NewChange("changed", NOW + time, "https://a/") for time in times])
            for time in (0.0, 1.0, 2.5, 4.0, 5.0, 6.0, 7.0):
                cursor = await store.cursor_before(NOW + time)
                since = [change.event.detected_at - NOW for change in await store.changes(after=cursor)]
                assert [one for one in since if one >= time] == [one for one in times if one >= time]
                assert not since or since[0] >= time

    run(story())


def test_all_sinks_are_listed_by_name_and_their_dead_letters_counted_up_to_a_number(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            assert await store.sinks() == []
            assert await store.count_dead_letters("hook") == 0
            rows = [SinkRow("Zoo", 1), SinkRow("another", 3, 2, NOW, "410"), SinkRow("hook", 7)]
            for row in reversed(rows):
                await store.save_sink(row, [DeadLetter(row.name, cursor, NOW, "") for cursor in range(row.cursor)])
        async with opened(store_maker) as store:
            assert await store.sinks() == rows
            assert [await store.count_dead_letters(row.name) for row in rows] == [1, 3, 7]
            assert await store.count_dead_letters("hook", 4) == 4
            assert await store.count_dead_letters("nobody") == 0

    run(story())


def test_a_sink_remembers_where_it_is(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            assert await store.sink("hook") == SinkRow("hook")
            row = SinkRow("hook", 7, 2, NOW, "410")
            letters = [DeadLetter("hook", cursor, NOW, "refused") for cursor in (5, 6)]
            await store.save_sink(row, letters)
            await store.save_sink(SinkRow("other", 1), [DeadLetter("other", 1, NOW, "")])
        async with opened(store_maker) as store:
            assert await store.sink("hook") == row
            assert await store.dead_letters("hook") == letters[::-1]
            assert await store.dead_letters("hook", 1) == letters[1:]
            await store.save_sink(SinkRow("hook", 8))
            assert await store.sink("hook") == SinkRow("hook", 8)

    run(story())


def test_signals_wait_in_one_row_for_each_page_and_kind(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            one, two = await add(store, 2)
            await store.add_signals([one, two, one], "ping", NOW)
            await store.add_signals([one], "ping", NOW + 5)
            await store.add_signals([one], "ping", NOW - 5)
            await store.add_signals([one], "sitemap", NOW)
            await store.add_signals([], "ping", NOW)
            assert sorted(await store.pending_signals(), key=lambda signal: (signal.page_id, signal.kind)) == [
                PendingSignal(one, "ping", 4, NOW - 5, NOW + 5),
                PendingSignal(one, "sitemap", 1, NOW, NOW),
                PendingSignal(two, "ping", 1, NOW, NOW),
            ]

    run(story())


def test_a_fetch_that_began_after_a_signal_ends_it(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            one, two = await add(store, 2)
            await store.add_signals([one, two], "early", NOW)
            await store.add_signals([one, two], "late", NOW + 9.75)
            await fetch(store, one, at=NOW + 10)  # it took half a second
            waiting = {(signal.page_id, signal.kind) for signal in await store.pending_signals()}
            assert waiting == {(one, "late"), (two, "early"), (two, "late")}
            await fetch(store, one, at=NOW + 11)
            assert {signal.page_id for signal in await store.pending_signals()} == {two}

    run(story())


def test_a_fetch_ends_no_signal_that_was_heard_after_it_began_however_late_it_is_settled(
    store_maker: StoreMaker,
) -> None:
    """A second look may lie between the fetch and its result."""

    async def story() -> None:
        async with opened(store_maker) as store:
            one, two = await add(store, 2)
            await store.add_signals([one, two], "before", NOW + 1)
            await store.add_signals([one, two], "after", NOW + 3)
            await store.add_signals([two], "now", NOW + 3)
            [(first, lease), (second, other)] = await lease_all(store, [one, two])
            came = replace(result_of(first, lease, at=NOW + 10), began_at=NOW + 2)
            failed = Observation(two, other.token, NOW + 10, "server-error")
            missed = Result(failed, second, answered="now", began_at=NOW + 2)
            assert await store.complete([came, missed]) == ["applied", "applied"]
            waiting = {(signal.page_id, signal.kind) for signal in await store.pending_signals()}
            assert waiting == {(one, "after"), (two, "before"), (two, "after"), (two, "now")}

    run(story())


def test_a_failure_ends_no_signals_but_those_of_the_kind_that_it_answers(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            (one,) = await add(store, 1)
            for kind in ("ping", "now", "sitemap"):
                await store.add_signals([one], kind, NOW)
            await fail(store, one, at=NOW + 10)
            assert len(await store.pending_signals()) == 3
            await fail(store, one, at=NOW + 11, answered="now")
            assert {signal.kind for signal in await store.pending_signals()} == {"ping", "sitemap"}
            await store.add_signals([one], "now", NOW + 20)
            await fail(store, one, at=NOW + 15, answered="now")  # before it was said
            assert {signal.kind for signal in await store.pending_signals()} == {"ping", "sitemap", "now"}
            await fetch(store, one, at=NOW + 30)
            assert await store.pending_signals() == []

    run(story())
