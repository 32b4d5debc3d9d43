"""Change rates from crawls that only tell whether a page had changed: the classical estimators.

They look at each page alone. `posterior` is more accurate where many pages are known; these are quick, need no
population, and are what other systems use. Rates are per unit time of the caller's choice; all take histories of
many pages and answer with an array, and `of_one_page` asks any of them about a single page.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from recrawl.errors import InvalidInput
from recrawl.learning.histories import Histories, read_histories
from recrawl.learning.inputs import check_made, check_positive, number_column, shown
from recrawl.learning.rate_roots import moment_rates, regular_rates, smoothed_rates
from recrawl.pages import Floats


def smoothed_mle(
    histories: Histories, fake_gap: float = 0.5, lowest: float | None = None, highest: float | None = None
) -> Floats:
    """The most likely rate of each page, smoothed (LambdaCrawl, Kolobov et al. 2019).

    Solves Σ_changed a/(e^{aΔ} − 1) = Σ_unchanged a, where every page has two imaginary crawls more, one changed and one
    unchanged, so that the answer is neither 0 nor infinite. A page without crawls gets ln(2)/fake_gap.

    Args:
        histories: crawls of the pages.
        fake_gap: gap of the imaginary crawls; the paper has half a day.
        lowest: rates below are raised to it; the paper's code has 0.0005 per day.
        highest: rates above are lowered to it; the paper's code has 7 per day.

    O(observations + about 5 · changes), on equal gaps O(observations).

    >>> seen = read_histories([[1.0, 1.0, 2.0]], [[1, 0, 0]])
    >>> smoothed_mle(seen).round(4).tolist()
    [0.4761]
    """
    _check_histories(histories)
    gap = check_positive(fake_gap, "fake_gap")
    rates = smoothed_rates(histories.offsets, histories.gaps, histories.changed, gap)
    return _clipped(rates, lowest, highest)


def regular_interval(histories: Histories) -> Floats:
    """The estimator for regular crawls, −ln((n − x + ½)/(n + ½))/interval, n crawls, x changed.

    Cho and Garcia-Molina, "Estimating frequency of change", 2003. Irregular gaps enter by their mean, which makes the
    rate too low where gaps differ much. Gaps of 0 do not count; a page with no others gets 0. O(observations).

    >>> regular_interval(read_histories([[1.0] * 10], [[1, 1, 0, 0, 0, 0, 0, 0, 0, 0]])).round(4).tolist()
    [0.2113]
    """
    _check_histories(histories)
    return regular_rates(histories.offsets, histories.gaps, histories.changed)


def moments(histories: Histories) -> Floats:
    """The rate at which as many changed crawls are expected as were seen: Σ (1 − e^{−Δa}) = x.

    Upadhyay et al., "Learning to crawl", 2020. Where all n crawls saw a change, x is taken as n − ½; a page that never
    changed gets 0. Gaps of 0 do not count. O(about 5 · observations), on equal gaps O(observations).

    >>> moments(read_histories([[1.0] * 4, [1.0] * 4], [[1, 1, 0, 0], [0, 0, 0, 0]])).round(4).tolist()
    [0.6931, 0.0]
    """
    _check_histories(histories)
    return moment_rates(histories.offsets, histories.gaps, histories.changed)


def of_one_page(estimator: Callable[..., Floats], gaps: Any, changed: Any, **options: float) -> float:
    """Ask an estimator about one page, whose crawls come flat: one gap and one flag per crawl.

    >>> round(of_one_page(smoothed_mle, [1.0, 1.0, 2.0], [True, False, False]), 4)
    0.4761
    """
    if not callable(estimator):
        raise InvalidInput(f"is {shown(estimator)}, but must be a function such as smoothed_mle", field="estimator")
    crawls = read_histories(number_column(gaps, "gaps"), number_column(changed, "changed"))
    return float(estimator(crawls, **options)[0])


def _check_histories(histories: Histories) -> None:
    check_made(histories, Histories, "histories", "read_histories")


def _clipped(rates: Floats, lowest: float | None, highest: float | None) -> Floats:
    low = None if lowest is None else check_positive(lowest, "lowest")
    high = None if highest is None else check_positive(highest, "highest")
    if low is not None and high is not None and low > high:
        raise InvalidInput(f"is {low!r}, above highest {high!r}", field="lowest")
    return np.clip(rates, low, high) if low is not None or high is not None else rates
