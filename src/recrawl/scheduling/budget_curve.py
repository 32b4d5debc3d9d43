"""What another budget would buy: plans of all pages at their believed rates, for many budgets. Pure."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.learning.calibration import Correction
from recrawl.pages import Floats, Objective
from recrawl.planning.solve import plan
from recrawl.scheduling.table.pages import PageTable
from recrawl.scheduling.table.records import (
    CAPTURES,
    FREE,
    FRESHNESS,
    HARMONIC,
    LEARNED_FRESHNESS,
    LEARNED_HARMONIC,
    LEARNS,
    LIMITED,
    NOISY_FRESHNESS,
    SLOT_BITS,
    Ids,
)

MOST_PAGES = 100_000
"""With more pages than this, a sample is planned with its share of the budget."""
_POINTS = 21
_LEAST, _MOST = 1 / 8, 8.0
_PLAIN = (FRESHNESS, HARMONIC, LEARNED_FRESHNESS, LEARNED_HARMONIC)
_SLOT = np.int64((1 << SLOT_BITS) - 1)


class Point(NamedTuple):
    """A budget, the freshness that it buys in the long run, and the price then."""

    budget: float
    freshness: float
    price: float


def budget_curve(
    table: PageTable, budget: float, objective: Objective, gone: Ids | None, correction: Correction
) -> list[Point]:
    """Plan the pages of a table for budgets from an eighth to eight times this one; see `Scheduler.budget_curve`."""
    slots = _tracked(table, gone)
    if not len(slots) or not budget > 0.0:
        return []
    share = 1.0
    if len(slots) > MOST_PAGES:
        share = MOST_PAGES / len(slots)
        slots = np.random.default_rng(len(slots)).choice(slots, MOST_PAGES, replace=False)
    pages = table.pages[slots]
    shapes = np.where(pages["flags"] & LEARNS != 0, pages["belief"], 0.0)
    columns: dict[str, Floats | NDArray[np.int64]] = {
        "importance": np.clip(pages["gain"], 1e-30, 1e30),
        "change_rate": np.clip(pages["decay"] * correction.of(shapes), 1e-30, 1e30),
    }
    if len(table.limits):
        least = np.where(pages["flags"] & LIMITED != 0, table.limits["min_interval"][slots], 0.0)
        columns["max_rate"] = np.divide(1.0, least, out=np.full(len(least), np.inf), where=least > 0.0)
    caps = _caps(table, pages["host"], share)
    if caps:
        columns["host"] = pages["host"].astype(np.int64)
    planned = plan(columns, budget * share, objective, host_caps=caps or None)
    curve = planned.curve(np.geomspace(budget * share * _LEAST, budget * share * _MOST, _POINTS))
    rows = zip(curve.budgets.tolist(), curve.freshness.tolist(), curve.price.tolist(), strict=True)
    return [Point(each / share, freshness, price if math.isfinite(price) else 0.0) for each, freshness, price in rows]


def _tracked(table: PageTable, gone: Ids | None) -> NDArray[np.int64]:
    pages = table.pages[: table.used]
    law = pages["law"]
    wanted = (np.isin(law, _PLAIN) | (law >= NOISY_FRESHNESS)) & (pages["state"] != FREE)
    wanted &= (pages["flags"] & CAPTURES == 0) & (pages["gain"] > 0)
    if gone is not None and len(gone):
        slots = gone & _SLOT
        wanted[slots[slots < len(pages)]] = False
    return np.flatnonzero(wanted)


def _caps(table: PageTable, codes: NDArray[np.int32], share: float) -> dict[int, float]:
    """Return the most crawls per unit time of each host that has a gap and pages."""
    gaps = table.hosts.records["min_gap"]
    counts = np.bincount(codes[codes >= 0], minlength=len(gaps))
    crowded = np.flatnonzero((gaps > 0) & (counts > 0))
    return {int(number): share / float(gaps[number]) for number in crowded.tolist()}
