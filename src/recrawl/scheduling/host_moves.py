"""What happens to hosts when their pages move, fail or come back: who has how many in flight, who is left alone."""

from __future__ import annotations

import numpy as np

from recrawl.pages import Floats
from recrawl.scheduling.page_record import IN_FLIGHT, Slots
from recrawl.scheduling.page_table import PageTable


def hosts_of(table: PageTable, slots: Slots) -> Slots:
    """The numbers of the hosts that these pages have, each once. O(slots · log slots)."""
    numbers = table.pages["host"][slots]
    if len(numbers) == 1:
        return numbers[numbers >= 0].astype(np.int64)
    return np.unique(numbers[numbers >= 0]).astype(np.int64)


def move_pages(table: PageTable, slots: Slots, numbers: Slots) -> Slots:
    """Let pages be of other hosts, or of none (-1), which then count those in flight as theirs; whose count changed."""
    pages, records = table.pages, table.hosts.records
    flying = pages["state"][slots] == IN_FLIGHT
    left = pages["host"][slots[flying]]
    left = left[left >= 0]
    np.subtract.at(records["in_flight"], left, 1)
    entered = numbers[flying]
    entered = entered[entered >= 0]
    np.add.at(records["in_flight"], entered, 1)
    pages["host"][slots] = numbers
    return np.unique(np.concatenate([left, entered])).astype(np.int64)


def stay_away(table: PageTable, slots: Slots, now: float, waits: Floats) -> None:
    """Leave the hosts of pages alone for as long as these were told, the longest counting. O(slots · hosts)."""
    numbers = table.pages["host"][slots]
    for number in hosts_of(table, slots).tolist():
        until = now + float(waits[numbers == number].max())
        record = table.hosts.records[number]
        record["blocked_until"] = max(float(record["blocked_until"]), until)
        record["paced"] = 1
