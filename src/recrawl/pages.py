"""Columns of page parameters: what a page is worth, how it changes, what limits its crawls.

`Pages` is a struct of arrays, one entry per page in the caller's order. `read_pages` builds it from anything
columnar (a dict of arrays, a pandas or polars frame, an Arrow table, a structured array) and is the only place
where page parameters are checked: everything below trusts the type.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput

Floats = NDArray[np.float64]
Objective = Literal["freshness", "harmonic", "captures", "news"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)

# Importance, rates, costs and budgets are 0 or between these, so that products and quotients of a few of them
# neither overflow nor vanish.
SMALLEST = 1e-60
LARGEST = 1e60
_CHECKED_AT_ONCE = 32768

LIVES = ("append", "overwrite", "window")
"""What becomes of a change that was not captured: stays, is overwritten by the next, or stays for a window."""


@dataclass(frozen=True, slots=True)
class Hosts:
    """The host of each page as an index into the list of host names."""

    codes: NDArray[np.int64]
    names: Sequence[Hashable]


@dataclass(frozen=True, slots=True)
class Pages:
    """Checked columns of page parameters; an absent optional column is None.

    Rates are per unit time of the caller's choice. For `news`, `importance` holds the profit of a new page and
    `change_rate` the rate of new pages.
    """

    importance: Floats
    change_rate: Floats
    hosts: Hosts | None = None
    cost: Floats | None = None
    min_rate: Floats | None = None
    max_rate: Floats | None = None
    recall: Floats | None = None
    precision: Floats | None = None
    false_signal_rate: Floats | None = None
    decay: Floats | None = None
    life: NDArray[np.uint8] | None = None
    window: Floats | None = None

    def __len__(self) -> int:
        return len(self.importance)

    def part(self, rows: slice) -> Pages:
        """Some of the pages, copied."""
        columns = {
            field.name: np.ascontiguousarray(getattr(self, field.name)[rows])
            for field in fields(self)
            if field.name != "hosts" and getattr(self, field.name) is not None
        }
        hosts = None if self.hosts is None else Hosts(self.hosts.codes[rows], self.hosts.names)
        return Pages(**columns, hosts=hosts)

    def announced(self) -> NDArray[np.bool_] | None:
        """Pages whose every change is announced and that never announce in vain; None if no page has signals."""
        if self.recall is None:
            return None
        announced: NDArray[np.bool_] = self.recall == 1
        if self.false_signal_rate is not None:
            announced &= self.false_signal_rate == 0
        if self.precision is not None:
            announced &= self.precision == 1
        return announced

    def false_signals(self) -> Floats | None:
        """Rate of signals with no change behind them; None if no page has signals."""
        if self.recall is None or self.false_signal_rate is not None:
            return self.false_signal_rate
        assert self.precision is not None
        silent = self.recall == 0
        precision = np.where(silent, 1.0, self.precision)
        return np.where(silent, 0.0, self.recall * self.change_rate * (1 - precision) / precision)


def read_pages(table: Any, objective: Objective = "harmonic") -> Pages:
    """Check a columnar table and turn it into `Pages`.

    Reads the columns that the objective needs and ignores the rest. O(pages); columns that are float64 arrays
    already are not copied.

    >>> pages = read_pages({"importance": [1, 2], "change_rate": [0.5, 0.1]})
    >>> len(pages), pages.change_rate.tolist()
    (2, [0.5, 0.1])
    """
    if isinstance(table, Pages):
        return table
    source = _Table(table)
    if objective == "news":
        importance = source.numbers("profit")
        change_rate = source.numbers("new_page_rate")
    else:
        importance = source.numbers("importance")
        change_rate = source.numbers("change_rate")
    recall = source.optional("recall", largest=1.0)
    precision = source.optional("precision", largest=1.0)
    false_signal_rate = source.optional("false_signal_rate")
    if recall is not None:
        _check_signals(recall, precision, false_signal_rate)
    min_rate = source.optional("min_rate")
    max_rate = source.optional("max_rate", may_be_infinite=True)
    _check_order(min_rate, max_rate)
    cost = source.optional("cost")
    if cost is not None and len(cost) and cost.min() == 0:
        raise InvalidInput("is 0, but a crawl must cost something", field="cost", row=_first(cost == 0))
    decay, life, window = _fading(source, objective)
    return Pages(
        importance=importance,
        change_rate=change_rate,
        hosts=source.hosts(),
        cost=cost,
        min_rate=min_rate,
        max_rate=max_rate,
        recall=recall,
        precision=None if recall is None else precision,
        false_signal_rate=None if recall is None else false_signal_rate,
        decay=decay,
        life=life,
        window=window,
    )


def read_numbers(column: Any, field: str, *, may_be_infinite: bool = False) -> Floats:
    """Check one column of numbers of 0 or more by the rules of `read_pages`. O(rows)."""
    numbers = _floats(column, field)
    _check_column(numbers, field, largest=LARGEST, may_be_infinite=may_be_infinite)
    return numbers


def check_number(value: float, field: str, *, largest: float = LARGEST) -> float:
    """Check one number of a caller's, such as a budget, by the same rules as a column."""
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    except (TypeError, ValueError):
        raise InvalidInput(f"is {value!r}, but must be a number", field=field) from None
    if problem := _problem(number, largest):
        raise InvalidInput(f"is {number!r}, but {problem}", field=field)
    return number


class _Table:
    """A columnar table of any make, read column by column."""

    def __init__(self, table: Any) -> None:
        self._table = table
        self._names = _column_names(table)
        self._length: int | None = None
        self._first_name = ""

    def numbers(self, name: str) -> Floats:
        """Read a column that must be there."""
        if name not in self._names:
            known = ", ".join(sorted(map(str, self._names))[:12]) or "none"
            raise InvalidInput(f"there is no column {name!r} (columns: {known})")
        return self._read(name)

    def optional(self, name: str, *, largest: float = LARGEST, may_be_infinite: bool = False) -> Floats | None:
        """Read a column that may be absent."""
        if name not in self._names:
            return None
        return self._read(name, largest=largest, may_be_infinite=may_be_infinite)

    def hosts(self) -> Hosts | None:
        """Read the host column: names or numbers, or `Hosts` if the caller has numbered them already."""
        if "host" not in self._names:
            return None
        column = self._table["host"]
        hosts = column if isinstance(column, Hosts) else number_hosts(column)
        self._check_length("host", len(hosts.codes))
        return hosts

    def choices(self, name: str, options: Sequence[str]) -> NDArray[np.uint8] | None:
        """Read a column of words from a short list, as indices into that list."""
        if name not in self._names:
            return None
        words = _plain_array(self._table[name], name).astype(str, copy=False)
        self._check_length(name, len(words))
        codes = np.full(len(words), 255, dtype=np.uint8)
        for code, option in enumerate(options):
            codes[words == option] = code
        if (codes == 255).any():
            row = _first(codes == 255)
            raise InvalidInput(f"is {str(words[row])!r}, but must be one of {', '.join(options)}", field=name, row=row)
        return codes

    def _read(self, name: str, *, largest: float = LARGEST, may_be_infinite: bool = False) -> Floats:
        column = _floats(self._table[name], name)
        self._check_length(name, len(column))
        _check_column(column, name, largest=largest, may_be_infinite=may_be_infinite)
        return column

    def _check_length(self, name: str, length: int) -> None:
        if self._length is None:
            self._length, self._first_name = length, name
        elif length != self._length:
            raise InvalidInput(
                f"has {length} values but {self._first_name} has {self._length}: every column needs one value per page",
                field=name,
            )


def _column_names(table: Any) -> list[str]:
    dtype = getattr(table, "dtype", None)
    if dtype is not None and getattr(dtype, "names", None):
        return list(dtype.names)
    for attribute in ("column_names", "columns", "keys"):
        names = getattr(table, attribute, None)
        if names is not None:
            return list(names() if callable(names) else names)
    raise InvalidInput(
        f"pages is a {type(table).__name__}, but must be columnar: a dict of arrays, a pandas or polars frame, "
        "or an Arrow table"
    )


def _floats(column: Any, name: str) -> Floats:
    array = _plain_array(column, name)
    if array.dtype.kind not in "fiub":
        array = _parse_floats(array, name)
    with np.errstate(over="ignore"):  # what a float64 cannot hold becomes infinite and is refused as such
        return np.ascontiguousarray(array, dtype=np.float64)


def _plain_array(column: Any, name: str) -> NDArray[Any]:
    """Turn a column into an array of one dimension; what is masked counts as missing."""
    nulls = getattr(column, "null_count", 0)  # Arrow and polars know; NumPy might see some other value instead
    if nulls() if callable(nulls) else nulls:
        row = int(np.argmax(np.asarray(column.is_null())))
        raise InvalidInput("is missing, but every page needs a value", field=name, row=row)
    if np.ma.isMaskedArray(column) and np.ma.is_masked(column):
        mask = np.ma.getmaskarray(column)
        column = np.ma.getdata(column).astype(object)
        column[mask] = None
    try:
        array = np.asarray(column)
    except ValueError:  # rows of different lengths
        raise InvalidInput("holds lists, but must be a plain column", field=name) from None
    if array.ndim != 1:
        raise InvalidInput(f"has {array.ndim} dimensions, but must be a plain column", field=name)
    if array.dtype.kind in "cmMV":  # complex, times, records: none becomes a number or a name without a loss
        raise InvalidInput(f"holds values of type {array.dtype}, but must be a plain column", field=name)
    return array


def _parse_floats(array: NDArray[Any], name: str) -> Floats:
    """Turn a column of objects or text into numbers, or name the first that is none."""
    numbers = np.empty(len(array))
    for row, value in enumerate(array):
        try:
            numbers[row] = float(value)
        except OverflowError:
            numbers[row] = math.inf
        except (TypeError, ValueError):
            shown = "missing" if value is None else repr(value.item() if isinstance(value, np.generic) else value)
            raise InvalidInput(f"is {shown[:80]}, but must be a number", field=name, row=row) from None
    return numbers


def _check_column(column: Floats, name: str, *, largest: float, may_be_infinite: bool) -> None:
    """Check a whole column, a block at a time, so that each number comes from memory once."""
    for start in range(0, len(column), _CHECKED_AT_ONCE):
        block = column[start : start + _CHECKED_AT_ONCE]
        low, high = block.min(), block.max()
        if high <= largest and (low >= SMALLEST or (low == 0 and _zeros_or_enough(block))):
            continue
        legal = (block == 0) | ((block >= SMALLEST) & (block <= largest))
        if may_be_infinite:
            legal |= block == math.inf
        if not legal.all():
            row = start + _first(~legal)
            value = float(column[row])
            raise InvalidInput(f"is {value!r}, but {_problem(value, largest)}", field=name, row=row)


def _zeros_or_enough(block: Floats) -> bool:
    """Whether a block without negative numbers has none between 0 and the smallest."""
    return bool(np.count_nonzero(block < SMALLEST) == np.count_nonzero(block == 0))


def _problem(value: float, largest: float) -> str | None:
    if math.isnan(value):
        return "must be a number"
    if value < 0 or (largest == 1 and value > 1):
        return "must be between 0 and 1" if largest == 1 else "must be 0 or more"
    if value > largest:
        return f"must be at most {largest:g}; use a larger unit"
    if 0 < value < SMALLEST:
        return f"must be 0 or at least {SMALLEST:g}"
    return None


def _check_signals(recall: Floats, precision: Floats | None, false_signal_rate: Floats | None) -> None:
    if (precision is None) == (false_signal_rate is None):
        raise InvalidInput("needs one of the columns precision and false_signal_rate beside it", field="recall")
    if precision is None:
        return
    for start in range(0, len(recall), _CHECKED_AT_ONCE):
        rows = slice(start, start + _CHECKED_AT_ONCE)
        vain = (precision[rows] == 0) & (recall[rows] > 0)
        if vain.any():
            row = start + _first(vain)
            raise InvalidInput(
                f"is 0 while recall is {float(recall[row])!r}: signals that are never right cannot announce "
                "changes; set recall to 0",
                field="precision",
                row=row,
            )


def _check_order(min_rate: Floats | None, max_rate: Floats | None) -> None:
    if min_rate is None or max_rate is None or not (min_rate > max_rate).any():
        return
    row = _first(min_rate > max_rate)
    problem = f"is {float(min_rate[row])!r}, above max_rate {float(max_rate[row])!r}"
    raise InvalidInput(problem, field="min_rate", row=row)


def _fading(source: _Table, objective: Objective) -> tuple[Floats | None, NDArray[np.uint8] | None, Floats | None]:
    """Read how the value of uncaptured changes fades: only `captures` and `news` ask."""
    if objective == "news":
        interest = source.numbers("decay")
        _refuse(interest == 0, "decay", "is 0, but interest in a new page must decay for its discovery to be urgent")
        return interest, None, None
    if objective != "captures":
        return None, None, None
    life = source.choices("life", LIVES)
    window, decay = source.optional("window"), source.optional("decay")
    windowed = np.zeros(0, dtype=bool) if life is None else life == LIVES.index("window")
    if windowed.any():
        if window is None:
            raise InvalidInput("there is no column 'window', which life 'window' needs")
        _refuse(windowed & (window == 0), "window", "is 0, but life 'window' needs how long a change stays")
    if life is None or (life == LIVES.index("append")).any():
        if decay is None:
            raise InvalidInput("there is no column 'decay', which captures of appended changes need")
        appended = decay == 0 if life is None else (decay == 0) & (life == LIVES.index("append"))
        _refuse(
            appended, "decay", "is 0, but changes that stay for ever and lose no value are captured by any schedule"
        )
    return decay, life, window


def _refuse(bad: NDArray[np.bool_], field: str, problem: str) -> None:
    if bad.any():
        raise InvalidInput(problem, field=field, row=_first(bad))


def number_hosts(column: Any) -> Hosts:
    """Number the hosts of a column of names or numbers. O(pages)."""
    if isinstance(column, (list, tuple)):  # numpy would make text of what stands beside text: NaN, numbers
        column = np.array(column, dtype=object)
    array = _plain_array(column, "host")
    if array.dtype.kind in "iuU":
        names, codes = np.unique(array, return_inverse=True)
        return Hosts(codes.astype(np.int64, copy=False), names.tolist())
    return _number_objects(array)


def _number_objects(column: Iterable[Any]) -> Hosts:
    numbers: dict[Hashable, int] = {}
    codes: list[int] = []
    for row, name in enumerate(column):
        if _is_missing(name):
            raise InvalidInput("is missing: every page needs a host, or leave the column out", field="host", row=row)
        try:
            codes.append(numbers.setdefault(name, len(numbers)))
        except TypeError:
            raise InvalidInput(f"is {repr(name)[:80]}, but must be a name or a number", field="host", row=row) from None
    return Hosts(np.array(codes, dtype=np.int64), list(numbers))


def _is_missing(value: Any) -> bool:
    """Whether a frame means by this that there is no value: None, NaN, or NA, which is neither equal nor unequal."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):
        return type(value).__name__ == "NAType"


def _first(mask: NDArray[np.bool_]) -> int:
    return int(np.argmax(mask))
