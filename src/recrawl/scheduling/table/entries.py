"""Write checked columns into page records, and read records back as columns for `update`."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.pages import Floats
from recrawl.scheduling.columns import (
    CAPTURES_ONLY,
    PageColumns,
    PageEntries,
    PageObjective,
    check_objective,
    read_entries,
)
from recrawl.scheduling.table.pages import PageTable
from recrawl.scheduling.table.records import (
    CAPTURES,
    FRESHNESS,
    HARMONIC,
    LEARNED_FRESHNESS,
    LEARNED_HARMONIC,
    LEARNS,
    LIMITED,
    LISTENS,
    NO_COPY,
    NOISY_FRESHNESS,
    NOISY_HARMONIC,
    ONCE,
    SOURCE,
    Slots,
)
from recrawl.scheduling.types import LONGEST

_FAMILIES: dict[int, PageObjective] = {
    FRESHNESS: "freshness",
    LEARNED_FRESHNESS: "freshness",
    NOISY_FRESHNESS: "freshness",
    HARMONIC: "harmonic",
    LEARNED_HARMONIC: "harmonic",
    NOISY_HARMONIC: "harmonic",
    SOURCE: "news",
    ONCE: "once",
}


def write_entries(table: PageTable, slots: Slots, entries: PageEntries, now: float, *, again: bool = False) -> None:
    """Write entries into slots. With `again`, pages keep their last crawl and signals if none is given. O(slots)."""
    pages = table.pages
    waits = _waits(table, slots) if again else np.zeros(len(slots))
    pages["gain"][slots] = entries.gain
    pages["decay"][slots] = entries.decay
    listening = pages["flags"][slots] & LISTENS != 0
    law = entries.law.copy()
    plain = listening & ((law == FRESHNESS) | (law == HARMONIC)) & (not entries.captures)
    learned = listening & ((law == LEARNED_FRESHNESS) | (law == LEARNED_HARMONIC))
    law[plain] += NOISY_FRESHNESS - FRESHNESS
    law[learned] += NOISY_FRESHNESS - LEARNED_FRESHNESS
    pages["law"][slots] = law
    flags = pages["flags"][slots] & ~np.uint8(LEARNS | CAPTURES)
    if entries.captures:
        flags |= np.uint8(CAPTURES)
    ignores = listening & ~plain & ~learned
    flags[ignores] &= ~np.uint8(LISTENS)
    pages["signals"][slots[ignores]] = 0
    before = pages["last"][slots] if again else np.zeros(len(slots))
    if entries.last is not None:
        known = ~np.isnan(entries.last)
        pages["last"][slots] = np.where(known, entries.last, now)
        flags = np.where(known, flags & ~np.uint8(NO_COPY), flags | NO_COPY).astype(np.uint8)
    elif not again:
        pages["last"][slots] = now
        flags |= NO_COPY
    if _has_limits(entries):
        table.need_limits()
        flags |= LIMITED
        _write_limits(table, slots, entries)
    else:
        flags &= ~np.uint8(LIMITED)
    pages["flags"][slots] = flags
    if entries.learns:
        pages["flags"][slots] |= LEARNS
    if again or len(table.limits):
        held = np.where(waits > 0.0, waits + (before - pages["last"][slots]), 0.0)
        pages["not_before"][slots] = up(np.maximum(held, floors(table, slots)))


def _waits(table: PageTable, slots: Slots) -> Floats:
    """Return the time from the last crawl until which pages wait after failures or by `held_until`; 0 for others."""
    pages = table.pages[slots]
    waits = pages["not_before"].astype(np.float64)
    held = (pages["failures"] > 0) | (waits > floors(table, slots))  # a hold within the least interval is not seen
    return np.where(held, waits, 0.0)


def floors(table: PageTable, slots: Slots) -> Floats:
    """Return the least intervals of pages that have one and a copy; 0 for others."""
    if not len(table.limits):
        return np.zeros(len(slots))
    flags = table.pages["flags"][slots]
    floored = (flags & LIMITED != 0) & (flags & NO_COPY == 0)
    return np.where(floored, table.limits["min_interval"][slots], 0.0)


def objective_of(table: PageTable, slots: Slots) -> PageObjective:
    """Return the objective that all these pages have; raise InvalidInput if they have several."""
    captures = table.pages["flags"][slots] & CAPTURES != 0
    objectives: set[PageObjective] = {
        _FAMILIES[law] for law in np.unique(table.pages["law"][slots][~captures]).tolist()
    }
    if captures.any():
        objectives.add("captures")
    if len(objectives) > 1:
        raise InvalidInput(
            f"holds pages of the objectives {' and '.join(sorted(objectives))}: update each kind for itself",
            field="ids",
        )
    return objectives.pop()


def columns_of(table: PageTable, slots: Slots, objective: PageObjective) -> dict[str, Any]:
    """Return what is known of pages as arguments of `add`, without signals, hosts and last crawls. O(slots)."""
    pages = table.pages[slots]
    cost = table.costs(slots)
    columns: dict[str, Any] = {"cost": cost, "objective": objective}
    if len(table.limits):
        limited = pages["flags"] & LIMITED != 0
        columns["min_interval"] = np.where(limited, table.limits["min_interval"][slots], 0.0).astype(np.float64)
        columns["max_interval"] = np.where(limited, table.limits["max_interval"][slots], math.inf).astype(np.float64)
    if objective in ("freshness", "harmonic"):
        columns["importance"] = pages["gain"] * cost
        learns = pages["flags"] & LEARNS != 0
        if learns.any() and not learns.all():
            raise InvalidInput(
                "holds pages with learned and with given change rates: update each kind for itself", field="ids"
            )
        columns["change_rate"] = None if learns.any() else pages["decay"].copy()
    elif objective == "news":
        profit = table.limits["profit"][slots].astype(np.float64)
        columns["profit"] = profit * cost
        columns["new_page_rate"] = np.divide(pages["gain"], profit, out=np.zeros(len(slots)), where=profit > 0)
        columns["decay"] = pages["decay"].copy()
    elif objective == "once":
        columns["profit"] = pages["gain"] * cost
        columns["decay"] = pages["decay"].copy()
    return columns


def merged_entries(table: PageTable, slots: Slots, columns: PageColumns, now: float) -> PageEntries:
    """Check the columns that `update` was given, and complete them with what is known of the pages. O(slots)."""
    present = objective_of(table, slots)
    objective = present if columns.get("objective") is None else check_objective(columns["objective"])
    kept = columns_of(table, slots, present) if objective == present else {}
    merged = cast(PageColumns, {**kept, **columns})
    if objective == present == "captures" and not CAPTURES_ONLY & set(columns):
        return _same_captures(table, slots, merged, now)
    return read_entries(merged, objective, now, len(slots))


def _same_captures(table: PageTable, slots: Slots, columns: PageColumns, now: float) -> PageEntries:
    """Return entries of `captures` pages whose costs or limits change; their other columns cannot be read back."""
    ones = np.ones(len(slots))
    plain = {**columns, "importance": ones, "change_rate": ones, "decay": ones}
    read = read_entries(cast(PageColumns, plain), "captures", now, len(slots))
    pages = table.pages[slots]
    gain = pages["gain"] * table.costs(slots) / (1.0 if read.cost is None else read.cost)
    return PageEntries(gain, pages["decay"].copy(), pages["law"].copy(), *read[3:])


def _has_limits(entries: PageEntries) -> bool:
    limits = (entries.cost, entries.min_interval, entries.max_interval, entries.profit)
    return any(column is not None for column in limits)


def _write_limits(table: PageTable, slots: Slots, entries: PageEntries) -> None:
    limits = table.limits
    limits["cost"][slots] = 1.0 if entries.cost is None else entries.cost
    limits["min_interval"][slots] = 0.0 if entries.min_interval is None else up(entries.min_interval)
    longest = math.inf if entries.max_interval is None else _single(entries.max_interval)
    limits["max_interval"][slots] = np.maximum(longest, limits["min_interval"][slots])
    limits["profit"][slots] = 0.0 if entries.profit is None else entries.profit
    least = 1.0 if entries.cost is None else float(entries.cost.min(initial=1.0))
    if least < table.least_cost:
        table.least_cost = least
        table.version += 1  # policies that keep a copy read it again


def up(times: Floats) -> Any:
    """Round times up to single precision."""
    single = np.minimum(times, LONGEST).astype(np.float32)
    return np.where(single < times, np.nextafter(single, np.float32(np.inf)), single)


def _single(times: Floats) -> Any:
    return np.where(times > LONGEST, np.inf, times).astype(np.float32)


def write_holds(table: PageTable, slots: Slots, failures: NDArray[np.uint8], held_until: Floats) -> None:
    """Set the failures of pages, and let pages wait until these times at least; NaN: no such time. O(slots)."""
    pages = table.pages
    held = ~np.isnan(held_until)
    chosen = slots[held]
    pages["failures"][slots] = failures
    waits = np.maximum(held_until[held] - pages["last"][chosen], 0.0)
    pages["not_before"][chosen] = np.maximum(up(waits), pages["not_before"][chosen])


def lift_holds(table: PageTable, slots: Slots) -> None:
    """End the waits of pages beyond their least intervals; waits after failures stay. O(slots)."""
    chosen = slots[table.pages["failures"][slots] == 0]
    table.pages["not_before"][chosen] = up(floors(table, chosen))
