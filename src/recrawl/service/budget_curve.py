"""What another budget would buy: a plan of all tracked pages, at rates as they are believed, for many budgets."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.pages import OBJECTIVES, Floats, Objective
from recrawl.planning.solve import plan
from recrawl.scheduling.scheduler import Scheduler
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
)
from recrawl.service.calibration import classes_of
from recrawl.service.estimates import table_of

MOST_PAGES = 100_000
"""Of more pages a sample is planned, with its share of the budget."""
_POINTS = 21
_LEAST, _MOST = 1 / 8, 8.0
_PLAIN = (FRESHNESS, HARMONIC, LEARNED_FRESHNESS, LEARNED_HARMONIC)
_SLOT = np.int64(0xFFFFFFFF)


class Point(NamedTuple):
    """A budget in crawls a day, the freshness that it buys in the long run, and the price then."""

    budget: float
    freshness: float
    price: float


def budget_curve(
    scheduler: Scheduler,
    objective: Objective,
    gone: NDArray[np.int64] | None = None,
    factors: Floats | None = None,
) -> list[Point]:
    """From an eighth to eight times the budget; empty without pages or budget. O(pages), some seconds for many.

    Gaps between requests to a host count as caps on what can be crawled of it, least intervals as caps on pages.
    Signals are left out: with them the same budget buys more.

    Args:
        scheduler: whose pages, and budget.
        objective: of the tracker.
        gone: ids in the scheduler of pages that are not there any more.
        factors: of the calibration, by which rates are corrected.
    """
    budget = scheduler.budget
    table = table_of(scheduler)
    slots = _tracked(table, gone)
    if not len(slots) or not budget > 0.0:
        return []
    share = 1.0
    if len(slots) > MOST_PAGES:
        share = MOST_PAGES / len(slots)
        slots = np.random.default_rng(len(slots)).choice(slots, MOST_PAGES, replace=False)
    pages = table.pages[slots]
    shapes = np.where(pages["flags"] & LEARNS != 0, pages["belief"], 0.0)
    corrected = np.ones(len(pages)) if factors is None else factors[classes_of(shapes)]
    columns: dict[str, Floats | NDArray[np.int64]] = {
        "importance": np.clip(pages["gain"], 1e-30, 1e30),
        "change_rate": np.clip(pages["decay"] * corrected, 1e-30, 1e30),
    }
    if len(table.limits):
        least = np.where(pages["flags"] & LIMITED != 0, table.limits["min_interval"][slots], 0.0)
        columns["max_rate"] = np.divide(1.0, least, out=np.full(len(least), np.inf), where=least > 0.0)
    caps = _caps(table, pages["host"], share)
    if caps:
        columns["host"] = pages["host"].astype(np.int64)
    chosen: Objective = objective if objective in OBJECTIVES else "harmonic"
    planned = plan(columns, budget * share, chosen, host_caps=caps or None)
    curve = planned.curve(np.geomspace(budget * share * _LEAST, budget * share * _MOST, _POINTS))
    rows = zip(curve.budgets.tolist(), curve.freshness.tolist(), curve.price.tolist(), strict=True)
    return [Point(each / share, freshness, price if math.isfinite(price) else 0.0) for each, freshness, price in rows]


def _tracked(table: PageTable, gone: NDArray[np.int64] | None) -> NDArray[np.int64]:
    pages = table.pages[: table.used]
    law = pages["law"]
    wanted = (np.isin(law, _PLAIN) | (law >= NOISY_FRESHNESS)) & (pages["state"] != FREE)
    wanted &= (pages["flags"] & CAPTURES == 0) & (pages["gain"] > 0)
    if gone is not None and len(gone):
        slots = gone & _SLOT
        wanted[slots[slots < len(pages)]] = False
    return np.flatnonzero(wanted)


def _caps(table: PageTable, codes: NDArray[np.int32], share: float) -> dict[int, float]:
    """The most crawls a day of each host that has a gap, for those that could ever feel it."""
    gaps = table.hosts.records["min_gap"]
    counts = np.bincount(codes[codes >= 0], minlength=len(gaps))
    crowded = np.flatnonzero((gaps > 0) & (counts > 0))
    return {int(number): share / float(gaps[number]) for number in crowded.tolist()}
