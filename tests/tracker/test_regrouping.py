"""Groups that change between two runs reach pages that are tracked already; what was said of a page itself stays."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from pathlib import Path

from tracker_harness import do_beside

from recrawl.store.rows import PageRow
from recrawl.store.store import Store, open_store
from recrawl.tracker.admission import PageRequest
from recrawl.tracker.commands.commands import Add
from recrawl.tracker.page_registry import FACT, read_signature, signature_of, sync_groups
from recrawl.tracker.settings.settings import GroupRule, Settings

SHOP = GroupRule("shop", ("https://shop.example.com/*",), importance=7.0, min_interval_s=60.0, max_interval_s=3600.0)
OTHER = GroupRule("other", ("https://other.example.com/*",))
OLD = Settings(groups=(SHOP, OTHER))


async def pages_of(store: Store) -> dict[str, PageRow]:
    return {page.url.removeprefix("https://"): page for page in await store.list_pages(limit=1000)}


async def begin(folder: Path) -> Store:
    store = await open_store(str(folder), owner=True)
    wanted = [
        PageRequest("https://shop.example.com/1"),
        PageRequest("https://shop.example.com/dear", importance=99.0),
        PageRequest("https://else.example.com/by-hand", group="shop"),
        PageRequest("https://else.example.com/plain"),
    ]
    await do_beside(store, OLD, Add(wanted))
    await sync_groups(store, OLD)
    return store


def test_values_of_the_group_follow_it_and_those_of_the_page_stay(tmp_path: Path) -> None:
    async def story() -> None:
        store = await begin(tmp_path)
        new = replace(SHOP, importance=3.0, min_interval_s=0.0, max_interval_s=None, objective="freshness")
        assert await sync_groups(store, replace(OLD, groups=(new, OTHER))) == 3
        pages = await pages_of(store)
        assert pages["shop.example.com/1"].importance == 3.0
        assert pages["shop.example.com/1"].min_interval_s == 0.0
        assert pages["shop.example.com/1"].max_interval_s in (None, math.inf)
        assert pages["shop.example.com/1"].objective == "freshness"
        assert pages["shop.example.com/dear"].importance == 99.0
        assert pages["else.example.com/by-hand"].importance == 3.0
        assert pages["else.example.com/by-hand"].group == "shop"
        assert pages["else.example.com/plain"].importance == 1.0
        await store.close()

    asyncio.run(story())


def test_a_group_that_says_no_least_interval_any_more_leaves_it_to_the_tracker(tmp_path: Path) -> None:
    """0 is said, and not nothing; what was said of the page itself stays."""

    async def story() -> None:
        store = await begin(tmp_path)
        own = PageRequest("https://shop.example.com/own", min_interval_s=0.0)
        await do_beside(store, OLD, Add([own]))
        assert (await pages_of(store))["else.example.com/plain"].min_interval_s is None
        for least, found in ((None, None), (0.0, 0.0), (5.0, 5.0)):
            await sync_groups(store, replace(OLD, groups=(replace(SHOP, min_interval_s=least), OTHER)))
            pages = await pages_of(store)
            assert pages["shop.example.com/1"].min_interval_s == found
            assert pages["shop.example.com/own"].min_interval_s in (0.0, found)
            assert pages["else.example.com/plain"].min_interval_s is None
        await store.close()

    asyncio.run(story())


def test_pages_change_groups_when_patterns_do(tmp_path: Path) -> None:
    async def story() -> None:
        store = await begin(tmp_path)
        wide = replace(OTHER, patterns=("https://else.example.com/*",), importance=5.0)
        await sync_groups(store, replace(OLD, groups=(wide,)))
        pages = await pages_of(store)
        assert pages["shop.example.com/1"].group == ""
        assert pages["shop.example.com/1"].importance == 1.0
        assert pages["else.example.com/by-hand"].group == "other"
        assert pages["else.example.com/plain"].group == "other"
        assert pages["else.example.com/plain"].importance == 5.0
        await store.close()

    asyncio.run(story())


def test_there_and_back_is_as_before(tmp_path: Path) -> None:
    async def story() -> None:
        store = await begin(tmp_path)
        before = await pages_of(store)
        assert await sync_groups(store, OLD) == 0
        await sync_groups(store, Settings())
        await sync_groups(store, OLD)
        after = await pages_of(store)
        for url, page in before.items():
            if "by-hand" not in url:  # its group was gone, and nobody remembers what was said by hand
                assert (after[url].group, after[url].importance) == (page.group, page.importance), url
                assert after[url].min_interval_s == page.min_interval_s
                assert (after[url].max_interval_s or math.inf) == (page.max_interval_s or math.inf)
        await store.close()

    asyncio.run(story())


def test_pages_that_were_added_before_there_were_groups_come_into_them(tmp_path: Path) -> None:
    async def story() -> None:
        store = await open_store(str(tmp_path), owner=True)
        await do_beside(store, Settings(), Add([PageRequest("https://shop.example.com/1")]))
        assert await sync_groups(store, OLD) == 1
        (page,) = (await pages_of(store)).values()
        assert (page.group, page.importance, page.max_interval_s) == ("shop", 7.0, 3600.0)
        assert (await store.facts())[FACT] == signature_of(OLD.groups)
        await store.close()

    asyncio.run(story())


def test_a_signature_reads_back_and_a_broken_one_is_none() -> None:
    assert read_signature(signature_of(OLD.groups)) == OLD.groups
    assert read_signature(None) == read_signature("{") == read_signature('[{"a": 1}]') == ()
