"""Floors, ceilings and host caps, made to fit together before a price is sought.

Floors that do not fit are scaled down by one factor, per host where a host's cap is too small, over all pages where
the budget is, and what is missing is reported. Nothing is dropped silently.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.pages import Floats, Pages, check_number

NONE: Floats = np.empty(0)
NO_GROUPS: NDArray[np.int64] = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Floors that a host's cap or the budget cannot carry, in crawls per unit time.

    `pages` are the pages that get less than their `min_rate` and `missing` what each lacks; `hosts` are the hosts
    whose cap is below the floors of their pages, with what each lacks; `budget` is what the budget lacks to carry the
    floors that the hosts can. Empty and 0 when every floor is met.
    """

    pages: NDArray[np.int64]
    missing: Floats
    hosts: dict[Hashable, float]
    budget: float

    def __bool__(self) -> bool:
        return len(self.pages) > 0


NO_SHORTFALL = Shortfall(NO_GROUPS, NONE, {}, 0.0)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits that fit together: Σ low fits into every cap and into the budget; length 0 stands for no limit.

    `groups` numbers the capped hosts that still need a surcharge (0: none), `caps` holds their caps and `names`
    their names. `full` says that the floors alone use the whole budget.
    """

    low: Floats
    high: Floats
    groups: NDArray[np.int64]
    caps: Floats
    names: list[Hashable]
    full: bool
    shortfall: Shortfall

    def part(self, rows: slice) -> Limits:
        """The floors and ceilings of some of the pages, with no host capped: enough for a first guess."""
        return Limits(
            low=np.ascontiguousarray(self.low[rows]),
            high=np.ascontiguousarray(self.high[rows]),
            groups=NO_GROUPS,
            caps=NONE,
            names=[],
            full=self.full,
            shortfall=self.shortfall,
        )


def fit_limits(pages: Pages, budget: float, host_caps: Mapping[Any, float] | None, floor: float = 0.0) -> Limits:
    """Fit floors (at least `floor` for every page), ceilings and caps to the budget. O(pages)."""
    wanted = _floors(pages, floor)
    low = wanted
    high = NONE if pages.max_rate is None else pages.max_rate
    caps = _caps_by_code(pages, host_caps)
    lacking: dict[Hashable, float] = {}
    groups, group_caps, names = NO_GROUPS, NONE, []
    if caps is not None:
        assert pages.hosts is not None
        codes = pages.hosts.codes
        low, high, fixed = _fit_hosts(low, high, codes, caps)
        if fixed.any():
            floors = np.bincount(codes, weights=wanted, minlength=caps.size) if wanted.size else np.zeros(caps.size)
            lacking = {pages.hosts.names[h]: float(floors[h] - caps[h]) for h in np.flatnonzero(floors > caps).tolist()}
        open_hosts = np.flatnonzero(np.isfinite(caps) & ~fixed)
        names = [pages.hosts.names[h] for h in open_hosts.tolist()]
        groups, group_caps = _number_groups(codes, caps, open_hosts)
    low, budget_lacks = _fit_budget(low, pages.cost, budget)
    return Limits(
        low=low,
        high=high,
        groups=groups,
        caps=group_caps,
        names=names,
        full=budget_lacks is not None,
        shortfall=_shortfall(pages.min_rate, low, lacking, budget_lacks or 0.0),
    )


def even_floor(pages: Pages, budget: float, share: float) -> float:
    """A share of the rate that every page would have if all had the same."""
    whole = float(len(pages)) if pages.cost is None else float(pages.cost.sum())
    return share * budget / whole if whole > 0 else 0.0


def _floors(pages: Pages, floor: float) -> Floats:
    if floor == 0:
        return NONE if pages.min_rate is None else pages.min_rate
    low = np.full(len(pages), floor) if pages.min_rate is None else np.maximum(pages.min_rate, floor)
    return low if pages.max_rate is None else np.minimum(low, pages.max_rate)


def _caps_by_code(pages: Pages, host_caps: Mapping[Any, float] | None) -> Floats | None:
    """Caps in the order of the host codes, infinity where a host has none."""
    if not host_caps:
        return None
    if pages.hosts is None:
        raise InvalidInput("need a column 'host' that says which page is on which host", field="host_caps")
    code_of = {name: code for code, name in enumerate(pages.hosts.names)}
    caps = np.full(len(code_of), math.inf)
    for name, cap in host_caps.items():
        if name not in code_of:
            raise InvalidInput(f"names the host {name!r}, which no page is on", field="host_caps")
        if cap != math.inf:
            caps[code_of[name]] = check_number(cap, f"host_caps[{name!r}]")
    return caps


def _fit_hosts(
    low: Floats, high: Floats, codes: NDArray[np.int64], caps: Floats
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Scale the floors of hosts that exceed their cap and hold their pages there; such hosts are `fixed`."""
    floors = np.bincount(codes, weights=low, minlength=caps.size) if low.size else np.zeros(caps.size)
    fixed = (floors >= caps) & np.isfinite(caps)
    if not fixed.any():
        return low, high, fixed
    with np.errstate(all="ignore"):
        factor = np.where(fixed & (floors > 0), caps / floors, 1.0)
    low = low * factor[codes] if low.size else np.zeros(codes.size)
    held = fixed[codes]
    high = np.where(held, low, high if high.size else math.inf)
    return low, high, fixed


def _number_groups(
    codes: NDArray[np.int64], caps: Floats, open_hosts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], Floats]:
    if not open_hosts.size:
        return NO_GROUPS, NONE
    number = np.zeros(caps.size, dtype=np.int64)
    number[open_hosts] = np.arange(1, open_hosts.size + 1)
    return number[codes], np.concatenate([[math.inf], caps[open_hosts]])


def _fit_budget(low: Floats, cost: Floats | None, budget: float) -> tuple[Floats, float | None]:
    """Scale all floors if they use the whole budget; return what the budget lacks, or None if they leave some."""
    total = float(low.sum() if cost is None else low @ cost) if low.size else 0.0
    if total < budget or total == 0:
        return low, None
    return low * (budget / total), total - budget


def _shortfall(wanted: Floats | None, low: Floats, hosts: dict[Hashable, float], budget_lacks: float) -> Shortfall:
    if wanted is None or (not hosts and budget_lacks == 0):
        return NO_SHORTFALL
    missing = wanted - low
    pages = np.flatnonzero(missing > 1e-12 * wanted)
    return Shortfall(pages, missing[pages], hosts, budget_lacks)
