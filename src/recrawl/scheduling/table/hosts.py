"""The table of hosts: names, limits, when a host may be crawled, and how many of its crawls are in flight."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.jit import borrowing
from recrawl.pages import LARGEST, Floats, Hosts, number_hosts, read_numbers
from recrawl.scheduling.table.records import HOST, IN_FLIGHT, HostName, Record, Records, Slots

if TYPE_CHECKING:
    from recrawl.scheduling.table.pages import PageTable

_ROUNDING = 1e-15  # of a time: a caller that polls at multiples of the gap must not miss a turn by rounding
_SLACK = 1e-9  # of a crawl: rounding of times must not cost one
_MOST_AT_ONCE = 2**31 - 1  # crawls of a host in flight


class HostColumn(NamedTuple):
    """The hosts of pages: names, and for each page the place of its host in the names."""

    names: list[HostName]
    codes: Slots


class HostTable:
    """Hosts by name. `records` is replaced when the table grows: do not keep it."""

    def __init__(self) -> None:
        self._records: Records = np.zeros(0, dtype=HOST)
        self.names: list[HostName] = []
        self._numbers: dict[HostName, int] = {}

    def __len__(self) -> int:
        return len(self.names)

    @property
    def records(self) -> Records:
        """One record per host."""
        return self._records[: len(self.names)]

    def number(self, name: HostName) -> int:
        """Return the number of a host; add the host if it is unknown. O(1), amortised."""
        known = self._numbers.get(name)
        if known is not None:
            return known
        if len(self.names) == len(self._records):
            self._grow(len(self.names) + 1)
        self._numbers[name] = len(self.names)
        self.names.append(name)
        return len(self.names) - 1

    def find(self, name: HostName) -> int | None:
        """Return the number of a host, None if it is unknown. O(1)."""
        return self._numbers.get(name)

    def numbers(self, column: HostColumn) -> Slots:
        """Return the number of the host of each page; add hosts that are unknown. O(pages)."""
        numbers = np.array([self.number(name) for name in column.names], dtype=np.int64)
        return numbers[column.codes]

    def set_limits(self, names: Sequence[HostName], now: float, limits: Mapping[str, Any]) -> Slots:
        """Change limits of hosts, which need not be known yet, and return the numbers of the hosts. O(hosts).

        Args:
            names: each once.
            now: the time.
            limits: `min_gap`, `max_in_flight`, `rate_cap`, `blocked_until`: a value for all hosts or one for each.
        """
        checked = {field: read_limit(field, values, len(names)) for field, values in limits.items()}
        known = [checked_name(name) for name in names]
        if len(set(known)) < len(known):
            raise InvalidInput("holds a host twice", field="hosts")
        numbers = np.array([self.number(name) for name in known], dtype=np.int64)
        records = self._records
        if "min_gap" in checked:  # the time of the next start includes the gap since the last start
            records["next_start"][numbers] += checked["min_gap"] - records["min_gap"][numbers]
        if "rate_cap" in checked:
            records["cap_time"][numbers] = _moved_caps(records[numbers], checked["rate_cap"], now)
        for field, values in checked.items():
            records[field][numbers] = values
        if checked:
            records["paced"][numbers] = 1
        return numbers

    def saturated(self, common: float) -> dict[HostName, float]:
        """Return the hosts whose own price is above the common price, with that price. O(hosts)."""
        records = self.records
        dear = np.flatnonzero((records["paced"] != 0) & (records["price"] > common))
        return {self.names[number]: float(records["price"][number]) for number in dear.tolist()}

    def resume(self, names: list[HostName], records: Records) -> None:
        """Replace all hosts by those of a snapshot, without waiting pages."""
        records["by_due"] = records["by_value"] = records["place"] = -1
        self.names = names
        self._numbers = {name: number for number, name in enumerate(names)}
        self._records = records

    def _grow(self, needed: int) -> None:
        longer = np.zeros(max(needed, 2 * len(self._records), 8), dtype=HOST)
        longer["by_due"] = longer["by_value"] = longer["place"] = -1
        longer["rate_cap"] = math.inf
        longer["next_start"] = longer["blocked_until"] = longer["cap_time"] = -math.inf
        longer[: len(self.names)] = self._records[: len(self.names)]
        self._records = longer


def read_limit(field: str, values: Any, count: int) -> Floats:
    """Check one limit of `count` hosts: one value for all of them, or one for each. O(count)."""
    single = np.ndim(values) == 0
    column = np.array([values]) if single else np.asarray(values)
    try:
        if field == "blocked_until":
            limits = _read_times(column, field)
        else:
            limits = read_numbers(column, field, may_be_infinite=field == "rate_cap")
        if field == "max_in_flight":
            _check_counts(limits, field)
    except InvalidInput as error:
        raise InvalidInput(error.problem, field=field, row=None if single else error.row) from None
    if len(limits) not in (1, count):
        raise InvalidInput(f"has {len(limits)} values, but there are {count} hosts", field=field)
    return np.broadcast_to(limits, (count,))


def _read_times(column: NDArray[Any], field: str) -> Floats:
    if column.dtype.kind not in "fiu":
        raise InvalidInput(f"is {column[0]!r}, but must be a time", field=field, row=0)
    times = column.astype(np.float64)
    wrong = ~((times >= -LARGEST) & (times <= LARGEST))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InvalidInput(f"is {float(times[row])!r}, but must be a time", field=field, row=row)
    return times


def _check_counts(numbers: Floats, field: str) -> None:
    wrong = (numbers < 1) | (numbers != np.floor(numbers)) | (numbers > _MOST_AT_ONCE)
    if wrong.any():
        row = int(np.argmax(wrong))
        problem = f"is {float(numbers[row]):g}, but must be a whole number from 1 to {_MOST_AT_ONCE}"
        raise InvalidInput(problem, field=field, row=row)


def read_hosts(column: Any, count: int) -> HostColumn:
    """Check the hosts of `count` pages: a name for all of them, or one for each. O(count)."""
    if isinstance(column, (str, int, np.generic)):
        return HostColumn([checked_name(column)], np.zeros(count, dtype=np.int64))
    hosts = column if isinstance(column, Hosts) else number_hosts(column)
    if len(hosts.codes) != count:
        raise InvalidInput(f"has {len(hosts.codes)} values, but there are {count} pages", field="host")
    return HostColumn([checked_name(name) for name in hosts.names], hosts.codes)


def checked_name(name: Any) -> HostName:
    """Check the name of a host."""
    if isinstance(name, np.generic):
        name = name.item()
    if isinstance(name, bool) or not isinstance(name, (str, int)):
        raise InvalidInput(f"is {name!r}, but must be a name or a whole number", field="host")
    return name


def _moved_caps(records: Records, caps: Floats, now: float) -> Floats:
    """Return the new `cap_time` of hosts: crawls that the old cap has yet to pay for are paid at the new rate."""
    with np.errstate(invalid="ignore"):  # infinity · 0 where there was no cap
        owed = np.where(records["cap_time"] > now, (records["cap_time"] - now) * records["rate_cap"], 0.0)
    owes = (owed > 0.0) & (caps > 0.0) & (caps < math.inf)
    paid_at = now + np.divide(owed, caps, out=np.zeros(len(caps)), where=owes)
    return np.where(owes, paid_at, np.where(caps > 0.0, -math.inf, records["cap_time"]))


def hosts_of(table: PageTable, slots: Slots) -> Slots:
    """Return the numbers of the hosts of pages, each once. O(slots · log slots)."""
    numbers = table.pages["host"][slots]
    if len(numbers) == 1:
        return numbers[numbers >= 0].astype(np.int64)
    return np.unique(numbers[numbers >= 0]).astype(np.int64)


def move_pages(table: PageTable, slots: Slots, numbers: Slots) -> Slots:
    """Give pages other hosts, or none (-1), and move the counts of their crawls in flight. O(slots · log slots).

    Returns:
        The hosts whose count has changed.
    """
    pages, records = table.pages, table.hosts.records
    in_flight = pages["state"][slots] == IN_FLIGHT
    left = pages["host"][slots[in_flight]]
    left = left[left >= 0]
    np.subtract.at(records["in_flight"], left, 1)
    entered = numbers[in_flight]
    entered = entered[entered >= 0]
    np.add.at(records["in_flight"], entered, 1)
    pages["host"][slots] = numbers
    return np.unique(np.concatenate([left, entered])).astype(np.int64)


def block_hosts(table: PageTable, slots: Slots, now: float, waits: Floats) -> None:
    """Block the host of each page for the wait that the page was told; the longest wait holds. O(slots)."""
    numbers = table.pages["host"][slots]
    known = numbers >= 0
    records = table.hosts.records
    np.maximum.at(records["blocked_until"], numbers[known], now + waits[known])
    records["paced"][numbers[known]] = 1


@borrowing
def has_paced_host(page: Record, hosts: Records) -> bool:
    """Return whether the page has a host with limits."""
    return bool(page["host"] >= 0 and hosts[page["host"]]["paced"] != 0)


@borrowing
def opens_at(host: Record, burst: float) -> float:
    """Return the earliest time at which the host may be crawled; infinity while too many of its crawls are in flight.

    A cap allows `burst` crawls at once, or one, and cap·time from then on, as the budget does.
    """
    if host["max_in_flight"] > 0 and host["in_flight"] >= host["max_in_flight"]:
        return math.inf
    opens = max(host["next_start"], host["blocked_until"])
    cap = host["rate_cap"]
    if cap < math.inf:
        opens = max(opens, host["cap_time"] - (max(burst, 1.0) - 1.0 + _SLACK) / cap) if cap > 0.0 else math.inf
    return opens


@borrowing
def closes_after(host: Record) -> bool:
    """Return whether one more crawl closes the host for some time, so that its pages compete for it."""
    full = host["max_in_flight"] > 0 and host["in_flight"] + 1 >= host["max_in_flight"]
    return bool(host["min_gap"] > 0.0 or host["rate_cap"] < math.inf or full)


@borrowing
def has_limits(host: Record) -> bool:
    """Return whether the host has a gap, a cap or a limit of crawls in flight; a block until a time does not count."""
    return bool(host["min_gap"] > 0.0 or host["rate_cap"] < math.inf or host["max_in_flight"] > 0)


@borrowing
def start_crawl(host: Record, now: float) -> None:
    """Count a crawl that starts now."""
    host["in_flight"] += 1
    opens = now + host["min_gap"]
    host["next_start"] = opens - _ROUNDING * abs(opens)
    if host["rate_cap"] < math.inf:
        host["cap_time"] = max(host["cap_time"], now) + 1.0 / host["rate_cap"]


@borrowing
def end_crawl(host: Record) -> None:
    """Count a crawl that ended."""
    host["in_flight"] = max(host["in_flight"] - 1, 0)
