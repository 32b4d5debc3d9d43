"""The running crawler: take → lease → fetch → examine → settle → commit, at a constant rate, until it is stopped.

    open_tracker ── store, clock ── hosts ── pages into the scheduler ── leftovers of the last life
    run ─┬─ dispatch: takes what is worth the price, leases it, starts fetches
         ├─ committer: writes results
         └─ whatever `helpers` are given: orders of commands, leases that ran out, sinks

After a crash the store is the truth: pages in flight were not crawled, hosts are left alone for their gap, the budget
starts without tokens.
"""

from __future__ import annotations

import asyncio
import os
import platform
from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np

from recrawl.errors import RecrawlError, StoreError, StoreTaken
from recrawl.store.contract import Store
from recrawl.store.rows import LeaseRow, NewChange, NewPage, PageEdit, PageRow
from recrawl.tracker.accounts import Accounts
from recrawl.tracker.byte_budget import ByteBudget
from recrawl.tracker.clock import DAY_S, TrackerClock
from recrawl.tracker.committer import MOST_AT_ONCE, Committer
from recrawl.tracker.crash_watch import crash_watch
from recrawl.tracker.fetching import Fetcher, Flight
from recrawl.tracker.finishing import Desk, finish
from recrawl.tracker.health import NetworkHealth
from recrawl.tracker.hosts import HostBook, HostState
from recrawl.tracker.hours import open_again_at
from recrawl.tracker.loading import TICK_S, load_pages, new_scheduler, tell_pace
from recrawl.tracker.missing_pages import MissingPages
from recrawl.tracker.page_index import PageIndex
from recrawl.tracker.regrouping import regroup
from recrawl.tracker.roster import Roster
from recrawl.tracker.settings import Settings
from recrawl.web.fetch_limits import FetchSettings
from recrawl.web.fetch_result import FetchResult
from recrawl.web.fetch_steps import FetchJob
from recrawl.web.transport import Transport
from recrawl.web.transport_robots import RobotsMemory
from recrawl.web.user_agent import user_agent

QUARANTINE_AFTER = 3
OUTSIDE = "outside:"
"""Workers of other processes have names that begin so; their leases outlive this one."""

_MOST_UNWRITTEN = 8 * MOST_AT_ONCE
_DOWN_PROBE_S = 5.0
_UNWRITTEN_S = 0.5
_BROKEN_S = 3600.0
_ALONE_S = 60.0  # between suspects that are fetched one by one


class Tracker:
    """A crawler over a store; `open_tracker` makes one.

    Args:
        settings: what it is told.
        store: owned by it.
        clock: its time.
        say: takes sentences for people.
        tokens: of the budget, at the start.
    """

    def __init__(
        self, settings: Settings, store: Store, clock: TrackerClock, say: Callable[[str], None], tokens: float = 0.0
    ) -> None:
        self.settings = settings
        self.store = store
        self.worker = f"{platform.node()}:{os.getpid()}"
        self.flights: dict[int, Flight] = {}
        self.settling: dict[int, asyncio.Future[None]] = {}  # results of outside fetchers that are not durable yet
        scheduler = new_scheduler(settings, clock.now(), store.generation, tokens)
        accounts = Accounts()
        self.desk = Desk(
            scheduler,
            PageIndex(),
            HostBook(settings, clock.now, self._tell_pace),
            NetworkHealth(),
            accounts,
            Committer(store, accounts, self._trouble),
            clock,
            settings,
            say,
            ByteBudget(settings.bytes_per_day, clock.now()),
        )
        self._groups = {group.name: group for group in settings.groups if group.hours}
        self.transport = self._make_transport()
        missing = MissingPages(self._fetch_beside, clock.now)
        self.fetcher = Fetcher(self.transport, store, settings, missing, self.desk.hosts)
        self.roster = Roster(store, self.desk, self._withdraw)
        self._stopping = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._probe_at = 0.0
        self._told = ""

    def _make_transport(self) -> Transport:
        agent, settings = user_agent(self.settings.contact), self.settings
        carried = FetchSettings(
            agent,
            limits=settings.limits,
            egress=settings.egress,
            credentials=settings.credentials,
            opted_out=settings.opted_out,
            honour_noindex=settings.content.honour_noindex,
        )
        hosts, now = self.desk.hosts, self.desk.clock.now
        hosts.use(RobotsMemory(agent.token, self._fetch_beside, now))
        return Transport(carried, keeper=hosts, most_fetches=settings.concurrency, wall=now, watch=crash_watch())

    async def load(self) -> None:
        """Read the store: hosts, pages, and what the last life left behind."""
        leases = await self.store.leases()
        dead = [lease.token for lease in leases if not lease.worker.startswith(OUTSIDE)]
        crashed = await self.store.crashed(dead) if dead else []
        await self._quarantine(crashed)
        outside = [lease for lease in leases if lease.worker.startswith(OUTSIDE)]
        away = await self.store.read_pages([lease.page_id for lease in outside])
        self.desk.hosts.load(await self.store.hosts(), {page.host for page in (*crashed, *away)})
        await regroup(self.store, self.settings)
        load_pages(self.desk.scheduler, await self.store.load_schedule(), self.desk.hosts, self.desk.index)
        self._take_over(outside, away)

    async def run(self) -> None:
        """Crawl until `stop`, then drain: finish or give back what is under way, and write everything.

        Raises:
            StoreTaken: if another tracker owns the store by now.
        """
        committing = asyncio.create_task(self.desk.committer.run())
        committing.add_done_callback(lambda _: self.stop())
        async with self.transport:
            try:
                while not self.stopping:
                    await self._start_some()
                    await self.pause(TICK_S)
            finally:
                await self._drain()
        self.desk.committer.close(self.settings.drain_s)
        await committing
        await self.note_time()

    def stop(self) -> None:
        """Take nothing more, and let `run` end."""
        self._stopping.set()

    @property
    def stopping(self) -> bool:
        """Whether it was told to stop."""
        return self._stopping.is_set()

    async def note_time(self) -> None:
        """Write down how far time has come, so that it never runs backwards; whose turn is when; the counts."""
        with suppress(StoreError):
            now, tokens = self.desk.clock.now(), self.desk.scheduler.tokens
            await self.store.save_facts({"latest_at": repr(now), "tokens": repr(tokens)})
            await self.store.save_hosts(self.desk.hosts.touched())
            counts = self.desk.accounts.to_write()
            try:
                await self.store.raise_tallies(counts)
            except StoreError:
                self.desk.accounts.keep(counts)

    async def pause(self, seconds: float) -> None:
        """Wait, unless it is told to stop."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    # taking

    def may_take(self) -> bool:
        """Whether the store keeps up, and the budget of bytes is not overdrawn."""
        committer, now = self.desk.committer, self.desk.clock.now()
        return len(committer) < _MOST_UNWRITTEN and not committer.trouble and self.desk.bytes_left.wait_s(now) <= 0

    def room(self) -> int:
        """How many more fetches may start now."""
        now = self.desk.clock.now()
        if not self.may_take():
            return 0
        room = self.settings.concurrency - len(self._tasks)
        if self.desk.network.down:
            if now < self._probe_at:
                return 0
            self._probe_at = now + _DOWN_PROBE_S
            return min(room, 1)
        return max(room, 0)

    async def _start_some(self) -> None:
        room = self.room()
        for flight in await self.take(room, self.worker) if room else []:
            task = asyncio.create_task(self._fly(flight))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def take(self, most: int, worker: str) -> list[Flight]:
        """Take pages that are worth their price and lease them to a worker; durable when this returns."""
        async with self.roster.lock:
            return await self._take(most, worker)

    async def _take(self, most: int, worker: str) -> list[Flight]:
        desk = self.desk
        now = desk.clock.now()  # of the choice and of the leases, so that the gaps of hosts are seen in both
        batch = desk.scheduler.take(now / DAY_S, most)
        if not len(batch.ids):
            return []
        desk.accounts.take(len(batch.ids))
        numbers = desk.index.stored(batch.ids)
        scheduled = dict(zip(numbers, batch.ids.tolist(), strict=True))
        self._wait_for_commits(scheduled)
        try:
            leased = await self.store.lease(list(scheduled), worker, now, now + self.settings.lease_s)
        except StoreTaken:
            raise
        except StoreError as error:
            self._give_back(list(scheduled.values()), "store")
            self._trouble(str(error))
            return []
        if not self.desk.committer.trouble:
            self._trouble("")
        flights = [Flight(page, lease, scheduled.pop(page.id)) for page, lease in leased]
        self.flights.update({flight.lease.token: flight for flight in flights})
        if scheduled:
            await self._clear_up(scheduled)
        return await self._open_now(flights) if self._groups else flights

    async def _clear_up(self, scheduled: dict[int, int]) -> None:
        """Pages that could not be leased are no longer tracked, or the store did more than we were told of.

        A server that was lost may have leased a page, or not given it back; such a lease is nobody's, and ends here.
        """
        desk = self.desk
        try:
            rows = await self.store.read_pages(list(scheduled))
            tracked = {row.id for row in rows if row.state not in ("retired", "quarantined")}
            held = await self.store.leases() if tracked else []
            await self.store.release(
                [lease.token for lease in held if lease.page_id in tracked and lease.token not in self.flights]
            )
        except StoreError as error:
            tracked = set(scheduled)
            self._trouble(str(error))
        for number, each in scheduled.items():
            if number in tracked:
                self._give_back([each], "store")
                continue
            desk.scheduler.remove([each])
            desk.index.drop(number)
            desk.accounts.end("retired", "not-tracked")

    async def _open_now(self, flights: list[Flight]) -> list[Flight]:
        """Those whose groups may be crawled at this hour; the others wait until theirs comes."""
        now = self.desk.clock.now()
        closed: dict[int, float] = {}
        for flight in flights:
            group = self._groups.get(flight.page.group)
            opens = None if group is None else open_again_at(group.hours, group.time_zone, now)
            if opens is not None:
                closed[flight.lease.token] = opens
        with suppress(StoreError):  # else the leases are cleared up when the pages are taken next
            await self.store.release(list(closed))
        for token, opens in closed.items():
            flight = self.flights.pop(token)
            self._give_back([flight.scheduled], "hours")
            self.desk.scheduler.resume([flight.scheduled], held_until=opens / DAY_S)
        return [flight for flight in flights if flight.lease.token not in closed]

    def _wait_for_commits(self, scheduled: dict[int, int]) -> None:
        """Put off pages whose last result is not durable yet: it must be known before they are leased anew."""
        early = {number: each for number, each in scheduled.items() if number in self.desk.unwritten}
        if early:
            self._give_back(list(early.values()), "unwritten")
            until = (self.desk.clock.now() + _UNWRITTEN_S) / DAY_S
            self.desk.scheduler.resume(list(early.values()), held_until=until)
            for number in early:
                del scheduled[number]

    # one page

    async def _fly(self, flight: Flight) -> None:
        desk = self.desk
        try:
            result, examined = await self.fetcher.visit(flight.page, desk.clock.now())
            if examined.outcome == "deferred":
                self._charge(result, "requests_in_vain")
                await self._put_off(flight, "pacing", result)
            elif self.flights.pop(flight.lease.token, None) is None:  # withdrawn, or its lease ran out
                self._charge(result, "requests_in_vain")
            else:
                settled, answer = await finish(desk, flight, result, examined)
                if settled.moved_to is not None and answer == "applied":
                    await self.roster.move(settled.page, settled.moved_to)
        except asyncio.CancelledError:
            await self.release(flight, "drained")
        except Exception as error:  # whatever it is, the page and its host must not stay taken
            desk.say(f"the fetch of {flight.page.url} ended in an error that should not be: {error!r}")
            await self.give_up(flight)

    async def give_up(self, flight: Flight) -> None:
        """Put off a page over which something broke, however far it came."""
        until = self.desk.clock.now() + _BROKEN_S
        if flight.lease.token in self.flights:
            await self.release(flight, "error", until)
            return
        with suppress(RecrawlError):  # it may be settled, or gone
            self._give_back([flight.scheduled], "error")
            self.desk.scheduler.resume([flight.scheduled], held_until=until / DAY_S)
        with suppress(StoreError):
            await self.store.release([flight.lease.token])

    async def _put_off(self, flight: Flight, reason: str, result: FetchResult) -> None:
        """Give back a page that cannot be fetched now, until the host that was not to be asked may be."""
        hosts, now = self.desk.hosts, self.desk.clock.now()
        state = hosts.of(hosts.name_of(result.final))
        free_at = max(state.blocked_until, state.next_at, now + self.settings.longest_turn_s)
        await self.release(flight, reason, free_at)

    # pages that come and go

    async def add(self, pages: Sequence[NewPage]) -> list[tuple[int, bool]]:
        """Track pages from now on; ids of the store, and whether each is new."""
        return await self.roster.add(pages)

    async def _withdraw(self, numbers: set[int]) -> None:
        """Give back pages in flight that are to leave."""
        for flight in [each for each in self.flights.values() if each.page.id in numbers]:
            await self.release(flight, "withdrawn")

    async def release(self, flight: Flight, reason: str, held_until: float | None = None) -> None:
        """Give a page back that was not fetched; it is not taken before it may be leased again, nor before a time."""
        if self.flights.pop(flight.lease.token, None) is None:
            return
        with suppress(StoreError):  # else its lease is cleared up when it is taken next
            await self.store.release([flight.lease.token])
        if self.desk.index.scheduled(flight.page.id) != flight.scheduled:  # it has left meanwhile
            self.desk.accounts.end("retired", reason)
            return
        self._give_back([flight.scheduled], reason)
        if held_until is not None:
            self.desk.scheduler.resume([flight.scheduled], held_until=held_until / DAY_S)

    def _give_back(self, scheduled: list[int], reason: str) -> None:
        self.desk.scheduler.release(np.array(scheduled, dtype=np.int64), self.desk.clock.days())
        self.desk.accounts.end("deferred", reason, len(scheduled))

    # beginnings and ends

    async def _quarantine(self, crashed: list[PageRow]) -> None:
        """Shut away a page with which the process died again and again; of several suspects none, until one is sure."""
        suspects = [page for page in crashed if page.crashes >= QUARANTINE_AFTER and page.state == "active"]
        if len(suspects) == 1:
            (page,) = suspects
            reason = f"the crawler died {page.crashes} times in a row with it in flight"
            await self.store.append_changes(
                [NewChange("quarantined", self.desk.clock.now(), page.url, page_id=page.id)]
            )
            await self.store.edit_pages([PageEdit(page.id, state="quarantined", reason=reason)])
            self.desk.say(f"{page.url} is quarantined: {reason}")
            return
        now = self.desk.clock.now()
        one_by_one = [PageEdit(page.id, not_before=now + place * _ALONE_S) for place, page in enumerate(suspects)]
        await self.store.edit_pages(one_by_one)

    def _take_over(self, leases: list[LeaseRow], pages: list[PageRow]) -> None:
        """Leases of outside fetchers outlive us: their pages stay in flight until they end or run out."""
        by_id = {page.id: page for page in pages}
        for lease in leases:
            scheduled = self.desk.index.scheduled(lease.page_id)
            if scheduled is not None:
                self.desk.scheduler.claim([scheduled], self.desk.clock.days())
                self.desk.accounts.take(1)
                self.flights[lease.token] = Flight(by_id[lease.page_id], lease, scheduled)

    async def _drain(self) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self.settings.drain_s)
        for task in list(self._tasks):
            task.cancel()
        while self._tasks:
            await asyncio.wait(self._tasks)

    # told by others

    async def _fetch_beside(self, job: FetchJob) -> FetchResult:
        """Fetch what is no page of ours: robots.txt, or a path that should not exist. It counts all the same."""
        try:
            result = await self.transport.fetch(job)
        finally:
            self.desk.hosts.done()
        self.desk.hosts.heard(result)
        self._charge(result, f"{job.channel}_requests_beside")
        return result

    def _charge(self, result: FetchResult, name: str) -> None:
        """Count requests that are no crawl of a page: they were sent, so they cost."""
        self.desk.scheduler.spend(float(result.requests), self.desk.clock.days())
        self.desk.accounts.count("requests", result.requests)
        self.desk.accounts.count("wire_bytes", result.wire_bytes)
        self.desk.accounts.count(name, result.requests)
        self.desk.bytes_left.spend(result.wire_bytes)

    def _tell_pace(self, state: HostState) -> None:
        tell_pace(self.desk.scheduler, state, self.desk.hosts.max_in_flight(state.name))

    def _trouble(self, sentence: str) -> None:
        if sentence != self._told:
            self._told = sentence
            self.desk.say(f"the store cannot write: {sentence}" if sentence else "the store writes again")


async def open_tracker(settings: Settings, store: Store, say: Callable[[str], None]) -> Tracker:
    """A tracker over a store that it owns from then on, loaded and ready to run."""
    facts = await store.facts()
    latest = float(facts.get("latest_at", "0"))
    clock = TrackerClock(latest)
    if clock.behind_s > 1.0:
        say(f"the clock is {clock.behind_s:.0f} s behind what the store has seen: time goes on from there")
    # Tokens went on coming while nobody was there, up to what may be held; a debt is paid off first.
    came = settings.budget_per_day / DAY_S * (clock.now() - latest) if latest else 0.0
    tracker = Tracker(settings, store, clock, say, float(facts.get("tokens", "0")) + came)
    await tracker.load()
    return tracker
