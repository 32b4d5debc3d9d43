"""Read and check arguments: columns of pages, times, flags, waits and whole numbers. Pure.

Every column argument is one value for all pages or an array with one value for each page. `read_entries` reduces what
a caller says of pages to a law with a gain and a decay (`table/records.py`).
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple, TypedDict, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import InvalidInput
from recrawl.learning.filter_state import PAGE_STATE, FilterState
from recrawl.learning.inputs import Flags
from recrawl.pages import LARGEST, LIVES, Floats, Pages, check_number, read_numbers, read_pages
from recrawl.scheduling.table.records import FRESHNESS, HARMONIC, LEARNED_FRESHNESS, MOST_FAILURES, ONCE, SOURCE, WINDOW
from recrawl.scheduling.types import LONGEST, Tuning

PageObjective = Literal["freshness", "harmonic", "captures", "news", "once"]
PAGE_OBJECTIVES: tuple[PageObjective, ...] = get_args(PageObjective)

_NEEDED = {
    "freshness": ("importance",),
    "harmonic": ("importance",),
    "captures": ("importance", "change_rate"),
    "news": ("profit", "new_page_rate", "decay"),
    "once": ("profit", "decay"),
}
_ALLOWED = {
    "freshness": {"importance", "change_rate", "signals"},
    "harmonic": {"importance", "change_rate", "signals"},
    "captures": {"importance", "change_rate", "decay", "life", "window"},
    "news": {"profit", "new_page_rate", "decay"},
    "once": {"profit", "decay"},
}
CAPTURES_ONLY = _ALLOWED["captures"]
_SMALLEST, _LARGEST = 1e-30, 1e30  # of costs and profits
COMMON = {"host", "last_crawled", "cost", "objective", "min_interval", "max_interval"}


class PageColumns(TypedDict, total=False):
    """Arguments of `add` and `update`: each is one value for all pages or a column.

    Refreshed pages have `importance` and `change_rate` (None: learn it) and may have `signals` by kind. Pages with
    objective `captures` also have `decay`, `life` and `window`; content sources (`news`) have `profit`,
    `new_page_rate` and `decay`; new pages to crawl once (`once`) `profit` and `decay`, and `last_crawled` is when they
    were found. `last_crawled` None: there is no copy yet. Times and rates are in the caller's unit.
    """

    importance: ArrayLike
    change_rate: ArrayLike | None
    host: Any
    last_crawled: ArrayLike | None
    cost: ArrayLike
    objective: PageObjective | None
    signals: Any
    min_interval: ArrayLike
    max_interval: ArrayLike
    decay: ArrayLike
    life: Any
    window: ArrayLike
    profit: ArrayLike
    new_page_rate: ArrayLike


class PageEntries(NamedTuple):
    """Checked columns, ready to be written; None: the default for all pages."""

    gain: Floats  # by unit of cost
    decay: Floats
    law: NDArray[np.uint8]
    learns: bool
    last: Floats | None  # NaN where there is no copy
    cost: Floats | None
    min_interval: Floats | None
    max_interval: Floats | None
    profit: Floats | None  # of a source, by unit of cost
    captures: bool = False  # captured changes count

    def __len__(self) -> int:
        return len(self.gain)


def read_entries(
    columns: PageColumns, objective: PageObjective, now: float, expected: int | None = None
) -> PageEntries:
    """Check the arguments of `add` or `update`. O(pages).

    Args:
        columns: the arguments.
        objective: of the pages.
        now: the time.
        expected: number of pages; None: the length of the columns.
    """
    _check_names(columns, objective)
    count = _count(columns, expected)
    table = {name: _spread(columns[name], count) for name in _NEEDED[objective] if name in columns}  # type: ignore[literal-required]
    learns = objective in ("freshness", "harmonic") and columns.get("change_rate") is None
    if objective in ("freshness", "harmonic"):
        table["change_rate"] = np.ones(count) if learns else _spread(columns["change_rate"], count)
    for name in ("decay", "life", "window"):
        if name in columns and objective == "captures":
            table[name] = _spread(columns[name], count)
    if objective == "once":
        table["new_page_rate"] = np.zeros(count)
    if "cost" in columns:
        table["cost"] = _spread(columns["cost"], count)
    pages = read_pages(table, "news" if objective == "once" else objective)
    cost = None if pages.cost is None or (pages.cost == 1).all() else pages.cost
    gain, decay, law, profit = _to_law(pages, objective)
    if cost is not None:
        _check_size(cost, "cost", cost)
        gain = gain / cost
        profit = None if profit is None else profit / cost
    if profit is not None:
        _check_size(profit, "profit", pages.importance)
    if learns:
        law = law + (LEARNED_FRESHNESS - FRESHNESS)
    low = _interval(columns, "min_interval", count, 0.0)
    high = _interval(columns, "max_interval", count, math.inf)
    if low is not None and high is not None and (low > high).any():
        row = int(np.argmax(low > high))
        raise InvalidInput(
            f"is {float(low[row])!r}, above max_interval {float(high[row])!r}", field="min_interval", row=row
        )
    last = _times(columns.get("last_crawled"), count, now)
    return PageEntries(
        gain, decay, law.astype(np.uint8), learns, last, cost, low, high, profit, objective == "captures"
    )


def _check_size(column: Floats, field: str, given: Floats) -> None:
    """Raise InvalidInput for values that single precision does not hold; `given` is the caller's column."""
    wrong = (column != 0) & ((column < _SMALLEST) | (column > _LARGEST))
    if wrong.any():
        row = int(np.argmax(wrong))
        problem = f"is {float(given[row])!r}, but must be between {_SMALLEST:g} and {_LARGEST:g}, by unit of cost"
        raise InvalidInput(problem, field=field, row=row)


def _to_law(pages: Pages, objective: PageObjective) -> tuple[Floats, Floats, NDArray[Any], Floats | None]:
    size = len(pages)
    if objective in ("freshness", "harmonic"):
        plain = FRESHNESS if objective == "freshness" else HARMONIC
        return pages.importance, pages.change_rate, np.full(size, plain), None
    if objective == "news":
        assert pages.decay is not None
        return pages.importance * pages.change_rate, pages.decay, np.full(size, SOURCE), pages.importance
    if objective == "once":
        assert pages.decay is not None
        return pages.importance, pages.decay, np.full(size, ONCE), None
    fading = np.zeros(size) if pages.decay is None else pages.decay
    life = np.zeros(size, dtype=np.uint8) if pages.life is None else pages.life
    decay = np.where(life == LIVES.index("overwrite"), fading + pages.change_rate, fading)
    law = np.full(size, FRESHNESS)
    if pages.window is not None:
        windowed = life == LIVES.index("window")
        decay, law = np.where(windowed, pages.window, decay), np.where(windowed, WINDOW, law)
    return pages.importance * pages.change_rate, decay, law, None


def check_objective(objective: Any) -> PageObjective:
    """Check the name of an objective."""
    if not isinstance(objective, str) or objective not in PAGE_OBJECTIVES:
        raise InvalidInput(f"is {objective!r}, but must be one of {', '.join(PAGE_OBJECTIVES)}", field="objective")
    return objective


def _check_names(columns: PageColumns, objective: PageObjective) -> None:
    check_objective(objective)
    for name in columns:
        if name not in COMMON and name not in _ALLOWED[objective]:
            known = ", ".join(sorted(COMMON | _ALLOWED[objective]))
            raise InvalidInput(f"says nothing of pages with the objective {objective} (known: {known})", field=name)
    for name in _NEEDED[objective]:
        if columns.get(name) is None:
            raise InvalidInput(f"is missing, which pages with the objective {objective} need", field=name)


def _count(columns: PageColumns, expected: int | None) -> int:
    """Return the number of pages: the length of the columns; if all are single values, as expected, or 1."""
    count, first = 1, ""
    for name, column in columns.items():
        if name in ("objective", "signals") or column is None or isinstance(column, (str, int, float)):
            continue
        length = _length(column)
        if length is None:
            continue
        if first and length != count:
            raise InvalidInput(f"has {length} values but {first} has {count}: give one for each page", field=name)
        count, first = length, name
    if expected is None or expected == count:
        return count
    if first:
        raise InvalidInput(f"there are {count} values for {expected} ids")
    return expected


def _length(column: Any) -> int | None:
    if hasattr(column, "codes") and hasattr(column, "names"):
        return len(column.codes)
    if getattr(column, "ndim", 1) == 0:
        return None
    try:
        return len(column)
    except TypeError:
        return None


def _spread(column: Any, count: int) -> Any:
    """Return a column with one value per page."""
    return (
        column
        if _length(column) is not None and not isinstance(column, str)
        else [column] * count
        if isinstance(column, str)
        else np.full(count, column)
    )


def _interval(
    columns: PageColumns, name: Literal["min_interval", "max_interval"], count: int, usual: float
) -> Floats | None:
    if name not in columns:
        return None
    column = read_numbers(_spread(columns[name], count), name, may_be_infinite=True)
    if usual == 0.0 and np.isinf(column).any():
        raise InvalidInput("is inf, but must be a time", field=name, row=int(np.argmax(np.isinf(column))))
    if usual == math.inf and (column == 0).any():
        raise InvalidInput(
            "is 0, but a page needs some time between crawls", field=name, row=int(np.argmax(column == 0))
        )
    return None if (column == usual).all() else column


def _times(column: Any, count: int, now: float) -> Floats | None:
    """Check times of last crawls; NaN, or None in a list, means that there was none."""
    if column is None:
        return None
    if isinstance(column, (list, tuple)):
        column = [math.nan if value is None else value for value in column]
    try:
        times = np.broadcast_to(np.asarray(column, dtype=np.float64), count)
    except (TypeError, ValueError):
        raise InvalidInput("must be a time, or a column of them", field="last_crawled") from None
    if (times > now).any():
        row = int(np.argmax(times > now))
        raise InvalidInput(f"is {float(times[row])!r}, after now ({now!r})", field="last_crawled", row=row)
    if (times < -LARGEST).any():
        raise InvalidInput("is before all time", field="last_crawled", row=int(np.argmax(times < -LARGEST)))
    return times


def is_whole(number: Any) -> bool:
    """Return whether this is a whole number, and not True or False."""
    return type(number) is int or (isinstance(number, (int, np.integer)) and not isinstance(number, bool))


def check_burst(burst: Any) -> float:
    """Check a burst."""
    if check_number(burst, "burst") <= 0:
        raise InvalidInput(f"is {burst!r}, but must be above 0", field="burst")
    return float(burst)


def check_start(objective: Any, burst: Any, seed: Any, tuning: Any) -> None:
    """Check the arguments of `Scheduler`."""
    check_objective(objective)
    check_burst(burst)
    if not isinstance(tuning, Tuning):
        raise InvalidInput(f"is {tuning!r}, but must be a Tuning", field="tuning")
    if not is_whole(seed) or not 0 <= seed < 2**63:
        raise InvalidInput(f"is {seed!r}, but must be a whole number from 0 to 2⁶³ − 1", field="seed")


def check_time(now: Any) -> float:
    """Check a time."""
    try:
        time = float(now)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"is {now!r}, but must be a time", field="now") from None
    if not -LARGEST <= time <= LARGEST:
        raise InvalidInput(f"is {time!r}, but must be a time", field="now")
    return time


def not_in_flight(row: int) -> InvalidInput:
    """Return the error for a result of a page that is not in flight."""
    problem = "is not in flight: only a page that was taken can be settled, and once"
    return InvalidInput(problem, field="ids", row=int(row))


def read_flags(changed: ArrayLike, count: int) -> Flags:
    """Check which crawls saw a change: one value for all or one for each. O(count)."""
    try:
        flags = np.asarray(changed)
        if flags.dtype == np.bool_ and flags.shape == (count,):  # as nearly always: checks would cost more than a crawl
            return flags if flags.flags.carray else flags.copy()
        flags = np.broadcast_to(flags, count)
    except ValueError:
        raise InvalidInput(f"must be one value or {count}, as many as ids", field="changed") from None
    if (count and flags.dtype.kind not in "biu") or (count and not ((flags == 0) | (flags == 1)).all()):
        raise InvalidInput("must hold True and False", field="changed")
    return flags.astype(np.bool_)


def read_waits(retry_after: ArrayLike, count: int) -> Floats:
    """Check how long servers asked to wait: one time for all or one for each. O(count)."""
    try:
        waits = np.broadcast_to(np.asarray(retry_after, dtype=np.float64), count)
    except (TypeError, ValueError):
        raise InvalidInput(f"must be a time, or {count} of them", field="retry_after") from None
    if not ((waits >= 0) & (waits <= LONGEST)).all():
        row = int(np.argmax(~((waits >= 0) & (waits <= LONGEST))))
        raise InvalidInput(f"is {float(waits[row])!r}, but must be 0 or more", field="retry_after", row=row)
    return waits


def read_beliefs(beliefs: Any, count: int) -> FilterState:
    """Check what `Scheduler.beliefs` returned, as records or as their bytes, and copy it. O(count)."""
    if isinstance(beliefs, (bytes, bytearray, memoryview)):
        beliefs = np.frombuffer(beliefs, dtype=np.uint8)
    if not isinstance(beliefs, np.ndarray):
        raise InvalidInput("must be what `beliefs` gave, or its bytes", field="beliefs")
    if beliefs.dtype == np.uint8:
        if beliefs.size != count * PAGE_STATE.itemsize:
            problem = f"has {beliefs.size} bytes, but {count} pages have {count * PAGE_STATE.itemsize}"
            raise InvalidInput(problem, field="beliefs")
        beliefs = np.ascontiguousarray(beliefs).reshape(-1).view(PAGE_STATE)
    if beliefs.dtype != PAGE_STATE or beliefs.shape != (count,):
        raise InvalidInput(f"must be the beliefs of {count} pages", field="beliefs")
    numbers = [name for name in PAGE_STATE.names or () if PAGE_STATE[name].kind == "f"]
    for name in numbers:
        column = beliefs[name]
        wrong = ~np.isfinite(column) | ((column < 0) & (name != "gap_skew"))
        if wrong.any():
            problem = f"has {name} = {column[np.argmax(wrong)]!r}, which no page has: drop it, the page learns again"
            raise InvalidInput(problem, field="beliefs", row=int(np.argmax(wrong)))
    known: FilterState = beliefs.copy()
    return known


def read_failures(failures: ArrayLike, count: int) -> NDArray[np.uint8]:
    """Check failures in a row; larger numbers count as the most that a record holds."""
    column = np.broadcast_to(np.asarray(failures), (count,))
    if column.dtype.kind not in "iu" or (column < 0).any():
        raise InvalidInput("must be whole numbers of 0 or more", field="failures")
    return np.minimum(column, MOST_FAILURES).astype(np.uint8)


def read_holds(held_until: ArrayLike, count: int) -> Floats:
    """Check times until which pages wait; NaN for none."""
    column: Floats = np.broadcast_to(np.asarray(held_until, dtype=np.float64), (count,))
    if np.isinf(column).any():
        raise InvalidInput("must be finite; remove a page that is to wait for ever", field="held_until")
    return column
