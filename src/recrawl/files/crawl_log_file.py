"""Crawl logs as histories: one row per crawl with `url`, `time` and `changed`, in CSV, JSONL or Parquet.

A log knows that a page changed between two crawls, not when: `history.py` says where changes are placed. What
`changed` says at the first crawl of a page is not used. The crawls themselves are kept: they are today's schedule.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidFile, InvalidInput
from recrawl.files.columns import (
    Cells,
    Collector,
    FlagColumn,
    NameColumn,
    NumberColumn,
    TimeColumn,
)
from recrawl.files.history import ChangeHistory, ObservedCrawls, check_importance, place_changes
from recrawl.files.page_file import read_columns, shown_names
from recrawl.pages import Floats


def read_crawl_log(path: Path, seed: int = 0) -> ChangeHistory:
    """Read a crawl log. Rows may be in any order. O(crawls · log crawls).

    Two rows of one page at the same time count as one crawl, which saw a change if either did. The optional column
    `importance` counts as the last crawl of a page has it.

    Args:
        path: the file; its ending says the format.
        seed: where in its interval each change is placed.
    """
    url, time, changed, weight = (
        _UrlColumn("url"),
        TimeColumn("time"),
        FlagColumn("changed"),
        NumberColumn("importance"),
    )
    columns: dict[str, Collector] = {"url": url, "time": time, "changed": changed, "importance": weight}
    file, found = read_columns(path, columns, optional=("importance",))
    pages = url.finish()
    if not len(pages.codes):
        raise InvalidFile(str(path), "holds no crawls")
    weights = weight.finish() if "importance" in found else None
    crawls, last = _crawls(pages.codes, time.finish(), changed.finish())
    try:
        importance = None if weights is None else check_importance(check_importance(weights)[last])
    except InvalidInput as error:
        raise file.explain(error) from None
    if len(crawls.page) == len(pages.names):
        raise InvalidFile(str(path), "has no page that was crawled twice, so it says nothing about changes")
    order = np.argsort(crawls.time, kind="stable")
    return ChangeHistory(
        name=path.name.split(".")[0] or path.name,
        page_names=shown_names(pages.names),
        importance=importance,
        events=place_changes(crawls, seed),
        start=float(crawls.time.min()),
        end=float(crawls.time.max()),
        crawls=ObservedCrawls(crawls.page[order], crawls.time[order], crawls.changed[order]),
    )


class _UrlColumn(NameColumn):
    """Collects addresses, which no row may lack."""

    def add(self, cells: Cells) -> None:
        """Take the next cells."""
        try:
            super().add(cells)
        except InvalidInput as error:
            if error.row is None:
                raise
            raise InvalidInput("is missing: write it in every row", field=error.field, row=error.row) from None


def _crawls(
    page: NDArray[np.int64], time: Floats, changed: NDArray[np.bool_]
) -> tuple[ObservedCrawls, NDArray[np.int64]]:
    """Crawls by page and time, each once, and the row of each page's last one."""
    order = np.lexsort((time, page))
    page, time, changed = page[order], time[order], changed[order]
    ends_page = np.append(page[1:] != page[:-1], True)
    first = np.append(True, (page[1:] != page[:-1]) | (time[1:] != time[:-1]))
    start = np.flatnonzero(first)
    crawls = ObservedCrawls(page[start].astype(np.int32), time[start], np.logical_or.reduceat(changed, start))
    return crawls, order[ends_page]
