"""What is known of signals: how much each kind tells, and how sure that is.

A change is announced by a signal or silent. Two numbers are fitted, the rate of silent changes α and the evidence b of
one signal; with the rate of signals γ, which is simply counted, the others follow (NCIS, Busa-Fekete et al. 2025):
precision 1 − e^{−b}, false signals γe^{−b}, changes α + γ(1 − e^{−b}), recall γ(1 − e^{−b}) over changes.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from recrawl.learning.group_sums import share_of
from recrawl.learning.inputs import Integers
from recrawl.pages import Floats


class TrustErrors(NamedTuple):
    """Standard errors; of a weight that ended at 0 how far above it may be."""

    silent_rate: Floats
    signal_weight: Floats
    precision: Floats
    recall: Floats
    change_rate: Floats


@dataclass(frozen=True, slots=True)
class Trust:
    """Trust in signals, one row per group (host or page) and one column per kind of signal. Rates are per unit time.

    Attributes:
        names: what the rows are.
        kinds: what the columns are.
        audits: crawls that told something, per row.
        silent_rate: changes that no signal announces.
        signal_weight: evidence of one signal; 0 means that it tells nothing.
        signal_rate: signals, true and false.
        signalled: share of the audits before which there was a signal.
        steady_rate: the part of the silent rate that all pages of the group share.
        silent_per_signal: silent changes per signal that a page usually has; what makes busy pages of a group busier.
        errors: standard errors.
    """

    names: Sequence[Hashable]
    kinds: tuple[Hashable, ...]
    audits: Integers
    silent_rate: Floats
    signal_weight: Floats
    signal_rate: Floats
    signalled: Floats
    steady_rate: Floats
    silent_per_signal: Floats
    errors: TrustErrors

    def __len__(self) -> int:
        return len(self.audits)

    @property
    def precision(self) -> Floats:
        """Chance that a signal means a change."""
        return -np.expm1(-self.signal_weight)

    @property
    def false_signal_rate(self) -> Floats:
        """Signals with no change behind them."""
        return self.signal_rate * np.exp(-self.signal_weight)

    @property
    def change_rate(self) -> Floats:
        """Changes, silent and announced."""
        rate: Floats = self.silent_rate + (self.signal_rate * self.precision).sum(axis=1)
        return rate

    @property
    def recall(self) -> Floats:
        """Chance that a change is announced by this kind."""
        return share_of(self.signal_rate * self.precision, self.change_rate[:, None])


class Estimate(NamedTuple):
    """Silent rate and signal weights side by side (groups by 1 + kinds), with the covariance of their errors."""

    values: Floats
    covariance: Floats


def errors_of(estimate: Estimate, signal_rate: Floats, listening: Floats) -> TrustErrors:
    """Standard errors of everything that follows from the estimate, to first order. O(groups · kinds³).

    Args:
        estimate: silent rate and signal weights.
        signal_rate: signals per unit time, groups by kinds.
        listening: the time they were counted in, groups by kinds or by 1.
    """
    silent, weight = estimate.values[:, 0], estimate.values[:, 1:]
    precision, missed = -np.expm1(-weight), np.exp(-weight)
    announced = signal_rate * precision
    changes = silent + announced.sum(axis=1)
    rate_variance = share_of(signal_rate, listening)
    own = np.sqrt(np.maximum(np.diagonal(estimate.covariance, axis1=1, axis2=2), 0.0))
    by_weight = signal_rate * missed
    # d(changes)/d(silent, weights), then by the signal rates, whose errors are independent of the others.
    slopes = np.concatenate([np.ones((len(silent), 1)), by_weight], axis=1)
    change_variance = _spread(slopes, estimate.covariance) + (precision**2 * rate_variance).sum(axis=1)
    recall_error = np.empty_like(weight)
    for kind in range(weight.shape[1]):
        recall = share_of(announced[:, kind], changes)
        slopes = np.concatenate([np.ones((len(silent), 1)), by_weight], axis=1) * -recall[:, None]
        slopes[:, 1 + kind] += by_weight[:, kind]
        by_rate = -recall[:, None] * precision
        by_rate[:, kind] += precision[:, kind]
        variance = _spread(slopes, estimate.covariance) + (by_rate**2 * rate_variance).sum(axis=1)
        # A share cannot be further off than 1.
        recall_error[:, kind] = np.minimum(share_of(np.sqrt(variance), changes), 1.0)
    return TrustErrors(
        own[:, 0], own[:, 1:], missed * np.minimum(own[:, 1:], 1.0), recall_error, np.sqrt(change_variance)
    )


def _spread(slopes: Floats, covariance: Floats) -> Floats:
    """Variance of a linear function, per group."""
    variance: Floats = np.einsum("gi,gij,gj->g", slopes, covariance, slopes)
    return np.maximum(variance, 0.0)
