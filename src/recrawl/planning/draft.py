"""What a solver says of a set of pages: which law its rates follow, and what the law reads.

A draft knows nothing of budgets met or prices found; `solve.py` turns it into a market. To add a solver, write a
function from pages to a draft in `solvers/` and name it in `solve.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from recrawl.pages import Floats

Spacing = Literal["even", "poisson", "slots", "signals"]
"""How crawls at a given rate fall in time: evenly, at random, by a coin in each slot, or when signals say so."""

NO_PAGES: NDArray[np.int64] = np.empty(0, dtype=np.int64)

Refill = Callable[[Floats, Floats, Floats], None]
"""Works out rates and slopes of all pages at the given price of each: (prices, rates, slopes)."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A law and its columns (see `laws.py`).

    `even_share_kept` is the part of an even share of the budget that every page gets at least. `charged` is False
    for rules that ignore what a crawl costs. `refill` belongs to the law GIVEN.
    """

    law: int
    spacing: Spacing
    gain: Floats
    decay: Floats
    special: NDArray[np.int64] = field(default_factory=lambda: NO_PAGES)
    even_share_kept: float = 0.0
    charged: bool = True
    refill: Refill | None = None
