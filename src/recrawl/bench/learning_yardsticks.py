"""The yardsticks of the group `learning`: the plainest competent version of each estimator.

Nothing is done to slow them down; the tests hold each to recrawl's answer.
"""

from __future__ import annotations

import math

FAKE_GAP = 0.5
LOWEST = 0.0005
HIGHEST = 7.0
CLOSE = 1e-4


def rate_by_bisection(gaps: list[float], changed: list[bool]) -> float:
    """The smoothed maximum likelihood rate of one page, per day, by halving an interval in plain Python.

    The equation, the interval from 0.0005 to 7 and the precision of 0.0001 are those of the code published with
    LambdaCrawl (Kolobov et al. 2019).
    """
    changed_gaps = [FAKE_GAP]
    unchanged_time = FAKE_GAP
    for gap, flag in zip(gaps, changed, strict=True):
        if flag:
            changed_gaps.append(gap)
        else:
            unchanged_time += gap
    low, high = LOWEST, HIGHEST
    while high - low > CLOSE:
        rate = 0.5 * (low + high)
        if sum([gap / math.expm1(gap * rate) for gap in changed_gaps]) > unchanged_time:
            low = rate
        else:
            high = rate
    return 0.5 * (low + high)
