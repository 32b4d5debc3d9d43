"""The change log, its sinks, and signals, in PostgreSQL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, fields, replace

from recrawl.store.postgres.backend import PostgresLink
from recrawl.store.postgres_columns import clean, columns
from recrawl.store.postgres_connection import SQL
from recrawl.store.rows import END, Change, ChangeKind, DeadLetter, NewChange, PendingSignal, SinkRow

_DEAD = tuple(field.name for field in fields(DeadLetter))


class PostgresChanges(PostgresLink):
    """What changed, who was told, and what was heard."""

    async def changes(
        self,
        after: int = 0,
        limit: int = 1000,
        page_id: int | None = None,
        *,
        before: int | None = None,
        kinds: Sequence[ChangeKind] | None = None,
        newest_first: bool = False,
    ) -> list[Change]:
        """Events between two cursors, of all pages and kinds or some, in their order or the newest first."""
        wanted = (after, END if before is None else before, limit, None if kinds is None else list(kinds))
        if page_id is None:
            rows = await self.fetch("changes_before" if newest_first else "changes_after", *wanted)
        else:
            query = "changes_of_page_before" if newest_first else "changes_of_page"
            rows = await self.fetch(query, *wanted, page_id)
        return [Change(cursor, f"{self.store_id}-{cursor}", NewChange(*event)) for cursor, *event in rows]

    async def last_cursor(self) -> int:
        """The cursor of the last event; 0 if there is none."""
        return int((await self.fetch("last_cursor"))[0][0])

    async def cursor_before(self, time: float) -> int:
        """The last cursor of events detected before a time: read on from there to have all since."""
        return int((await self.fetch("cursor_before", time))[0][0])

    async def sink(self, name: str) -> SinkRow:
        """Where a sink is; a new one if it was never seen."""
        rows = await self.fetch("read_sink", clean(name))
        return SinkRow(*rows[0]) if rows else SinkRow(name)

    async def sinks(self) -> list[SinkRow]:
        """All sinks that were ever fed, by name."""
        return [SinkRow(*row) for row in await self.fetch("read_sinks")]

    async def save_sink(self, row: SinkRow, dead: Sequence[DeadLetter] = ()) -> None:
        """Note where a sink is, and what it could not take."""
        whole = replace(row, name=clean(row.name), stopped=clean(row.stopped))
        async with self.writing() as writing:
            await writing.connection.execute(SQL["save_sink"], *astuple(whole))
            if dead:
                await writing.connection.execute(SQL["add_dead_letters"], *columns(dead, _DEAD))

    async def dead_letters(self, name: str, limit: int = 100) -> list[DeadLetter]:
        """What a sink could not take, the newest first."""
        return [DeadLetter(*row) for row in await self.fetch("dead_letters", clean(name), limit)]

    async def count_dead_letters(self, name: str, most: int = 10_000) -> int:
        """How many events a sink could not take; counts no further than `most`."""
        return int((await self.fetch("count_dead_letters", clean(name), most))[0][0])

    async def add_signals(self, page_ids: Sequence[int], kind: str, at: float) -> None:
        """Count a signal for each page: one row for each page and kind, however many come."""
        heard = Counter(map(int, page_ids))
        await self.write("add_signals", list(heard), list(heard.values()), clean(kind), at)

    async def pending_signals(self, page_ids: Sequence[int] | None = None) -> list[PendingSignal]:
        """All that wait, or those of some pages."""
        if page_ids is None:
            rows = await self.fetch("pending_signals")
        else:
            rows = await self.fetch("pending_signals_of", list(map(int, page_ids)))
        return [PendingSignal(*row) for row in rows]

    async def count_signals(self) -> int:
        """How many pairs of page and kind wait."""
        return int((await self.fetch("count_signals"))[0][0])
