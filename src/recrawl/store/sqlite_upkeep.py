"""Hosts, facts, orders and upkeep, in SQLite."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from recrawl.store.columns import StoreCounts
from recrawl.store.rows import PAGE_STATES, HostRow, Order, PageState
from recrawl.store.sqlite.backup import back_up
from recrawl.store.sqlite.session import Session
from recrawl.store.sqlite_base import SqlitePart
from recrawl.store.sqlite_check import check_data
from recrawl.store.sqlite_results import save_hosts

_REPLIES_KEPT_S = 86_400.0


class SqliteUpkeep(SqlitePart):
    """`OwnerStore` in SQLite, but for closing."""

    async def hosts(self, names: Sequence[str] | None = None) -> list[HostRow]:
        """All hosts, or those of some names that are known, with robots and all that was learned."""
        if names is None:
            return await self._engine.read(lambda session: _hosts(session, "hosts_all"))
        return await self._engine.read(lambda session: _hosts(session, "hosts_named", json.dumps(list(names))))

    async def list_hosts(self, after: str = "", limit: int = 100) -> list[HostRow]:
        """Hosts with names above `after`, by name, without robots and what was learned."""
        return await self._engine.read(lambda session: _hosts(session, "hosts_after", after, limit))

    async def troubled_hosts(self, now: float) -> list[HostRow]:
        """Hosts that fail, are degraded, or are left alone until after `now`."""
        return await self._engine.read(lambda session: _hosts(session, "hosts_troubled", now))

    async def save_hosts(self, rows: Sequence[HostRow]) -> None:
        """Write hosts whole."""
        await self._engine.write(lambda session: save_hosts(session, rows))

    async def facts(self) -> dict[str, str]:
        """Small facts by name, such as the signature of the settings."""
        return await self._engine.read(lambda session: dict(session.rows("facts_all")))

    async def save_facts(self, facts: Mapping[str, str]) -> None:
        """Write facts."""
        await self._engine.write(lambda session: session.run_many("fact_save", list(facts.items())))

    async def post(self, kind: str, payload: bytes, at: float) -> int:
        """Leave an order for the owner; its id. Anyone may."""
        return await self._engine.writer.do(lambda session: int(session.value("order_post", (kind, payload, at))))

    async def orders(self, limit: int = 100) -> list[Order]:
        """Orders not answered yet, the oldest first."""
        return await self._engine.read(
            lambda session: [Order(*row) for row in session.rows("orders_waiting", (limit,))]
        )

    async def answer(self, order: int, reply: bytes, at: float) -> None:
        """Answer an order; answers that are a day old are forgotten."""

        def write(session: Session) -> None:
            session.run("order_answer", (order, reply, at))
            session.run("orders_forget", (at - _REPLIES_KEPT_S,))

        await self._engine.write(write)

    async def reply_to(self, order: int) -> bytes | None:
        """The answer to an order, None while there is none."""

        def read(session: Session) -> bytes | None:
            reply: bytes | None = session.value("order_reply", (order,))
            return reply

        return await self._engine.read(read)

    async def counts(self) -> StoreCounts:
        """How many there are of everything. O(leases and sources)."""
        return await self._engine.read(_count)

    async def check(self) -> list[str]:
        """What is wrong with the data, in sentences; empty if nothing is. O(everything), beside the running store."""
        return await asyncio.to_thread(check_data, self._engine.file, self._engine.access, self._engine.bodies)

    async def backup(self, path: Path) -> None:
        """Write a whole, consistent copy beside the running store; refused if something is there."""
        await asyncio.to_thread(back_up, self._engine.file, path, self._engine.bodies)


def _hosts(session: Session, query: str, *bindings: object) -> list[HostRow]:
    return [HostRow(*row) for row in session.rows(query, bindings)]


def _count(session: Session) -> StoreCounts:
    with session.snapshot():
        rows: dict[str, int] = dict(session.rows("count_rows"))
        last_page_id = session.value("page_last_id")
        leases, observations, cursor, sources = session.rows("count_rest")[0]
    hosts = rows.pop("hosts")
    pages: dict[PageState, int] = {state: rows.get(f"page {state}", 0) for state in PAGE_STATES}
    pages["active"] = last_page_id - sum(rows.values())  # pages are never deleted: ids count them
    return StoreCounts(pages, leases, observations, cursor, hosts, sources, last_page_id)
