"""The running crawler: dispatch → fetch → examine → decide → complete → commit, at a constant rate, until `stop`.

    open_tracker ── store, clock ── hosts ── pages into the scheduler ── leases of an earlier process
    run ─┬─ dispatch: takes pages that are worth the price, leases them, starts fetches
         ├─ committer: writes results
         └─ beside it: orders of commands, leases that ran out, sinks

After a crash the store is the truth: pages in flight were not crawled, each host is left alone for its gap, and the
budget starts without tokens.
"""

from __future__ import annotations

import asyncio
import os
import platform
from collections.abc import Callable, Sequence
from contextlib import suppress
from logging import DEBUG

from recrawl.errors import StoreError
from recrawl.log import room_log
from recrawl.store.rows import NewChange, NewPage, PageEdit, PageRow
from recrawl.store.store import Store
from recrawl.tracker.clock import DAY_S, TIMING, Timing, TrackerClock
from recrawl.tracker.discovery.discovery import Discovery
from recrawl.tracker.hosts import SEEN, HostBook, HostState, NetworkHealth
from recrawl.tracker.kinds import NOW
from recrawl.tracker.page_registry import PageRegistry, sync_groups
from recrawl.tracker.pipeline.commit import Committer
from recrawl.tracker.pipeline.complete import Completer
from recrawl.tracker.pipeline.dispatch import Dispatcher
from recrawl.tracker.pipeline.examine import kernels_for
from recrawl.tracker.pipeline.fetch import Fetcher, FetchStage, SoftNotFoundProbe, crash_watch
from recrawl.tracker.schedule import Schedule, new_scheduler
from recrawl.tracker.settings.settings import Settings
from recrawl.tracker.signals.signals import SignalTracker
from recrawl.tracker.usage import ByteBudget, Usage
from recrawl.tracker.visit import OUTSIDE, InFlight, Visit
from recrawl.units import format_duration
from recrawl.web.fetch.protocol import FetchJob, FetchResult
from recrawl.web.fetch.robots_cache import RobotsMemory
from recrawl.web.fetch.settings import FetchSettings, user_agent
from recrawl.web.fetch.transport import Transport

QUARANTINE_AFTER = 3
INTERVAL_NOTICE = "interval_notice"
"""The fact of a store from before `min-interval`: `due` until its users were told."""
_LOG = room_log("tracker")
_ALONE_S = 60.0  # between suspects that are fetched one by one


class Tracker:
    """A crawler over a store; `open_tracker` makes one.

    Args:
        settings: what it is told.
        store: owned by it.
        clock: its time.
        say: tells people what they must know or do; all else goes to the log.
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
        self.settings, self.store, self.clock, self.say, self.timing = settings, store, clock, say, timing
        self.worker = f"{platform.node()}:{os.getpid()}"
        self.in_flight, self.network = InFlight(), NetworkHealth()
        self.hosts = HostBook(settings, clock, self._tell_pace)
        scheduler = new_scheduler(settings, clock, store.generation, tokens, timing.tick_s)
        self.schedule = Schedule(scheduler, self.hosts, clock, settings)
        budget = ByteBudget(settings.bytes_per_day, clock.now())
        self.usage = Usage(bytes_left=budget, spend=self.schedule.spend)
        self.signals = SignalTracker(self.schedule, self.hosts, self.in_flight, store, settings.signals)
        self.schedule.on_left = self.signals.left
        self.committer = Committer(store, self.hosts, self.usage, self._trouble, timing)
        self.dispatcher = Dispatcher(
            store=store,
            schedule=self.schedule,
            in_flight=self.in_flight,
            hosts=self.hosts,
            signals=self.signals,
            usage=self.usage,
            network=self.network,
            committer=self.committer,
            settings=settings,
            clock=clock,
            on_trouble=self._trouble,
            timing=timing,
        )
        self.registry = PageRegistry(
            store=store,
            schedule=self.schedule,
            in_flight=self.in_flight,
            settings=settings,
            clock=clock,
            withdraw=self.dispatcher.withdraw,
            on_load=self.signals.load_pages,
            on_joined=self.signals.entered,
            on_entered=self._enter_sources,
            flush_s=timing.flush_s,
        )
        self.discovery = Discovery(
            store=store,
            schedule=self.schedule,
            hosts=self.hosts,
            signals=self.signals,
            writing=self.committer.writing,
            usage=self.usage,
            settings=settings,
            clock=clock,
            add=self.registry.add,
        )
        self.committer.latest_source = self.discovery.latest
        self.completer = Completer(
            schedule=self.schedule,
            in_flight=self.in_flight,
            hosts=self.hosts,
            network=self.network,
            signals=self.signals,
            discovery=self.discovery,
            usage=self.usage,
            committer=self.committer,
            settings=settings,
            clock=clock,
            timing=timing,
        )
        self.transport = self._make_transport()
        missing = SoftNotFoundProbe(self._fetch_to_read, clock.now)
        self.fetcher: FetchStage = Fetcher(
            self.transport, store, settings, missing, self.hosts, self.discovery.channel_of
        )
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
        now = self.clock.now
        self.hosts.use(RobotsMemory(agent.token, self.fetch_beside, now))
        return Transport(carried, keeper=self.hosts, most_fetches=settings.concurrency, wall=now, watch=crash_watch())

    async def load(self) -> None:
        """Read the store: hosts, pages, and leases and signals of earlier processes."""
        leases = await self.store.leases()
        dead = [lease.token for lease in leases if not lease.worker.startswith(OUTSIDE)]
        crashed = await self.store.crashed(dead) if dead else []
        await self._quarantine(crashed)
        remote = [lease for lease in leases if lease.worker.startswith(OUTSIDE)]
        away = await self.store.read_pages([lease.page_id for lease in remote])
        hosts = await self.store.hosts()
        self.hosts.load(hosts, {page.host for page in (*crashed, *away)})
        await self._recall_health()
        for sentence in self.signals.load(hosts):
            _LOG.warning(sentence)
        await sync_groups(self.store, self.settings)
        await self.schedule.captures.load(self.store)
        self.registry.load(await self.store.load_schedule())
        await self.discovery.load()
        pending = await self.store.pending_signals()
        self.signals.restore(pending, self.clock.now())
        for page in await self.store.read_pages([each.page_id for each in pending if each.kind == NOW]):
            self.dispatcher.fetch_now.add(page.id, page.host)
        pages = {page.id: page for page in away}
        for lease in remote:
            self.dispatcher.adopt(lease, pages[lease.page_id])

    async def run(self, *, fetch: bool = True) -> None:
        """Crawl until `stop`, then drain: finish or give back running fetches, and write all results.

        Args:
            fetch: whether to fetch pages here; else outside fetchers take them.

        Raises:
            StoreTaken: if another tracker owns the store by now.
        """
        committing = asyncio.create_task(self.committer.run())
        committing.add_done_callback(lambda _: self.stop())
        async with self.transport:
            try:
                while fetch and not self.stopping:
                    await self._start_some()
                    await self.pause(self.timing.tick_s)
                await self._stopping.wait()
            finally:
                await self._drain()
                self.discovery.close()
        self.completer.flush()
        self.committer.close(self.settings.drain_s)
        await committing
        await self.note_time()

    def stop(self) -> None:
        """Take nothing more, and let `run` end."""
        self._stopping.set()

    @property
    def stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stopping.is_set()

    async def note_time(self) -> None:
        """Write the time, so that it never runs backwards, and hosts, signals and counts that have changed."""
        with suppress(StoreError):
            now, tokens = self.clock.now(), self.schedule.scheduler.tokens
            await self.store.save_facts({"latest_at": repr(now), "tokens": repr(tokens)})
            async with self._saving_hosts:
                await self._save_hosts()
            await self.signals.flush()
            counts = self.usage.to_write()
            try:
                await self.store.raise_tallies(counts)
            except StoreError:
                self.usage.keep(counts)

    async def _save_hosts(self) -> None:
        marks, done = self.hosts.marks(), False
        rows = self.hosts.rows(marks)
        rows += self.signals.to_save(10**9) if self.stopping else self.signals.to_save()
        try:
            await self.store.save_hosts(rows)
            done = True
            self.hosts.saved(marks, robots=True)
        finally:
            self.signals.saved(done=done)

    async def pause(self, seconds: float) -> None:
        """Wait for some seconds, or until `stop`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    # one page

    async def _start_some(self) -> None:
        room = self.dispatcher.room(len(self._tasks))
        for visit in await self.dispatcher.take(room, self.worker) if room else []:
            task = asyncio.create_task(self._run(visit))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _run(self, visit: Visit) -> None:
        """Run a visit: the whole way from its lease to its commit."""
        try:
            await self.fetcher.fetch(visit)
            if visit.outcome == "deferred":
                await self.dispatcher.defer(visit)
                return
            await self.discovery.read(visit)
            answer = await self.completer.complete(visit)
            if _LOG.isEnabledFor(DEBUG):
                said = {"outcome": visit.outcome, "verdict": visit.verdict, "trigger": visit.trigger, "answer": answer}
                _LOG.debug("visited %s", visit.page.url, extra=said)
            if answer == "applied" and visit.moved_to:
                await self.registry.move(visit.row, visit.moved_to)
        except asyncio.CancelledError:
            await self.dispatcher.release(visit, "drained")
        except Exception as error:  # the page and its host must not stay taken
            _LOG.exception("the fetch of %s ended in an error that should not be: %r", visit.page.url, error)
            await self.dispatcher.give_up(visit)

    async def add(self, pages: Sequence[NewPage]) -> list[tuple[int, bool]]:
        """Track pages from now on; return their ids, and whether each is new."""
        return await self.registry.add(pages)

    async def _enter_sources(self, page_ids: set[int]) -> None:
        await self.discovery.enter(page_ids)

    # beginnings and ends

    async def _recall_health(self) -> None:
        """Restore the health of hosts that were degraded, from the last answers to their pages."""
        for state in self.hosts:
            if state.health.degraded:
                pages = await self.store.asked_last(state.name, 2 * SEEN)  # some may say nothing of the host
                state.health.restore(
                    (each.id, each.outcome, each.visits > 0) for each in reversed(pages) if each.outcome
                )

    async def _quarantine(self, crashed: list[PageRow]) -> None:
        """Quarantine a page that was in flight in three crashes in a row; fetch several candidates one by one first."""
        suspects = [page for page in crashed if page.crashes >= QUARANTINE_AFTER and page.state == "active"]
        if len(suspects) == 1:
            (page,) = suspects
            reason = f"the crawler died {page.crashes} times in a row with it in flight"
            await self.store.append_changes([NewChange("quarantined", self.clock.now(), page.url, page_id=page.id)])
            await self.store.edit_pages([PageEdit(page.id, state="quarantined", reason=reason)])
            _LOG.warning("%s is quarantined: %s", page.url, reason)
            return
        now = self.clock.now()
        one_by_one = [PageEdit(page.id, not_before=now + place * _ALONE_S) for place, page in enumerate(suspects)]
        await self.store.edit_pages(one_by_one)

    async def _drain(self) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self.settings.drain_s)
        for task in list(self._tasks):
            task.cancel()
        while self._tasks:
            await asyncio.wait(self._tasks)

    # told by others

    async def fetch_beside(self, job: FetchJob) -> FetchResult:
        """Fetch what is no tracked page, such as robots.txt or a probe, and charge it to the budget."""
        try:
            result = await self.transport.fetch(job)
        finally:
            self.hosts.done()
        self.hosts.heard(result)
        self.usage.charge(result.requests, result.wire_bytes, f"{job.channel}_requests_beside")
        return result

    async def _fetch_to_read(self, job: FetchJob) -> FetchResult:
        """Fetch what is no tracked page and is read like one; wait until its kernels are compiled."""
        result = await self.fetch_beside(job)
        await kernels_for(result)
        return result

    def _tell_pace(self, state: HostState) -> None:
        self.schedule.pace(state)

    def _trouble(self, sentence: str) -> None:
        if sentence != self._told:
            self._told = sentence
            if sentence:
                _LOG.error("the store cannot write: %s", sentence)
            else:
                _LOG.info("the store writes again")


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
        say: tells people what they must know or do; all else goes to the log.
        clock_from: makes its clock, which shows nothing before a time.
        timing: how long its parts wait.
    """
    facts = await store.facts()
    latest = float(facts.get("latest_at", "0"))
    clock = clock_from(latest)
    if clock.behind_s > 1.0:
        _LOG.warning(
            "the system clock is %.0f s behind the newest record in the store: time goes on from there", clock.behind_s
        )
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
