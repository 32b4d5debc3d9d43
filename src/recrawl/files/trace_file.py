"""Traces: NAME.events.parquet with what happened, and NAME.pages.parquet with what it happened to, or both as CSV.

Events have `page` (a number), `time` (unix seconds) and `kind` (0 created, 1 changed, 2 removed), in order of time.
Pages have `page`, and may have `path` and `importance`. A page without events was there all the time.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidFile, InvalidInput
from recrawl.files.columns import Collector, NameColumn, NumberColumn, TimeColumn
from recrawl.files.history import CREATED, REMOVED, ChangeHistory, PageEvents, check_importance
from recrawl.files.page_file import read_columns, shown_names
from recrawl.pages import Floats

FORMATS = (".parquet", ".csv")
"""Endings of the two files of a trace; the first that is there counts."""
_EVENTS = ".events"
_PAGES = ".pages"
_MOST_PAGES = 2**31 - 1


def find_trace(path: Path) -> Path | None:
    """The file of events that a path means: itself, the one it is the beginning of, or the only one in a folder."""
    name, ending = path.stem, path.suffix
    if ending.lower() in FORMATS:
        if name.lower().endswith(_EVENTS):
            return path
        if name.lower().endswith(_PAGES):
            return path.with_name(name[: -len(_PAGES)] + _EVENTS + ending)
    for ending in FORMATS if path.name else ():
        beginning = path.with_name(path.name + _EVENTS + ending)
        if _is_file(beginning):
            return beginning
    try:
        found = sorted(each for ending in FORMATS for each in path.glob(f"*{_EVENTS}{ending}")) if path.is_dir() else []
    except OSError:
        return None
    if len(found) > 1:
        names = ", ".join(trace_name(each) for each in found[:6])
        raise InvalidFile(str(path), f"holds {len(found)} traces ({names}): name one, such as {trace_name(found[0])}")
    return found[0] if found else None


def trace_name(events: Path) -> str:
    """What the trace of a file of events is called."""
    return events.stem[: -len(_EVENTS)]


def read_trace(events: Path) -> ChangeHistory:
    """Read a trace by its file of events; the file of pages lies beside it. O(events + pages · log pages)."""
    listed = _read_pages(events.with_name(trace_name(events) + _PAGES + events.suffix))
    found = _read_events(events, listed.numbers)
    start, end = float(found.time[0]), float(found.time[-1])
    return ChangeHistory(
        name=trace_name(events),
        page_names=listed.names,
        importance=listed.importance,
        events=found,
        start=start,
        end=end,
    )


class _Listed(NamedTuple):
    """The pages of a trace, in order of their numbers."""

    numbers: NDArray[np.int64]
    names: tuple[str, ...]
    importance: Floats | None


def _read_pages(path: Path) -> _Listed:
    page, name, importance = NumberColumn("page"), NameColumn("path"), NumberColumn("importance")
    columns: dict[str, Collector] = {"page": page, "path": name, "importance": importance}
    file, found = read_columns(path, columns, optional=("path", "importance"))
    try:
        numbers = _whole(page.finish(), "page", _MOST_PAGES)
        order = _order(numbers)
        weights = check_importance(importance.finish()) if "importance" in found else None
    except InvalidInput as error:
        raise file.explain(error) from None
    if not len(numbers):
        raise InvalidFile(str(path), "holds no pages")
    if "path" in found:
        paths = name.finish()
        unlike = shown_names(paths.names)
        names = tuple(unlike[code] for code in paths.codes[order])
    else:
        names = tuple(f"page {number}" for number in numbers[order])
    return _Listed(numbers[order], names, None if weights is None else weights[order])


def _read_events(path: Path, numbers: NDArray[np.int64]) -> PageEvents:
    page, time, kind = NumberColumn("page"), TimeColumn("time"), NumberColumn("kind")
    file, _ = read_columns(path, {"page": page, "time": time, "kind": kind})
    times = time.finish()
    if not len(times):
        raise InvalidFile(str(path), "holds no events")
    try:
        kinds = _whole(kind.finish(), "kind", REMOVED)
        named = _whole(page.finish(), "page", _MOST_PAGES)
        place = _place(named, numbers)
        _check_order(times)
    except InvalidInput as error:
        raise file.explain(error) from None
    return _with_silent_pages(PageEvents(place.astype(np.int32), times, kinds.astype(np.int8)), len(numbers))


def _order(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """The order of page numbers, each of which may be there once."""
    order = np.argsort(numbers, kind="stable")
    twice = np.flatnonzero(np.diff(numbers[order]) == 0)
    if len(twice):
        row = int(order[twice[0] + 1])
        raise InvalidInput(f"is {numbers[row]}, which an earlier row has too", field="page", row=row)
    return order


def _place(named: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the pages of events stand among the pages."""
    place = np.minimum(np.searchsorted(numbers, named), len(numbers) - 1)
    known = numbers[place] == named
    if not known.all():
        row = int(np.argmin(known))
        raise InvalidInput(f"is {named[row]}, which is not in the file of pages", field="page", row=row)
    return place


def _check_order(times: Floats) -> None:
    back = np.flatnonzero(np.diff(times) < 0)
    if len(back):
        problem = f"is {times[back[0] + 1]:.0f}, before the {times[back[0]]:.0f} of the row above: sort by time"
        raise InvalidInput(problem, field="time", row=int(back[0]) + 1)


def _with_silent_pages(events: PageEvents, pages: int) -> PageEvents:
    """A page without events was there from the start: it gets a creation before everything else."""
    silent = np.flatnonzero(np.bincount(events.page, minlength=pages) == 0).astype(np.int32)
    if not len(silent):
        return events
    return PageEvents(
        np.concatenate([silent, events.page]),
        np.concatenate([np.full(len(silent), events.time[0]), events.time]),
        np.concatenate([np.full(len(silent), CREATED, dtype=np.int8), events.kind]),
    )


def _whole(values: Floats, field: str, largest: int) -> NDArray[np.int64]:
    """Check a column of whole numbers from 0."""
    with np.errstate(invalid="ignore"):
        wrong = ~((values >= 0) & (values <= largest) & (np.floor(values) == values))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InvalidInput(f"is {values[row]:g}, but must be a whole number from 0 to {largest}", field=field, row=row)
    return values.astype(np.int64)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
