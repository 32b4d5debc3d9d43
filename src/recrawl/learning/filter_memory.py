"""How the online filter forgets: what a page's two memories are, and how a crawl enters them.

The lasting memory takes every crawl. Once the page is certain to have turned, the short memory takes its place
(`filter_turns.py` decides). Beside that, evidence may fade with time by a half-life.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from recrawl.errors import InvalidInput
from recrawl.jit import inlined
from recrawl.learning.filter_gaps import GapMoments, gap_of, root_of, with_gap
from recrawl.learning.filter_state import LOG_RATE_UNITS, PageState
from recrawl.learning.inputs import check_made, check_positive, shown

# Single precision adds 1 to a million exactly, but a gap to a thousand hours only nearly; so evidence is thinned in
# time. A rate known from so many changes is known to half a percent.
_MOST_CHANGES = 65536.0
_LONGEST_TIME = 1e37


class Memory(NamedTuple):
    """What the filter forgets.

    Args:
        half_life: evidence so old counts half, in the unit of the gaps; nothing fades by default. On real sites half
            a year is a fair choice.
        notices_turns: start afresh with a page whose rate has jumped, up or down, by a factor of ten or so.
    """

    half_life: float = math.inf
    notices_turns: bool = True


class Recent(NamedTuple):
    """The short memory of a page: the rate that it may have left, and its crawls since."""

    log_rate_before: float
    rising: bool  # whether the rate has risen, if it has turned
    unchanged_time: float
    changes: float
    gap: float  # that stands for the gaps of the changed crawls


FOREVER = Memory(notices_turns=False)
"""Forget nothing: the filter then knows what the batch posterior knows."""


def check_memory(memory: Memory) -> Memory:
    """Refuse a half-life that is not above 0, and what is no memory at all."""
    check_made(memory, Memory, "memory", "Memory(half_life, notices_turns)")
    if not isinstance(memory.notices_turns, (bool, np.bool_)):
        raise InvalidInput(f"is {shown(memory.notices_turns)}, but must be True or False", field="notices_turns")
    half_life = check_positive(memory.half_life, "half_life", may_be_infinite=True)
    return Memory(half_life, bool(memory.notices_turns))


@inlined
def remember(page: PageState, gap: float, changed: bool) -> None:
    """Add a crawl to the lasting memory. O(1)."""
    if not changed:
        page["unchanged_time"] = min(page["unchanged_time"] + gap, _LONGEST_TIME)
        return
    after = with_gap(lasting_gaps(page), gap)
    page["changes"] = after.number
    page["gap_mean"] = after.mean
    page["gap_variance"] = after.variance
    page["gap_skew"] = after.skew
    if after.number > _MOST_CHANGES:
        page["changes"] *= 0.5
        page["unchanged_time"] *= 0.5


@inlined
def lasting_gaps(page: PageState) -> GapMoments:
    """Gaps of the changed crawls in the lasting memory."""
    return GapMoments(
        np.float64(page["changes"]),
        np.float64(page["gap_mean"]),
        np.float64(page["gap_variance"]),
        np.float64(page["gap_skew"]),
    )


@inlined
def recent_of(page: PageState) -> Recent:
    """The short memory."""
    return Recent(
        page["log_rate_before"] / LOG_RATE_UNITS,
        page["turn_evidence"] > 0,
        np.float64(page["recent_unchanged_time"]),
        np.float64(page["recent_changes"]),
        gap_of(np.float64(page["recent_gap_mean"])),
    )


@inlined
def remember_shortly(page: PageState, gap: float, changed: bool) -> None:
    """Add a crawl to the short memory, which knows of gaps only the mean of their roots. O(1)."""
    if not changed:
        page["recent_unchanged_time"] = min(page["recent_unchanged_time"] + gap, _LONGEST_TIME)
        return
    count = page["recent_changes"] + 1.0
    page["recent_gap_mean"] += (root_of(gap) - page["recent_gap_mean"]) / count
    page["recent_changes"] = count


@inlined
def clear_short_memory(page: PageState) -> None:
    """Forget what may have been a turn."""
    page["turn_evidence"] = 0
    page["recent_unchanged_time"] = 0.0
    page["recent_changes"] = 0.0
    page["recent_gap_mean"] = 0.0


@inlined
def trust_short_memory(page: PageState) -> None:
    """The page has turned: what came before the turn is forgotten."""
    page["unchanged_time"] = page["recent_unchanged_time"]
    page["changes"] = page["recent_changes"]
    page["gap_mean"] = page["recent_gap_mean"]
    page["gap_variance"] = 0.0
    page["gap_skew"] = 0.0
    clear_short_memory(page)


@inlined
def fade(page: PageState, share: float) -> None:
    """Keep this share of all evidence; means of gaps do not fade."""
    page["unchanged_time"] *= share
    page["changes"] *= share
    page["recent_unchanged_time"] *= share
    page["recent_changes"] *= share
