"""Imports from their items to the store: counts that add up, done twice, broken off, paused, and from the web."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from small_site import Site
from tracker_ground import FAST, running

from patience import PATIENCE_S
from recrawl.errors import InvalidInput
from recrawl.store.store import open_store
from recrawl.tracker.admission import PageRequest
from recrawl.tracker.commands.commands import Add, Command, Reply, Spend, carry_out
from recrawl.tracker.importers.from_web import Spent, fetched_items
from recrawl.tracker.importers.importer import BATCH, Defaults, Importer
from recrawl.tracker.importers.rows import BadRow, GoodRow, Hints, Item
from recrawl.tracker.settings.settings import GroupRule, Settings

GROUP = GroupRule("shop", ("https://shop.example.com/*",), importance=7.0)


def some(count: int, start: int = 0) -> list[Item]:
    return [
        GoodRow(row, PageRequest(f"https://a.example.com/{start + row}", source="import"))
        for row in range(1, count + 1)
    ]


async def stream(items: Sequence[Item]) -> AsyncIterator[Item]:
    for item in items:
        yield item


async def imported(
    items: Sequence[Item], settings: Settings, defaults: Defaults | None = None, *, dry_run: bool = False
) -> Importer:
    async def carry(command: Command) -> Reply:
        return await carry_out(command, settings, time.time)

    importer = Importer(carry, settings, defaults or Defaults(), dry_run=dry_run)
    await importer.take("file", stream(items))
    return importer


def test_counts_add_up_and_a_second_time_adds_nothing(tmp_path: Path) -> None:
    settings = Settings(store=str(tmp_path / "data"), groups=(GROUP,))
    items: list[Item] = [
        *some(BATCH + 5),
        GoodRow(2000, PageRequest("https://A.example.com/1#top")),
        GoodRow(2001, PageRequest("nonsense")),
        BadRow(2002, "is broken"),
        BadRow(0, "the file is cut"),
    ]

    async def story() -> None:
        done = (await imported(items, settings)).done
        assert (done.rows, done.added, done.known, done.refused) == (BATCH + 8, BATCH + 5, 1, 2)
        assert [row for _, row, _ in done.refusals] == [2001, 2002, 0]
        again = (await imported(items, settings)).done
        assert (again.rows, again.added, again.known + again.same, again.refused) == (BATCH + 8, 0, BATCH + 6, 2)

    asyncio.run(story())


def test_a_dry_run_counts_as_the_import_does_and_leaves_nothing(tmp_path: Path) -> None:
    settings = Settings(store=str(tmp_path / "data"))
    items = [*some(BATCH + 1), *some(2)]

    async def story() -> None:
        done = (await imported(items, settings, dry_run=True)).done
        assert (done.rows, done.added, done.same) == (BATCH + 3, BATCH + 1, 2)
        assert not (tmp_path / "data").exists()

    asyncio.run(story())


def test_an_import_that_was_broken_off_is_done_again_with_equal_pages(tmp_path: Path) -> None:
    settings = Settings(store=str(tmp_path / "data"))

    async def breaking(items: Sequence[Item]) -> AsyncIterator[Item]:
        for item in items[: 2 * BATCH + 10]:
            yield item
        raise KeyboardInterrupt

    async def story() -> None:
        async def carry(command: Command) -> Reply:
            return await carry_out(command, settings, time.time)

        items = some(3 * BATCH)
        importer = Importer(carry, settings, Defaults())
        with pytest.raises(KeyboardInterrupt):
            await importer.take("file", breaking(items))
        assert importer.done.added == 2 * BATCH
        done = (await imported(items, settings)).done
        assert (done.rows, done.added, done.known) == (3 * BATCH, BATCH, 2 * BATCH)

    asyncio.run(story())


def test_rows_have_what_they_say_then_the_defaults_then_their_group(tmp_path: Path) -> None:
    settings = Settings(store=str(tmp_path / "data"), groups=(GROUP,))
    items = [
        GoodRow(1, PageRequest("https://shop.example.com/1")),
        GoodRow(2, PageRequest("https://a.example.com/2", group="shop")),
        GoodRow(3, PageRequest("https://a.example.com/3", importance=2.0, max_interval_s=60.0)),
    ]

    async def story() -> None:
        await imported(items[:2], settings)
        await imported(items[2:], settings, Defaults(importance=5.0, group="shop"))
        store = await open_store(settings.store, owner=False)
        pages = await store.list_pages()
        await store.close()
        assert [(page.group, page.importance, page.max_interval_s) for page in pages] == [
            ("shop", 7.0, None),
            ("shop", 7.0, None),
            ("shop", 2.0, 60.0),
        ]

    asyncio.run(story())


def test_strict_stops_at_the_first_row_that_cannot_be_used(tmp_path: Path) -> None:
    settings = Settings(store=str(tmp_path / "data"))

    async def carry(command: Command) -> Reply:
        return await carry_out(command, settings, time.time)

    importer = Importer(carry, settings, Defaults(), strict=True)
    with pytest.raises(InvalidInput, match="file row 4: is broken"):
        asyncio.run(importer.take("file", stream([*some(3), BadRow(4, "is broken")])))


def test_what_was_paused_elsewhere_is_paused_once_and_stays_resumed(tmp_path: Path) -> None:
    """Beside a tracker that runs: a paused page is never fetched, and a second import does not pause it again."""

    async def story() -> None:
        async with Site({"/held": "<p>held</p>", "/free": "<p>free</p>"}) as site, running(site, tmp_path) as ground:
            settings = ground.tracker.settings
            held, free = site.url("/held"), site.url("/free")
            items = [GoodRow(1, PageRequest(held), paused=True), GoodRow(2, PageRequest(free))]
            done = (await imported(items, settings)).done
            assert (done.added, done.paused) == (2, 1)
            await ground.until_visited("/free", 3)
            assert not site.asked_for("/held")
            await ground.store.resume("page", held)
            done = (await imported(items, settings)).done
            assert (done.known, done.paused) == (2, 0)
            assert await ground.store.paused() == []

    asyncio.run(story())


def urlset(*locations: str) -> bytes:
    return ("<urlset>" + "".join(f"<url><loc>{each}</loc></url>" for each in locations) + "</urlset>").encode()


def test_a_sitemap_index_is_walked_in_pace_with_leave_of_robots(tmp_path: Path) -> None:
    async def story() -> None:
        async with Site() as site:
            index = "".join(
                f"<sitemap><loc>{site.url(path)}</loc></sitemap>"
                for path in ("/1.xml", "/2.xml", "/private.xml", "/no.xml")
            )
            site.answers |= {
                "/robots.txt": (200, {"Content-Type": "text/plain"}, b"User-agent: *\nDisallow: /private.xml\n"),
                "/sitemap.xml": (200, {}, f"<sitemapindex>{index}</sitemapindex>".encode()),
                "/1.xml": (200, {}, urlset(site.url("/a"), site.url("/b"), site.url("/foreign", "b"))),
                "/2.xml": (200, {}, urlset(site.url("/b"), site.url("/c"))),
                "/private.xml": (200, {}, urlset(site.url("/secret"))),
            }
            settings = replace(FAST, store=str(tmp_path / "data"), egress=site.egress, min_gap_s=0.05)
            spent = Spent()
            url = site.url("/sitemap.xml")
            items = [item async for item in fetched_items(url, settings, Hints(now=time.time()), spent)]
            found = [item.wanted.url for item in items if isinstance(item, GoodRow)]
            assert found == [site.url("/a"), site.url("/b"), site.url("/b"), site.url("/c")]
            reasons = " ".join(item.reason for item in items if isinstance(item, BadRow))
            assert "robots-denied" in reasons
            assert "/no.xml cannot be had (missing)" in reasons
            assert "1 addresses of other hosts" in reasons
            assert not site.asked_for("/private.xml")
            assert spent.requests == len(site.log) == 5
            assert min(site.gaps()["a"]) >= 0.049
            done = (await imported(items, settings)).done
            assert done.added == 3

    asyncio.run(story())


def test_other_formats_come_from_the_web_too(tmp_path: Path) -> None:
    async def story() -> None:
        async with Site({"/list.csv": (200, {}, b"url,importance\nhttps://a.example.com/,3\n")}) as site:
            settings = replace(FAST, store=str(tmp_path), egress=site.egress)
            items = [item async for item in fetched_items(site.url("/list.csv"), settings, Hints(), Spent())]
            assert [item.wanted.importance for item in items if isinstance(item, GoodRow)] == [3.0]

    asyncio.run(story())


def test_nothing_is_fetched_without_a_contact_or_beyond_the_gate(tmp_path: Path) -> None:
    async def story() -> None:
        async with Site({"/": "x"}) as site:
            closed = replace(FAST, store=str(tmp_path))
            items = [item async for item in fetched_items(f"http://127.0.0.1:{site.port}/", closed, Hints(), Spent())]
            assert isinstance(items[0], BadRow)
            nameless = replace(closed, contact="", egress=site.egress)
            with pytest.raises(InvalidInput, match="contact is missing"):
                _ = [item async for item in fetched_items(site.url("/"), nameless, Hints(), Spent())]
            assert not site.log

    asyncio.run(story())


def test_what_fetching_cost_is_the_budgets(tmp_path: Path) -> None:
    async def story() -> None:
        async with Site() as site, running(site, tmp_path) as ground:
            assert (await ground.do(Spend(5, 1000))).done == {"requests": 5}
            assert (await ground.store.tallies())["requests"] == 5

    asyncio.run(story())


def test_two_commands_at_once_are_both_done_without_a_tracker(tmp_path: Path) -> None:
    """One owns the store; the other leaves an order, and does it itself when the first has left."""
    settings = Settings(store=str(tmp_path))

    async def story() -> None:
        first = await open_store(settings.store, owner=True)
        waiting = asyncio.create_task(
            carry_out(Add([PageRequest("https://a.example.com/")]), settings, time.time, patience_s=PATIENCE_S)
        )
        while not await first.orders():
            await asyncio.sleep(0.01)
        await first.close()
        assert (await waiting).done["added"] == 1

    asyncio.run(story())
