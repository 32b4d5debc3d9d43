"""Numbers of the rules, and of the orders in which due pages are served. Loads no compiler."""

from __future__ import annotations

(
    FIXED,
    EVEN,
    BY_RATE,
    BY_IMPORTANCE,
    CHANGEDETECTION,
    NUTCH,
    STORMCRAWLER,
    HERITRIX,
    BUBING,
    ADUANA,
    MINIFLUX,
    LM_FACTOR,
    CHO_INTERVAL,
    CHANGE_FIRST,
    POISSON_PROBE,
    MIRROR_PROBE,
    PLANNED,
) = range(17)

MOST_OVERDUE, BY_SCORE, MOST_OVERDUE_SHARE = range(3)
"""Longest past its due date first; highest importance first; longest past as a share of its wait first."""
