"""Pages whose every change is announced, among false signals: the state is the number of signals alone.

With recall 1 a page is fresh until the first signal, and after n signals with probability e^{−nb} (names in
`signal_page`). The policy that crawls at every n-th signal has rate γ/n, so rates and values come in steps,
and a rate between two steps is two policies in turn. Per unit importance (the limit of NCIS, Busa-Fekete et al.
2025):

    V_n = (1 − e^{−nb})/Δ − n e^{−nb}/γ = (e^{−nb}/γ) Σ_{j=0}^{n} (e^{jb} − 1)

The second form is a sum of positive numbers and is what is computed. Scalar kernels for pages with α = 0 and
γ > 0; pure.
"""

from __future__ import annotations

import math

import numpy as np

from recrawl.jit import exact
from recrawl.values.noisy_freshness_level import tilted_inverse
from recrawl.values.noisy_freshness_sums import DEEP, rising_sum
from recrawl.values.signal_page import SignalPage
from recrawl.values.special import h

# A rate this close to γ/n is that step.
_SAME = 1e-12


@exact
def step_value(page: SignalPage, signals: float) -> float:
    """V after so many signals. O(1)."""
    return partial_step_value(page, signals, signals + 1.0)


@exact
def partial_step_value(page: SignalPage, signals: float, terms: float) -> float:
    """V after so many signals, of whose sum over signals the first `terms` terms are kept. O(1)."""
    if signals == 0.0:
        return 0.0
    terms = min(terms, signals + 1.0)
    level = signals * page.signal_weight
    if level > DEEP:
        return -math.expm1(-terms * page.signal_weight) / page.change_rate
    start = (signals + 1.0 - terms) * page.signal_weight
    return math.exp(-level) * rising_sum(start, page.signal_weight, terms) / page.signal_rate


@exact
def steps_at_value(page: SignalPage, value: float) -> float:
    """The least number of signals, 1 or more, whose V reaches `value` < 1/Δ. O(1)."""
    if math.isinf(page.signal_weight):
        return 1.0
    slack = h(page.signal_weight) / page.signal_weight
    level = tilted_inverse(page.change_rate * value, slack)
    signals: float = max(1.0, np.ceil(level / page.signal_weight))
    # The root is rounded: look at both neighbours.
    if signals > 1.0 and step_value(page, signals - 1.0) >= value:
        return signals - 1.0
    if step_value(page, signals) < value:
        return signals + 1.0
    return signals


@exact
def steps_at_rate(page: SignalPage, rate: float) -> tuple[float, float]:
    """The step n whose rate γ/n is next at or above `rate` ≤ γ, and the share of time at n, not at n + 1."""
    ratio = page.signal_rate / rate
    signals: float = max(1.0, np.floor(ratio + _SAME * ratio))
    share = signals * (signals + 1.0 - ratio) / ratio
    return signals, 1.0 if share > 1.0 - 2.0 * _SAME * signals else max(0.0, share)
