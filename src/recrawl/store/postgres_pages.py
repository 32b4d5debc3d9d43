"""Pages in PostgreSQL: adding, changing, finding and pausing them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import get_args

from recrawl.errors import InvalidInput
from recrawl.store.columns import ScheduleColumns
from recrawl.store.postgres.backend import PostgresLink, Writing
from recrawl.store.postgres.schedule import read_schedule
from recrawl.store.postgres_columns import check_urls, clean, columns, url_key
from recrawl.store.postgres_connection import SQL
from recrawl.store.row_checks import check_edits, check_new_pages, interval_column
from recrawl.store.rows import NewPage, PageEdit, PageRole, PageRow, PageState, PauseKind

_NEW = tuple(field.name for field in fields(NewPage))
_EDIT = tuple(field.name for field in fields(PageEdit))
_LEAST = "min_interval_s"


class PostgresPages(PostgresLink):
    """The pages of a store."""

    async def add_pages(self, pages: Sequence[NewPage]) -> list[tuple[int, bool]]:
        """Add pages; for each its id, and whether it is new, taken up anew, or a source that becomes a page."""
        check_new_pages(pages)
        check_urls(page.url for page in pages)
        keys = [url_key(page.url) for page in pages]
        first: dict[bytes, NewPage] = {}
        for key, page in zip(keys, pages, strict=True):
            if first.setdefault(key, page).role != page.role == "page":
                first[key] = page
        wanted = list(first.values())
        values = [list(first), *columns(wanted, _NEW)]
        values[1 + _NEW.index(_LEAST)] = [interval_column(page.min_interval_s) for page in wanted]
        async with self.writing() as writing:
            fetch = writing.connection.fetch
            await fetch(SQL["name_hosts"], sorted({clean(page.host) for page in wanted}))
            fresh = dict(await fetch(SQL["take_up_pages"], *values))
            fresh.update(await fetch(SQL["add_pages"], *values))
            known = [key for key in first if key not in fresh]
            ids = fresh | dict(await fetch(SQL["ids_of_keys"], known))
        answers = []
        for key in keys:
            answers.append((ids[key], key in fresh))
            fresh.pop(key, None)
        return answers

    async def edit_pages(self, edits: Sequence[PageEdit]) -> int:
        """Change pages; how many there were."""
        merged: dict[int, PageEdit] = {}
        check_edits(edits)
        for edit in edits:
            merged[edit.id] = _over(merged[edit.id], edit) if edit.id in merged else edit
        values = columns(list(merged.values()), _EDIT)
        said = [edit.min_interval_s for edit in merged.values()]
        values[_EDIT.index(_LEAST)] = [None if each is None else interval_column(each) for each in said]
        async with self.writing() as writing:
            rows = await writing.connection.fetch(SQL["edit_pages"], *values)
            retired = [page for page, state in rows if state == "retired"]
            if retired:
                await writing.connection.execute(SQL["end_leases_of_pages"], retired)
                await writing.connection.execute(SQL["drop_signals"], retired)
        found = {page for page, _ in rows}
        return sum(edit.id in found for edit in edits)

    async def read_pages(self, ids: Sequence[int]) -> list[PageRow]:
        """The rows of those that exist, in the order of `ids`."""
        return [PageRow(*row) for row in await self.fetch("read_pages", list(ids))]

    async def find_pages(
        self, urls: Sequence[str], *, role: PageRole | None = "page", retired: bool = False
    ) -> dict[str, int]:
        """Ids by address, of those that exist; of one role or both, perhaps retired ones too."""
        return dict(await self.fetch("find_pages", [url_key(url) for url in urls], retired, role))

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
        stretch = (after, limit, role)
        if group is not None and host is not None:
            rows = await self.fetch("list_pages_of_both", *stretch, clean(group), clean(host))
        elif group is not None:
            rows = await self.fetch("list_pages_of_group", *stretch, clean(group))
        elif host is not None:
            rows = await self.fetch("list_pages_of_host", *stretch, clean(host))
        elif role == "source":
            rows = await self.fetch("list_sources", after, limit)
        else:
            rows = await self.fetch("list_pages", *stretch)
        return [PageRow(*row) for row in rows]

    async def page_ids(self, state: PageState) -> list[int]:
        """Ids of the pages in a state, of role `page`. O(those), but for `active`: O(pages)."""
        query = "page_ids" if state == "active" else "page_ids_not_active"
        return [page_id for (page_id,) in await self.fetch(query, state)]

    async def asked_last(self, host: str, limit: int) -> list[PageRow]:
        """Those pages of a host that were asked last, the latest first. O(pages of the host)."""
        return [PageRow(*row) for row in await self.fetch("pages_asked_last", clean(host), limit)]

    async def load_schedule(self) -> ScheduleColumns:
        """What the scheduler needs of all pages of role `page`. O(pages)."""
        async with self.reading_at_once() as connection:
            return await read_schedule(connection, self.limits.long_s)

    async def pause(self, kind: PauseKind, name: str, at: float) -> None:
        """Hold back a page (by address), a group or a host until `resume`."""
        if kind not in get_args(PauseKind):
            raise InvalidInput(f"is {kind!r}, but must be one of {', '.join(get_args(PauseKind))}", field="kind")
        await self.write("pause", kind, url_key(name), clean(name), at)

    async def resume(self, kind: PauseKind, name: str) -> bool:
        """End a pause; whether there was one."""
        return bool(await self.write("resume", kind, url_key(name)))

    async def paused(self) -> list[tuple[PauseKind, str]]:
        """All pauses."""
        return [(kind, name) for kind, name in await self.fetch("paused")]

    async def count_paused(self) -> int:
        """How many active pages are paused by themselves, their group or their host. O(those)."""
        return int((await self.fetch("count_paused"))[0][0])


async def page_rows(writing: Writing, ids: Sequence[int]) -> list[PageRow]:
    """Rows of pages as a transaction sees them."""
    return [PageRow(*row) for row in await writing.connection.fetch(SQL["read_pages"], list(ids))]


def _over(earlier: PageEdit, later: PageEdit) -> PageEdit:
    """Two edits of one page as one."""
    set_later = {name: value for name in _EDIT[1:] if (value := getattr(later, name)) is not None}
    return replace(earlier, **set_later)
