"""Leases in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

from recrawl.store.crash_points import crash_point
from recrawl.store.postgres.backend import PostgresLink
from recrawl.store.postgres_columns import clean
from recrawl.store.postgres_connection import SQL
from recrawl.store.postgres_pages import page_rows
from recrawl.store.postgres_results import save_host_rows
from recrawl.store.rows import HostRow, LeaseRow, PageRow


class PostgresLeases(PostgresLink):
    """Who fetches what."""

    async def lease(
        self, ids: Sequence[int], worker: str, at: float, until: float, hosts: Sequence[HostRow] = ()
    ) -> list[tuple[PageRow, LeaseRow]]:
        """Lease pages to a worker and note what their hosts allow next; durable when it returns."""
        wanted = list(dict.fromkeys(ids))
        name = clean(worker)
        async with self.writing() as writing:
            leased = await writing.connection.fetch(SQL["lease_pages"], wanted, writing.last_token, name, at, until)
            tokens = dict(leased)
            writing.last_token += len(tokens)
            await save_host_rows(writing, hosts)
            pages = await page_rows(writing, [page for page in wanted if page in tokens])
            crash_point("lease-selected")
        crash_point("lease-committed")
        return [(page, LeaseRow(page.id, tokens[page.id], name, at, until)) for page in pages]

    async def heartbeat(self, tokens: Sequence[int], until: float) -> list[int]:
        """Prolong leases; the tokens of those that are still good."""
        good = {token for (token,) in await self.write("heartbeat", list(tokens), until)}
        return [token for token in tokens if token in good]

    async def release(self, tokens: Sequence[int]) -> int:
        """Give leases back without a result; how many there were."""
        return len(await self.write("release", list(tokens)))

    async def leases(self) -> list[LeaseRow]:
        """All leases."""
        return [LeaseRow(*row) for row in await self.fetch("leases")]

    async def crashed(self, tokens: Sequence[int]) -> list[PageRow]:
        """End the leases of workers that died, and count a crash for each page; the rows from then on."""
        async with self.writing() as writing:
            ended = await writing.connection.fetch(SQL["crashed"], list(tokens))
            pages = {token: page for page, token in ended}
            return await page_rows(writing, [pages[token] for token in dict.fromkeys(tokens) if token in pages])
