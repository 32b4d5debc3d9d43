"""What was seen, in SQLite: observations, versions and their texts, counters; bodies are files beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial

from recrawl.store.rows import Observation
from recrawl.store.sqlite.session import Session
from recrawl.store.sqlite_base import SqlitePart
from recrawl.store.sqlite_results import raise_tallies

# Rows looked at in one transaction of `forget`: few enough that a fetch waits no more than some milliseconds for it.
_FORGET_ROWS = 10_000
_FORGET_PAGES = 500


class SqliteHistory(SqlitePart):
    """`HistoryStore` in SQLite."""

    async def observations(self, page_id: int, limit: int = 20) -> list[Observation]:
        """The last fetches of a page, the newest first."""
        if limit <= 0:
            return []
        return await self._engine.read(
            lambda session: [Observation(*row) for row in session.rows("observations_of_page", (page_id, limit))]
        )

    async def all_observations(self, after: int = 0, limit: int = 1000) -> list[tuple[int, Observation]]:
        """Fetches of all pages in the order they were written, with their numbers."""
        return await self._engine.read(
            lambda session: [
                (row[0], Observation(*row[1:])) for row in session.rows("observations_all", (after, limit))
            ]
        )

    async def last_observation(self) -> int:
        """The number of the last fetch that is kept; 0 if no fetch is."""
        return await self._engine.read(lambda session: int(session.value("observation_last")))

    async def read_text(self, page_id: int, version: int | None = None) -> bytes | None:
        """The text of a version as it was handed in; None for the last one, if it is kept."""

        def read(session: Session) -> bytes | None:
            if version is None:
                text: bytes | None = session.value("version_last_text", (page_id,))
            else:
                text = session.value("version_text", (page_id, version))
            return text

        return await self._engine.read(read)

    async def versions(self, page_id: int) -> list[tuple[int, float, bytes]]:
        """Number, time and digest of the versions of a page, the newest first."""
        return await self._engine.read(
            lambda session: [
                (version, at, digest) for version, at, digest in session.rows("versions_of_page", (page_id,))
            ]
        )

    async def put_body(self, digest: bytes, body: bytes) -> None:
        """Keep a body under its digest before the result that names it is written. Twice is once."""
        self._engine.require_owner()
        await asyncio.to_thread(self._engine.bodies.put, digest, body)

    async def read_body(self, digest: bytes) -> bytes | None:
        """A body, if it is kept and whole."""
        return await asyncio.to_thread(self._engine.bodies.read, digest)

    async def version_body(self, page_id: int, version: int | None = None) -> bytes | None:
        """The body that a version was read from, None for the last one; if bodies are kept, and it is whole."""
        digest = await self._engine.read(lambda session: session.value("version_body", (page_id, version)))
        return None if digest is None else await self.read_body(digest)

    async def raise_tallies(self, tallies: Mapping[str, int]) -> None:
        """Raise counters by name."""
        await self._engine.write(lambda session: raise_tallies(session, tallies))

    async def tallies(self) -> dict[str, int]:
        """All counters."""
        return await self._engine.read(lambda session: dict(session.rows("tallies_all")))

    async def forget(self, before: float, versions_kept: int) -> int:
        """Delete old observations, and all but the last so many texts of each page; rows deleted. O(everything).

        Done in short transactions, so that fetches are written meanwhile; what a crash leaves undone is done by the
        next call.
        """
        deleted = await self._forget_observations(before) + await self._forget_versions(max(versions_kept, 0))
        await self._forget_bodies()
        return deleted

    async def _forget_observations(self, before: float) -> int:
        first, last = await self._engine.read(lambda session: session.rows("observations_span")[0])
        deleted = 0
        for start in range(first, last + 1, _FORGET_ROWS):
            numbers = (start, min(start + _FORGET_ROWS - 1, last))
            deleted += await self._engine.write(partial(_drop_observations, numbers=numbers, before=before))
        return deleted

    async def _forget_versions(self, kept: int) -> int:
        deleted = 0
        pages = [0]
        while pages:
            pages = await self._engine.read(partial(_crowded_pages, after=pages[-1], kept=kept))
            deleted += await self._engine.write(partial(_drop_versions, pages=pages, kept=kept))
        return deleted

    async def _forget_bodies(self) -> None:
        loop = asyncio.get_running_loop()

        def is_named(digest: bytes) -> bool:
            asked = self._engine.read(lambda session: session.value("body_named", (digest,)) is not None)
            return asyncio.run_coroutine_threadsafe(asked, loop).result()

        await asyncio.to_thread(self._engine.bodies.sweep, is_named)


def _crowded_pages(session: Session, *, after: int, kept: int) -> list[int]:
    return [page_id for (page_id,) in session.rows("forget_version_pages", (after, kept, _FORGET_PAGES))]


def _drop_versions(session: Session, *, pages: Sequence[int], kept: int) -> int:
    return sum(session.run("forget_versions", (page_id, kept)) for page_id in pages)


def _drop_observations(session: Session, *, numbers: tuple[int, int], before: float) -> int:
    count = session.run("forget_observations", (*numbers, before))
    session.run("ledger_drop_observations", (count,))
    return count
