"""The gaps of changed crawls in four numbers: how many there are, and three moments.

A changed crawl after a gap a adds ln(1 − e^{−Δa}) to the log-likelihood of the rate Δ. Kept are the number n of such
crawls and the mean, variance and third central moment of the roots a^{1/8}. Where the likelihood is wanted, two gaps
with weights that have the same moments stand for all of them (the two-point Gauss rule): n terms become two. Exact
for up to two different gaps, and it sets a single outlier apart instead of smearing it. The root tames gaps that
spread over decades: with gaps themselves the longest would count alone, with logarithms the shortest.

Pure scalar mathematics; knows nothing of pages or priors.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from recrawl.jit import inlined

_RELATIVE_NOISE = 1e-6  # of a variance in single precision


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
