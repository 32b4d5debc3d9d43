"""What the online filter keeps of a page: 40 bytes, changed in place.

Unchanged crawls inform about a rate only by their total time, changed ones by their number and gaps. The state holds
these sums and no distribution: it contains no prior, nothing is rounded to a grid, and another prior reads the same
state. The state of many pages is one structured array, a page in one piece, so that a crawl touches one cache line. A
scheduler may own the array; kernels take it as it is.

**Gaps of changed crawls** are four numbers: how many there are, and mean, variance and third central moment of the
roots a^{1/8}. A changed crawl after a gap a adds ln(1 − e^{−Δa}) to the log-likelihood of the rate Δ; two weighted gaps
with the same moments replace the n terms (the two-point Gauss rule). That is exact for up to two different gaps, and
it separates a single outlier instead of smearing it. The root tames gaps that spread over decades: with gaps
themselves the longest would count alone, with logarithms the shortest.

**Two windows.** The long window takes every crawl. The short window holds the crawls since the page may have turned;
when the turn is certain, the short window replaces the long one (`filter.py` decides). Evidence may also fade by a
half-life.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.jit import inlined
from recrawl.learning.inputs import check_made, check_positive, shown

PAGE_STATE = np.dtype(
    [
        ("unchanged_time", np.float32),  # total gap of crawls that saw no change
        ("changes", np.float32),  # how many crawls saw one
        ("gap_mean", np.float32),  # of the roots of their gaps: mean,
        ("gap_variance", np.float32),  # variance,
        ("gap_skew", np.float32),  # and third central moment
        ("recent_unchanged_time", np.float32),  # the same since the page may have turned
        ("recent_changes", np.float32),
        ("recent_gap_mean", np.float32),
        ("turn_evidence", np.int16),  # in units of 1/EVIDENCE_UNITS, negative for a fall; 0: short memory empty
        ("log_rate_before", np.int16),  # in units of 1/LOG_RATE_UNITS: of the rate that the page may have left
        ("prior_row", np.int32),  # 0 is the prior of the population, r + 1 that of host r
    ]
)
"""A page; one never crawled is all zeros, but for its prior."""

EVIDENCE_UNITS = 1024.0
LOG_RATE_UNITS = 200.0  # rates from 1e-60 to 1e60 fit

FilterState = NDArray[np.void]
PageState = np.void


_RELATIVE_NOISE = 1e-6  # of a variance in single precision

# Single precision adds 1 to a million exactly, but a gap to a thousand hours only nearly; so evidence is thinned in
# time. A rate known from so many changes is known to half a percent.
_MOST_CHANGES = 65536.0
_LONGEST_TIME = 1e37


def empty_state(pages: int) -> FilterState:
    """The state of so many pages that were never crawled. O(pages).

    >>> PAGE_STATE.itemsize, len(empty_state(3))
    (40, 3)
    """
    return np.zeros(pages, dtype=PAGE_STATE)


class GapMoments(NamedTuple):
    """Moments of the roots of gaps, and how many gaps there are; a number that has faded is not whole."""

    number: float
    mean: float
    variance: float
    skew: float  # third central moment


class TwoGaps(NamedTuple):
    """Two gaps that stand for all, and the share of the longer one."""

    longer: float
    shorter: float
    share: float


@inlined
def root_of(gap: float) -> float:
    """a^{1/8}."""
    return math.sqrt(math.sqrt(math.sqrt(gap)))


@inlined
def gap_of(root: float) -> float:
    """The inverse of `root_of`."""
    square = root * root
    fourth = square * square
    return fourth * fourth


@inlined
def with_gap(moments: GapMoments, gap: float) -> GapMoments:
    """Moments with one gap more. O(1).

    >>> two = with_gap(with_gap(GapMoments(0.0, 0.0, 0.0, 0.0), 1.0), 256.0)
    >>> two.number, two.mean, two.variance
    (2.0, 1.5, 0.25)
    """
    number = moments.number + 1.0
    old = moments.number / number
    new = 1.0 / number
    step = root_of(gap) - moments.mean
    return GapMoments(
        number,
        moments.mean + new * step,
        old * (moments.variance + new * step * step),
        old * (moments.skew - 3.0 * new * step * moments.variance + new * (old - new) * step * step * step),
    )


@inlined
def two_gaps(moments: GapMoments) -> TwoGaps:
    """Two gaps with these moments; the same gap twice where all are alike. O(1).

    >>> both = two_gaps(GapMoments(2.0, 1.5, 0.25, 0.0))
    >>> both.longer, both.shorter, both.share
    (256.0, 1.0, 0.5)
    """
    if moments.variance <= _RELATIVE_NOISE * moments.mean * moments.mean:
        gap = gap_of(moments.mean)
        return TwoGaps(gap, gap, 0.0)
    deviation = math.sqrt(moments.variance)
    lean = 0.5 * moments.skew / (moments.variance * deviation)
    reach = math.sqrt(1.0 + lean * lean)
    # The two distances multiply to 1; the larger of them is computed without cancellation.
    far = reach + abs(lean)
    above = far if lean >= 0.0 else 1.0 / far
    below = 1.0 / above
    shorter = max(moments.mean - deviation * below, 0.0)
    return TwoGaps(gap_of(moments.mean + deviation * above), gap_of(shorter), below / (above + below))


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
