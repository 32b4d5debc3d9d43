"""The running crawler: take → lease → fetch → examine → settle → commit, at a constant rate, until it is stopped.

    open_tracker ── store, clock ── hosts ── pages into the scheduler ── leftovers of the last life
    run ─┬─ dispatch: takes what is worth the price, leases it, starts fetches
         ├─ committer: writes results
         └─ whatever runs beside it: orders of commands, leases that ran out, sinks

After a crash the store is the truth: pages in flight were not crawled, hosts are left alone for their gap, the budget
starts without tokens.
"""

from __future__ import annotations

import asyncio
import os
import platform
from collections.abc import Callable, Sequence
from contextlib import suppress

from recrawl.errors import StoreError
from recrawl.store.contract import Store
from recrawl.store.rows import LeaseRow, NewChange, NewPage, PageEdit, PageRow
from recrawl.tracker.clock import DAY_S, TIMING, Timing, TrackerClock
from recrawl.tracker.desk import Desk
from recrawl.tracker.discovery.discovery import Sources
from recrawl.tracker.hosts import SEEN, HostBook, HostState, NetworkHealth
from recrawl.tracker.kinds import NOW
from recrawl.tracker.page_registry import Roster, regroup
from recrawl.tracker.pipeline.commit import Committer
from recrawl.tracker.pipeline.complete import Landing, harvest
from recrawl.tracker.pipeline.dispatch import Taker
from recrawl.tracker.pipeline.fetch import OUTSIDE, Fetcher, Flight, MissingPages, Visitor, crash_watch, kernels_for
from recrawl.tracker.schedule import Schedule, new_scheduler
from recrawl.tracker.settings.settings import Settings
from recrawl.tracker.signals.signals import HearingBook
from recrawl.tracker.usage import Accounts, ByteBudget
from recrawl.units import format_duration
from recrawl.web.fetch_limits import FetchSettings
from recrawl.web.fetch_result import FetchResult
from recrawl.web.fetch_steps import Channel, FetchJob
from recrawl.web.transport import Transport
from recrawl.web.transport_robots import RobotsMemory
from recrawl.web.user_agent import user_agent

QUARANTINE_AFTER = 3
INTERVAL_NOTICE = "interval_notice"
"""The fact of a store from before `min-interval`: `due` until its users were told."""
_ALONE_S = 60.0  # between suspects that are fetched one by one


class Tracker:
    """A crawler over a store; `open_tracker` makes one.

    Args:
        settings: what it is told.
        store: owned by it.
        clock: its time.
        say: takes sentences for people.
        tokens: of the budget, at the start.
        timing: how long its parts wait.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        clock: TrackerClock,
        say: Callable[[str], None],
        tokens: float = 0.0,
        timing: Timing = TIMING,
    ) -> None:
        self.settings = settings
        self.store = store
        self.worker = f"{platform.node()}:{os.getpid()}"
        self.settling: dict[int, asyncio.Future[None]] = {}  # results of outside fetchers that are not durable yet
        scheduler = new_scheduler(settings, clock, store.generation, tokens, timing.tick_s)
        hosts, accounts = HostBook(settings, clock, self._tell_pace), Accounts()
        schedule = Schedule(scheduler, hosts, clock, settings)
        self.desk = Desk(
            schedule,
            hosts,
            NetworkHealth(),
            accounts,
            Committer(store, accounts, self._trouble, timing),
            clock,
            settings,
            say,
            ByteBudget(settings.bytes_per_day, clock.now()),
            HearingBook(schedule, hosts, store, settings.signals),
            timing,
        )
        self.transport = self._make_transport()
        missing = MissingPages(self._fetch_to_read, clock.now, say)
        self.fetcher: Visitor = Fetcher(self.transport, store, settings, missing, self.desk.hosts, self._channel_of)
        self.roster = Roster(store, self.desk, self._withdraw)
        self.taker = Taker(store, self.desk, self.roster.lock, self._trouble)
        self.landing = Landing(self.desk, self.taker.landed, self._in_vain)
        self.discovery = self.desk.sources = Sources(store, self.desk, self.roster.add)
        self.desk.committer.latest_source = self.discovery.latest
        self._stopping = asyncio.Event()
        self._saving_hosts = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._told = ""

    def _make_transport(self) -> Transport:
        agent, settings = user_agent(self.settings.contact), self.settings
        carried = FetchSettings(
            agent,
            limits=settings.limits,
            egress=settings.egress,
            credentials=settings.credentials,
            opted_out=settings.opted_out,
            address_rules=settings.address_rules,
            unverified_tls=settings.unverified_tls,
            honour_noindex=settings.content.honour_noindex,
        )
        hosts, now = self.desk.hosts, self.desk.clock.now
        hosts.use(RobotsMemory(agent.token, self.fetch_beside, now))
        return Transport(carried, keeper=hosts, most_fetches=settings.concurrency, wall=now, watch=crash_watch())

    async def load(self) -> None:
        """Read the store: hosts, pages, and what the last life left behind."""
        leases = await self.store.leases()
        dead = [lease.token for lease in leases if not lease.worker.startswith(OUTSIDE)]
        crashed = await self.store.crashed(dead) if dead else []
        await self._quarantine(crashed)
        outside = [lease for lease in leases if lease.worker.startswith(OUTSIDE)]
        away = await self.store.read_pages([lease.page_id for lease in outside])
        hosts = await self.store.hosts()
        self.desk.hosts.load(hosts, {page.host for page in (*crashed, *away)})
        await self._recall_health()
        for sentence in self.desk.hearing.load(hosts):
            self.desk.say(sentence)
        await regroup(self.store, self.settings)
        await self.desk.schedule.captures.load(self.store)
        self.roster.load(await self.store.load_schedule())
        await self.discovery.load()
        pending = await self.store.pending_signals()
        self.desk.hearing.restore(pending, self.desk.clock.now())
        for page in await self.store.read_pages([each.page_id for each in pending if each.kind == NOW]):
            self.taker.wishes.add(page.id, page.host)
        self._take_over(outside, away)

    async def run(self, *, fetch: bool = True) -> None:
        """Crawl until `stop`, then drain: finish or give back what is under way, and write everything.

        Args:
            fetch: whether to fetch pages here; else outside fetchers take them.

        Raises:
            StoreTaken: if another tracker owns the store by now.
        """
        committing = asyncio.create_task(self.desk.committer.run())
        committing.add_done_callback(lambda _: self.stop())
        async with self.transport:
            try:
                while fetch and not self.stopping:
                    await self._start_some()
                    await self.pause(self.desk.timing.tick_s)
                await self._stopping.wait()
            finally:
                await self._drain()
                self.discovery.close()
        self.landing.settle()
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
        """Write down how far time has come, so that it never runs backwards; hosts, what was heard, the counts."""
        with suppress(StoreError):
            now, tokens = self.desk.clock.now(), self.desk.schedule.scheduler.tokens
            await self.store.save_facts({"latest_at": repr(now), "tokens": repr(tokens)})
            async with self._saving_hosts:
                await self._save_hosts()
            await self.desk.hearing.flush()
            counts = self.desk.accounts.to_write()
            try:
                await self.store.raise_tallies(counts)
            except StoreError:
                self.desk.accounts.keep(counts)

    async def _save_hosts(self) -> None:
        hosts, hearing, done = self.desk.hosts, self.desk.hearing, False
        rows = [*hosts.to_save(), *(hearing.to_save(10**9) if self.stopping else hearing.to_save())]
        try:
            await self.store.save_hosts(rows)
            done = True
        finally:
            hosts.saved(done=done)
            hearing.saved(done=done)

    async def pause(self, seconds: float) -> None:
        """Wait, unless it is told to stop."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    # taking

    @property
    def flights(self) -> dict[int, Flight]:
        """Pages that are being fetched, by token."""
        return self.taker.flights

    def may_take(self) -> bool:
        """Whether the store keeps up, and the budget of bytes is not overdrawn."""
        return self.taker.may_take()

    async def take(self, most: int, worker: str) -> list[Flight]:
        """Take pages that are worth their price and lease them to a worker; durable when this returns."""
        return await self.taker.take(most, worker)

    async def release(self, flight: Flight, reason: str, held_until: float | None = None) -> None:
        """Give a page back that was not fetched; it is not taken before a time."""
        await self.taker.release(flight, reason, held_until)

    async def give_up(self, flight: Flight) -> None:
        """Put off a page over which something broke, however far it came."""
        await self.taker.give_up(flight)

    async def _start_some(self) -> None:
        room = self.taker.room(len(self._tasks))
        for flight in await self.take(room, self.worker) if room else []:
            task = asyncio.create_task(self._fly(flight))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    # one page

    async def _fly(self, flight: Flight) -> None:
        desk = self.desk
        try:
            result, examined = await self.fetcher.visit(flight)
            if examined.outcome == "deferred":
                self._in_vain(result)
                await self._put_off(flight, "pacing", result)
                return
            source = await harvest(desk, flight, result, examined)
            finished = await self.landing.finish(flight, result, examined, source)
            if finished is not None and finished[0].moved_to is not None and finished[1] == "applied":
                await self.roster.move(finished[0].page, finished[0].moved_to)
        except asyncio.CancelledError:
            await self.release(flight, "drained")
        except Exception as error:  # whatever it is, the page and its host must not stay taken
            desk.say(f"the fetch of {flight.page.url} ended in an error that should not be: {error!r}")
            await self.give_up(flight)

    async def _put_off(self, flight: Flight, reason: str, result: FetchResult) -> None:
        """Give back a page that cannot be fetched now, until the host that was not to be asked may be."""
        hosts, now = self.desk.hosts, self.desk.clock.now()
        state = hosts.passing(hosts.name_of(result.final))
        free_at = max(state.blocked_until, state.next_at, now + self.settings.longest_turn_s)
        await self.release(flight, reason, free_at)

    # pages that come and go

    async def add(self, pages: Sequence[NewPage]) -> list[tuple[int, bool]]:
        """Track pages from now on; ids of the store, and whether each is new."""
        return await self.roster.add(pages)

    async def _withdraw(self, numbers: set[int]) -> None:
        """Give back pages in flight that are to leave."""
        await self.taker.release_pages(numbers, "withdrawn")

    # beginnings and ends

    async def _recall_health(self) -> None:
        """Let hosts that were ill go on where they were: their pages know how they were answered last."""
        for state in self.desk.hosts:
            if state.health.degraded:
                pages = await self.store.asked_last(state.name, 2 * SEEN)  # some may say nothing of the host
                state.health.restore(
                    (each.id, each.outcome, each.visits > 0) for each in reversed(pages) if each.outcome
                )

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
            scheduled = self.desk.schedule.entry_of(lease.page_id)
            if scheduled is not None:
                self.taker.take_over(lease, by_id[lease.page_id], scheduled)

    async def _drain(self) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self.settings.drain_s)
        for task in list(self._tasks):
            task.cancel()
        while self._tasks:
            await asyncio.wait(self._tasks)

    # told by others

    async def fetch_beside(self, job: FetchJob) -> FetchResult:
        """Fetch what is no page of ours: robots.txt, or a path that should not exist. It counts all the same."""
        try:
            result = await self.transport.fetch(job)
        finally:
            self.desk.hosts.done()
        self.desk.hosts.heard(result)
        self._charge(result, f"{job.channel}_requests_beside")
        return result

    async def _fetch_to_read(self, job: FetchJob) -> FetchResult:
        """Fetch beside what is then read as a page, when it can be read quickly."""
        result = await self.fetch_beside(job)
        await kernels_for(result)
        return result

    def _channel_of(self, page: PageRow) -> Channel:
        return self.discovery.channel_of(page)

    def _charge(self, result: FetchResult, name: str) -> None:
        """Count requests that are no crawl of a page: they were sent, so they cost."""
        self.desk.schedule.spend(float(result.requests))
        self.desk.accounts.count("requests", result.requests)
        self.desk.accounts.count("wire_bytes", result.wire_bytes)
        self.desk.accounts.count(name, result.requests)
        self.desk.bytes_left.spend(result.wire_bytes)

    def _in_vain(self, result: FetchResult) -> None:
        """Count an answer that settles no page."""
        self._charge(result, "requests_in_vain")

    def _tell_pace(self, state: HostState) -> None:
        self.desk.schedule.pace(state)

    def _trouble(self, sentence: str) -> None:
        if sentence != self._told:
            self._told = sentence
            self.desk.say(f"the store cannot write: {sentence}" if sentence else "the store writes again")


async def open_tracker(
    settings: Settings,
    store: Store,
    say: Callable[[str], None],
    clock_from: Callable[[float], TrackerClock] = TrackerClock,
    timing: Timing = TIMING,
) -> Tracker:
    """A tracker over a store that it owns from then on, loaded and ready to run.

    Args:
        settings: what it is told.
        store: owned by it.
        say: takes sentences for people.
        clock_from: makes its clock, which shows nothing before a time.
        timing: how long its parts wait.
    """
    facts = await store.facts()
    latest = float(facts.get("latest_at", "0"))
    clock = clock_from(latest)
    if clock.behind_s > 1.0:
        say(f"the clock is {clock.behind_s:.0f} s behind what the store has seen: time goes on from there")
    if facts.get(INTERVAL_NOTICE) == "due":
        if settings.min_interval_s > 0.0:
            say(
                f"from now on each page is fetched at most every {format_duration(settings.min_interval_s / DAY_S)} "
                "unless it or its group has a min-interval: `recrawl track --min-interval 0`, or `min-interval = 0` in "
                "the settings, lifts this for all pages, `recrawl add URL --min-interval 0` for one"
            )
        await store.save_facts({INTERVAL_NOTICE: "told"})
    # Tokens went on coming while nobody was there, up to what may be held; a debt is paid off first.
    came = settings.budget_per_day / DAY_S * (clock.now() - latest) if latest else 0.0
    tracker = Tracker(settings, store, clock, say, float(facts.get("tokens", "0")) + came, timing)
    await tracker.load()
    return tracker
