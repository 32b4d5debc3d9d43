"""Leases for outside fetchers: given once, good until they run out, over restarts too; results count once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import tracker_harness
from followed_site import FOLLOWING
from tracker_ground import FAST, SHORT
from tracker_harness import TrackerHarness

from patience import patience
from recrawl.errors import InvalidInput
from recrawl.store.rows import LeaseRow, NewPage, PageRow
from recrawl.store.store import Store
from recrawl.tracker.remote_workers import WorkResult
from recrawl.tracker.settings.settings import Settings
from recrawl.web.fetch.protocol import FetchResult
from recrawl.web.url.address import address_or_raise

BODY = b"<p>what an outside fetcher found on the page</p>"


def serving(folder: Path, settings: Settings = FAST) -> AbstractAsyncContextManager[TrackerHarness]:
    """A tracker that fetches nothing itself, on a store of its own."""
    return tracker_harness.serving(replace(settings, store=str(folder)), timing=SHORT)


async def _add(tracker: TrackerHarness, count: int) -> None:
    await tracker.add_pages([NewPage(f"http://h{n % 7}.example/{n}", f"h{n % 7}.example") for n in range(count)])


def test_what_was_leased_is_completed_once_and_told_the_same_again(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path) as tracker:
            await _add(tracker, 1)
            (offer,) = await tracker.lease_some(5)
            report = WorkResult(offer.token, "ok", BODY, "text/html")
            assert await tracker.complete([report]) == ["applied"]
            assert await tracker.complete([report, report]) == ["duplicate", "duplicate"]
            (page,) = await tracker.store.list_pages()
            assert (page.visits, page.settled_token) == (1, offer.token)
            assert len(await tracker.store.observations(page.id)) == 1

    asyncio.run(story())


def test_a_result_is_written_though_who_handed_it_in_went_away(tmp_path: Path) -> None:
    """Before it is settled, and while it is written; its page may be taken again afterwards."""

    async def story() -> None:
        async with serving(tmp_path) as tracker:
            await _add(tracker, 2)
            offers = await tracker.lease_some(1)
            offers += await tracker.lease_some(1)
            for offer in offers:
                handing = asyncio.ensure_future(tracker.complete([WorkResult(offer.token, "ok", BODY)]))
                while not tracker.is_completing(offer.token):
                    await asyncio.sleep(0)
                if offer is offers[1]:
                    tracker.complete_now()
                handing.cancel()
                await asyncio.gather(handing, return_exceptions=True)
            tracker.complete_now()
            await tracker.committed()
            assert [page.visits for page in await tracker.store.list_pages()] == [1, 1]
            assert not tracker.uncommitted

    asyncio.run(story())


def test_a_lease_that_ran_out_is_given_again_and_its_result_is_stale(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path) as tracker:
            await _add(tracker, 1)
            (first,) = await tracker.lease_some(1, "slow")
            assert await tracker.lease(1, "eager") == []
            tracker.run_out(first.token)
            (second,) = await tracker.lease_some(1, "eager")
            assert second.url == first.url
            assert second.token > first.token
            assert await tracker.complete([WorkResult(first.token, "ok", BODY)]) == ["stale"]
            assert await tracker.complete([WorkResult(second.token, "ok", BODY)]) == ["applied"]
            assert await tracker.complete([WorkResult(first.token, "ok", BODY)]) == ["stale"]

    asyncio.run(story())


def test_a_signal_after_a_lease_is_not_answered_by_what_its_worker_hands_in(tmp_path: Path) -> None:
    """Nobody knows when the worker asked: it may have been before the signal."""

    async def story() -> None:
        async with serving(tmp_path) as tracker:
            hearing, now = tracker.signals, tracker.now
            await _add(tracker, 1)
            (offer,) = await tracker.lease_some(1)
            await tracker.complete([WorkResult(offer.token, "ok", BODY)])
            (page,) = await tracker.store.list_pages()
            hearing.heard([page.id], "feed", now())
            (offer,) = await tracker.lease_some(1)
            hearing.heard([page.id], "cms", now())
            await hearing.flush()
            assert await tracker.complete([WorkResult(offer.token, "ok", BODY)]) == ["applied"]
            assert hearing.heard_of(page.id) == {"cms": 1}
            assert [each.kind for each in await tracker.store.pending_signals()] == ["cms"]

    asyncio.run(story())


def test_a_sitemap_that_a_worker_brings_is_read_as_a_source_and_is_no_page(tmp_path: Path) -> None:
    """It leads to pages, and is neither compared as a page nor reported as one."""
    rows = "".join(f"<url><loc>https://a.example/{name}</loc></url>" for name in ("one", "two"))
    space = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
    bodies = {
        "https://a.example/": (b"<p>a main page</p>", "text/html"),
        "https://a.example/sitemap.xml": (f"<urlset {space}>{rows}</urlset>".encode(), "application/xml"),
    }
    polls = Counter[str]()

    async def story() -> None:
        async with serving(tmp_path, FOLLOWING) as tracker:
            store = tracker.store
            await tracker.add_pages([NewPage("https://a.example/", "a.example")])
            async with patience("two polls of the sitemap"):
                while polls["https://a.example/sitemap.xml"] < 2:
                    for offer in await tracker.lease_some(5):
                        polls[offer.url] += 1
                        body, kind = bodies.get(offer.url, (b"", ""))
                        report = WorkResult(offer.token, "ok" if body else "missing", body, kind)
                        assert await tracker.complete([report]) == ["applied"]
            assert len(await store.find_pages(["https://a.example/one", "https://a.example/two"])) == 2
            (page,) = [each for each in await store.list_pages(role="source") if each.url.endswith("/sitemap.xml")]
            assert (page.memory, page.version) == (None, 0)
            seen = await store.observations(page.id)
            assert [each.verdict for each in seen] == ["unchanged", "noise"]
            assert await store.read_text(page.id) is None
            assert page.url not in [each.event.url for each in await store.changes(0, 100)]

    asyncio.run(story())


def test_all_requests_of_a_fetch_that_was_withdrawn_are_charged(tmp_path: Path) -> None:
    """A page that is removed while it is fetched costs what was sent for it: second looks too."""

    async def story() -> None:
        async with serving(tmp_path) as tracker:
            await _add(tracker, 1)
            (offer,) = await tracker.lease_some(1)
            visit = tracker.visit(offer.token)
            address = address_or_raise(offer.url, field="url")
            sent = FetchResult(address, "ok", "", address, body=BODY, requests=2, wire_bytes=100)
            again = replace(sent, requests=3, wire_bytes=10)
            visit.examined("ok", "first", "", None)
            visit.fetched, visit.refetched = sent, (again, again)
            await tracker.withdraw(visit)
            counted = tracker.accounts.counted.copy()
            assert not await tracker.finish(visit)
            assert (tracker.accounts.counted - counted) == {"requests": 8, "requests_in_vain": 8, "wire_bytes": 120}

    asyncio.run(story())


class Held:
    """A store that keeps who leases waiting, though the leases are made."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.leased, self.let_go = asyncio.Event(), asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def lease(self, ids: Sequence[int], worker: str, now: float, until: float) -> list[tuple[PageRow, LeaseRow]]:
        found = await self._store.lease(ids, worker, now, until)
        self.leased.set()
        await self.let_go.wait()
        return found


def test_pages_of_a_request_that_is_cancelled_while_they_are_leased_come_back(tmp_path: Path) -> None:
    """The caller got no answer."""

    async def story() -> None:
        async with serving(tmp_path) as tracker:
            await _add(tracker, 1)
            held = Held(tracker.store)
            tracker.lease_from(cast(Store, held))
            asking = asyncio.ensure_future(tracker.lease_some(1, "hasty"))
            async with patience("the lease to be made"):
                await held.leased.wait()
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            assert asking.cancelled()
            held.let_go.set()
            (offer,) = await tracker.lease_some(1, "patient")
            assert [each.token for each in await tracker.store.leases()] == [offer.token]
            assert await tracker.complete([WorkResult(offer.token, "ok", BODY)]) == ["applied"]
            assert tracker.accounts.in_flight == len(tracker.in_flight) == 0

    asyncio.run(story())


def test_a_heartbeat_keeps_a_lease_and_tells_which_are_gone(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path) as tracker:
            await _add(tracker, 1)
            (offer,) = await tracker.lease_some(1)
            tracker.run_out(offer.token)
            assert await tracker.heartbeat([offer.token, 10**9]) == [offer.token]
            assert await tracker.expire() == 0
            assert await tracker.complete([WorkResult(offer.token, "ok", BODY)]) == ["applied"]
            assert await tracker.heartbeat([offer.token]) == []

    asyncio.run(story())


def test_a_lease_outlives_a_restart_of_the_tracker(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path) as tracker:
            await _add(tracker, 1)
            (offer,) = await tracker.lease_some(1)
        async with serving(tmp_path) as tracker:
            assert await tracker.lease(10, "other") == []
            assert await tracker.complete([WorkResult(offer.token, "ok", BODY)]) == ["applied"]
            assert tracker.accounts.in_flight == 0

    asyncio.run(story())


def test_a_page_that_is_given_back_ends_once_though_who_gave_it_back_went_away(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path) as tracker:
            await _add(tracker, 1)
            (offer,) = await tracker.lease_some(1)
            giving = asyncio.ensure_future(tracker.complete([WorkResult(offer.token, "deferred")]))
            while offer.token in tracker.in_flight:
                await asyncio.sleep(0)
            giving.cancel()
            with pytest.raises(asyncio.CancelledError):
                await giving
            assert tracker.accounts.in_flight == 0
            await tracker.lease_some(1)

    asyncio.run(story())


def test_a_host_is_lent_only_in_its_turn_and_counts_as_asked_until_the_lease_ends(tmp_path: Path) -> None:
    """The gap counts from the end of the last request, whoever made it; the scheduler counts from starts of crawls."""

    async def story() -> None:
        async with serving(tmp_path, replace(FAST, min_gap_s=0.4, max_in_flight=1)) as tracker:
            await tracker.add_pages([NewPage(f"http://a.example/{n}", "a.example") for n in range(3)])
            (offer,) = await tracker.lease_some(3)
            hosts = tracker.hosts
            assert not hosts.may_ask("a.example")
            hosts.of("a.example").next_at = 0.0  # the gap is over
            assert not hosts.may_ask("a.example")  # its fetcher may do so any moment
            assert await tracker.complete([WorkResult(offer.token, "ok", BODY)]) == ["applied"]
            assert hosts.of("a.example").next_at > 0.0  # the gap counts from the end
            free_at = hosts.of("a.example").next_at = tracker.now() + 1.0
            assert await tracker.lease(3, "other") == []
            await tracker.lease_some(3, "other")
            assert tracker.now() >= free_at
            assert len(await tracker.store.leases()) == 1

    asyncio.run(story())


def test_many_workers_never_hold_one_page_at_once(tmp_path: Path) -> None:
    held: dict[str, int] = {}

    async def worker(tracker: TrackerHarness, name: str) -> None:
        for _ in range(6):
            offers = await tracker.lease(4, name)
            for offer in offers:
                assert offer.url not in held
                held[offer.url] = offer.token
            await asyncio.sleep(0)
            reports = []
            for offer in offers:
                assert held.pop(offer.url) == offer.token
                reports.append(WorkResult(offer.token, "ok", BODY))
            assert await tracker.complete(reports) == ["applied"] * len(reports)
            await asyncio.sleep(0.005)

    async def story() -> None:
        async with serving(tmp_path) as tracker:
            await _add(tracker, 40)
            await asyncio.gather(*(worker(tracker, f"w{n}") for n in range(16)))
            assert tracker.accounts.in_flight == 0

    asyncio.run(story())


def test_what_cannot_be_a_report_is_refused_and_the_lease_stays(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path) as tracker:
            await _add(tracker, 1)
            (offer,) = await tracker.lease_some(1)
            with pytest.raises(InvalidInput, match="must be one of"):
                await tracker.complete([WorkResult(offer.token, "fine")])  # type: ignore[arg-type]
            with pytest.raises(InvalidInput, match="body"):
                await tracker.complete([WorkResult(offer.token, "ok")])
            with pytest.raises(InvalidInput, match="worker"):
                await tracker.lease(1, "")
            with pytest.raises(InvalidInput, match="n is 9999"):
                await tracker.lease(9999, "w")
            assert await tracker.complete([WorkResult(offer.token, "deferred")]) == ["applied"]
            assert not await tracker.store.leases()

    asyncio.run(story())


@pytest.mark.parametrize(
    "odd",
    [
        {"wire_bytes": 10**30},
        {"status": 10**25},
        {"elapsed_s": float("nan")},
        {"etag": "text"},
        {"retry_after_s": -5.0},
    ],
)
def test_numbers_that_no_fetch_can_have_are_refused_and_hurt_nobody(tmp_path: Path, odd: dict[str, Any]) -> None:
    async def story() -> None:
        async with serving(tmp_path) as tracker:
            await _add(tracker, 1)
            (offer,) = await tracker.lease_some(1)
            with pytest.raises(InvalidInput, match=next(iter(odd))):
                await tracker.complete([WorkResult(offer.token, "ok", BODY, **odd)])
            assert await tracker.complete([WorkResult(offer.token, "ok", BODY)]) == ["applied"]

    asyncio.run(story())


def test_one_result_handed_in_twice_at_once_is_applied_once(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path) as tracker:
            await _add(tracker, 1)
            (offer,) = await tracker.lease_some(1)
            report = WorkResult(offer.token, "ok", BODY)
            answers = await asyncio.gather(*(tracker.complete([report]) for _ in range(4)))
            assert sorted(answer for (answer,) in answers) == ["applied", "duplicate", "duplicate", "duplicate"]

    asyncio.run(story())
