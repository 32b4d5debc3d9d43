"""The hosts of the scheduler's pages: their names, limits and what they are doing."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from recrawl.errors import InvalidInput
from recrawl.pages import LARGEST, Hosts, check_number, number_hosts
from recrawl.scheduling.host_record import HOST
from recrawl.scheduling.page_record import Records, Slots

HostName = str | int


class HostColumn(NamedTuple):
    """The hosts of some pages: names, and for each page which of them."""

    names: list[HostName]
    codes: Slots


class HostTable:
    """Hosts by name. Records are replaced when the table grows: do not keep them."""

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
        """The number of a host, which is new if it was not known. O(1), amortised."""
        known = self._numbers.get(name)
        if known is not None:
            return known
        if len(self.names) == len(self._records):
            self._grow(len(self.names) + 1)
        self._numbers[name] = len(self.names)
        self.names.append(name)
        return len(self.names) - 1

    def find(self, name: HostName) -> int | None:
        """The number of a host that is known."""
        return self._numbers.get(name)

    def numbers(self, column: HostColumn) -> Slots:
        """The numbers of the hosts of pages; hosts that were not known are new. O(pages)."""
        numbers = np.array([self.number(name) for name in column.names], dtype=np.int64)
        return numbers[column.codes]

    def set_limits(self, name: HostName, now: float, **limits: float | None) -> int:
        """Change the limits that are given; the number of the host."""
        checked = {field: check_limit(field, value) for field, value in limits.items() if value is not None}
        number = self.number(checked_name(name))
        record = self._records[number]
        if "min_gap" in checked:  # counts from the last start already
            record["next_start"] += checked["min_gap"] - record["min_gap"]
        if "rate_cap" in checked:  # crawls that the cap has yet to pay for are paid for at the new rate
            _change_cap(record, checked["rate_cap"], now)
        for field, value in checked.items():
            record[field] = value
        if checked:
            record["paced"] = 1
        return number

    def resume(self, names: list[HostName], records: Records) -> None:
        """Go on with kept hosts."""
        self.names = names
        self._numbers = {name: number for number, name in enumerate(names)}
        self._records = records

    def _grow(self, needed: int) -> None:
        longer = np.zeros(max(needed, 2 * len(self._records), 8), dtype=HOST)
        longer["root"] = longer["behind"] = longer["offered"] = longer["book"] = -1
        longer["rate_cap"] = math.inf
        longer["last_start"] = longer["next_start"] = longer["blocked_until"] = longer["cap_time"] = -math.inf
        longer[: len(self.names)] = self._records[: len(self.names)]
        self._records = longer


def check_limit(field: str, value: Any) -> float:
    """Check one limit of a host: `min_gap`, `max_in_flight`, `rate_cap` or `blocked_until`."""
    if field == "max_in_flight":
        number = check_number(value, field, largest=2**31 - 1)
        if number < 1 or number != math.floor(number):
            raise InvalidInput(f"is {value!r}, but must be a whole number of 1 or more", field=field)
        return number
    if field == "blocked_until":
        real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
        if real and -LARGEST <= float(value) <= LARGEST:
            return float(value)
        raise InvalidInput(f"is {value!r}, but must be a time", field=field)
    if field == "rate_cap" and value == math.inf:
        return math.inf
    return check_number(value, field)


def read_hosts(column: Any, count: int) -> HostColumn:
    """Check the hosts of `count` pages: a name for all of them, or one for each. O(count)."""
    if isinstance(column, (str, int, np.generic)):
        return HostColumn([checked_name(column)], np.zeros(count, dtype=np.int64))
    hosts = column if isinstance(column, Hosts) else number_hosts(column)
    if len(hosts.codes) != count:
        raise InvalidInput(f"has {len(hosts.codes)} values, but there are {count} pages", field="host")
    return HostColumn([checked_name(name) for name in hosts.names], hosts.codes)


def checked_name(name: Any) -> HostName:
    """Check one name of a host."""
    if isinstance(name, np.generic):
        name = name.item()
    if isinstance(name, bool) or not isinstance(name, (str, int)):
        raise InvalidInput(f"is {name!r}, but must be a name or a whole number", field="host")
    return name


def _change_cap(record: Any, cap: float, now: float) -> None:
    owed = (float(record["cap_time"]) - now) * float(record["rate_cap"]) if record["cap_time"] > now else 0.0
    if owed > 0.0 and 0.0 < cap < math.inf:
        record["cap_time"] = now + owed / cap
    elif cap > 0.0:
        record["cap_time"] = -math.inf
