"""Any order of adding, signalling, leasing, reporting, expiring, deleting, crashing and restarting keeps the promises.

The tracker is driven as outside fetchers and commands drive it, on both stores, against a plain model of what was
acknowledged. Time is the machine's own. `RECRAWL_SOAK` asks for more examples.
"""

from __future__ import annotations

import asyncio
import math
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pytest
from crash_evidence import check_consistent, read_evidence
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from postgres_ground import KINDS, Place, new_place
from postgres_server import shared_server
from tracker_ground import FAST
from tracker_harness import TrackerHarness

from patience import PATIENCE_S
from recrawl.outcomes import Outcome
from recrawl.store.store import open_store
from recrawl.tracker.admission import PageRequest
from recrawl.tracker.clock import TrackerClock
from recrawl.tracker.commands.commands import Add, Remove, Signal
from recrawl.tracker.remote_workers import WorkItem, WorkResult
from recrawl.tracker.tracker import Tracker

EXAMPLES = 3 * int(os.environ.get("RECRAWL_SOAK", "2"))
GAP_S = 1.0
LEASE_S = 100.0
SETTINGS = replace(FAST, budget_per_day=86_400.0 * 1e6, min_gap_s=GAP_S, max_in_flight=1, lease_s=LEASE_S)
URLS = [f"http://h{number % 3}.example/{number}" for number in range(8)]
OUTCOMES: list[Outcome] = ["ok", "ok", "not-modified", "missing", "network-error", "deferred"]
PLACES = st.lists(st.integers(0, 20), min_size=1, max_size=4)
Value = TypeVar("Value")


@dataclass
class Model:
    """What was acknowledged."""

    pages: set[str] = field(default_factory=set)
    held: dict[int, WorkItem] = field(default_factory=dict)
    until: dict[int, float] = field(default_factory=dict)
    applied: list[int] = field(default_factory=list)
    signals: dict[str, float] = field(default_factory=dict)
    asked_at: dict[str, float] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)


class TrackerMachine(RuleBasedStateMachine):
    kind: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="recrawl-machine-"))
        self.place: Place = new_place(self.kind, self.folder)
        self.loop = asyncio.new_event_loop()
        self.time = 1_790_000_000.0
        self.edition = 0
        self.offers: list[WorkItem] = []
        self.model = Model()
        self.do(self._open())

    def do(self, work: Coroutine[Any, Any, Value]) -> Value:
        return self.loop.run_until_complete(asyncio.wait_for(work, PATIENCE_S))

    async def _open(self) -> None:
        self.store = await open_store(self.place.where, owner=True)
        latest = float((await self.store.facts()).get("latest_at", "0"))
        clock = TrackerClock(latest, wall=lambda: self.time, steady=lambda: self.time)
        tracker = Tracker(replace(SETTINGS, store=self.place.where), self.store, clock, lambda _: None)
        await tracker.load()
        self.tracker = TrackerHarness(tracker)
        self.writing = self.tracker.start_commits()

    async def _close(self, *, cleanly: bool) -> None:
        if cleanly:
            self.tracker.end_commits(5.0)
            await self.writing
            await self.tracker.tracker.note_time()
        else:
            self.writing.cancel()
            await asyncio.gather(self.writing, return_exceptions=True)
        await self.store.close()

    def teardown(self) -> None:
        self.do(self._close(cleanly=True))
        self.loop.close()
        self.place.clear()
        shutil.rmtree(self.folder)

    @rule(places=PLACES)
    def add(self, places: list[int]) -> None:
        urls = [URLS[place % len(URLS)] for place in places]
        reply = self.do(self.tracker.do(Add([PageRequest(url) for url in urls])))
        assert reply.done["added"] == len(set(urls) - self.model.pages)
        self.model.pages |= set(urls)

    @rule(place=st.integers(0, 7))
    def delete(self, place: int) -> None:
        url = URLS[place]
        reply = self.do(self.tracker.do(Remove([url])))
        assert reply.done["removed"] == (url in self.model.pages)
        self.model.pages.discard(url)
        self.model.signals.pop(url, None)
        for token in [token for token, offer in self.model.held.items() if offer.url == url]:
            del self.model.held[token]

    @rule(place=st.integers(0, 7))
    def signal(self, place: int) -> None:
        reply = self.do(self.tracker.do(Signal([URLS[place]], "ping")))
        assert reply.done["heard"] == (URLS[place] in self.model.pages)
        if URLS[place] in self.model.pages:
            self.model.signals[URLS[place]] = self.time

    @rule(most=st.integers(1, 4), worker=st.sampled_from(["a", "b"]))
    def lease(self, most: int, worker: str) -> None:
        last = max((offer.token for offer in self.offers), default=0)
        for offer in self.do(self.tracker.lease(most, worker)):
            assert offer.url in self.model.pages
            assert offer.url not in {held.url for held in self.model.held.values()}
            assert offer.token > last
            host = offer.url.split("/")[2]
            assert self.time - self.model.asked_at.get(host, -math.inf) >= GAP_S - 1e-6
            self.model.asked_at[host] = self.time
            self.model.held[offer.token] = offer
            self.model.until[offer.token] = self.time + LEASE_S
            self.offers.append(offer)

    @rule(places=PLACES)
    def heartbeat(self, places: list[int]) -> None:
        tokens = self._tokens(places)
        good = self.do(self.tracker.heartbeat(tokens))
        assert set(good) == set(tokens) & self.model.held.keys()
        for token in good:
            self.model.until[token] = self.time + LEASE_S

    @rule(places=PLACES, outcome=st.sampled_from(OUTCOMES), twice=st.booleans())
    def complete(self, places: list[int], outcome: Outcome, twice: bool) -> None:
        tokens = self._tokens(places)
        self.edition += 1
        body = f"<p>edition {self.edition} of a page, with words of its own</p>".encode() if outcome == "ok" else b""
        reports = [WorkResult(token, outcome, body, elapsed_s=0.0) for token in tokens]
        expected = [self._expected(token, outcome) for token in tokens]
        assert self.do(self.tracker.complete(reports)) == expected
        if twice and outcome != "deferred":
            again = ["duplicate" if token in self.model.applied else "stale" for token in tokens]
            assert self.do(self.tracker.complete(reports)) == again

    def _expected(self, token: int, outcome: Outcome) -> str:
        offer = self.model.held.pop(token, None)
        if offer is None:
            return "duplicate" if token in self.model.applied else "stale"
        if outcome != "deferred":
            self.model.applied.append(token)
            if self.model.signals.get(offer.url, math.inf) <= self.time:
                del self.model.signals[offer.url]
        return "applied"

    @rule(seconds=st.sampled_from([0.5, 2.0, 30.0, 90.0, 3600.0]))
    def wait(self, seconds: float) -> None:
        self.time += seconds

    @rule()
    def expire(self) -> None:
        late = [token for token in self.model.held if self.model.until[token] < self.time]
        assert self.do(self.tracker.expire()) == len(late)
        for token in late:
            del self.model.held[token]

    @rule(cleanly=st.booleans())
    def crash_or_restart(self, cleanly: bool) -> None:
        self.do(self._close(cleanly=cleanly))
        self.do(self._open())

    def _tokens(self, places: list[int]) -> list[int]:
        chosen = [self.offers[place % len(self.offers)].token for place in places] if self.offers else []
        return list(dict.fromkeys(chosen))

    @invariant()
    def what_was_promised_holds(self) -> None:
        self.do(self._compare())

    async def _compare(self) -> None:
        found, model, tracker = await read_evidence(self.store), self.model, self.tracker
        check_consistent_pages = {page.url for page in found.pages.values() if page.state != "retired"}
        assert check_consistent_pages == model.pages
        check_consistent(found)
        assert sorted(row.token for row in found.seen) == sorted(model.applied)
        leases = await self.store.leases()
        assert {each.token for each in leases} == set(model.held) == tracker.in_flight
        assert max(Counter(each.page_id for each in leases).values(), default=1) == 1
        ids = [change.id for change in found.log]
        assert ids[: len(model.log)] == model.log
        model.log = ids
        waiting = {found.pages[each.page_id].url for each in await self.store.pending_signals()}
        assert set(model.signals) <= waiting
        accounts = tracker.accounts
        assert accounts.in_flight == len(tracker.in_flight)
        assert math.isfinite(tracker.scheduler.price)
        assert tracker.scheduler.price >= 0
        assert await self.store.check() == []


@pytest.mark.parametrize("kind", KINDS)
def test_any_order_of_events_keeps_every_promise(kind: str) -> None:
    if kind == "postgresql":
        shared_server()  # skips without a server
    machine = type("Machine", (TrackerMachine,), {"kind": kind})
    chosen = settings(
        max_examples=EXAMPLES,
        stateful_step_count=25,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
    )
    run_state_machine_as_test(machine, settings=chosen)
