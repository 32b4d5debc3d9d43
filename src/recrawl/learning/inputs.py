"""Checks of what callers hand to the learning room: single numbers, columns, tables.

Every function here takes anything and a name for it, and either gives back plain numbers of one type or raises
`InvalidInput` with one sentence that names the argument and, where there is one, the row. Text is never read as a
number, a number never cut to a whole one, and nothing wraps around. Pure.

    one number      check_real, check_positive, check_share, check_count
    a column        check_amounts, check_times, check_flags, check_codes, number_column, check_length
    a table         check_table
    a made thing    check_made
    hosts of pages  number_hosts
    for sentences   shown, amount_problem
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.pages import LARGEST, SMALLEST, Floats, Hosts, check_number

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

MOST = 1_000_000_000
"""Pages, hosts or sources are fewer: a larger number is a hash or a mistake, and would take all memory."""

_LONGEST_QUOTE = 60


HostColumn = Hosts | Sequence[Hashable] | NDArray[Any]


def check_real(value: Any, field: str, *, may_be_infinite: bool = False) -> float:
    """Check one number that may have either sign, such as a moment: finite and within ±1e60.

    >>> check_real(-2, "origin")
    -2.0
    """
    number = _real(value, field)
    if may_be_infinite and abs(number) == math.inf:
        return number
    if not abs(number) <= LARGEST:
        raise InvalidInput(f"is {number!r}, but must be a number from {-LARGEST:g} to {LARGEST:g}", field=field)
    return number


def check_positive(value: Any, field: str, *, may_be_zero: bool = False, may_be_infinite: bool = False) -> float:
    """Check one number above 0, such as a duration, by the rules of `pages.check_number`.

    >>> check_positive(0.5, "half_life"), check_positive(math.inf, "half_life", may_be_infinite=True)
    (0.5, inf)
    """
    number = _real(value, field)
    if may_be_infinite and number == math.inf:
        return number
    check_number(number, field)
    if number == 0 and not may_be_zero:
        raise InvalidInput("is 0, but must be above 0", field=field)
    return number


def check_share(value: Any, field: str) -> float:
    """Check one number between 0 and 1, both left out, such as the level of an interval."""
    number = _real(value, field)
    if not 0 < number < 1:
        raise InvalidInput(f"is {number!r}, but must be between 0 and 1", field=field)
    return number


def check_count(value: Any, field: str, *, least: int = 0, most: int = MOST) -> int:
    """Check one whole number, such as how many pages there are; 2.0 is none.

    >>> check_count(np.int32(3), "pages")
    3
    """
    single = _without_dimensions(value)
    if not isinstance(single, Integral) or not _is_real(single):
        raise InvalidInput(f"is {shown(single)}, but must be a whole number", field=field)
    number = int(single)
    if not least <= number <= most:
        raise InvalidInput(f"is {shown(number)}, but must be a whole number from {least} to {most}", field=field)
    return number


def check_amounts(
    column: Any, field: str, rows: int | None = None, *, smallest: float = SMALLEST, largest: float = LARGEST
) -> Floats:
    """Check a column of amounts: 0, or from the smallest to the largest. A float64 array is not copied.

    >>> check_amounts([1, 2.5], "gaps").tolist()
    [1.0, 2.5]
    """
    numbers = _reals(column, field, rows)
    legal = (numbers == 0) | ((numbers >= smallest) & (numbers <= largest))
    if not legal.all():
        row = int(np.argmin(legal))
        number = float(numbers[row])
        raise InvalidInput(f"is {number!r}, but {amount_problem(number, smallest, largest)}", field=field, row=row)
    return numbers


def amount_problem(number: float, smallest: float = SMALLEST, largest: float = LARGEST) -> str:
    """The rule that a number breaks which is no amount."""
    if number > largest:
        return f"must be at most {largest:g}; use a larger unit"
    if 0 < number < smallest:
        return f"must be 0 or at least {smallest:g}; use a smaller unit"
    return "must be a number, 0 or more"


def check_times(column: Any, field: str, rows: int | None = None) -> Floats:
    """Check a column of moments: finite numbers within ±1e60, one per row."""
    numbers = _reals(column, field, rows)
    legal = np.abs(numbers) <= LARGEST
    if not legal.all():
        row = int(np.argmin(legal))
        problem = f"is {float(numbers[row])!r}, but a time must be a finite number from {-LARGEST:g} to {LARGEST:g}"
        raise InvalidInput(problem, field=field, row=row)
    return numbers


def check_flags(column: Any, field: str, rows: int | None = None) -> Flags:
    """Check a column of 0 and 1, or of booleans."""
    array = number_column(column, field)
    check_length(len(array), rows, field)
    if array.dtype == np.bool_:
        return np.ascontiguousarray(array)
    legal = (array == 0) | (array == 1)
    if not legal.all():
        row = int(np.argmin(legal))
        raise InvalidInput(f"is {shown(array[row].item())}, but must be 0 or 1", field=field, row=row)
    return array.astype(np.bool_)


def check_codes(column: Any, field: str, size: int | None = None) -> Integers:
    """Check numbers that count something from 0, such as pages; below `size` if it is given.

    >>> check_codes([2, 0], "page").tolist()
    [2, 0]
    """
    array = number_column(column, field)
    most = MOST if size is None else size - 1
    if array.dtype.kind not in "iu" and len(array):
        _refuse_fractions(array, field, most)
    legal = (array >= 0) & (array <= most)
    if not legal.all():
        row = int(np.argmin(legal))
        rule = f"is counted from 0 to {most}" if most >= 0 else "there are none to count"
        raise InvalidInput(f"is {int(array[row])}, but {rule}", field=field, row=row)
    return array.astype(np.int64)


def check_table(table: Any, field: str, shape: tuple[int, int], *, largest: float = LARGEST) -> Floats:
    """Check a table of amounts, 0 or more, with so many rows and columns; without rows any empty form will do."""
    rows, columns = shape
    array = _array(table, field)
    if rows == 0 and array.size == 0:
        return np.zeros(shape)
    if array.shape != shape:
        raise InvalidInput(f"must be numbers, {rows} rows by {columns} columns", field=field)
    numbers = _to_floats(_parsed(array.ravel(), field, columns)).reshape(shape)
    legal = ((numbers >= 0) & (numbers <= largest)).all(axis=1)
    if not legal.all():
        row = int(np.argmin(legal))
        problem = f"is {numbers[row].tolist()}, but must be numbers from 0 to {largest:g}"
        raise InvalidInput(problem, field=field, row=row)
    return numbers


def check_length(length: int, rows: int | None, field: str) -> None:
    """Check that a column has one value per row, if the number of rows is known."""
    if rows is not None and length != rows:
        raise InvalidInput(f"has {length} values, but {rows} are needed: one per row", field=field)


def check_made(value: Any, kind: type, field: str, maker: str) -> None:
    """Check that an argument is of a type of this room's own, and name what makes one.

    >>> check_made([1.0], dict, "histories", "read_histories")
    Traceback (most recent call last):
    recrawl.errors.InvalidInput: histories is a list, but must be dict, as read_histories gives
    """
    if not isinstance(value, kind):
        problem = f"is a {type(value).__name__}, but must be {kind.__name__}, as {maker} gives"
        raise InvalidInput(problem, field=field)


def shown(value: Any) -> str:
    """A value as it stands in a sentence: short, on one line."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return "missing"
    try:
        text = " ".join(repr(value.item() if isinstance(value, np.generic) else value).split())
    except ValueError:  # a whole number with thousands of digits
        text = "a number too long to show"
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}…"


def number_column(column: Any, field: str) -> NDArray[Any]:
    """Turn a list, an array, or a column of Arrow, pandas or polars into a flat array of numbers or booleans.

    >>> number_column([1, None], "gaps")
    Traceback (most recent call last):
    recrawl.errors.InvalidInput: gaps[1] is missing, but must be a number
    """
    array = _array(column, field)
    if array.ndim != 1:
        what = f"has {array.ndim} dimensions" if array.ndim else f"is {shown(column)}"
        raise InvalidInput(f"{what}, but must be a flat column with one value per row", field=field)
    return _parsed(array, field, 1)


def _reals(column: Any, field: str, rows: int | None) -> Floats:
    array = number_column(column, field)
    check_length(len(array), rows, field)
    if array.dtype.kind == "b" and len(array):
        raise InvalidInput(f"is {bool(array[0])}, but must be a number", field=field, row=0)
    return _to_floats(array)


def _to_floats(array: NDArray[Any]) -> Floats:
    with np.errstate(over="ignore"):  # what a float64 cannot hold becomes infinite and is refused as such
        return np.ascontiguousarray(array, dtype=np.float64)


def _array(column: Any, field: str) -> NDArray[Any]:
    """Whatever NumPy makes of it; what is missing or masked is named, not replaced."""
    nulls = getattr(column, "null_count", 0)  # Arrow and polars know; NumPy might see some other value instead
    nulls = nulls() if callable(nulls) else nulls
    if isinstance(nulls, int) and nulls > 0:
        _refuse_missing(np.asarray(column.is_null(), dtype=np.bool_), field)
    if np.ma.isMaskedArray(column):
        _refuse_missing(np.ma.getmaskarray(column), field)
    try:
        array = np.asarray(column)
        if array.dtype.kind in "US" and isinstance(column, (list, tuple)):
            array = np.array(column, dtype=object)  # numbers beside text would have become text
    except (ValueError, OverflowError):
        raise InvalidInput("holds lists of different lengths, but must be plain numbers", field=field) from None
    return array


def _refuse_missing(mask: Flags, field: str) -> None:
    if mask.any():
        row = int(np.argmax(mask.reshape(len(mask), -1).any(axis=1)))
        raise InvalidInput("is missing, but must be a number", field=field, row=row)


def _parsed(array: NDArray[Any], field: str, width: int) -> NDArray[Any]:
    """The numbers of a flat array, whose rows have this width, if it holds nothing else."""
    if array.dtype.kind in "biuf" or not array.size:
        return array
    if array.dtype.kind != "O":
        raise InvalidInput(f"is {shown(array[0])}, but must be a number", field=field, row=0)
    values = array.tolist()
    for place, value in enumerate(values):
        if not _is_real(value) and not isinstance(value, (bool, np.bool_)):
            raise InvalidInput(f"is {shown(value)}, but must be a number", field=field, row=place // width)
    if all(isinstance(value, (bool, np.bool_)) for value in values):
        return array.astype(np.bool_)
    if all(isinstance(value, Integral) and abs(int(value)) < 2**63 for value in values):
        return np.array(values, dtype=np.int64)
    return np.array([_to_float(value) for value in values])


def _refuse_fractions(array: NDArray[Any], field: str, most: int) -> None:
    """Refuse numbers of a type that is not whole: name the first that shows it, or else the first."""
    numbers = _to_floats(array)
    with np.errstate(invalid="ignore"):
        row = int(np.argmax(~((numbers % 1 == 0) & (numbers <= most))))
    rule = f"must be a whole number, counted from 0 to {most}"
    raise InvalidInput(f"is {shown(array[row])}, but {rule}", field=field, row=row)


def _real(value: Any, field: str) -> float:
    single = _without_dimensions(value)
    if not _is_real(single):
        raise InvalidInput(f"is {shown(single)}, but must be a number", field=field)
    return _to_float(single)


def _is_real(value: Any) -> bool:
    return isinstance(value, (Real, Decimal)) and not isinstance(value, (bool, np.timedelta64))


def _to_float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
    except ValueError:  # a signalling NaN
        return math.nan


def _without_dimensions(value: Any) -> Any:
    return value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value


def number_hosts(hosts: HostColumn, pages: int) -> Hosts:
    """Number the hosts of so many pages, in order of their names; `Hosts` keep their numbers. O(pages · log pages).

    >>> numbered = number_hosts(["b.org", "a.org", "b.org"], pages=3)
    >>> numbered.codes.tolist(), list(numbered.names)
    ([1, 0, 1], ['a.org', 'b.org'])
    """
    if isinstance(hosts, Hosts):
        check_codes(hosts.codes, "hosts", len(hosts.names))
    else:
        hosts = _numbered(hosts)
    if len(hosts.codes) != pages:
        raise InvalidInput(f"has {len(hosts.codes)} values but there are {pages} pages", field="hosts")
    return hosts


def _numbered(hosts: Sequence[Hashable] | NDArray[Any]) -> Hosts:
    try:
        array = np.asarray(hosts)
    except ValueError:  # lists of different lengths
        array = np.asarray(None)
    if np.ma.is_masked(hosts):
        row = int(np.argmax(np.ma.getmaskarray(np.ma.asarray(hosts))))
        raise InvalidInput("is missing, but every page needs a host", field="hosts", row=row)
    if array.ndim != 1:
        raise InvalidInput("must be a flat column with one name or number per page", field="hosts")
    if array.dtype.kind in "fOUS":
        # NumPy makes names of numbers that stand beside names: look at what the caller wrote.
        _check_alike(hosts if isinstance(hosts, (list, tuple)) else array.tolist())
    try:
        names, codes = np.unique(array, return_inverse=True)
    except TypeError:
        raise InvalidInput("must be names or numbers that can be put in order", field="hosts") from None
    return Hosts(codes.astype(np.int64), names.tolist())


def _check_alike(hosts: Sequence[Any]) -> None:
    """Refuse what is missing, and names beside numbers."""
    first = ""
    for row, host in enumerate(hosts):
        if _is_missing(host):
            raise InvalidInput("is missing, but every page needs a host", field="hosts", row=row)
        if not isinstance(host, Hashable):
            raise InvalidInput(f"is {shown(host)}, but must be a name or a number", field="hosts", row=row)
        first = first or _sort_of(host)
        if _sort_of(host) != first:
            problem = f"is {shown(host)}, but must be a {first} as the hosts before it"
            raise InvalidInput(problem, field="hosts", row=row)


def _sort_of(host: Any) -> str:
    if isinstance(host, str):
        return "name"
    return "number" if isinstance(host, Real) else type(host).__name__


def _is_missing(host: Any) -> bool:
    return host is None or type(host).__name__ in ("NAType", "NaTType") or (isinstance(host, Real) and host != host)
