"""The edge: drives fetches over real sockets with aiohttp.

    async with Transport(settings) as transport:
        result = await transport.fetch(FetchJob(address))

Every connection goes through the gate of `egress.py`; TLS is verified; no proxy, cookie or password of the environment
is used; nothing is followed, decoded or retried here. What the wire raises becomes a `Fault` in
`fetch/faults.py`; a mistake in this program is raised. At most `most_fetches` run at once, others wait.
`_event_loop.py` starts the fast event loop.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Callable
from types import TracebackType
from typing import Protocol

import aiohttp
from aiohttp.abc import AbstractResolver

from recrawl.errors import RecrawlError
from recrawl.log import room_log
from recrawl.web.fetch.connection import ConnectionPool, Exchange, open_session
from recrawl.web.fetch.flow import fetch_flow
from recrawl.web.fetch.protocol import (
    Drop,
    Dropped,
    Event,
    Fault,
    FetchFlow,
    FetchJob,
    FetchResult,
    NeedRobots,
    Read,
    Send,
    Slot,
    Step,
    WaitForSlot,
)
from recrawl.web.fetch.resolver import GuardedResolver, SystemNames
from recrawl.web.fetch.robots_cache import RobotsMemory
from recrawl.web.fetch.settings import MAX_SHARED_BYTES, FetchSettings, MemoryBudget
from recrawl.web.robots.entry import RobotsEntry

_LOG = room_log("web")


class HostPolicy(Protocol):
    """Who knows the robots rules and the pacing of hosts: the tracker, or the memory of `fetch/robots_cache.py`."""

    async def robots(self, need: NeedRobots) -> RobotsEntry | Fault:
        """The rules of an origin, fetched if need be; a fault if its host cannot be reached at all."""

    async def turn(self, need: WaitForSlot) -> Slot:
        """Wait for the turn of a host, or refuse it."""

    async def close(self) -> None:
        """End what is still under way."""


class Transport:
    """Fetches over the network, many at once.

    Args:
        settings: what every fetch carries.
        keeper: robots and pacing; by default robots in memory and no pacing, for a scheduler that paces.
        resolver: who looks up names, behind the gate; by default the system. The transport closes it.
        tls: the context for https, such as one with the operator's own authorities; by default the system's.
        most_fetches: fetches that run at once.
        wall: seconds since 1970, for dates in headers.
        watch: called with each step of each fetch before it is answered.
    """

    def __init__(
        self,
        settings: FetchSettings,
        *,
        keeper: HostPolicy | None = None,
        resolver: AbstractResolver | None = None,
        tls: ssl.SSLContext | None = None,
        most_fetches: int = 256,
        wall: Callable[[], float] = time.time,
        watch: Callable[[Step], None] | None = None,
    ) -> None:
        self.settings = settings
        robots = RobotsMemory(settings.user_agent.token, self.fetch, wall)
        self._keeper: HostPolicy = robots if keeper is None else keeper
        self._resolver = resolver
        self._tls = tls
        self._most_fetches = most_fetches
        self._wall = wall
        self._watch = watch
        self._slots = asyncio.Semaphore(most_fetches)
        self._budget = MemoryBudget(max(MAX_SHARED_BYTES, settings.limits.most_body_bytes))
        self._open: set[str] = set()
        self._session: aiohttp.ClientSession | None = None
        self._names: GuardedResolver | None = None
        self._pool: ConnectionPool | None = None

    async def __aenter__(self) -> Transport:
        limits = self.settings.limits
        self._names = GuardedResolver(self.settings.egress, self._resolver or SystemNames())
        self._session = open_session(self.settings.egress, self._names, self._tls, self._most_fetches, limits=limits)
        connector = self._session.connector
        assert isinstance(connector, aiohttp.TCPConnector)
        self._pool = ConnectionPool(connector, limits)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._keeper.close()
        if self._pool is not None:
            self._pool.deadlines.close()
        session, self._session, self._pool = self._session, None, None
        if session is not None:
            await session.close()
        if self._names is not None:
            await self._names.close()

    async def fetch(self, job: FetchJob) -> FetchResult:
        """Fetch one thing; ends within the limits of the settings, waits for slot and turn aside.

        Raises:
            RecrawlError: if the transport is not open.
        """
        flow = fetch_flow(job, self.settings, asyncio.get_running_loop().time, self._wall(), self._budget, self._open)
        if job.channel == "robots":  # runs inside the slot of the page that needs it
            return await self._drive(flow)
        async with self._slots:
            return await self._drive(flow)

    async def _drive(self, flow: FetchFlow) -> FetchResult:
        exchange = Exchange(self.pool)
        try:
            step = next(flow)
            while True:
                if self._watch is not None:
                    self._watch(step)
                # What is here already is handed on at once: most bodies come with their head.
                event = exchange.read_now() if type(step) is Read else None
                step = flow.send(await self._answer(step, exchange) if event is None else event)
        except StopIteration as end:
            result: FetchResult = end.value
            if _LOG.isEnabledFor(logging.DEBUG):
                said = {"outcome": result.outcome, "status": result.status, "requests": result.requests}
                _LOG.debug("fetched %s", result.final.url, extra={**said, "elapsed_s": round(result.elapsed_s, 6)})
            return result
        finally:
            exchange.close()
            flow.close()

    async def _answer(self, step: Step, exchange: Exchange) -> Event:
        match step:
            case Read():
                return await exchange.read(step)
            case Send():
                return await exchange.send(step)
            case NeedRobots():
                return await self._keeper.robots(step)
            case WaitForSlot():
                return await self._keeper.turn(step)
            case Drop():
                exchange.drop()
                return Dropped()

    @property
    def pool(self) -> ConnectionPool:
        """The connections of this transport, while it is open."""
        if self._pool is None:
            raise RecrawlError("the transport is not open; use it in `async with`")
        return self._pool
