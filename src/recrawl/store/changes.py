"""The change log, the sinks that read it, and signals that wait for a fetch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple

from recrawl.store.rows import END, Change, ChangeKind, DeadLetter, NewChange, PendingSignal, SinkRow
from recrawl.store.steps import Many, Operations, Rows, Steps, Take, clean, reads, writes


class ChangeStore(Operations):
    """The change log and who reads it."""

    @writes
    def append_changes(self, changes: Sequence[NewChange]) -> Steps[list[int]]:
        """Append events that come from no fetch; their cursors."""
        return (yield from write_changes(changes))

    @reads
    def changes(
        self,
        after: int = 0,
        limit: int = 1000,
        page_id: int | None = None,
        *,
        before: int | None = None,
        kinds: Sequence[ChangeKind] | None = None,
        newest_first: bool = False,
    ) -> Steps[list[Change]]:
        """Events with cursors above `after`, in their order. O(those), of some kinds O(cursors in between).

        Args:
            after: the cursor that they come after.
            limit: how many at most.
            page_id: only those of one page.
            before: the cursor that they come before; None for all to the end.
            kinds: only these; None for all.
            newest_first: in the other order, so that the limit leaves out the oldest.
        """
        wanted = (after, END if before is None else before, limit, None if kinds is None else list(kinds))
        if page_id is None:
            rows = yield Rows("changes_before" if newest_first else "changes_after", wanted)
        else:
            rows = yield Rows("changes_of_page_before" if newest_first else "changes_of_page", (*wanted, page_id))
        store_id = self.backend.store_id
        return [Change(cursor, f"{store_id}-{cursor}", NewChange(*event)) for cursor, *event in rows]

    @reads
    def last_cursor(self) -> Steps[int]:
        """The cursor of the last event; 0 if there is none."""
        return int((yield Rows("change_last_cursor"))[0][0])

    @reads
    def cursor_before(self, time: float) -> Steps[int]:
        """The last cursor of events detected before a time: read on from there to have all since."""
        return int((yield Rows("change_cursor_before", (time,)))[0][0])

    @reads
    def sink(self, name: str) -> Steps[SinkRow]:
        """Where a sink is; a new one if it was never seen."""
        rows = yield Rows("sink_read", (name,))
        return SinkRow(*rows[0]) if rows else SinkRow(name)

    @reads
    def sinks(self) -> Steps[list[SinkRow]]:
        """All sinks that were ever fed, by name, also those that are no longer in the settings."""
        return sorted((SinkRow(*row) for row in (yield Rows("sinks_all"))), key=lambda sink: sink.name)

    @writes
    def save_sink(self, row: SinkRow, dead: Sequence[DeadLetter] = ()) -> Steps[None]:
        """Note where a sink is, and what it could not take."""
        yield Rows("sink_save", astuple(row))
        yield Many("dead_letter_add", dead)

    @reads
    def dead_letters(self, name: str, limit: int = 100) -> Steps[list[DeadLetter]]:
        """What a sink could not take, the newest first. O(limit)."""
        return [DeadLetter(*row) for row in (yield Rows("dead_letters_of", (name, limit)))]

    @reads
    def count_dead_letters(self, name: str, most: int = 10_000) -> Steps[int]:
        """How many events a sink could not take; counts no further than `most`. O(most)."""
        return int((yield Rows("dead_letters_counted", (name, most)))[0][0])


class SignalStore(Operations):
    """Signals that were acknowledged and not yet answered by a fetch."""

    @writes
    def add_signals(self, page_ids: Sequence[int], kind: str, at: float) -> Steps[None]:
        """Count a signal for each page: one row for each page and kind, however many come."""
        # In order, so that neighbours in the table are written one after the other.
        yield Rows("signals_add", (sorted(map(int, page_ids)), clean(kind), at))

    @reads
    def pending_signals(self, page_ids: Sequence[int] | None = None) -> Steps[list[PendingSignal]]:
        """All that wait, or those of some pages: results with a verdict end what was heard before their fetches began.

        One without, a failure, ends only signals of the kind that it names (`Result.answered`).
        """
        if page_ids is None:
            rows = yield Rows("signals_all")
        else:
            rows = yield Rows("signals_of", (list(map(int, page_ids)),))
        return [PendingSignal(*row) for row in rows]

    @reads
    def count_signals(self) -> Steps[int]:
        """How many pairs of page and kind wait."""
        return int((yield Rows("signals_count"))[0][0])


def write_changes(changes: Sequence[NewChange]) -> Steps[list[int]]:
    """Append events to the log; their cursors, which follow the last one without a gap."""
    if not changes:
        return []
    first = yield Take("cursor", len(changes))
    cursors = list(range(first, first + len(changes)))
    yield Many("change_append", changes, [(cursor,) for cursor in cursors])
    return cursors
