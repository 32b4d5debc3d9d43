"""What the tests of stores share: places for stores, and rows to put into them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from patience import patience
from recrawl.store.rows import Answer, HostRow, LeaseRow, NewChange, NewPage, NewVersion, Observation, PageRow, Result
from recrawl.store.store import Store, open_store

Value = TypeVar("Value")
NOW = 1_790_000_000.0
"""A time of day for tests; nothing reads a clock."""


class StoreMaker(Protocol):
    """A place where a store is or will be."""

    @property
    def where(self) -> str:
        """Its address."""

    async def open(self, *, owner: bool = True, create: bool = True) -> Store:
        """Open it; the caller closes it."""


@dataclass
class SqliteMaker:
    """A data folder."""

    folder: Path

    @property
    def where(self) -> str:
        return str(self.folder)

    async def open(self, *, owner: bool = True, create: bool = True) -> Store:
        return await open_store(self.where, owner=owner, create=create)


@dataclass
class PostgresMaker:
    """An empty database of a running server."""

    where: str

    async def open(self, *, owner: bool = True, create: bool = True) -> Store:
        return await open_store(self.where, owner=owner, create=create)


@asynccontextmanager
async def opened(maker: StoreMaker, *, owner: bool = True) -> AsyncIterator[Store]:
    """A store for a while."""
    store = await maker.open(owner=owner)
    try:
        yield store
    finally:
        await store.close()


def run(work: Coroutine[Any, Any, Value]) -> Value:
    """Run a test that waits, within a bound."""

    async def bounded() -> Value:
        async with patience():
            return await work

    return asyncio.run(bounded())


def new_pages(count: int, **fields: Any) -> list[NewPage]:
    """Pages `https://example.org/1` and so on."""
    return [NewPage(f"https://example.org/{number}", "example.org", **fields) for number in range(1, count + 1)]


async def add(store: Store, count: int, **fields: Any) -> list[int]:
    """Ids of so many new pages."""
    return [page_id for page_id, _new in await store.add_pages(new_pages(count, **fields))]


async def lease_all(store: Store, ids: Sequence[int]) -> list[tuple[PageRow, LeaseRow]]:
    """Lease pages to a worker, an hour from now."""
    return await store.lease(ids, "worker", NOW, NOW + 3600)


def result_of(page: PageRow, lease: LeaseRow, *, at: float = NOW + 1, **fields: Any) -> Result:
    """A plain fetch of a leased page that brought nothing new; fields of the page may be set."""
    row = replace(page, attempted_at=at, fetched_at=at, outcome="ok", visits=page.visits + 1, **fields)
    return Result(Observation(page.id, lease.token, at, "ok", "unchanged", status=200, elapsed_s=0.5), row)


def changed_result(page: PageRow, lease: LeaseRow, *, at: float = NOW + 1) -> Result:
    """The same with all that a result may bring: an event, a host, a version."""
    version = page.version + 1
    plain = result_of(page, lease, at=at, changed_at=at, changes=page.changes + 1, version=version)
    event = NewChange(
        "changed", at, page.url, page.id, NOW, b"o" * 16, b"n" * 16, "schedule", '{"why": 1}', lease.token
    )
    return replace(
        plain,
        observation=replace(plain.observation, verdict="changed"),
        host=HostRow(page.host, 1.0, next_at=at + 1, robots=b"User-agent: *"),
        changes=(event,),
        version=NewVersion(version, at, bytes([version]) * 16, b"text %d" % version),
    )


async def fetch(store: Store, page_id: int, *, at: float = NOW + 1) -> Answer:
    """Lease a page and complete it with a change."""
    [(page, lease)] = await lease_all(store, [page_id])
    [answer] = await store.complete([changed_result(page, lease, at=at)])
    return answer


async def fail(store: Store, page_id: int, *, at: float, answered: str = "") -> Answer:
    """Lease a page and complete it with a failure, which answers signals of a kind at most."""
    [(page, lease)] = await lease_all(store, [page_id])
    seen = Observation(page.id, lease.token, at, "server-error", None, status=503, elapsed_s=0.5)
    row = replace(page, attempted_at=at, outcome="server-error", failures=page.failures + 1)
    [answer] = await store.complete([Result(seen, row, answered=answered)])
    return answer
