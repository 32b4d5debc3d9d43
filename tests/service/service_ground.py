"""A tracker on a store in a temporary folder, and its service in the same process; asked without a network."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import apsw
import httpx
from litestar import Litestar
from tracker_harness import TrackerHarness

from recrawl.service.app import make_app
from recrawl.service.auth.access import Access, Quota, Quotas
from recrawl.service.listening import Listening
from recrawl.service.monitor.health import Pulse
from recrawl.store.sqlite.backend import SqliteBackend
from recrawl.store.store import Store
from recrawl.tracker.process import serving
from recrawl.tracker.settings.settings import GroupRule, HookRule, Settings
from recrawl.tracker.tracker import Tracker

T = TypeVar("T")
SECRET = "whsec_" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo="
NAME = "127.0.0.1"
PLENTY = Quotas(Quota(1e9, 1e9), Quota(1e9, 1e9), Quota(1e9, 1e9))
SETTINGS = Settings(
    budget_per_day=86_400.0 * 1000,
    contact="https://example.com/bot",
    min_gap_s=0.0,
    min_interval_s=0.0,
    max_in_flight=1000,
    groups=(GroupRule("shop", ("https://shop.example/*",), importance=5.0),),
    hooks=(HookRule("cms", SECRET),),
    listen="off",
)


@dataclass(slots=True)
class Ground:
    """A service that is asked one thing after another, from plain functions."""

    runner: asyncio.Runner
    tracker: Tracker
    access: Access
    app: Litestar
    said: list[str]
    tokens: dict[str, str] = field(default_factory=dict)

    @property
    def harness(self) -> TrackerHarness:
        """Return the tracker as tests see it."""
        return TrackerHarness(self.tracker)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something on the loop of the service."""
        return self.runner.run(work)

    def headers(self, scope: str = "admin") -> dict[str, str]:
        """The headers of a client with a token of this scope."""
        if scope not in self.tokens:
            self.tokens[scope] = self.run(self.access.make([scope], f"for {scope}"))[0]
        return {"Authorization": f"Bearer {self.tokens[scope]}"}

    def client(self, **options: Any) -> httpx.AsyncClient:
        """A client that speaks to the service without a network."""
        app: Any = self.app
        transport = httpx.ASGITransport(app, client=("203.0.113.9", 1234))
        return httpx.AsyncClient(transport=transport, base_url=f"http://{NAME}", **options)

    def ask(self, method: str, path: str, scope: str | None = "admin", **options: Any) -> httpx.Response:
        """One request, with a token of a scope, or none."""
        headers = (self.headers(scope) if scope else {}) | options.pop("headers", {})

        async def asking() -> httpx.Response:
            async with self.client() as client:
                return await client.request(method, path, headers=headers, **options)

        return self.run(asking())

    def add(self, *urls: str, importance: float | None = None) -> list[int]:
        """Track pages; their ids."""
        pages = [{"url": url, "importance": importance} for url in urls]
        answer = self.ask("POST", "/api/v1/pages", json={"pages": pages})
        assert answer.status_code == 200, answer.text
        found = self.run(self.tracker.store.find_pages(list(urls)))
        return [found[url] for url in urls]


class Service:
    """Begins and ends a ground."""

    def __init__(
        self,
        folder: Path,
        settings: Settings = SETTINGS,
        quotas: Quotas = PLENTY,
        listening: Listening = Listening(),  # noqa: B008 - frozen
    ) -> None:
        self._settings = replace(settings, store=str(folder))
        self._quotas = quotas
        self._listening = listening
        self._runner = asyncio.Runner()
        self._stack = AsyncExitStack()

    def begin(self) -> Ground:
        """A service that runs."""
        return self._runner.run(self._begin())

    async def _begin(self) -> Ground:
        said: list[str] = []
        tracker = await self._stack.enter_async_context(serving(self._settings, said.append))
        access = Access(tracker.store, self._listening, time.time, self._quotas)
        pulse = Pulse(math.inf)  # is never late: the loop stands still between two requests of a test
        return Ground(self._runner, tracker, access, make_app(tracker, access, pulse=pulse), said)

    def end(self) -> None:
        """End it."""
        self._runner.run(self._stack.aclose())
        self._runner.close()


async def statements_of(store: Store) -> list[str]:
    """The statements that a SQLite store runs to read from now on; the list grows with them."""
    assert isinstance(store.backend, SqliteBackend)
    run: list[str] = []

    def note(_cursor: apsw.Cursor, sql: str, _bindings: object) -> bool:
        run.append(sql)
        return True

    await store.backend.reader.do(lambda session: session.connection.set_exec_trace(note))
    return run
