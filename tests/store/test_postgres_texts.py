"""What texts PostgreSQL cannot hold, and what becomes of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from postgres_server import PostgresServer
from store_samples import NOW, add, changed_result, lease_all, run

from recrawl.errors import InvalidInput
from recrawl.store.postgres.backend import open_postgres
from recrawl.store.rows import DeadLetter, NewPage, PageEdit, SinkRow

BAD = "a\0b\ud800c"
CLEANED = "a\ufffdb\ufffdc"


def test_texts_for_people_are_cleaned_of_what_cannot_be_held(postgres: PostgresServer, database: str) -> None:
    async def story() -> None:
        store = await open_postgres(postgres.dsn(database), owner=True)
        [(page, lease)] = await lease_all(store, await add(store, 1, source=BAD, group=BAD))
        assert (page.source, page.group) == (CLEANED, CLEANED)
        plain = changed_result(page, lease)
        [answer] = await store.complete(
            [
                replace(
                    plain,
                    observation=replace(plain.observation, reason=BAD, worker="wörker 😀"),
                    page=replace(plain.page, reason=BAD, validated_url="https://example.org/é"),
                    changes=(replace(plain.changes[0], detail=BAD),),
                )
            ]
        )
        assert answer == "applied"
        [seen] = await store.observations(page.id)
        assert (seen.reason, seen.worker) == (CLEANED, "wörker 😀")
        assert (await store.read_pages([page.id]))[0].reason == CLEANED
        assert (await store.changes())[0].event.detail == CLEANED
        await store.edit_pages([PageEdit(page.id, reason=BAD)])
        await store.save_facts({BAD: BAD})
        assert await store.facts() == {CLEANED: CLEANED}
        await store.save_sink(SinkRow(BAD, 1, stopped=BAD), [DeadLetter(BAD, 1, NOW, BAD)])
        assert await store.sink(BAD) == SinkRow(CLEANED, 1, stopped=CLEANED)
        assert await store.dead_letters(BAD) == [DeadLetter(CLEANED, 1, NOW, CLEANED)]
        assert [row.id for row in await store.list_pages(group=BAD)] == [page.id]
        await store.close()

    run(story())


def test_an_address_that_cannot_be_held_is_refused_with_its_row(postgres: PostgresServer, database: str) -> None:
    async def story() -> None:
        store = await open_postgres(postgres.dsn(database), owner=True)
        good = NewPage("https://example.org/", "example.org")
        for bad in ("https://example.org/\0", "https://example.org/\udfff"):
            with pytest.raises(InvalidInput, match=r"url\[1\]"):
                await store.add_pages([good, replace(good, url=bad)])
            assert await store.find_pages([bad]) == {}
        assert sum((await store.counts()).pages.values()) == 0
        await store.close()

    run(story())


def test_long_addresses_are_kept_whole(postgres: PostgresServer, database: str) -> None:
    """An index over texts would refuse them at 2,700 bytes."""
    url = "https://example.org/" + "".join(f"{number:x}/" for number in range(3000))

    async def story() -> None:
        store = await open_postgres(postgres.dsn(database), owner=True)
        [(page_id, _)] = await store.add_pages([NewPage(url, "example.org")])
        assert await store.find_pages([url, url[:-1]]) == {url: page_id}
        await store.pause("page", url, NOW)
        assert await store.paused() == [("page", url)]
        assert (await store.load_schedule()).held.tolist() == [True]
        await store.close()

    run(story())


def test_a_number_that_is_too_large_is_refused_and_nothing_is_written(postgres: PostgresServer, database: str) -> None:
    async def story() -> None:
        store = await open_postgres(postgres.dsn(database), owner=True)
        [(page, lease)] = await lease_all(store, await add(store, 1))
        plain = changed_result(page, lease)
        huge = replace(plain, observation=replace(plain.observation, wire_bytes=2**63))
        with pytest.raises(InvalidInput, match="cannot be stored"):
            await store.complete([huge], {"n": 1})
        assert await store.tallies() == {}
        assert await store.complete([plain]) == ["applied"]
        await store.close()

    run(story())
