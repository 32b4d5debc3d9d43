"""What a crawl is worth: value functions over arrays, and when a value reaches a price.

`…_value` is what a crawl now is worth, `…_due` the time since the last crawl at which that reaches a price. Arguments
are numbers or arrays that broadcast against each other. A function returns a float if all are numbers, else a float64
array, in O(elements); it raises `InvalidInput` that names the first bad argument.

    freshness_*          a copy is fresh until the page changes
    harmonic_*           the n-th missed change costs 1/n
    saturating_*         captured changes and content sources, by what they gain and lose per unit time
    uncertain_*          the change rate is known as a Gamma distribution
    noisy_freshness_*    freshness, with signals that announce changes
    noisy_harmonic_*     harmonic staleness, with such signals
    shape_*              the shapes g and h, and their inverses

The modules hold the kernels that these functions and the kernels of other packages call. To add a value, write a
kernel for it and for its inverse, and make the array functions here.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from recrawl.pages import Floats
from recrawl.values import laws
from recrawl.values.arrays import AMOUNT, COUNT, POSITIVE, PROBABILITY, SPAN, Rule, function, over_arrays
from recrawl.values.signals.freshness import (
    noisy_freshness_due_kernel,
    partial_freshness_value_kernel,
    selective_freshness_value_kernel,
    trusting_freshness_value_kernel,
)
from recrawl.values.signals.harmonic import noisy_harmonic_due_kernel, noisy_harmonic_value_kernel
from recrawl.values.special import fill_inverse_g, fill_inverse_h, g, h
from recrawl.values.uncertain import (
    uncertain_freshness_due_kernel,
    uncertain_freshness_value_kernel,
    uncertain_harmonic_due_kernel,
    uncertain_harmonic_value_kernel,
)

__all__ = [
    "freshness_due",
    "freshness_value",
    "harmonic_due",
    "harmonic_value",
    "inverse_shape_g",
    "inverse_shape_h",
    "noisy_freshness_due",
    "noisy_freshness_value",
    "noisy_harmonic_due",
    "noisy_harmonic_value",
    "saturating_due",
    "saturating_value",
    "selective_freshness_value",
    "shape_g",
    "shape_h",
    "trusting_freshness_value",
    "uncertain_freshness_due",
    "uncertain_freshness_value",
    "uncertain_harmonic_due",
    "uncertain_harmonic_value",
]

_TIME = {"elapsed": SPAN}
_PRICE = {"price": SPAN}
_PAGE = {"importance": AMOUNT, "change_rate": AMOUNT}
_LEARNED = {"importance": AMOUNT, "shape": POSITIVE, "exposure": POSITIVE}
_TRUSTED = {**_PAGE, "recall": PROBABILITY}
_NOISY = {**_TRUSTED, "false_signal_rate": AMOUNT}
_SIGNALS = {"signals": COUNT}
_TERMS = {"terms": Rule("must be a whole number, 1 or more; infinity is allowed", low=1.0, whole=True)}


def _filled(fill: Callable[[Floats, Floats], None]) -> Callable[[Floats], Floats]:
    """Return new arrays instead of filling given ones."""

    def apply(column: Floats) -> Floats:
        flat = np.ascontiguousarray(column).reshape(-1)
        outputs = np.empty_like(flat)
        fill(flat, outputs)
        return outputs.reshape(column.shape)

    return apply


freshness_value = function(
    laws.saturating_value,
    {**_PAGE, **_TIME},
    """What a crawl is worth if a copy counts as fresh or stale: (μ/Δ) g(Δτ).

    Args:
        importance: weight of the page.
        change_rate: changes per unit time; at 0 the page never changes and a crawl is worth nothing.
        elapsed: time since the last crawl, may be infinite.

    Returns:
        The value in units of importance × time, below importance/change_rate (Cho & Garcia-Molina 2003).

    >>> round(freshness_value(2.0, 0.5, 3.0), 6)
    1.768698
    """,
)
freshness_due = function(
    laws.saturating_due,
    {**_PAGE, **_PRICE},
    """When `freshness_value` reaches the price; infinity if it never does.

    >>> round(freshness_due(2.0, 0.5, 1.768698), 5), freshness_due(2.0, 0.5, 4.0)
    (3.0, inf)
    """,
)
harmonic_value = function(
    laws.growing_value,
    {**_PAGE, **_TIME},
    """What a crawl is worth if the n-th missed change costs 1/n: (μ/Δ) h(Δτ).

    Arguments as for `freshness_value`. The value has no bound, so a page that changes is never starved (LambdaCrawl,
    Kolobov et al. 2019).

    >>> round(harmonic_value(2.0, 0.5, 3.0), 6)
    2.892521
    """,
)
harmonic_due = function(
    laws.growing_due,
    {**_PAGE, **_PRICE},
    """When `harmonic_value` reaches the price; infinity if the page never changes.

    >>> round(harmonic_due(2.0, 0.5, 2.892521), 5), harmonic_due(2.0, 0.0, 1.0)
    (3.0, inf)
    """,
)
saturating_value = function(
    laws.saturating_value,
    {"gain": AMOUNT, "decay": AMOUNT, **_TIME},
    """What a crawl is worth if it gains what has piled up and fades: (gain/decay) g(decay·τ).

    Args:
        gain: worth that piles up per unit time: importance × change rate of captured changes (WIC, Pandey et al. 2004),
            profit × rate of new pages of a content source (ECHO, Lefortier et al. 2013).
        decay: share of it that is lost per unit time; if each change replaces the one before, the change rate is added.
            At 0 waiting loses nothing, and the value is 0.
        elapsed: time since the last crawl, may be infinite.

    >>> round(saturating_value(2.0 * 3.0, 0.5, 1.0), 6)
    1.082448
    """,
)
saturating_due = function(
    laws.saturating_due,
    {"gain": AMOUNT, "decay": AMOUNT, **_PRICE},
    "When `saturating_value` reaches the price; infinity if never.",
)
uncertain_freshness_value = function(
    uncertain_freshness_value_kernel,
    {**_LEARNED, **_TIME},
    """`freshness_value` on average over a change rate that is Gamma distributed.

    Args:
        importance: weight of the page.
        shape: k of the Gamma distribution, above 0.
        exposure: its rate parameter θ, a time; the mean change rate is shape/exposure.
        elapsed: time since the last crawl, may be infinite.

    Returns:
        The value in units of importance × time; bounded by μθ/(k − 1) if k > 1, else unbounded.

    >>> round(uncertain_freshness_value(2.0, 3.0, 6.0, 3.0), 6)
    1.555556
    """,
)
uncertain_freshness_due = function(
    uncertain_freshness_due_kernel,
    {**_LEARNED, **_PRICE},
    "When `uncertain_freshness_value` reaches the price; infinity if it never does.",
)
uncertain_harmonic_value = function(
    uncertain_harmonic_value_kernel,
    {**_LEARNED, **_TIME},
    """`harmonic_value` on average over a change rate that is Gamma distributed.

    Arguments as for `uncertain_freshness_value`.

    >>> round(uncertain_harmonic_value(2.0, 3.0, 6.0, 3.0), 6)
    2.666667
    """,
)
uncertain_harmonic_due = function(
    uncertain_harmonic_due_kernel, {**_LEARNED, **_PRICE}, "When `uncertain_harmonic_value` reaches the price."
)
noisy_freshness_value = function(
    partial_freshness_value_kernel,
    {**_NOISY, **_TIME, **_SIGNALS, **_TERMS},
    """What a crawl is worth for freshness if signals announce changes, with misses and false alarms (GREEDY-NCIS).

    Args:
        importance: weight of the page.
        change_rate: changes per unit time.
        recall: probability that a change comes with a signal; at 0 signals are ignored.
        false_signal_rate: signals per unit time with no change behind them.
        elapsed: time since the last crawl, may be infinite.
        signals: number of signals since the last crawl.
        terms: number of terms of the sums to keep, as G-NCIS-APPROX-j of the paper does; all if None.

    Returns:
        The value in units of importance × time, at most importance/change_rate (NCIS, Busa-Fekete et al. 2025).

    >>> round(noisy_freshness_value(1.0, 0.5, 0.6, 0.2, elapsed=1.0, signals=0), 6)
    0.074873
    >>> round(noisy_freshness_value(1.0, 0.5, 0.6, 0.2, elapsed=1.0, signals=1), 6)
    0.789584
    """,
    terms=math.inf,
)
noisy_freshness_due = function(
    noisy_freshness_due_kernel,
    {**_NOISY, **_SIGNALS, **_PRICE},
    """When `noisy_freshness_value` reaches the price if no more signals come.

    0 if it has already, infinity if it never will.

    >>> round(noisy_freshness_due(1.0, 0.5, 0.6, 0.2, signals=0, price=0.074873), 4)
    1.0
    """,
)
trusting_freshness_value = function(
    trusting_freshness_value_kernel,
    {**_TRUSTED, **_TIME, **_SIGNALS},
    """`noisy_freshness_value` if every signal is believed: GREEDY-CIS of the paper.

    >>> trusting_freshness_value(1.0, 0.5, 0.6, elapsed=0.0, signals=1)
    2.0
    """,
)
selective_freshness_value = function(
    selective_freshness_value_kernel,
    {**_NOISY, **_TIME, **_SIGNALS},
    """The same for signals of precision above 0.7 and recall above 0.6; others are ignored: GREEDY-CIS+ of the paper.

    >>> selective_freshness_value(1.0, 0.5, 0.9, 0.01, 0.0, 1), selective_freshness_value(1.0, 0.5, 0.5, 0.01, 0.0, 1)
    (2.0, 0.0)
    """,
)
noisy_harmonic_value = function(
    noisy_harmonic_value_kernel,
    {**_NOISY, **_TIME, **_SIGNALS},
    """What a crawl is worth for harmonic staleness if signals announce changes, with misses and false alarms.

    Arguments as for `noisy_freshness_value`. Microseconds for each element.

    >>> round(noisy_harmonic_value(1.0, 0.5, 0.6, 0.2, elapsed=1.0, signals=0), 6)
    0.079922
    >>> round(noisy_harmonic_value(1.0, 0.5, 0.6, 0.2, elapsed=1.0, signals=1), 6)
    0.8516
    """,
)
noisy_harmonic_due = function(
    noisy_harmonic_due_kernel,
    {**_NOISY, **_SIGNALS, **_PRICE},
    """When `noisy_harmonic_value` reaches the price if no more signals come.

    0 if it has already; infinity only if every change is announced or the page never changes.

    >>> round(noisy_harmonic_due(1.0, 0.5, 0.6, 0.2, signals=0, price=0.079922), 4)
    1.0
    """,
)
shape_g = function(g, {"x": SPAN}, "g(x) = 1 − (1 + x)e^{−x}, which rises from 0 to 1.")
shape_h = function(h, {"x": SPAN}, "h(x) = x − 1 + e^{−x}, which rises from 0 without bound.")
inverse_shape_g = over_arrays(_filled(fill_inverse_g), {"level": SPAN}, "The x with g(x) = level; infinity from 1 on.")
inverse_shape_h = over_arrays(_filled(fill_inverse_h), {"level": SPAN}, "The x with h(x) = level.")

for _name in __all__:
    globals()[_name].__name__ = globals()[_name].__qualname__ = _name
__test__ = {name: globals()[name].__doc__ for name in __all__}  # doctest finds no functions that are made by a call
