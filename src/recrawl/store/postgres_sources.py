"""Sources in PostgreSQL: pages that lead to others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

from recrawl.store.postgres.backend import PostgresLink, Writing
from recrawl.store.postgres_columns import columns
from recrawl.store.postgres_connection import SQL
from recrawl.store.row_checks import check_source_pages, check_sources
from recrawl.store.rows import SourceRow

_SOURCE = tuple(field.name for field in fields(SourceRow))
_RENEWED = ("page_id", "kind", "found_by", "added_at")


class PostgresSources(PostgresLink):
    """Where new pages and news of changes come from."""

    async def add_sources(self, rows: Sequence[SourceRow]) -> list[bool]:
        """Make sources of pages that exist; for each whether it is new or taken up anew."""
        check_sources(rows)
        async with self.writing() as writing:
            states = await _states(writing, rows)
            first = {row.page_id: row for row in reversed(rows)}
            new = [row for row in first.values() if states[row.page_id] is None]
            renewed = [row for row in first.values() if states[row.page_id] == "retired"]
            await save_source_rows(writing, new)
            if renewed:
                await writing.connection.execute(SQL["renew_sources"], *columns(renewed, _RENEWED))
        return [states[row.page_id] != "active" and first.pop(row.page_id, None) is not None for row in rows]

    async def sources(self) -> list[SourceRow]:
        """All sources in the order of their pages, retired ones too, without what they remember."""
        return [SourceRow(*row) for row in await self.fetch("sources")]

    async def source_memory(self, page_id: int) -> bytes | None:
        """What the reader of a source remembers."""
        rows = await self.fetch("source_memory", page_id)
        return rows[0][0] if rows else None

    async def source_memories(self, page_ids: Sequence[int]) -> dict[int, bytes]:
        """What the readers of these sources remember, without those that remember nothing."""
        return {row[0]: row[1] for row in await self.fetch("source_memories", list(page_ids))}

    async def save_sources(self, rows: Sequence[SourceRow]) -> None:
        """Write sources whole, new ones too; a memory that is None is left as it is."""
        check_sources(rows)
        async with self.writing() as writing:
            await _states(writing, rows)
            await save_source_rows(writing, rows)


async def save_source_rows(writing: Writing, rows: Sequence[SourceRow]) -> None:
    """Write sources, as if one after the other."""
    last: dict[int, SourceRow] = {}
    for row in rows:
        known = last.get(row.page_id)
        last[row.page_id] = replace(row, memory=known.memory) if known and row.memory is None else row
    if last:
        await writing.connection.execute(SQL["save_sources"], *columns(list(last.values()), _SOURCE))


async def _states(writing: Writing, rows: Sequence[SourceRow]) -> dict[int, str | None]:
    """By page, the state as a source, None for a page that is none; pages that do not exist are refused."""
    found = await writing.connection.fetch(SQL["source_states"], [row.page_id for row in rows])
    states: dict[int, str | None] = dict(found)
    check_source_pages(rows, states)
    return states
