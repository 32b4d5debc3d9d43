"""The change log, those who read it, and signals, in SQLite."""

from __future__ import annotations

import json
from collections.abc import Sequence

from recrawl.store.rows import END, Change, ChangeKind, DeadLetter, NewChange, PendingSignal, SinkRow
from recrawl.store.sqlite.session import Session
from recrawl.store.sqlite_base import Engine, SqlitePart
from recrawl.store.sqlite_results import append_changes


class SqliteChanges(SqlitePart):
    """`ChangeStore` and `SignalStore` in SQLite."""

    def __init__(self, engine: Engine, store_id: str) -> None:
        super().__init__(engine)
        self.store_id = store_id

    async def append_changes(self, changes: Sequence[NewChange]) -> list[int]:
        """Append events that come from no fetch; their cursors."""
        return await self._engine.write(lambda session: append_changes(session, changes))

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
        wanted = (after, END if before is None else before, limit, None if kinds is None else json.dumps(list(kinds)))

        def read(session: Session) -> list[Change]:
            if page_id is None:
                rows = session.rows("changes_before" if newest_first else "changes_after", wanted)
            else:
                query = "changes_of_page_before" if newest_first else "changes_of_page"
                rows = session.rows(query, (*wanted, page_id))
            return [Change(row[0], f"{self.store_id}-{row[0]}", NewChange(*row[1:])) for row in rows]

        return await self._engine.read(read)

    async def last_cursor(self) -> int:
        """The cursor of the last event; 0 if there is none."""
        return await self._engine.read(lambda session: int(session.value("change_last_cursor")))

    async def cursor_before(self, time: float) -> int:
        """The cursor after which all events detected since a time are found."""

        def find(session: Session) -> int:
            first = session.value("change_first_since", (time,))
            return int(session.value("change_last_cursor") if first is None else first - 1)

        return await self._engine.read(find)

    async def sink(self, name: str) -> SinkRow:
        """Where a sink is; a new one if it was never seen."""

        def read(session: Session) -> SinkRow:
            row = session.one("sink_read", (name,))
            return SinkRow(name) if row is None else SinkRow(*row)

        return await self._engine.read(read)

    async def sinks(self) -> list[SinkRow]:
        """All sinks that were ever fed, by name."""
        return await self._engine.read(lambda session: [SinkRow(*row) for row in session.rows("sinks_all")])

    async def save_sink(self, row: SinkRow, dead: Sequence[DeadLetter] = ()) -> None:
        """Note where a sink is, and what it could not take."""

        def save(session: Session) -> None:
            session.run("sink_save", (row.name, row.cursor, row.failures, row.retry_at, row.stopped))
            session.run_many("dead_letter_add", [(one.sink, one.cursor, one.at, one.reason) for one in dead])

        await self._engine.write(save)

    async def dead_letters(self, name: str, limit: int = 100) -> list[DeadLetter]:
        """What a sink could not take, the newest first."""
        return await self._engine.read(
            lambda session: [DeadLetter(*row) for row in session.rows("dead_letters_of", (name, limit))]
        )

    async def count_dead_letters(self, name: str, most: int = 10_000) -> int:
        """How many events a sink could not take; counts no further than `most`."""
        return await self._engine.read(lambda session: int(session.value("dead_letters_counted", (name, most))))

    async def add_signals(self, page_ids: Sequence[int], kind: str, at: float) -> None:
        """Count a signal for each page: one row for each page and kind, however many come."""
        heard = json.dumps(
            sorted(map(int, page_ids))
        )  # in order: neighbours in the table are written one after the other
        await self._engine.write(lambda session: session.run("signals_add", (heard, kind, at)))

    async def pending_signals(self, page_ids: Sequence[int] | None = None) -> list[PendingSignal]:
        """All that wait for a fetch, or those of some pages."""

        def read(session: Session) -> list[PendingSignal]:
            if page_ids is None:
                rows = session.rows("signals_all")
            else:
                rows = session.rows("signals_of", (json.dumps(list(map(int, page_ids))),))
            return [PendingSignal(*row) for row in rows]

        return await self._engine.read(read)

    async def count_signals(self) -> int:
        """How many pairs of page and kind wait."""
        return await self._engine.read(lambda session: int(session.value("signals_count")))
