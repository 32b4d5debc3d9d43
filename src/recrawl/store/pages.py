"""Pages, by id and by address, and what users decide about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import get_args

from recrawl.errors import InvalidInput
from recrawl.store.columns import ScheduleColumns
from recrawl.store.leases import end_leases
from recrawl.store.rows import (
    NewPage,
    PageEdit,
    PageRole,
    PageRow,
    PageState,
    PauseKind,
    check_edits,
    check_new_pages,
    interval_column,
)
from recrawl.store.steps import (
    Count,
    Each,
    Many,
    Names,
    Operations,
    Rows,
    Steps,
    Take,
    is_clean,
    reads,
    reads_at_once,
    writes,
)

_EDITED = tuple(field.name for field in fields(PageEdit))[1:]


class PageStore(Operations):
    """Pages, by id and by address."""

    @writes
    def add_pages(self, pages: Sequence[NewPage]) -> Steps[list[tuple[int, bool]]]:
        """Add pages. Return for each its id and whether tracking starts now: new, re-added, or promoted from source.

        A page that is re-added after retirement and was `removed` or `moved` by the log is in the state `removed` until
        it comes, so that the log can tell that it is `restored`. In the order given. O(pages · log n).
        """
        check_new_pages(pages)
        _check_urls(pages)
        wanted: dict[str, NewPage] = {}
        for page in pages:
            if wanted.setdefault(page.url, page).role != page.role == "page":
                wanted[page.url] = page
        keys = dict(zip(wanted, self.backend.address_keys(wanted), strict=True))
        found = yield Rows("pages_known", (sorted(keys.values()),))
        known = {url: (page_id, retired, source) for url, page_id, retired, source in found if url in wanted}
        ids = {url: page_id for url, (page_id, _retired, _source) in known.items()}
        again = [
            url
            for url, (_page_id, retired, source) in known.items()
            if retired or (source and wanted[url].role == "page")
        ]
        new = [url for url in wanted if url not in known]
        if new:
            first = yield Take("page", len(new))
            ids.update(zip(new, range(first, first + len(new)), strict=True))
        fresh = {*new, *again}
        yield from _write_pages(new, again, wanted, keys, ids)
        answers = []
        for page in pages:
            answers.append((ids[page.url], page.url in fresh))
            fresh.discard(page.url)
        return answers

    @writes
    def edit_pages(self, edits: Sequence[PageEdit]) -> Steps[int]:
        """Change pages; how many there were. A page that is retired loses its lease."""
        check_edits(edits)
        merged: dict[int, PageEdit] = {}
        for edit in edits:
            merged[edit.id] = _over(merged[edit.id], edit) if edit.id in merged else edit
        named = {name for edit in merged.values() for name in (edit.group, edit.objective) if name is not None}
        names = yield Names((), named)
        rows = [
            (
                edit.id,
                None if edit.group is None else names[edit.group],
                edit.importance,
                None if edit.objective is None else names[edit.objective],
                None if edit.min_interval_s is None else interval_column(edit.min_interval_s),
                edit.max_interval_s,
                edit.state,
                edit.reason,
                edit.not_before,
            )
            for edit in merged.values()
        ]
        states = dict((yield Each("page_edit", rows)))
        retired = [page_id for page_id in merged if states.get(page_id) == "retired"]
        if retired:
            yield from end_leases("lease_end_of_page", retired)
            yield Many("page_drop_signals", [(page_id,) for page_id in retired])
        return sum(edit.id in states for edit in edits)

    @reads
    def read_pages(self, ids: Sequence[int]) -> Steps[list[PageRow]]:
        """The rows of those that exist, in the order of `ids`."""
        return (yield from _rows([(page_id,) for page_id in ids]))

    @reads
    def find_pages(
        self, urls: Sequence[str], *, role: PageRole | None = "page", retired: bool = False
    ) -> Steps[dict[str, int]]:
        """Ids by address, of those that exist. O(addresses · log n), some microseconds each.

        Args:
            urls: in canonical form.
            role: only these; None for both.
            retired: find those that are retired as well.
        """
        asked = {url for url in urls if is_clean(url)}
        found = yield Rows("pages_find", (sorted(self.backend.address_keys(asked)), retired, role))
        return {url: page_id for url, page_id in found if url in asked}

    @reads
    def list_pages(
        self,
        after: int = 0,
        limit: int = 100,
        *,
        group: str | None = None,
        host: str | None = None,
        role: PageRole | None = "page",
    ) -> Steps[list[PageRow]]:
        """Pages with ids above `after`, in their order, retired ones too; of one role, or with None of both."""
        match (host, group):
            case (None, None) if role == "source":
                ids = yield Rows("page_ids_of_sources", (after, limit))
            case (None, None):
                ids = yield Rows("page_ids", (after, limit, role))
            case (None, _):
                ids = yield Rows("page_ids_of_group", (after, limit, role, group))
            case (_, None):
                ids = yield Rows("page_ids_of_host", (after, limit, role, host))
            case _:
                ids = yield Rows("page_ids_of_host_and_group", (after, limit, role, host, group))
        return (yield from _rows(ids))

    @reads
    def page_ids(self, state: PageState) -> Steps[list[int]]:
        """Ids of the pages in a state, of role `page`. O(those), but for `active`: O(pages)."""
        rows = yield Rows("page_ids_in_state" if state == "active" else "page_ids_not_active", (state,))
        return [page_id for (page_id,) in rows]

    @reads
    def asked_last(self, host: str, limit: int) -> Steps[list[PageRow]]:
        """Those pages of a host that were asked last, the latest first. O(pages of the host)."""
        return (yield from _rows((yield Rows("page_ids_asked_last", (host, limit)))))

    async def load_schedule(self) -> ScheduleColumns:
        """What the scheduler needs of all pages of role `page`. A million in about two seconds."""
        return await self.backend.load_schedule()

    @writes
    def pause(self, kind: PauseKind, name: str, at: float) -> Steps[None]:
        """Hold back a page (by address), a group or a host until `resume`. Twice is once."""
        if kind not in get_args(PauseKind):
            raise InvalidInput(f"is {kind!r}, but must be one of {', '.join(get_args(PauseKind))}", field="kind")
        yield Rows("pause_add", (kind, *self.backend.address_keys([name]), name, at))

    @writes
    def resume(self, kind: PauseKind, name: str) -> Steps[bool]:
        """End a pause; whether there was one."""
        ended: int = yield Count("pause_end", (kind, *self.backend.address_keys([name]), name))
        return ended > 0

    @reads
    def paused(self) -> Steps[list[tuple[PauseKind, str]]]:
        """All pauses, by kind and name."""
        return sorted((kind, name) for kind, name in (yield Rows("pauses_all")))

    @reads_at_once
    def count_paused(self) -> Steps[int]:
        """How many active pages are paused by themselves, their group or their host. O(those)."""
        urls = [name for kind, name in (yield Rows("pauses_all")) if kind == "page" and is_clean(name)]
        found = yield Rows("pages_known", (sorted(self.backend.address_keys(urls)),))
        ids = [page_id for url, page_id, _retired, _source in found if url in urls]
        return int((yield Rows("count_paused", (ids,)))[0][0])


def _rows(ids: Sequence[Sequence[int]]) -> Steps[list[PageRow]]:
    """The rows of pages that exist, in the order of their ids as they are given."""
    return [PageRow(*row) for row in (yield Each("page_read", ids))]


def _write_pages(
    new: Sequence[str],
    again: Sequence[str],
    wanted: dict[str, NewPage],
    keys: dict[str, object],
    ids: dict[str, int],
) -> Steps[None]:
    """Write new pages and those whose tracking starts again, and count the new ones."""
    if not new and not again:
        return
    written = [wanted[url] for url in (*new, *again)]
    hosts = {page.host for page in written}
    others = {name for page in written for name in (page.group, page.source, page.objective) if name is not None}
    names = yield Names(hosts, others)
    rows = [
        (
            ids[page.url],
            keys[page.url],
            page.url,
            names[page.source],
            page.added_at,
            names[page.host],
            names[page.group],
            page.importance,
            None if page.objective is None else names[page.objective],
            interval_column(page.min_interval_s),
            page.max_interval_s,
            page.role,
        )
        for page in written
    ]
    added, renewed = rows[: len(new)], rows[len(new) :]
    yield Many("address_insert", (row[:5] for row in added))
    yield Many("page_insert", added)
    yield Many("address_renew", ((row[0], *row[3:5]) for row in renewed))
    yield Many("page_renew", renewed)
    sources = sum(wanted[url].role == "source" for url in new)
    counted = [("page active", len(new) - sources), ("source active", sources)]
    yield Many("rows_counted", [(name, count) for name, count in counted if count])


def _check_urls(pages: Sequence[NewPage]) -> None:
    """Refuse addresses that cannot be stored as they are."""
    for row, page in enumerate(pages):
        if not is_clean(page.url):
            problem = "holds a character that no address may have; bring it into canonical form"
            raise InvalidInput(problem, field="url", row=row)


def _over(earlier: PageEdit, later: PageEdit) -> PageEdit:
    """Two edits of one page as one."""
    return replace(earlier, **{name: value for name in _EDITED if (value := getattr(later, name)) is not None})
