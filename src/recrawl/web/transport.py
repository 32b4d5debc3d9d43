"""The edge: drives fetches over real sockets with aiohttp; the only place that sends requests.

    async with Transport(settings) as transport:
        result = await transport.fetch(FetchJob(address))

Every connection goes through the gate of `egress.py`; TLS is verified; no proxy, cookie or password of the environment
is used; nothing is followed, decoded or retried here. What the client raises becomes a `Fault` in
`transport_faults.py`. At most `most_fetches` run at once, others wait. `run` starts the fast event loop.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
import time
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Protocol, TypeVar
from weakref import WeakSet

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from recrawl.errors import RecrawlError
from recrawl.web.egress import socket_factory
from recrawl.web.fetch_flow import fetch_flow
from recrawl.web.fetch_limits import FetchSettings
from recrawl.web.fetch_result import FetchResult
from recrawl.web.fetch_steps import (
    BodyEnd,
    Chunk,
    Drop,
    Dropped,
    Event,
    Fault,
    FetchFlow,
    FetchJob,
    Head,
    NeedRobots,
    NeedTurn,
    Read,
    Send,
    Step,
    Turn,
)
from recrawl.web.resolver import GuardedResolver
from recrawl.web.robots import RobotsEntry
from recrawl.web.transport_faults import BrokenFraming, fault_of
from recrawl.web.transport_robots import RobotsMemory

Result = TypeVar("Result")
_AUTOMATIC_HEADERS = ("User-Agent", "Accept", "Accept-Encoding")
_KEEP_ALIVE_S = 15.0
_NAMES_KEPT_S = 60
_READ_BUFFER_BYTES = 65_536


class HostKeeper(Protocol):
    """Who knows the robots rules and the pacing of hosts: the tracker, or the memory of `transport_robots.py`."""

    async def robots(self, need: NeedRobots) -> RobotsEntry | Fault:
        """The rules of an origin, fetched if need be; a fault if its host cannot be reached at all."""

    async def turn(self, need: NeedTurn) -> Turn:
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
    """

    def __init__(
        self,
        settings: FetchSettings,
        *,
        keeper: HostKeeper | None = None,
        resolver: AbstractResolver | None = None,
        tls: ssl.SSLContext | None = None,
        most_fetches: int = 256,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.settings = settings
        self._keeper: HostKeeper = keeper or RobotsMemory(settings.user_agent.token, self.fetch, wall)
        self._resolver = resolver
        self._tls = tls
        self._most_fetches = most_fetches
        self._wall = wall
        self._slots = asyncio.Semaphore(most_fetches)
        self._session: aiohttp.ClientSession | None = None
        self._names: GuardedResolver | None = None
        self._watched: WeakSet[asyncio.Future[None]] = WeakSet()

    async def __aenter__(self) -> Transport:
        limits = self.settings.limits
        self._names = GuardedResolver(self.settings.egress, self._resolver or aiohttp.ThreadedResolver())
        connector = aiohttp.TCPConnector(
            limit=self._most_fetches,
            ssl=self._tls or True,
            resolver=self._names,
            socket_factory=socket_factory(self.settings.egress),
            ttl_dns_cache=_NAMES_KEPT_S,
            keepalive_timeout=_KEEP_ALIVE_S,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            requote_redirect_url=False,
            skip_auto_headers=_AUTOMATIC_HEADERS,
            timeout=aiohttp.ClientTimeout(total=None),
            read_bufsize=_READ_BUFFER_BYTES,
            max_line_size=limits.longest_line_bytes,
            max_field_size=limits.longest_line_bytes,
            max_headers=limits.most_headers,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._keeper.close()
        session, self._session = self._session, None
        if session is not None:
            await session.close()
        if self._names is not None:
            await self._names.close()

    async def fetch(self, job: FetchJob) -> FetchResult:
        """Fetch one thing; ends within the limits of the settings, waits for slot and turn aside.

        Raises:
            RecrawlError: if the transport is not open.
        """
        flow = fetch_flow(job, self.settings, asyncio.get_running_loop().time, self._wall())
        if job.channel == "robots":  # runs inside the slot of the page that needs it
            return await self._drive(flow)
        async with self._slots:
            return await self._drive(flow)

    async def _drive(self, flow: FetchFlow) -> FetchResult:
        exchange = _Exchange(self._open_session(), self._watched)
        try:
            step = next(flow)
            while True:
                step = flow.send(await self._answer(step, exchange))
        except StopIteration as end:
            result: FetchResult = end.value
            return result
        finally:
            exchange.close()
            flow.close()

    async def _answer(self, step: Step, exchange: _Exchange) -> Event:
        match step:
            case Read():
                return await exchange.read(step)
            case Send():
                return await exchange.send(step)
            case NeedRobots():
                return await self._keeper.robots(step)
            case NeedTurn():
                return await self._keeper.turn(step)
            case Drop():
                exchange.drop()
                return Dropped()

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RecrawlError("the transport is not open; use it in `async with`")
        return self._session


class _Exchange:
    """One request at a time and its answer."""

    def __init__(self, session: aiohttp.ClientSession, watched: WeakSet[asyncio.Future[None]]) -> None:
        self._session = session
        self._watched = watched
        self._response: aiohttp.ClientResponse | None = None
        self._lost: asyncio.Future[None] | None = None

    async def send(self, step: Send) -> Head | Fault:
        self.drop()
        try:
            async with asyncio.timeout_at(step.deadline):
                response = await self._session.request(
                    "GET",
                    URL(step.address.url, encoded=True),
                    headers=step.headers,
                    allow_redirects=False,
                    timeout=aiohttp.ClientTimeout(total=None, connect=step.connect_s),
                    ssl=step.verify_tls,
                )
        except Exception as error:  # whatever the client raises ends here
            return fault_of(error)
        self._response = response
        self._watch(response)
        return Head(response.status, tuple(response.raw_headers))

    async def read(self, step: Read) -> Chunk | BodyEnd | Fault:
        assert self._response is not None
        content = self._response.content
        try:
            data = content.read_nowait()
            if not data and not content.at_eof():
                async with asyncio.timeout_at(step.deadline):
                    data = await content.readany()
        except Exception as error:
            self.close()
            return fault_of(error)
        return Chunk(data) if data else BodyEnd()

    def drop(self) -> None:
        """Let the answer go; the connection is kept if nothing of the answer is left on it."""
        if self._response is not None:
            self._response.release()
            self._forget()

    def close(self) -> None:
        """Let the answer go, and the connection too unless the answer was read to its end."""
        if self._response is not None:
            self._response.close()
            self._forget()

    def _watch(self, response: aiohttp.ClientResponse) -> None:
        """Tell a body that waits when its connection is gone: after broken chunks the client does not."""
        connection = response.connection
        protocol = None if connection is None else connection.protocol
        self._lost = None if protocol is None else protocol.closed
        if self._lost is not None:
            self._lost.add_done_callback(self._on_lost)
            if self._lost not in self._watched:  # else the loop would log the end of every kept connection
                self._watched.add(self._lost)
                self._lost.add_done_callback(asyncio.Future.exception)

    def _on_lost(self, _: asyncio.Future[None]) -> None:
        content = None if self._response is None else self._response.content
        if content is not None and not content.is_eof() and content.exception() is None:
            content.set_exception(BrokenFraming())

    def _forget(self) -> None:
        if self._lost is not None:
            self._lost.remove_done_callback(self._on_lost)
        self._response = self._lost = None


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine to its end on the fastest event loop that is installed: uvloop, else asyncio's."""
    if sys.platform != "win32":
        try:
            import uvloop  # has no Windows wheel
        except ImportError:
            pass
        else:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                return runner.run(main)
    return asyncio.run(main)
