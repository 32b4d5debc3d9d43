"""From repetitions to findings: ratios over settings, of which the least or the farthest counts, and shares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from recrawl.lab.papers.experiment import Finding, mean_finding
from recrawl.pages import Floats

Samples = Sequence[float] | Floats


def mean_of(claim: str, samples: Floats) -> Finding:
    """The mean over repetitions that stand in an array."""
    return mean_finding(claim, samples.tolist())


def least_ratio(claim: str, pairs: Iterable[tuple[Samples, Samples]]) -> Finding:
    """The least mean ratio of paired samples over settings, with the interval at that setting.

    >>> least_ratio("x", [([2.0, 2.0], [1.0, 1.0]), ([3.0, 3.0], [2.0, 2.0])]).value
    1.5
    """
    return min((_ratio(claim, *pair) for pair in pairs), key=lambda finding: finding.value)


def largest_distance(claim: str, pairs: Iterable[tuple[Samples, Samples]]) -> Finding:
    """The largest distance of the mean ratio from 1 over settings.

    >>> largest_distance("x", [([1.0, 1.0], [1.0, 1.0]), ([0.75, 0.75], [1.0, 1.0])]).value
    0.25
    """
    found = (_ratio(claim, *pair) for pair in pairs)
    distances = (Finding(claim, each.value - 1.0, each.low - 1.0, each.high - 1.0) for each in found)
    return max((without_sign(each) for each in distances), key=lambda finding: finding.value)


def ratio_of_means(claim: str, above: Samples, below: Samples) -> Finding:
    """The ratio of two means of paired samples; its interval to first order.

    >>> round(ratio_of_means("x", [1.0, 3.0], [4.0, 4.0]).value, 3)
    0.5
    """
    top, bottom = np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64)
    ratio = top.mean() / bottom.mean()
    return mean_of(claim, ratio + (top - ratio * bottom) / bottom.mean())


def without_sign(finding: Finding) -> Finding:
    """The size of a number that may have either sign.

    >>> without_sign(Finding("x", -0.1, -0.2, 0.05))
    Finding(claim='x', value=0.1, low=0.0, high=0.2)
    """
    low, high = abs(finding.low), abs(finding.high)
    least = 0.0 if finding.low <= 0.0 <= finding.high else min(low, high)
    return Finding(finding.claim, abs(finding.value), least, max(low, high))


def _ratio(claim: str, above: Samples, below: Samples) -> Finding:
    return mean_of(claim, np.asarray(above, dtype=np.float64) / np.asarray(below, dtype=np.float64))
