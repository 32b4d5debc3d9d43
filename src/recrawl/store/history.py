"""What was seen: observations, versions with their texts and bodies, counters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from recrawl.store.rows import Observation
from recrawl.store.steps import Count, Many, Operations, Rows, Steps, clean, reads, writes

# Rows looked at in one transaction of `forget`: few enough that a fetch waits no more than some milliseconds for it.
_FORGET_ROWS = 10_000
_FORGET_PAGES = 500


class HistoryStore(Operations):
    """What was seen."""

    @reads
    def observations(self, page_id: int, limit: int = 20) -> Steps[list[Observation]]:
        """The last fetches of a page, the newest first."""
        if limit <= 0:
            return []
        return [Observation(*row) for row in (yield Rows("observations_of_page", (page_id, limit)))]

    @reads
    def all_observations(self, after: int = 0, limit: int = 1000) -> Steps[list[tuple[int, Observation]]]:
        """Fetches of all pages in the order they were written, with their numbers, for replay and export."""
        rows = yield Rows("observations_all", (after, limit))
        return [(number, Observation(*row)) for number, *row in rows]

    @reads
    def last_observation(self) -> Steps[int]:
        """The number of the last fetch that is kept; 0 if no fetch is. O(1)."""
        return int((yield Rows("observation_last"))[0][0])

    @reads
    def read_text(self, page_id: int, version: int | None = None) -> Steps[bytes | None]:
        """The text of a version as it was handed in; None for the last one, if it is kept."""
        rows = yield Rows("version_text", (page_id, version))
        return rows[0][0] if rows else None

    @reads
    def versions(self, page_id: int) -> Steps[list[tuple[int, float, bytes]]]:
        """Number, time and digest of the versions of a page, the newest first."""
        rows = yield Rows("versions_of_page", (page_id,))
        return [(version, at, digest) for version, at, digest in rows]

    async def put_body(self, digest: bytes, body: bytes) -> None:
        """Keep a body under its digest before the result that names it is written. Twice is once."""
        await self.backend.put_body(digest, body)

    async def read_body(self, digest: bytes) -> bytes | None:
        """A body, if it is kept and whole."""
        return await self.backend.read_body(digest)

    async def version_body(self, page_id: int, version: int | None = None) -> bytes | None:
        """The body that a version was read from, None for the last one; if bodies are kept, and it is whole."""
        digest = await self._body_digest(page_id, version)
        return None if digest is None else await self.backend.read_body(digest)

    @reads
    def _body_digest(self, page_id: int, version: int | None) -> Steps[bytes | None]:
        rows = yield Rows("version_body", (page_id, version))
        return rows[0][0] if rows else None

    @writes
    def raise_tallies(self, tallies: Mapping[str, int]) -> Steps[None]:
        """Raise counters by name."""
        yield from write_tallies(tallies)

    @reads
    def tallies(self) -> Steps[dict[str, int]]:
        """All counters."""
        return dict((yield Rows("tallies_all")))

    async def forget(self, before: float, versions_kept: int) -> int:
        """Delete observations from before a time, and all but the last so many texts of each page; rows deleted.

        Bodies that no version names are deleted too. What is learned of pages stays. O(everything), in short
        transactions, so that fetches are written meanwhile; what a crash leaves undone is done by the next call.
        """
        deleted = 0
        first, last = await self._observations_span()
        for start in range(first, last + 1, _FORGET_ROWS):
            deleted += await self._forget_observations(start, min(start + _FORGET_ROWS - 1, last), before)
        kept = max(versions_kept, 0)
        after = 0
        while pages := await self._crowded_pages(after, kept):
            deleted += await self._forget_versions(pages, kept)
            after = pages[-1]
        await self.backend.sweep_bodies()
        return deleted

    @reads
    def _observations_span(self) -> Steps[tuple[int, int]]:
        [(first, last)] = yield Rows("observations_span")
        return first, last

    @writes
    def _forget_observations(self, first: int, last: int, before: float) -> Steps[int]:
        count: int = yield Count("forget_observations", (first, last, before))
        yield Rows("observations_dropped", (count,))
        return count

    @reads
    def _crowded_pages(self, after: int, kept: int) -> Steps[list[int]]:
        rows = yield Rows("forget_version_pages", (after, kept, _FORGET_PAGES))
        return [page_id for (page_id,) in rows]

    @writes
    def _forget_versions(self, pages: Sequence[int], kept: int) -> Steps[int]:
        count: int = yield Count("forget_versions", (list(pages), kept))
        return count


def write_tallies(tallies: Mapping[str, int]) -> Steps[None]:
    """Raise counters by name."""
    raised: dict[str, int] = {}
    for name, count in tallies.items():
        raised[clean(name)] = raised.get(clean(name), 0) + count
    yield Many("tally_raise", list(raised.items()))
