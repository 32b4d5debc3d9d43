"""A day of auctions: pages that change with each bid, most of all shortly before they close.

After the set-up of WIC (Pandey et al. 2004), whose bids are not public: 7,550 pages, a day of 1,440 minutes. How bids
fall in time is our assumption: each auction has a geometric number of bids, two on average; half of them come at any
time while it is open, half in a burst before it closes, an exponential time of half an hour on average before the end.
Auctions close at any time of the day. Bids in the same minute are one change.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.pages import Floats

Changes = NDArray[np.bool_]

USUAL_BIDS = 2.0
"""Bids a page, on average."""

_BURST_SHARE = 0.5
_BURST_MINUTES = 30.0


def auction_changes(pages: int, instants: int, seed: int, bids: float = USUAL_BIDS) -> Changes:
    """Whether each page changes in each instant, as instants × pages. O(pages · instants)."""
    if pages < 1 or instants < 1:
        raise InvalidInput(f"{pages} pages over {instants} instants are none: give at least one of each")
    random = np.random.Generator(np.random.PCG64([seed, pages, instants]))
    close = random.uniform(0.0, instants, pages)
    page = np.repeat(np.arange(pages), random.geometric(1.0 / (1.0 + bids), pages) - 1)
    end = close[page]
    early = random.uniform(0.0, 1.0, len(page)) * end
    late = end - random.exponential(_BURST_MINUTES, len(page))
    time = np.where(random.random(len(page)) < _BURST_SHARE, late, early)
    inside = time >= 0.0
    changes = np.zeros((instants, pages), dtype=np.bool_)
    changes[time[inside].astype(np.int64), page[inside]] = True
    return changes


def believed_probabilities(changes: Changes, false_share: float, spread: float, seed: int) -> NDArray[np.float32]:
    """What an estimator might say: the changes, some moved elsewhere, all spread in time (WIC, section 5).

    Args:
        changes: the truth, instants × pages.
        false_share: FPN: each change is taken away with this probability, and a false one put at a random instant.
        spread: σ: the standard deviation, in instants, of a Gaussian that each change is spread by; probabilities of
            the same page and instant add up, to 1 at most.
        seed: of what is moved.
    """
    random = np.random.Generator(np.random.PCG64([seed, *changes.shape]))
    instant, page = np.nonzero(changes)
    moved = random.random(len(instant)) < false_share
    instant = np.where(moved, random.integers(0, len(changes), len(instant)), instant)
    believed = np.zeros(changes.shape)
    for shift, weight in _gaussian(spread):
        at = instant + shift
        inside = (at >= 0) & (at < len(changes))
        np.add.at(believed, (at[inside], page[inside]), weight)
    return np.minimum(believed, 1.0).astype(np.float32)


def _gaussian(spread: float) -> list[tuple[int, float]]:
    """Shifts and weights of a Gaussian on whole instants, cut at four deviations."""
    reach = int(np.ceil(4.0 * spread))
    shifts = np.arange(-reach, reach + 1)
    weights: Floats = np.exp(-0.5 * (shifts / spread) ** 2) if spread > 0 else np.ones(1)
    return list(zip(shifts.tolist(), (weights / weights.sum()).tolist(), strict=True))
