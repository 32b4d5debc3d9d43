"""What one market captured against fixed splits of its budget, as readings: for `signals_mixed` and its living twin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from recrawl.bench.measure import Reading


class Captured(NamedTuple):
    """A day: requests of refreshed pages that found a fresh copy, and hits of new pages that were captured."""

    fresh: float
    hits: float

    @property
    def together(self) -> float:
        """Both, in one currency."""
        return self.fresh + self.hits

    def __str__(self) -> str:
        """Both, for people.

        >>> str(Captured(1.2, 3.4))
        '1 + 3'
        """
        return f"{self.fresh:.0f} + {self.hits:.0f}"


def against_best(market: Captured, splits: Sequence[Captured]) -> Reading:
    """What one market captures of both, against the fixed split that captures most, known in hindsight.

    >>> against_best(Captured(3.0, 3.0), [Captured(2.0, 2.0), Captured(4.0, 1.0)]).ratio
    1.2
    """
    best = max(range(len(splits)), key=lambda part: splits[part].together)
    shown = f"{splits[best]} with {best + 1} of {len(splits) + 1} parts for refreshing; the market {market}"
    return Reading(market.together, market.together / splits[best].together, shown)


def better_in_both(market: Captured, splits: Sequence[Captured]) -> Reading:
    """How many fixed splits capture more of both than the market does."""
    better = [split for split in splits if split.fresh > market.fresh and split.hits > market.hits]
    return Reading(float(len(better)), None, "; ".join(f"{part + 1}: {split}" for part, split in enumerate(splits)))
