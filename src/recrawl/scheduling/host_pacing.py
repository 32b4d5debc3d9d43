"""The pace of many hosts at once: what `Scheduler.set_host` does, for a tracker that starts with thousands of them."""

# ruff: noqa: SLF001 - a part of the scheduler, which is large enough without it

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from recrawl.errors import InvalidInput
from recrawl.pages import LARGEST
from recrawl.scheduling.table.hosts import checked_name
from recrawl.scheduling.table.records import HostName

if TYPE_CHECKING:
    from recrawl.scheduling.scheduler import Scheduler

_BOUNDS = {"min_gap": (0.0, LARGEST), "max_in_flight": (1, 2**31 - 1), "blocked_until": (-LARGEST, LARGEST)}


def pace_hosts(scheduler: Scheduler, hosts: Sequence[HostName], **limits: ArrayLike) -> None:
    """Change limits of hosts, which need not have pages yet. O(hosts).

    Args:
        scheduler: of the hosts.
        hosts: names, each once.
        limits: `min_gap`, `max_in_flight` and `blocked_until`, a value for all hosts or one for each.
    """
    checked = {field: _checked(field, values, len(hosts)) for field, values in limits.items()}
    if len(set(hosts)) < len(hosts):
        raise InvalidInput("holds a host twice", field="hosts")
    table = scheduler._table.hosts
    numbers = np.array([table.number(checked_name(name)) for name in hosts], dtype=np.int64)
    records = table.records
    if "min_gap" in checked:  # counts from the last start already
        records["next_start"][numbers] += checked["min_gap"] - records["min_gap"][numbers]
    for field, values in checked.items():
        records[field][numbers] = values
    records["paced"][numbers] = 1
    scheduler._policy.hosts_changed(numbers, scheduler.now)


def _checked(field: str, values: ArrayLike, count: int) -> np.ndarray:
    """A limit of hosts, one value for each."""
    if field not in _BOUNDS:
        raise InvalidInput(f"is no limit that many hosts can be given: use {', '.join(_BOUNDS)}", field=field)
    column = np.broadcast_to(np.asarray(values), (count,))
    low, high = _BOUNDS[field]
    wrong = ~((column >= low) & (column <= high))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InvalidInput(f"is {column[row]}, but must be from {low:g} to {high:g}", field=field, row=row)
    return column
