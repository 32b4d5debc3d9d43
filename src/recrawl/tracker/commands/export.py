"""Pages and fetches of a store as rows of plain values, for files that people and programs read.

Fetches have the columns of a crawl log (`url`, `time`, `changed`), so that `recrawl backtest` takes them.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from recrawl.store.rows import Observation, PageRow
from recrawl.store.store import Store
from recrawl.tracker.clock import iso

BATCH = 1000
PAGE_COLUMNS = (
    "url", "host", "group", "importance", "objective", "min_interval_s", "max_interval_s", "source", "added_at",
    "state", "reason", "last_fetched", "last_changed", "last_outcome", "visits", "changes", "failures",
)  # fmt: skip
FETCH_COLUMNS = (
    "url", "time", "changed", "outcome", "verdict", "status", "fault", "reason", "trigger", "gap_s", "requests",
    "wire_bytes", "elapsed_s", "worker",
)  # fmt: skip
_FORMULA = tuple("=+-@\t\r\n \N{NO-BREAK SPACE}")


async def page_rows(store: Store) -> AsyncIterator[dict[str, Any]]:
    """All pages in the order of their ids, retired ones too; without what is fetched only as a source."""
    after = 0
    while pages := await store.list_pages(after, BATCH):
        for page in pages:
            yield _page(page)
        after = pages[-1].id


async def fetch_rows(store: Store, *, crawls_only: bool = False) -> AsyncIterator[dict[str, Any]]:
    """All fetches that the store still has, in the order they were written; perhaps only those that brought a page.

    Fetches of what is only a source bring none.
    """
    after = 0
    while seen := await store.all_observations(after, BATCH):
        ids = list({each.page_id for _, each in seen})
        pages = await store.read_pages(ids)
        urls = {page.id: page.url for page in pages if page.role == "page" or not crawls_only}
        for _, each in seen:
            if each.page_id in urls and not (crawls_only and each.verdict is None):
                yield _fetch(each, urls[each.page_id])
        after = seen[-1][0]


def _page(page: PageRow) -> dict[str, Any]:
    values = (
        page.url, page.host, page.group or None, page.importance, page.objective, page.min_interval_s,
        page.max_interval_s, page.source, iso(page.added_at), page.state, page.reason or None, iso(page.fetched_at),
        iso(page.changed_at), page.outcome, page.visits, page.changes, page.failures,
    )  # fmt: skip
    return dict(zip(PAGE_COLUMNS, values, strict=True))


def _fetch(seen: Observation, url: str) -> dict[str, Any]:
    changed = None if seen.verdict is None else int(seen.verdict == "changed")
    values = (
        url, iso(seen.at), changed, seen.outcome, seen.verdict, seen.status, seen.fault, seen.reason or None,
        seen.trigger, seen.gap_s, seen.requests, seen.wire_bytes, seen.elapsed_s, seen.worker,
    )  # fmt: skip
    return dict(zip(FETCH_COLUMNS, values, strict=True))


def csv_line(values: Mapping[str, Any], *, raw: bool) -> str:
    r"""A line of CSV. Text that a spreadsheet would run as a formula gets a `'` before it, unless it is asked for raw.

    >>> csv_line({"url": "=cmd|'/c calc'!A1", "visits": -1}, raw=False)
    "'=cmd|'/c calc'!A1,-1\r\n"
    """
    line = io.StringIO()
    csv.writer(line).writerow([value if raw else guarded(value) for value in values.values()])
    return line.getvalue()


def guarded(value: Any) -> Any:
    """A cell that no spreadsheet runs: `'` before text that begins as a formula may."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def json_line(values: Mapping[str, Any]) -> str:
    """A line of JSON."""
    return json.dumps(dict(values), ensure_ascii=False) + "\n"
