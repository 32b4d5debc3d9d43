"""Evenly spaced crawls: the optimum of each objective when nothing but time tells.

For a price Λ the interval of a page is where its value reaches the price: (gain/decay)·shape(decay·interval) = Λ.
Freshness is the optimum of Cho & Garcia-Molina; the harmonic index is better than LambdaCrawl's random times on
LambdaCrawl's own cost and starves nothing that changes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recrawl.pages import LIVES, Floats, Objective, Pages
from recrawl.planning.draft import Draft
from recrawl.planning.laws import EVEN_G, EVEN_H


def draft(pages: Pages, objective: Objective) -> Draft:
    """Draft the evenly spaced optimum."""
    if objective == "harmonic":
        return Draft(EVEN_H, "even", pages.importance, pages.change_rate)
    if objective == "freshness":
        return Draft(EVEN_G, "even", pages.importance, pages.change_rate)
    gain, decay, windowed = fading(pages)
    return Draft(EVEN_G, "even", gain, decay, np.flatnonzero(windowed))


def fading(pages: Pages) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Gain and decay of pages whose changes (or new pages) lose value while they wait, and which are windowed.

    Changes that overwrite each other fade by their own rate too; a change that stays for a window has decay
    1/window. The last array has length 0 if no page says what becomes of its changes.
    """
    gain = pages.importance * pages.change_rate
    decay = np.zeros(len(pages)) if pages.decay is None else pages.decay
    if pages.life is None:
        return gain, decay, np.empty(0, dtype=np.bool_)
    decay = np.where(pages.life == LIVES.index("overwrite"), decay + pages.change_rate, decay)
    windowed = pages.life == LIVES.index("window")
    if windowed.any():
        assert pages.window is not None
        decay[windowed] = 1.0 / pages.window[windowed]
    return gain, decay, windowed
