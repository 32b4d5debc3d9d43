"""Sources: pages that lead to others. A source is never deleted: retired, or with a page that is retired, it stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from recrawl.store.rows import SourceRow, check_source_pages, check_sources
from recrawl.store.steps import Each, Many, Operations, Rows, Steps, reads, writes


class SourceStore(Operations):
    """Sources, and what their readers remember."""

    @writes
    def add_sources(self, rows: Sequence[SourceRow]) -> Steps[list[bool]]:
        """Make sources of pages that exist, of either role; for each whether it is new or starts again.

        One that is known is left as it is. One that is retired starts again: kind, `found_by` and `added_at` are those
        given now, counts and memory stay.
        """
        check_sources(rows)
        states = yield from _states(rows)
        first = {row.page_id: row for row in reversed(rows)}
        yield from write_sources([row for row in first.values() if states[row.page_id] is None])
        yield Many("source_renew", [row for row in first.values() if states[row.page_id] == "retired"])
        return [states[row.page_id] != "active" and first.pop(row.page_id, None) is not None for row in rows]

    @reads
    def sources(self) -> Steps[list[SourceRow]]:
        """All sources in the order of their pages, retired ones too, without what they remember."""
        return [SourceRow(*row) for row in (yield Rows("sources_all"))]

    @reads
    def source_memory(self, page_id: int) -> Steps[bytes | None]:
        """What the reader of a source remembers."""
        rows = yield Rows("source_memory", (page_id,))
        return rows[0][0] if rows else None

    @reads
    def source_memories(self, page_ids: Sequence[int]) -> Steps[dict[int, bytes]]:
        """What the readers of these sources remember, without those that remember nothing."""
        return dict((yield Each("source_memories", [(page_id,) for page_id in page_ids])))

    @writes
    def save_sources(self, rows: Sequence[SourceRow]) -> Steps[None]:
        """Write sources whole, new ones too; a memory that is None is left as it is."""
        check_sources(rows)
        yield from _states(rows)
        yield from write_sources(rows)


def write_sources(rows: Sequence[SourceRow]) -> Steps[None]:
    """Write sources, as if one after the other; a memory that is None is left as it is."""
    if not rows:
        return
    last: dict[int, SourceRow] = {}
    for row in rows:
        known = last.get(row.page_id)
        last[row.page_id] = replace(row, memory=known.memory) if known and row.memory is None else row
    yield Many("source_save", last.values())
    yield Many("source_save_memory", ((row.page_id, row.memory) for row in last.values() if row.memory is not None))


def _states(rows: Sequence[SourceRow]) -> Steps[dict[int, str | None]]:
    """By page, the state as a source, None for a page that is none; pages that do not exist are refused."""
    states: dict[int, str | None] = dict((yield Each("source_state", [(row.page_id,) for row in rows])))
    check_source_pages(rows, states)
    return states
