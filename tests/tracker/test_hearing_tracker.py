"""Signals and wishes through a tracker that runs: what caused a crawl, what outlives a restart, what stays polite."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from itertools import count
from pathlib import Path

from made_up_sites import audit_site, honest
from small_site import Asked, Site
from tracker_ground import FAST, Ground, running
from tracker_harness import do_beside

from patience import patience
from recrawl.store.rows import HostRow
from recrawl.store.store import Store, open_store
from recrawl.tracker.clock import TrackerClock
from recrawl.tracker.commands.commands import Explain, FetchNow, Pause, Reply, Signal
from recrawl.tracker.commands.explain import sentences
from recrawl.tracker.discovery.reading import tells_of_change

ANOTHER = "<h1>Another</h1><p>text altogether, with other words in each line of it.</p>"
PAGES = {f"/{n}": f"<p>page {n}, which stays as it is</p>" for n in range(30)}


async def learn_before(folder: Path, host: str) -> None:
    """Put into the store what an earlier life has learned of an honest site."""
    (row,) = audit_site(honest, 3, 50).book.to_save()
    store = await open_store(str(folder), owner=True)
    await store.save_hosts([HostRow(host, learned=row.learned)])
    await store.close()


async def tell(ground: Ground, command: Signal | FetchNow | Explain | Pause) -> Reply:
    return await ground.do(command)


async def until_triggered(store: Store, page: int, trigger: str) -> None:
    async with patience(f"a crawl because of {trigger}"):
        while trigger not in [each.trigger for each in await store.observations(page, 1000)]:
            await asyncio.sleep(0.02)


def test_a_signal_that_is_trusted_is_named_as_the_cause_of_the_crawl(tmp_path: Path) -> None:
    async def story() -> None:
        async with Site(dict(PAGES)) as site:
            await learn_before(tmp_path, "a.site.test")
            async with running(site, tmp_path) as ground:
                await ground.add(["/1", "/2"])
                page = await ground.until_visited("/1")
                site.answers["/1"] = ANOTHER
                reply = await tell(ground, Signal([page.url], "sitemap"))
                assert reply.done == {"heard": 1, "rejected": 0}
                async with patience("a crawl because of it"):
                    # A fetch that begins while the command is carried out answers it, and was made for another reason.
                    # The page changes with each signal: signals that lie would be trusted no longer.
                    numbers = count()
                    while "sitemap" not in [each.trigger for each in await ground.store.observations(page.id, 1000)]:
                        site.answers["/1"] = f"<p>{' '.join(f'word{next(numbers)}' for _ in range(40))}</p>"
                        await tell(ground, Signal([page.url], "sitemap"))
                        await asyncio.sleep(0.02)
                facts = (await tell(ground, Explain(page.url))).facts
            (trust,) = [each for each in facts["trust"] if each["kind"] == "sitemap"]
            assert trust["listened"]
            assert 0 < trust["precision_error"] < 0.5
            said = "\n".join(sentences(facts))
            assert "sitemap on a.site.test" in said
            assert "(sitemap)" in said
            assert ground.said == []

    asyncio.run(story())


def test_an_honest_signaller_is_believed_after_some_crawls(tmp_path: Path) -> None:
    """Pages change and say so at the same moment; crawls in between are the audits, and nothing else is asked for."""

    async def story() -> None:
        async with Site(dict(PAGES)) as site, running(site, tmp_path) as ground:
            paths = list(PAGES)[:15]
            await ground.add(paths)
            pages = {path: await ground.until_visited(path) for path in paths}
            hearing, now = ground.signals, ground.now
            for turn in range(5):
                asked = {path: len(site.asked_for(path)) for path in paths}
                for path in paths[turn % 3 :: 3]:
                    words = " ".join(f"word{n * 7919 % 10_007}" for n in range(40 * turn, 40 * turn + 40))
                    site.answers[path] = f"<p>{words} {path}</p>"
                    hearing.heard([pages[path].id], "cms", now())
                await hearing.flush()
                await ground.until(
                    lambda asked=asked: all(len(site.asked_for(path)) > asked[path] for path in paths)  # type: ignore[misc]
                )
            (trust,) = [each for each in hearing.trust_in("a.site.test") if each.kind == "cms"]
            assert trust.listened
            assert trust.precision > 0.5
            assert trust.recall > 0.3
            triggers = {
                each.trigger for page in pages.values() for each in await ground.store.observations(page.id, 1000)
            }
            assert "cms" in triggers
            events = [each.event for each in await ground.store.changes(0, 1000)]
            assert "cms" in {event.trigger for event in events if event.kind == "changed"}

    asyncio.run(story())


def test_a_signal_outlives_a_restart_and_needs_no_tracker(tmp_path: Path) -> None:
    async def story() -> None:
        async with Site(dict(PAGES)) as site:
            await learn_before(tmp_path, "a.site.test")
            async with running(site, tmp_path) as ground:
                await ground.add(["/1"])
                page = await ground.until_visited("/1")
            store = await open_store(str(tmp_path), owner=True)
            assert (await do_beside(store, ground.settings, Signal([page.url], "sitemap"), 9e9)).done["heard"] == 1
            facts = (await do_beside(store, ground.settings, Explain(page.url), 9e9)).facts
            assert [each["kind"] for each in facts["trust"]] == ["sitemap"]
            assert facts["signals"][0]["count"] == 1
            await store.close()
            async with running(site, tmp_path) as ground:
                await until_triggered(ground.store, page.id, "sitemap")

    asyncio.run(story())


def test_a_signal_waits_until_a_fetch_tells_whether_the_page_has_changed(tmp_path: Path) -> None:
    """Failures answer nothing: neither while the tracker runs nor after a restart."""

    async def story() -> None:
        async with Site(dict(PAGES)) as site:
            async with running(site, tmp_path) as ground:
                await ground.add(["/1"])
                page = await ground.until_visited("/1")
                site.answers["/1"] = 500
                asked = len(site.asked_for("/1"))
                await tell(ground, Signal([page.url], "cms"))
                await ground.until(lambda: len(site.asked_for("/1")) >= asked + 3)
            store = await open_store(str(tmp_path), owner=False)
            assert (await store.observations(page.id, 1))[0].outcome == "server-error"
            assert [(each.kind, each.count) for each in await store.pending_signals()] == [("cms", 1)]
            await store.close()
            async with running(site, tmp_path) as ground:
                assert ground.signals.heard_of(page.id) == {"cms": 1}
                site.answers["/1"] = "<p>it is back</p>"
                async with patience("the signal to be answered"):
                    while await ground.store.pending_signals():
                        await asyncio.sleep(0.01)
                assert (await ground.store.observations(page.id, 1))[0].outcome == "ok"

    asyncio.run(story())


def test_a_signal_between_a_fetch_and_its_decision_is_not_answered_by_it(tmp_path: Path) -> None:
    """It comes while a second look is under way, a minute before the fetch is settled: the copy is older than it."""
    late_s, heard_at, asked_again = 60.0, list[float](), list[Asked]()

    async def story() -> None:
        passed = [0.0]
        clock = TrackerClock(steady=lambda: time.monotonic() + sum(passed))
        async with Site(dict(PAGES)) as site, running(site, tmp_path, clock_from=lambda _: clock) as ground:
            await ground.add(["/1"])
            page = await ground.until_visited("/1")
            texts = iter([ANOTHER, ANOTHER.replace("text", "words")])

            def changed(asked: Asked) -> str | int:
                asked_again.append(asked)
                if len(asked_again) == 2:  # the second look
                    heard_at.append(clock.now())
                    ground.signals.heard([page.id], "cms", heard_at[0])
                    passed.append(late_s)
                return next(texts, 500)  # failures answer nothing

            site.answers["/1"] = changed
            await ground.until(lambda: len(asked_again) >= 4, "a fetch after the one with a second look")
            (settled, *_) = [each for each in await ground.store.observations(page.id, 9) if each.requests == 2]
            assert settled.verdict == "changed"
            assert settled.at >= heard_at[0] + late_s
            assert ground.signals.heard_of(page.id) == {"cms": 1}
            await ground.signals.flush()
            assert [(each.kind, each.last_at) for each in await ground.store.pending_signals()] == [
                ("cms", heard_at[0])
            ]
            (row,) = await ground.store.read_pages([page.id])
            assert row.fetched_at is not None
            assert row.fetched_at < heard_at[0]
            assert tells_of_change(heard_at[0], row.fetched_at), "a sitemap may date the change so"

    asyncio.run(story())


def test_what_a_tracker_learns_of_a_host_is_in_its_row(tmp_path: Path) -> None:
    async def story() -> None:
        async with Site(dict(PAGES)) as site:
            async with running(site, tmp_path) as ground:
                await ground.add(["/1", "/2"])
                page = await ground.until_visited("/1")
                await tell(ground, Signal([page.url], "manual"))
                asked = len(site.asked_for("/1"))
                # Requests may be second looks: among five there is a visit that began later and is settled.
                await ground.until(lambda: len(site.asked_for("/1")) >= asked + 5)
            store = await open_store(str(tmp_path), owner=True)
            (row,) = [row for row in await store.hosts() if row.name == "a.site.test"]
            assert row.learned is not None
            await store.close()

    asyncio.run(story())


def test_a_wish_is_granted_before_all_others_and_stays_polite(tmp_path: Path) -> None:
    """Thirty pages wait for a slow host and a small budget; the wish is the next of it, and gaps hold."""
    slow = replace(FAST, min_gap_s=0.2, max_in_flight=1, budget_per_day=86_400.0 * 4)

    async def story() -> None:
        async with Site(dict(PAGES)) as site, running(site, tmp_path, slow) as ground:
            await ground.add(list(PAGES))
            await ground.until(lambda: len(site.log) >= 3)
            unseen = next(path for path in reversed(PAGES) if not site.asked_for(path))
            before = len(site.log)
            reply = await tell(ground, FetchNow([site.url(unseen), "https://unknown.example.com/"]))
            assert reply.done == {"wanted": 1, "rejected": 1}
            page = await ground.until_visited(unseen)
            assert len(site.log) - before <= 4
            (seen,) = await ground.store.observations(page.id)
            assert seen.trigger == "now"
            assert [each for each in await ground.store.pending_signals() if each.kind == "now"] == []
            assert ground.fetch_now_waiting == 0
            assert min(site.gaps()["a"]) >= 0.199

    asyncio.run(story())


def test_a_wish_waits_for_a_tracker_and_not_for_a_page_that_is_paused(tmp_path: Path) -> None:
    slow = replace(FAST, budget_per_day=86_400.0 * 4)

    async def story() -> None:
        async with Site(dict(PAGES)) as site:
            async with running(site, tmp_path, slow) as ground:
                await ground.add(["/1"])
                page = await ground.until_visited("/1")
            store = await open_store(str(tmp_path), owner=True)
            assert (await do_beside(store, ground.settings, FetchNow([page.url]), 9e9)).done["wanted"] == 1
            await store.close()
            async with running(site, tmp_path, slow) as ground:
                await ground.add(list(PAGES))
                await until_triggered(ground.store, page.id, "now")
                await tell(ground, Pause("page", [page.url]))
                reply = await tell(ground, FetchNow([page.url]))
                assert reply.done == {"wanted": 0, "rejected": 1}
                assert "paused" in reply.rejected[0].reason

    asyncio.run(story())
