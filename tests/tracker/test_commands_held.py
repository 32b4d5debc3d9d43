"""Commands of a user on a tracker that runs: pauses hold what is added later, and end as they began."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from small_site import Site
from tracker_ground import FAST, SHORT, running
from tracker_harness import do_beside

from patience import patience
from recrawl.store.rows import NewPage, PageEdit
from recrawl.store.store import open_store
from recrawl.tracker.admission import PageRequest
from recrawl.tracker.commands.commands import Add, Explain, FetchNow, Pause, Remove, Resume, SetBudget, Signal
from recrawl.tracker.settings.settings import GroupRule, Settings


def test_a_paused_host_and_group_hold_what_is_added_later(tmp_path: Path) -> None:
    async def story() -> None:
        async with Site({f"/{n}": f"<p>page {n}</p>" for n in range(9)}) as site:
            group = GroupRule("quiet", (f"http://c.site.test:{site.port}/*",))
            async with running(site, tmp_path, replace(FAST, groups=(group,))) as ground:
                await ground.add(["/1"], "b")
                await ground.add(["/2"], "c")
                await ground.until_visited("/2", 1, "c")
                await ground.until_visited("/1", 1, "b")
                host = (await ground.until_visited("/1", 1, "b")).host
                assert (await ground.do(Pause("host", [host]))).done["paused"] == 1
                assert (await ground.do(Pause("group", ["quiet"]))).done["paused"] == 1
                await ground.add(["/3"], "b")
                await ground.add(["/4"], "c")
                await ground.add(["/5"], "a")
                await ground.until_visited("/5", 5, "a")
                assert not site.asked_for("/3")
                assert not site.asked_for("/4")
                assert (await ground.do(Resume("host", [host]))).done["resumed"] == 1
                assert (await ground.do(Resume("group", ["quiet", "unheard"]))).done == {
                    "resumed": 1,
                    "rejected": 1,
                }
                await ground.until_visited("/3", 1, "b")
                await ground.until_visited("/4", 1, "c")

    asyncio.run(story())


def test_a_page_that_is_removed_and_added_again_is_restored_when_it_comes(tmp_path: Path) -> None:
    """Its state says that it is removed until then; one that had never come is discovered."""

    async def story() -> None:
        site = Site({"/1": "<p>one</p>", "/2": 500})
        async with site, running(site, tmp_path) as ground:
            urls = [site.url("/1"), site.url("/2")]
            await ground.add(["/1", "/2"])
            await ground.until_visited("/1")
            await ground.until_visited("/2")
            assert (await ground.do(Remove(urls))).done["removed"] == 2
            assert (await ground.do(Add([PageRequest(url) for url in urls], paused=urls))).done["added"] == 2
            assert [page.state for page in await ground.store.list_pages()] == ["removed", "removed"]
            site.answers["/2"] = "<p>two</p>"
            await ground.do(Resume("page", urls))
            async with patience("both pages to be active"):
                while [page.state for page in await ground.store.list_pages()] != ["active", "active"]:
                    await asyncio.sleep(0.01)
            events = await ground.events()
            assert [kind for kind, path in events if path == "/1"] == ["discovered", "removed", "restored"]
            assert [kind for kind, path in events if path == "/2"] == ["removed", "discovered"]

    asyncio.run(story())


def test_a_page_that_settings_no_longer_allow_is_found_and_can_be_removed(tmp_path: Path) -> None:
    """Also one whose address nobody may name any more."""

    async def story() -> None:
        nothing_is_fetched = replace(FAST, budget_per_day=1e-6)
        async with Site() as site, running(site, tmp_path, nothing_is_fetched) as ground:
            closed, unnamed = "https://a.site.test:8443/1", "http://wiki/"
            await ground.add_pages([NewPage(closed, "a.site.test"), NewPage(unnamed, "wiki")])
            assert (await ground.do(Add([PageRequest(closed), PageRequest(unnamed)]))).done["rejected"] == 2
            for url in (closed, unnamed):
                assert (await ground.do(Explain(url))).facts["url"] == url
                assert (await ground.do(FetchNow([url]))).done["wanted"] == 1
                assert (await ground.do(Pause("page", [url]))).done["paused"] == 1
                assert (await ground.do(Remove([url]))).done["removed"] == 1

    asyncio.run(story())


def test_a_new_budget_brings_its_own_burst(tmp_path: Path) -> None:
    """What comes in a tick of the loop can be spent in it, however small the first budget was."""

    async def story() -> None:
        async with Site() as site, running(site, tmp_path, replace(FAST, budget_per_day=10.0)) as ground:
            await ground.do(SetBudget(86_400.0 * 1000))
            scheduler = ground.scheduler
            scheduler.spend(0.0, ground.now() / 86_400.0 + 1.0)
            assert scheduler.tokens == 2 * SHORT.tick_s * 1000
            await ground.do(SetBudget(86_400.0))
            assert scheduler.tokens == 1.0

    asyncio.run(story())


def test_every_command_does_no_more_the_second_time(tmp_path: Path) -> None:
    async def story() -> None:
        async with Site({"/1": "<p>one</p>"}) as site, running(site, tmp_path) as ground:
            url = site.url("/1")
            assert (await ground.do(Add([PageRequest(url)]))).done["added"] == 1
            assert (await ground.do(Add([PageRequest(url)]))).done["added"] == 0
            for _ in range(2):
                assert (await ground.do(Pause("page", [url]))).done["paused"] == 1
            facts = (await ground.do(Explain(url))).facts
            assert facts["tracker_runs"]
            assert facts["schedule"] is None
            assert (await ground.do(Resume("page", [url]))).done["resumed"] == 1
            assert (await ground.do(Resume("page", [url]))).done["resumed"] == 0
            assert (await ground.do(Explain(url))).facts["schedule"] is not None
            assert (await ground.do(SetBudget(1000.0))).done == {"budget_per_day": 1000}
            assert (await ground.do(Signal([url, "https://unknown.example.com/"], "cms"))).done == {
                "heard": 1,
                "rejected": 1,
            }
            assert (await ground.do(Remove([url]))).done["removed"] == 1
            assert (await ground.do(Remove([url]))).done["removed"] == 0
            assert (await ground.events())[-1] == ("removed", "/1")

    asyncio.run(story())


def test_resuming_a_page_ends_its_quarantine(tmp_path: Path) -> None:
    async def story() -> None:
        async with Site({"/1": "<p>one</p>"}) as site, running(site, tmp_path) as ground:
            url = site.url("/1")
            assert (await ground.do(Pause("page", [url]))).done["rejected"] == 1
            await ground.add(["/1"])
            page = await ground.until_visited("/1")
            await ground.drop([page.id])
            await ground.committed()  # a result on its way would say that it is active
            await ground.store.edit_pages([PageEdit(page.id, state="quarantined", reason="it broke")])
            assert (await ground.do(Resume("page", [url]))).done["resumed"] == 1
            await ground.until_visited("/1", page.visits + 2)

    asyncio.run(story())


def test_the_budget_of_no_tracker_cannot_be_set(tmp_path: Path) -> None:
    async def story() -> None:
        store = await open_store(str(tmp_path), owner=True)
        assert "no tracker" in (await do_beside(store, Settings(), SetBudget(1.0))).error
        await store.close()

    asyncio.run(story())
