"""Pages in SQLite: by id and by address, and what a user changes of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import get_args

from recrawl.errors import InvalidInput
from recrawl.store.columns import ScheduleColumns
from recrawl.store.row_checks import check_edits, check_new_pages, interval_column
from recrawl.store.rows import NewPage, PageEdit, PageRole, PageRow, PageState, PauseKind
from recrawl.store.sqlite.schedule import paused_pages, read_schedule
from recrawl.store.sqlite.session import Session, url_hash
from recrawl.store.sqlite_addresses import find_addresses, is_address
from recrawl.store.sqlite_base import SqlitePart


class SqlitePages(SqlitePart):
    """`PageStore` in SQLite."""

    async def add_pages(self, pages: Sequence[NewPage]) -> list[tuple[int, bool]]:
        """Add pages; for each its id, and whether it is new, taken up anew, or a source that becomes a page."""
        check_new_pages(pages)
        for row, page in enumerate(pages):
            if not is_address(page.url):
                problem = "holds a character that no address may have; bring it into canonical form"
                raise InvalidInput(problem, field="url", row=row)
        return await self._engine.write(lambda session: _add_pages(session, pages))

    async def edit_pages(self, edits: Sequence[PageEdit]) -> int:
        """Change pages; how many there were. A page that is retired loses its lease."""
        check_edits(edits)
        return await self._engine.write(lambda session: sum(_edit_page(session, edit) for edit in edits))

    async def read_pages(self, ids: Sequence[int]) -> list[PageRow]:
        """The rows of those that exist, in the order of `ids`."""
        return await self._engine.read(lambda session: read_rows(session, ids))

    async def find_pages(
        self, urls: Sequence[str], *, role: PageRole | None = "page", retired: bool = False
    ) -> dict[str, int]:
        """Ids by address, of those that exist; of one role or both, perhaps retired ones too."""
        return await self._engine.read(lambda session: find_addresses(session, urls, role, retired=retired))

    async def list_pages(
        self,
        after: int = 0,
        limit: int = 100,
        *,
        group: str | None = None,
        host: str | None = None,
        role: PageRole | None = "page",
    ) -> list[PageRow]:
        """Pages with ids above `after`, in their order, retired ones too; of one role, or with None of both."""
        stretch = (after, limit, _source_only(role))

        def choose(session: Session) -> list[PageRow]:
            match (host, group):
                case (None, None) if role == "source":
                    found = session.rows("page_ids_of_sources", (after, limit))
                case (None, None):
                    found = session.rows("page_ids", stretch)
                case (None, _):
                    found = session.rows("page_ids_of_group", (*stretch, group))
                case (_, None):
                    found = session.rows("page_ids_of_host", (*stretch, host))
                case _:
                    found = session.rows("page_ids_of_host_and_group", (*stretch, host, group))
            return read_rows(session, [page_id for (page_id,) in found])

        return await self._engine.read(choose)

    async def page_ids(self, state: PageState) -> list[int]:
        """Ids of the pages in a state, of role `page`. O(those), but for `active`: O(pages)."""
        query = "page_ids_in_state" if state == "active" else "page_ids_not_active"
        return await self._engine.read(lambda session: [page_id for (page_id,) in session.rows(query, (state,))])

    async def asked_last(self, host: str, limit: int) -> list[PageRow]:
        """Those pages of a host that were asked last, the latest first. O(pages of the host)."""
        return await self._engine.read(
            lambda session: read_rows(session, [row[0] for row in session.rows("page_ids_asked_last", (host, limit))])
        )

    async def load_schedule(self) -> ScheduleColumns:
        """What the scheduler needs of all pages of role `page`."""
        return await self._engine.read(read_schedule)

    async def pause(self, kind: PauseKind, name: str, at: float) -> None:
        """Hold back a page (by address), a group or a host until `resume`. Twice is once."""
        if kind not in get_args(PauseKind):
            raise InvalidInput(f"is {kind!r}, but must be one of {', '.join(get_args(PauseKind))}", field="kind")
        await self._engine.write(lambda session: session.run("pause_add", (kind, name, at)))

    async def resume(self, kind: PauseKind, name: str) -> bool:
        """End a pause; whether there was one."""
        return await self._engine.write(lambda session: session.run("pause_end", (kind, name)) > 0)

    async def paused(self) -> list[tuple[PauseKind, str]]:
        """All pauses."""
        return await self._engine.read(lambda session: [(kind, name) for kind, name in session.rows("pauses_all")])

    async def count_paused(self) -> int:
        """How many active pages are paused by themselves, their group or their host. O(those)."""
        return await self._engine.read(
            lambda session: int(session.value("count_paused", (json.dumps(paused_pages(session)),)))
        )


def read_rows(session: Session, ids: Sequence[int]) -> list[PageRow]:
    """The rows of those pages that exist, in the order of `ids`."""
    return [PageRow(*row) for row in session.rows_each("page_read", [(page_id,) for page_id in ids])]


def end_leases(session: Session, query: str, keys: Sequence[int]) -> list[int]:
    """End leases without a result; the pages whose they were."""
    ended = session.rows_each(query, [(key,) for key in keys])
    session.run_many("lease_note_token", ended)
    return [page_id for page_id, _token in ended]


def _add_pages(session: Session, pages: Sequence[NewPage]) -> list[tuple[int, bool]]:
    next_id = session.value("page_last_id") + 1
    answers: list[tuple[int, bool]] = []
    begun: set[int] = set()
    sources = 0
    for page in pages:
        number = url_hash(page.url)
        known = session.one("page_find", (number, page.url))
        if known is None:
            session.run("address_insert", (next_id, number, page.url, session.name_id(page.source), page.added_at))
            session.run("page_insert", (next_id, *_settings(session, page)))
            answers.append((next_id, True))
            begun.add(next_id)
            next_id += 1
            sources += page.role == "source"
            continue
        page_id, retired, source_only = known
        fresh = bool(retired or (source_only and page.role == "page"))
        if fresh:
            session.run("address_renew", (page_id, session.name_id(page.source), page.added_at))
            session.run("page_renew" if retired else "page_begin", (page_id, *_settings(session, page)))
        answers.append((page_id, fresh and page_id not in begun))
        begun.add(page_id)
    if sources:
        session.run("count_new_sources", (sources,))
    return answers


def _source_only(role: PageRole | None) -> int | None:
    return None if role is None else int(role == "source")


def _settings(session: Session, page: NewPage) -> tuple[int, int, float, int | None, float, float | None, int]:
    return (
        session.name_id(page.host),
        session.name_id(page.group),
        page.importance,
        None if page.objective is None else session.name_id(page.objective),
        interval_column(page.min_interval_s),
        page.max_interval_s,
        int(page.role == "source"),
    )


def _edit_page(session: Session, edit: PageEdit) -> int:
    found = session.run(
        "page_edit",
        (
            edit.id,
            None if edit.group is None else session.name_id(edit.group),
            edit.importance,
            None if edit.objective is None else session.name_id(edit.objective),
            None if edit.min_interval_s is None else interval_column(edit.min_interval_s),
            edit.max_interval_s,
            edit.state,
            edit.reason,
            edit.not_before,
        ),
    )
    if found and edit.state == "retired":
        end_leases(session, "lease_end_of_page", [edit.id])
        session.run("page_drop_signals", (edit.id,))
    return found
