"""Hosts, facts, orders and upkeep in PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from recrawl.store.columns import StoreCounts
from recrawl.store.postgres.backend import PostgresLink
from recrawl.store.postgres.backup import write_backup
from recrawl.store.postgres_columns import clean
from recrawl.store.postgres_connection import SQL, Connection
from recrawl.store.postgres_history import unpack
from recrawl.store.postgres_results import save_host_rows
from recrawl.store.rows import PAGE_STATES, HostRow, Order

_REPLIES_KEPT_S = 86_400.0
_BODIES_AT_ONCE = 20
_CHECKS = {
    "check_lease_tokens": "{} leases have tokens that were never given out",
    "check_lease_pages": "{} leases are of pages that do not exist",
    "check_lease_retired": "{} leases are of pages that are no longer tracked",
    "check_lease_settled": "{} leases have a result already",
    "check_page_tokens": "{} pages have tokens that cannot be",
    "check_page_hosts": "{} pages have a host without a name",
    "check_cursors": "{} cursors are missing from the change log",
    "check_cursors_beyond": "{} events lie beyond the end of the change log",
    "check_observation_tokens": "{} fetches are counted twice",
    "check_observation_pages": "{} observations are of pages that do not exist",
    "check_version_numbers": "{} versions are newer than their pages say",
    "check_version_bodies": "{} versions name a body that is not kept",
    "check_observation_count": "the count of observations is {} off",
    "check_counts": "the counts of pages and hosts are {} off",
    "check_source_pages": "{} sources are of pages that do not exist",
    "check_sinks": "{} sinks have taken more than there is",
}


class PostgresUpkeep(PostgresLink):
    """All that is about the store itself."""

    async def hosts(self, names: Sequence[str] | None = None) -> list[HostRow]:
        """All hosts, or those of some names that are known, with robots and all that was learned."""
        if names is None:
            return [HostRow(*row) for row in await self.fetch("hosts")]
        return [HostRow(*row) for row in await self.fetch("read_hosts", [clean(name) for name in names])]

    async def list_hosts(self, after: str = "", limit: int = 100) -> list[HostRow]:
        """Hosts with names above `after`, by name, without robots and what was learned."""
        return [HostRow(*row) for row in await self.fetch("list_hosts", clean(after), limit)]

    async def troubled_hosts(self, now: float) -> list[HostRow]:
        """Hosts that fail, are degraded, or are left alone until after `now`."""
        return [HostRow(*row) for row in await self.fetch("troubled_hosts", now)]

    async def save_hosts(self, rows: Sequence[HostRow]) -> None:
        """Write hosts."""
        async with self.writing() as writing:
            await save_host_rows(writing, rows)

    async def facts(self) -> dict[str, str]:
        """Small facts by name."""
        return dict(await self.fetch("facts"))

    async def save_facts(self, facts: Mapping[str, str]) -> None:
        """Write facts."""
        await self.write("save_facts", [clean(name) for name in facts], [clean(text) for text in facts.values()])

    async def post(self, kind: str, payload: bytes, at: float) -> int:
        """Leave an order for the owner; its id."""
        return int((await self.fetch("post", clean(kind), payload, at))[0][0])

    async def orders(self, limit: int = 100) -> list[Order]:
        """Orders not answered yet, the oldest first."""
        return [Order(*row) for row in await self.fetch("orders", limit)]

    async def answer(self, order: int, reply: bytes, at: float) -> None:
        """Answer an order; answers that are a day old are forgotten."""
        async with self.writing() as writing:
            await writing.connection.execute(SQL["answer"], order, reply, at)
            await writing.connection.execute(SQL["forget_orders"], at - _REPLIES_KEPT_S)

    async def reply_to(self, order: int) -> bytes | None:
        """The answer to an order, None while there is none."""
        rows = await self.fetch("reply_to", order)
        return rows[0][0] if rows else None

    async def counts(self) -> StoreCounts:
        """How many there are of everything. O(leases and sources)."""
        async with self.reading_at_once() as connection:
            rows = dict(await connection.fetch(SQL["count_rows"]))
            leases, observations, cursor, sources, last_page_id = await connection.fetchrow(SQL["count_rest"])
        pages = {state: rows.get(f"page {state}", 0) for state in PAGE_STATES}
        return StoreCounts(pages, leases, observations, cursor, rows.get("hosts", 0), sources, last_page_id)

    async def check(self) -> list[str]:
        """What is wrong with the data, in sentences. O(everything)."""
        found = []
        async with self.reading_at_once() as connection:
            for query, sentence in _CHECKS.items():
                wrong = await connection.fetchval(SQL[query], timeout=self.limits.long_s)
                if wrong:
                    found.append(sentence.format(wrong))
            damaged = await _count_damaged_bodies(connection)
        return [*found, f"{damaged} bodies are damaged"] if damaged else found

    async def backup(self, path: Path) -> None:
        """Write a whole, consistent copy beside the running store; refused if something is there."""
        async with self.reading_at_once() as connection:
            await write_backup(connection, path, self.limits.long_s)


async def _count_damaged_bodies(connection: Connection) -> int:
    """Bodies that are not what they were. O(bodies)."""
    damaged, last = 0, b""
    while bodies := await connection.fetch(SQL["bodies_after"], last, _BODIES_AT_ONCE):
        for digest, packed in bodies:
            damaged += await asyncio.to_thread(unpack, digest, packed) is None
        last = bodies[-1]["digest"]
    return damaged
