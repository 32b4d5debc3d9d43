"""Freshness with crawls at random times (Azar et al. 2018), and the same with a floor for every page.

`azar` maximises Σ μρ/(ρ+Δ), `azar-discrete` Σ μp/(p+Δ−pΔ) with one coin per page and slot. `blc-eps` is
LambdaCrawl's binary variant: no page gets less than ε of an even share, one root for all.
"""

from __future__ import annotations

import numpy as np

from recrawl.errors import InvalidInput
from recrawl.pages import Pages
from recrawl.planning.draft import Draft
from recrawl.planning.laws import POISSON_BINARY, SLOT_BINARY

EVEN_SHARE_KEPT = 0.4
"""ε: the share of an even rate that `blc-eps` grants every page, as in the LambdaCrawl paper."""


def draft(pages: Pages) -> Draft:
    """Draft the optimum in continuous time."""
    return Draft(POISSON_BINARY, "poisson", pages.importance, pages.change_rate)


def draft_discrete(pages: Pages) -> Draft:
    """Draft the optimum in discrete time: rates are probabilities per slot, the budget is crawls per slot."""
    _check_slots(pages)
    return Draft(SLOT_BINARY, "slots", pages.importance, pages.change_rate)


def draft_with_floor(pages: Pages) -> Draft:
    """Draft the optimum in continuous time with a floor for every page."""
    return Draft(POISSON_BINARY, "poisson", pages.importance, pages.change_rate, even_share_kept=EVEN_SHARE_KEPT)


def _check_slots(pages: Pages) -> None:
    if (pages.change_rate >= 1).any():
        row = int(np.argmax(pages.change_rate >= 1))
        raise InvalidInput(
            f"is {float(pages.change_rate[row])!r}, but the solver azar-discrete needs the chance of a change in a "
            "slot, below 1; use shorter slots or the solver azar",
            field="change_rate",
            row=row,
        )
    if pages.min_rate is not None and (pages.min_rate > 1).any():
        raise InvalidInput(
            "is above 1, but a page is crawled at most once in a slot",
            field="min_rate",
            row=int(np.argmax(pages.min_rate > 1)),
        )
