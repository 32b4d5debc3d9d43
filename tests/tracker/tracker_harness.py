"""What tests ask of a tracker: the one module of the tests that knows where its parts are."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

from patience import patience
from recrawl.scheduling.scheduler import Scheduler
from recrawl.store.rows import Answer, NewPage
from recrawl.store.store import Store
from recrawl.tracker import remote_workers as outside
from recrawl.tracker.admission import PageRequest
from recrawl.tracker.captures import CaptureBook
from recrawl.tracker.clock import TIMING, Timing
from recrawl.tracker.commands.commands import Add, Command, CommandHandler, Reply
from recrawl.tracker.discovery.discovery import Discovery
from recrawl.tracker.discovery.source import Source
from recrawl.tracker.hosts import HostBook, HostState
from recrawl.tracker.process import serving as process_serving
from recrawl.tracker.remote_workers import WorkItem, WorkResult
from recrawl.tracker.settings.settings import Settings
from recrawl.tracker.signals.signals import SignalTracker
from recrawl.tracker.tracker import Tracker
from recrawl.tracker.usage import Accounts
from recrawl.tracker.visit import Visit


class _Heard(logging.Handler):
    """Keeps what is logged."""

    def __init__(self, said: list[str]) -> None:
        super().__init__()
        self._said = said

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the message of a record, and the error that it tells of."""
        self._said.append(f"{record.getMessage()}\n{record.exc_text or ''}".strip())


@contextmanager
def logged(said: list[str] | None = None) -> Iterator[list[str]]:
    """Give a list that gets what recrawl logs meanwhile, from the level of information on; debugging is left out."""
    said = [] if said is None else said
    log, handler = logging.getLogger("recrawl"), _Heard(said)
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield said
    finally:
        log.removeHandler(handler)
        log.setLevel(before)


class TrackerHarness:
    """A tracker as tests see it.

    Args:
        tracker: to be driven and looked at.
    """

    def __init__(self, tracker: Tracker) -> None:
        self.tracker = tracker

    @property
    def store(self) -> Store:
        """Return the store of the tracker."""
        return self.tracker.store

    @property
    def settings(self) -> Settings:
        """Return the settings of the tracker."""
        return self.tracker.settings

    def now(self) -> float:
        """Return the time of the tracker in Unix seconds."""
        return self.tracker.clock.now()

    # commands

    async def do(self, command: Command, settings: Settings | None = None) -> Reply:
        """Carry out a command of a user, by other settings if they are given."""
        return await CommandHandler(self.store, settings or self.settings, self.tracker).do(command, self.now())

    async def add_urls(self, urls: Iterable[str]) -> Reply:
        """Track addresses as a user does."""
        return await self.do(Add([PageRequest(url) for url in urls]))

    async def add_pages(self, pages: Sequence[NewPage]) -> list[tuple[int, bool]]:
        """Track pages that nobody checks; return their ids, and whether each is new."""
        return await self.tracker.add(pages)

    async def drop(self, page_ids: Sequence[int]) -> None:
        """Take pages out of the scheduler."""
        await self.tracker.registry.drop(page_ids)

    # workers of other processes

    async def lease(self, most: int, worker: str = "w") -> list[WorkItem]:
        """Lease pages to a worker; possibly none."""
        return await outside.lease(self.tracker, most, worker)

    async def lease_some(self, most: int, worker: str = "w") -> list[WorkItem]:
        """Lease pages to a worker, waiting until there are some."""
        async with patience("an offer"):
            while not (offers := await self.lease(most, worker)):
                await asyncio.sleep(0.01)
        return offers

    async def complete(self, reports: Sequence[WorkResult]) -> list[Answer]:
        """Hand in what a worker fetched."""
        return await outside.complete(self.tracker, reports)

    async def heartbeat(self, tokens: Sequence[int]) -> list[int]:
        """Prolong leases."""
        return await outside.heartbeat(self.tracker, tokens)

    async def expire(self) -> int:
        """Take back leases that ran out."""
        return await outside.expire(self.tracker)

    def run_out(self, token: int) -> None:
        """Let a lease of a worker run out."""
        self.visit(token).lease_until = 0.0

    # visits

    async def take(self, most: int) -> int:
        """Take pages and lease them to the tracker itself; return how many."""
        return len(await self.tracker.dispatcher.take(most, self.tracker.worker))

    def may_take(self) -> bool:
        """Return whether pages may be taken now."""
        return self.tracker.dispatcher.may_take()

    @property
    def in_flight(self) -> set[int]:
        """Return the tokens of visits that are under way."""
        return {visit.lease.token for visit in self.tracker.in_flight.open()}

    def is_completing(self, token: int) -> bool:
        """Return whether the result of a worker is being written."""
        return self.visit(token).ended_at > 0.0

    def visit(self, token: int) -> Visit:
        """Return a visit that is under way."""
        return self.tracker.in_flight.by_token[token]

    async def withdraw(self, visit: Visit) -> None:
        """Give a page back while it is fetched."""
        await self.tracker.dispatcher.release(visit, "withdrawn")

    async def read_source(self, visit: Visit) -> None:
        """Read what came as a source."""
        await self.tracker.discovery.read(visit)

    async def finish(self, visit: Visit) -> bool:
        """Complete a visit; return whether it counted."""
        return await self.tracker.completer.complete(visit) is not None

    def complete_now(self) -> None:
        """Complete what has ended, without waiting for more."""
        self.tracker.completer.flush()

    async def committed(self) -> None:
        """Wait until all results are durable."""
        await self.tracker.committer.flushed()

    @property
    def uncommitted(self) -> set[int]:
        """Return the pages whose last result is not durable yet."""
        return {visit.page.id for visit in self.tracker.in_flight.by_token.values() if visit.completing}

    def start_commits(self) -> asyncio.Future[None]:
        """Write results from now on, without the loop that fetches."""
        return asyncio.ensure_future(self.tracker.committer.run())

    def end_commits(self, patience_s: float) -> None:
        """Let what `start_commits` gave end when everything is written."""
        self.tracker.committer.close(patience_s)

    def break_commits(self, trouble: str) -> None:
        """Pretend that the store cannot write, for a reason; "" to end that."""
        self.tracker.committer.trouble = trouble

    def lease_from(self, store: Store) -> None:
        """Let leases be made by another store."""
        self.tracker.dispatcher.store = store

    # parts

    @property
    def accounts(self) -> Accounts:
        """Return the counts of what was taken and how it ended."""
        return self.tracker.usage

    @property
    def hosts(self) -> HostBook:
        """Return all hosts."""
        return self.tracker.hosts

    def host(self, name: str) -> HostState:
        """Return the state of a host."""
        return self.tracker.hosts.of(name)

    @property
    def signals(self) -> SignalTracker:
        """Return what was heard of pages."""
        return self.tracker.signals

    @property
    def captures(self) -> CaptureBook:
        """Return the rates of captured pages."""
        return self.tracker.schedule.captures

    @property
    def scheduler(self) -> Scheduler:
        """Return the scheduler."""
        return self.tracker.schedule.scheduler

    def is_scheduled(self, page_id: int) -> bool:
        """Return whether the scheduler has a page."""
        return self.tracker.schedule.has(page_id)

    @property
    def crawled_once(self) -> set[int]:
        """Return found pages that the scheduler has for their first crawl alone."""
        return self.tracker.schedule.once

    @property
    def fetch_now_waiting(self) -> int:
        """Return how many pages wait to be fetched now."""
        return len(self.tracker.dispatcher.fetch_now)

    @property
    def sources(self) -> Discovery:
        """Return the sources of a tracker that follows sites."""
        return self.tracker.discovery

    @property
    def follows_sites(self) -> bool:
        """Return whether sources are read at all."""
        return self.tracker.discovery.enabled

    def source(self, url: str) -> Source:
        """Return the source at an address."""
        source = self.sources.book.at(url)
        assert source is not None
        return source


@asynccontextmanager
async def serving(
    settings: Settings, say: Callable[[str], None] = lambda _: None, timing: Timing = TIMING
) -> AsyncIterator[TrackerHarness]:
    """Run a tracker that fetches nothing itself."""
    async with process_serving(settings, say, timing) as tracker:
        yield TrackerHarness(tracker)


async def do_beside(store: Store, settings: Settings, command: Command, now: float = 1.0) -> Reply:
    """Carry out a command on a store that no tracker runs on."""
    return await CommandHandler(store, settings).do(command, now)
