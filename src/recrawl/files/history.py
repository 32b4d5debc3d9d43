"""A change history: pages, and when each was created, changed or removed; and how one is opened.

    open_history → ChangeHistory → a world of the laboratory

A history is a trace, a crawl log or a git repository. A log knows that a page changed between two crawls, not when:
each change is placed at a point of its interval, uniform by a seed; more changes than one cannot be told from one, and
a page exists from its first crawl. Every error is one sentence that names the path and, where there is one, the row and
the field.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidFile, InvalidInput
from recrawl.pages import LARGEST, SMALLEST, Floats, check_number

CREATED, CHANGED, REMOVED = 0, 1, 2
SECONDS_A_DAY = 86_400.0

PageNumbers = NDArray[np.int32]
Kinds = NDArray[np.int8]


class PageEvents(NamedTuple):
    """What happened, in order of time: the page's number, unix seconds, and CREATED, CHANGED or REMOVED."""

    page: PageNumbers
    time: Floats
    kind: Kinds

    def __repr__(self) -> str:
        return f"PageEvents({len(self.page)} events)"


class ObservedCrawls(NamedTuple):
    """The crawls of a log, in order of time: the page's number, unix seconds, and whether the page had changed.

    Of the first crawl of a page the flag says nothing.
    """

    page: PageNumbers
    time: Floats
    changed: NDArray[np.bool_]

    def __repr__(self) -> str:
        return f"ObservedCrawls({len(self.page)} crawls)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeHistory:
    """A change history.

    Attributes:
        name: what it is called in reports.
        page_names: path or address of each page.
        importance: weight of each page; None if the history has none.
        events: what happened.
        start: where it begins, in unix seconds.
        end: where it ends.
        crawls: the crawls it was seen by, if it is a crawl log: today's schedule.
    """

    name: str
    page_names: tuple[str, ...]
    importance: Floats | None
    events: PageEvents
    start: float
    end: float
    crawls: ObservedCrawls | None = None

    def __len__(self) -> int:
        return len(self.page_names)

    @property
    def days(self) -> float:
        """How long the history is."""
        return (self.end - self.start) / SECONDS_A_DAY


def check_importance(values: Floats) -> Floats:
    """Check the importance of pages, as for a plan; some must be above 0."""
    for row in np.flatnonzero(~((values >= SMALLEST) & (values <= LARGEST)) & (values != 0))[:1]:
        try:
            check_number(float(values[row]), "importance")
        except InvalidInput as error:
            raise InvalidInput(error.problem, field="importance", row=int(row)) from None
    if len(values) and not values.any():
        raise InvalidInput("is 0 on every page: some page must matter", field="importance")
    return values


_STREAM = 0x6372  # of random numbers, apart from others of the same seed


def place_changes(crawls: ObservedCrawls, seed: int) -> PageEvents:
    """Creations at first crawls, and a change somewhere in each interval that saw one. O(crawls · log crawls)."""
    by_page = np.lexsort((crawls.time, crawls.page))
    page, time, changed = crawls.page[by_page], crawls.time[by_page], crawls.changed[by_page]
    again = np.append(False, page[1:] == page[:-1])
    seen = np.flatnonzero(again & changed)
    random = np.random.Generator(np.random.PCG64([seed, _STREAM]))
    # After the earlier crawl, and no later than the one that saw it.
    when = time[seen] - random.random(len(seen)) * (time[seen] - time[seen - 1])
    every_page = np.concatenate([page[~again], page[seen]])
    every_time = np.concatenate([time[~again], when])
    every_kind = np.repeat(np.array([CREATED, CHANGED], dtype=np.int8), [len(page) - int(again.sum()), len(seen)])
    order = np.argsort(every_time, kind="stable")
    return PageEvents(every_page[order], every_time[order], every_kind[order])


def place_again(history: ChangeHistory, seed: int) -> ChangeHistory:
    """A history as the same crawls may have seen it: a crawl log with its changes elsewhere; any other as it is."""
    return history if history.crawls is None else replace(history, events=place_changes(history.crawls, seed))


def open_history(path: Path | str, *, seed: int = 0, since: float | str | None = None) -> ChangeHistory:
    """Read a history.

    Args:
        path: a trace (`folder/NAME`, `folder/NAME.events.parquet` or `.csv`, or a folder with one trace); or a crawl
            log with columns url, time and changed (.csv, .tsv, .jsonl, .ndjson, .parquet); or a git repository, or a
            folder in one.
        seed: where the changes of a crawl log are placed in their intervals.
        since: where the history of a git repository begins, an ISO 8601 date or unix seconds.
    """
    if seed < 0:
        raise InvalidInput(f"is {seed}, but must be 0 or more", field="seed")
    path = Path(path)
    history = _read(path, seed, since)
    if history.end <= history.start:
        raise InvalidFile(str(path), "has everything at one time: a history needs at least two times")
    return history


def _read(path: Path, seed: int, since: float | str | None) -> ChangeHistory:
    from recrawl.files.git_history import read_git_history
    from recrawl.files.trace_file import find_trace, read_trace

    events = find_trace(path)
    if events is None and _is_folder(path):
        return read_git_history(path, since)
    if since is not None:
        raise InvalidInput("is for git repositories only: leave it out", field="since")
    if events is not None:
        return read_trace(events)
    from recrawl.files.crawl_log_file import read_crawl_log
    from recrawl.files.formats import check_file

    check_file(path)  # that it is not there says more than that its ending is unknown
    return read_crawl_log(path, seed)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False
