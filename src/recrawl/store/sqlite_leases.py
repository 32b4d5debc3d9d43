"""Leases in SQLite: who fetches which page, under a token that rises with every lease."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from recrawl.store.rows import Answer, HostRow, LeaseRow, PageRow, Result, edited
from recrawl.store.sqlite.session import Session
from recrawl.store.sqlite.writer import CrashPoints
from recrawl.store.sqlite_base import SqlitePart
from recrawl.store.sqlite_pages import end_leases, read_rows
from recrawl.store.sqlite_results import save_hosts, write_results

_LEASE_POINTS = CrashPoints("lease-selected", "lease-committed")
_RESULT_POINTS = CrashPoints("before-txn", "after-txn")


class SqliteLeases(SqlitePart):
    """`LeaseStore` in SQLite."""

    async def lease(
        self, ids: Sequence[int], worker: str, at: float, until: float, hosts: Sequence[HostRow] = ()
    ) -> list[tuple[PageRow, LeaseRow]]:
        """Lease pages to a worker and note what their hosts allow next; durable when it returns."""

        def take(session: Session) -> list[tuple[PageRow, LeaseRow]]:
            found = session.rows_each("lease_candidate", [(page_id,) for page_id in dict.fromkeys(ids)])
            save_hosts(session, hosts)
            if not found:
                return []
            first = session.value("ledger_take_tokens", (len(found),)) - len(found) + 1
            leases = [LeaseRow(row[0], first + place, worker, at, until) for place, row in enumerate(found)]
            session.run_many("lease_insert", [(row.page_id, row.token, worker, at, until) for row in leases])
            pages = (edited(PageRow(*row), last_token=lease.token) for row, lease in zip(found, leases, strict=True))
            return list(zip(pages, leases, strict=True))

        return await self._engine.write(take, _LEASE_POINTS)

    async def heartbeat(self, tokens: Sequence[int], until: float) -> list[int]:
        """Prolong leases; the tokens of those that are still good."""

        def prolong(session: Session) -> list[int]:
            return [token for (token,) in session.rows_each("lease_prolong", [(token, until) for token in tokens])]

        return await self._engine.write(prolong)

    async def release(self, tokens: Sequence[int]) -> int:
        """Give leases back without a result; how many there were."""
        return await self._engine.write(lambda session: len(end_leases(session, "lease_end", tokens)))

    async def leases(self) -> list[LeaseRow]:
        """All leases."""
        return await self._engine.read(lambda session: [LeaseRow(*row) for row in session.rows("leases_all")])

    async def complete(self, results: Sequence[Result], tallies: Mapping[str, int] | None = None) -> list[Answer]:
        """Write results: observation, page, host, events, version; the lease ends. One answer each."""
        answers = await self._engine.write(
            lambda session: write_results(session, results, tallies or {}), _RESULT_POINTS
        )
        bodies = [result.version.body_digest for result in results if result.version and result.version.body_digest]
        if bodies:
            self._engine.bodies.named(bodies)
        return answers

    async def answer_for(self, token: int) -> Answer:
        """What a result under a token would be answered that is not leased now: `duplicate` if it was applied."""
        return await self._engine.read(lambda session: "duplicate" if session.one("token_seen", (token,)) else "stale")

    async def crashed(self, tokens: Sequence[int]) -> list[PageRow]:
        """End the leases of workers that died, and count a crash for each page; the rows from then on."""

        def end(session: Session) -> list[PageRow]:
            pages = end_leases(session, "lease_end", tokens)
            session.run_many("page_count_crash", [(page_id,) for page_id in pages])
            return read_rows(session, pages)

        return await self._engine.write(end)
