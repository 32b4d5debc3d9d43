"""Sources in SQLite: pages that lead to others."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from recrawl.store.row_checks import check_source_pages, check_sources
from recrawl.store.rows import SourceRow
from recrawl.store.sqlite.session import Session
from recrawl.store.sqlite_base import SqlitePart
from recrawl.store.sqlite_results import save_sources

_RENEWED = attrgetter("page_id", "kind", "found_by", "added_at")


class SqliteSources(SqlitePart):
    """`SourceStore` in SQLite."""

    async def add_sources(self, rows: Sequence[SourceRow]) -> list[bool]:
        """Make sources of pages that exist; for each whether it is new or taken up anew."""
        check_sources(rows)
        return await self._engine.write(lambda session: _add_sources(session, rows))

    async def sources(self) -> list[SourceRow]:
        """All sources in the order of their pages, retired ones too, without what they remember."""
        return await self._engine.read(lambda session: [SourceRow(*row) for row in session.rows("sources_all")])

    async def source_memory(self, page_id: int) -> bytes | None:
        """What the reader of a source remembers."""

        def read(session: Session) -> bytes | None:
            memory: bytes | None = session.value("source_memory", (page_id,))
            return memory

        return await self._engine.read(read)

    async def source_memories(self, page_ids: Sequence[int]) -> dict[int, bytes]:
        """What the readers of these sources remember, without those that remember nothing."""

        def read(session: Session) -> dict[int, bytes]:
            found = {page_id: session.value("source_memory", (page_id,)) for page_id in page_ids}
            return {page_id: memory for page_id, memory in found.items() if memory is not None}

        return await self._engine.read(read)

    async def save_sources(self, rows: Sequence[SourceRow]) -> None:
        """Write sources whole, new ones too; a memory that is None is left as it is."""
        check_sources(rows)

        def save(session: Session) -> None:
            _states(session, rows)
            save_sources(session, rows)

        await self._engine.write(save)


def _states(session: Session, rows: Sequence[SourceRow]) -> dict[int, str | None]:
    """By page, the state as a source, None for a page that is none; pages that do not exist are refused."""
    states: dict[int, str | None] = dict(session.rows_each("source_state", [(row.page_id,) for row in rows]))
    check_source_pages(rows, states)
    return states


def _add_sources(session: Session, rows: Sequence[SourceRow]) -> list[bool]:
    states = _states(session, rows)
    answers: list[bool] = []
    for row in rows:
        state = states[row.page_id]
        if state is None:
            save_sources(session, [row])
        elif state == "retired":
            session.run("source_renew", _RENEWED(row))
        answers.append(state != "active")
        states[row.page_id] = "active"
    return answers
