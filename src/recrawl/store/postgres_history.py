"""What was seen, in PostgreSQL: observations, versions, bodies, counters."""

from __future__ import annotations

import asyncio
import sys

from xxhash import xxh3_128_digest

from recrawl.errors import InvalidInput
from recrawl.store.crash_points import crash_point
from recrawl.store.postgres.backend import PostgresLink
from recrawl.store.postgres_connection import SQL
from recrawl.store.rows import Observation

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_LEVEL = 3
# In one transaction of `forget`: few enough that a fetch waits no more than some milliseconds for it.
_FORGET_ROWS = 10_000
_FORGET_PAGES = 500
_FORGET_BODIES = 500


class PostgresHistory(PostgresLink):
    """The past of pages."""

    async def observations(self, page_id: int, limit: int = 20) -> list[Observation]:
        """The last fetches of a page, the newest first."""
        return [Observation(*row) for row in await self.fetch("observations_of_page", page_id, limit)]

    async def all_observations(self, after: int = 0, limit: int = 1000) -> list[tuple[int, Observation]]:
        """Fetches of all pages in the order they were written, with their numbers."""
        rows = await self.fetch("all_observations", after, limit)
        return [(number, Observation(*row)) for number, *row in rows]

    async def last_observation(self) -> int:
        """The number of the last fetch that is kept; 0 if no fetch is."""
        return int((await self.fetch("last_observation"))[0][0])

    async def read_text(self, page_id: int, version: int | None = None) -> bytes | None:
        """The text of a version as it was handed in; None for the last one, if it is kept."""
        if version is None:
            rows = await self.fetch("read_last_text", page_id)
        else:
            rows = await self.fetch("read_text", page_id, version)
        return rows[0][0] if rows else None

    async def versions(self, page_id: int) -> list[tuple[int, float, bytes]]:
        """Number, time and digest of the versions of a page, the newest first."""
        return [(number, at, digest) for number, at, digest in await self.fetch("versions", page_id)]

    async def put_body(self, digest: bytes, body: bytes) -> None:
        """Keep a body under its digest before the result that names it is written."""
        if xxh3_128_digest(body) != digest:
            raise InvalidInput("is not the xxh3-128 of the body", field="digest")
        packed = await asyncio.to_thread(zstd.compress, body, _LEVEL)
        self.awaited_bodies.add(digest)
        async with self.writing() as writing:
            await writing.connection.execute(SQL["put_body"], digest, packed)
            crash_point("blob-tmp")
        crash_point("blob-renamed")

    async def read_body(self, digest: bytes) -> bytes | None:
        """A body, if it is kept and whole."""
        rows = await self.fetch("read_body", digest)
        return await asyncio.to_thread(unpack, digest, rows[0][0]) if rows else None

    async def version_body(self, page_id: int, version: int | None = None) -> bytes | None:
        """The body that a version was read from, None for the last one; if bodies are kept, and it is whole."""
        rows = await self.fetch("version_body", page_id, version)
        return None if not rows or rows[0][0] is None else await self.read_body(rows[0][0])

    async def tallies(self) -> dict[str, int]:
        """All counters."""
        return dict(await self.fetch("tallies"))

    async def forget(self, before: float, versions_kept: int) -> int:
        """Delete old observations, and all but the last so many texts of each page; rows deleted. O(everything).

        Done in short transactions, so that fetches are written meanwhile; what a crash leaves undone is done by the
        next call.
        """
        deleted = await self._forget_observations(before) + await self._forget_versions(max(versions_kept, 0))
        await self._forget_bodies()
        return deleted

    async def _forget_observations(self, before: float) -> int:
        first, last = (await self.fetch("observations_span"))[0]
        deleted = 0
        for start in range(first, last + 1, _FORGET_ROWS):
            async with self.writing() as writing:
                end = min(start + _FORGET_ROWS - 1, last)
                count = _count(await writing.connection.execute(SQL["forget_observations"], start, end, before))
                writing.observations -= count
            deleted += count
        return deleted

    async def _forget_versions(self, kept: int) -> int:
        deleted, after = 0, 0
        while pages := [page for (page,) in await self.fetch("crowded_pages", after, kept, _FORGET_PAGES)]:
            async with self.writing() as writing:
                deleted += _count(await writing.connection.execute(SQL["forget_versions"], pages, kept))
            after = pages[-1]
        return deleted

    async def _forget_bodies(self) -> None:
        last: bytes | None = b""
        while last is not None:
            async with self.writing() as writing:
                # Looked at only now: a body that is in the table by this time is among those that are awaited.
                awaited = list(self.awaited_bodies)
                last = await writing.connection.fetchval(SQL["forget_bodies"], awaited, last, _FORGET_BODIES)


def unpack(digest: bytes, packed: bytes) -> bytes | None:
    """A body from its compressed form, if it is whole."""
    try:
        body = bytes(zstd.decompress(packed))
    except (zstd.ZstdError, EOFError):
        return None
    return body if xxh3_128_digest(body) == digest else None


def _count(status: str) -> int:
    """How many rows a statement touched, from what the server says of it.

    >>> _count("DELETE 12")
    12
    """
    return int(status.rsplit(" ", 1)[-1])
