"""Trust in signals: how much each kind says, how sure that is, and the fit to crawls that audit the signals.

A change is announced by a signal or silent. An interval of length τ with n_k signals of kind k sees a change with
probability 1 − exp(−(ατ + Σ b_k n_k)) (NCIS, Busa-Fekete et al. 2025, appendix E). The rate of silent changes α and the
weights b_k are fitted together, so that a signal gets credit only for changes that time does not explain. With the rate
of signals γ, which is counted, the others follow: precision 1 − e^{−b}, false signals γe^{−b}, changes
α + γ(1 − e^{−b}), recall γ(1 − e^{−b}) over changes. A signal is useless until shown otherwise: the prior is a
pseudo-audit that had the usual number of signals and found nothing.

Pages of a host share the weights, but some change more often than others, and usually those have more signals too. If
they counted as one page, an idle signal would look informative. So the silent rate of a page may rise with the signals
it usually has, and a signal counts only as far as it comes at the right time.

Kinds that always come together cannot be told apart: their audits fix the sum of their weights, and how the fit shares
it out among them is arbitrary. Predictions depend on the sum and stay right. The weight and precision of one such kind
alone mean nothing, and their standard errors are huge; recall and change rate count the changes of each kind apart, so
changes that several kinds announce count more than once.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.learning.hazard_fit import HazardFit, HazardProblems, fit_hazards
from recrawl.learning.inputs import Flags, HostColumn, Integers, check_made, check_positive, number_hosts
from recrawl.learning.signal_history import SignalHistories
from recrawl.pages import Floats

_IMAGINARY_CRAWLS = 0.5
"""Changed audits without signals that are imagined, and as many unchanged: so no rate ends at 0 or infinity."""


def group_sums(group: NDArray[np.int64], values: NDArray[Any], groups: int) -> Floats:
    """Sum values, or each column of values, per group. O(rows · columns).

    >>> group_sums(np.array([0, 1, 1]), np.array([1.0, 2.0, 3.0]), 3).tolist()
    [1.0, 5.0, 0.0]
    """
    if values.ndim == 1:
        return np.bincount(group, values, groups).astype(np.float64, copy=False)
    sums = np.empty((groups, values.shape[1]))
    for column in range(values.shape[1]):
        sums[:, column] = np.bincount(group, values[:, column], groups)
    return sums


def share_of(part: Floats, whole: Floats) -> Floats:
    """Divide, with 0/0 = 0.

    >>> share_of(np.array([1.0, 0.0]), np.array([4.0, 0.0])).tolist()
    [0.25, 0.0]
    """
    return np.divide(part, whole, out=np.zeros(np.broadcast_shapes(part.shape, whole.shape)), where=whole > 0)


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


class Audits(NamedTuple):
    """Audits in order of their group: what was heard, what should have been heard, what was seen.

    `expected` has no columns if the pages of a group are not told apart.
    """

    group: Integers
    gaps: Floats
    listening: Floats
    expected: Floats
    counts: Floats
    changed: Flags


class Totals(NamedTuple):
    """Sums over the audits of each group; `signalled` counts audits with a signal of each kind."""

    audits: Floats
    gaps: Floats
    listening: Floats
    expected: Floats
    counts: Floats
    signalled: Floats
    any_signal: Floats


def fit_trust(histories: SignalHistories, hosts: HostColumn | None = None, prior: float = 1.0) -> Trust:
    """Fit trust in every kind of signal at once, per page or pooled per host. O(audits · kinds²).

    Args:
        histories: the audits.
        hosts: the host of each page; without it every page stands alone.
        prior: how many audits the belief that signals are useless is worth; with 0 it is a plain maximum likelihood.

    >>> from recrawl.learning.signal_history import read_signal_histories
    >>> heard = [[1], [0], [1], [0]] * 10
    >>> audits = read_signal_histories([[1.0] * 40], [[1, 0, 1, 0] * 10], heard, kinds=["sitemap"])
    >>> trust = fit_trust(audits)
    >>> bool(trust.precision[0, 0] > 0.9), bool(trust.silent_rate[0] < 0.1)
    (True, True)
    """
    check_made(histories, SignalHistories, "histories", "read_signal_histories")
    prior = check_positive(prior, "prior", may_be_zero=True)
    if hosts is None:
        names: Sequence[Hashable] = range(len(histories))
        group_of_page = np.arange(len(histories))
    else:
        numbered = number_hosts(hosts, len(histories))
        names, group_of_page = numbered.names, numbered.codes
    audits = _audits(histories, group_of_page, apart=hosts is not None)
    totals = _totals(audits, len(names))
    fit = fit_hazards(_problems(audits, totals, prior))
    return trust_of(fit, totals, names, histories.kinds)


def usual_signal_rates(histories: SignalHistories, group_of_page: Integers, groups: int) -> Floats:
    """Signals per unit time of each page and kind, drawn to the group's by one imaginary signal."""
    page = histories.page_of_rows()
    pages, kinds = len(histories), len(histories.kinds)
    listening = group_sums(page, histories.listening(), pages)
    counts = group_sums(page, histories.counts, pages)
    group_counts = group_sums(group_of_page, counts, groups)
    group_rate = share_of(group_counts, group_sums(group_of_page, listening, groups)[:, None])[group_of_page]
    heard = group_rate > 0
    wait = np.divide(1.0, group_rate, out=np.zeros((pages, kinds)), where=heard)
    return share_of(counts + heard, listening[:, None] + wait)


def trust_of(fit: HazardFit, totals: Totals, names: Sequence[Hashable], kinds: tuple[Hashable, ...]) -> Trust:
    """Turn fitted strengths, which are in units of mean amounts, into rates and weights."""
    groups, causes = fit.strengths.shape
    size = len(kinds)
    rates = causes - size  # columns of the silent rate: time, and expected signals if pages are told apart
    mean_gap, mean_expected, mean_count = scales_of(totals)
    to_natural = np.zeros((groups, 1 + size, causes))
    to_natural[:, 0, :rates] = (1.0 / mean_gap)[:, None]
    for kind in range(size):
        to_natural[:, 1 + kind, rates + kind] = 1.0 / mean_count[:, kind]
    values = np.einsum("gnc,gc->gn", to_natural, fit.strengths)
    estimate = Estimate(values, np.einsum("gnc,gcd,gmd->gnm", to_natural, fit.covariance, to_natural))
    signal_rate = share_of(totals.counts, totals.listening[:, None])
    per_signal = fit.strengths[:, 1:rates] / mean_expected if rates > 1 else np.zeros((groups, size))
    return Trust(
        names=names,
        kinds=kinds,
        audits=np.rint(totals.audits).astype(np.int64),
        silent_rate=values[:, 0],
        signal_weight=values[:, 1:],
        signal_rate=signal_rate,
        signalled=share_of(totals.any_signal, totals.audits),
        steady_rate=fit.strengths[:, 0] / mean_gap,
        silent_per_signal=per_signal,
        errors=errors_of(estimate, signal_rate, totals.listening[:, None]),
    )


def imaginary_audits(against: Floats, totals: Totals, prior: float) -> tuple[Floats, float]:
    """Add the prior to what speaks against the causes; return the imaginary changed audits and their weight.

    Amounts are in units of their means, so the imaginary audits are average ones.
    """
    rates = 1 + totals.expected.shape[1]
    silent_change = np.zeros_like(against)
    silent_change[:, 0] = 1.0
    silent_change[:, 1:rates] = totals.expected > 0
    against += _IMAGINARY_CRAWLS * prior * silent_change
    against[:, rates:] += prior
    return silent_change, _IMAGINARY_CRAWLS * prior


def _audits(histories: SignalHistories, group_of_page: Integers, *, apart: bool) -> Audits:
    """The telling audits, sorted by group."""
    page = histories.page_of_rows()
    groups = int(group_of_page.max(initial=-1)) + 1
    rows = np.flatnonzero(histories.telling())
    group = group_of_page[page[rows]]
    if (np.diff(group) < 0).any():
        order = np.argsort(group, kind="stable")
        rows, group = rows[order], group[order]
    gaps = histories.gaps[rows]
    if apart:
        expected = usual_signal_rates(histories, group_of_page, groups)[page[rows]] * gaps[:, None]
    else:
        expected = np.empty((len(rows), 0))
    counts = histories.counts[rows].astype(np.float64)
    return Audits(group, gaps, histories.listening()[rows], expected, counts, histories.changed[rows])


def _totals(audits: Audits, groups: int) -> Totals:
    heard = audits.counts > 0
    return Totals(
        np.bincount(audits.group, minlength=groups).astype(np.float64),
        group_sums(audits.group, audits.gaps, groups),
        group_sums(audits.group, audits.listening, groups),
        group_sums(audits.group, audits.expected, groups),
        group_sums(audits.group, audits.counts, groups),
        group_sums(audits.group, heard, groups),
        group_sums(audits.group, heard.max(axis=1, initial=False), groups),
    )


def scales_of(totals: Totals) -> tuple[Floats, Floats, Floats]:
    """Mean gap, mean expected signals, and mean signals of audits that heard any; 1 where there are none."""
    return (
        _mean(totals.gaps, totals.audits),
        _mean(totals.expected, totals.audits[:, None]),
        _mean(totals.counts, totals.signalled),
    )


def _mean(sums: Floats, numbers: Floats) -> Floats:
    mean = share_of(sums, numbers)
    mean[mean == 0] = 1.0
    return mean


def _problems(audits: Audits, totals: Totals, prior: float) -> HazardProblems:
    """Scale the audits and add the imaginary ones."""
    groups, kinds = totals.counts.shape
    mean_gap, mean_expected, mean_count = scales_of(totals)
    scale = np.concatenate([mean_gap[:, None], mean_expected, mean_count], axis=1)
    quiet = ~audits.changed
    against = np.concatenate([
        group_sums(audits.group[quiet], audits.gaps[quiet], groups)[:, None],
        group_sums(audits.group[quiet], audits.expected[quiet], groups),
        group_sums(audits.group[quiet], audits.counts[quiet], groups),
    ], axis=1) / scale  # fmt: skip
    group = audits.group[audits.changed]
    changed = np.bincount(group, minlength=groups)
    imaginary, weight = imaginary_audits(against, totals, prior)
    extra = 1 if weight > 0 else 0
    offsets = np.concatenate([[0], np.cumsum(changed + extra)])
    amounts = np.empty((offsets[-1], scale.shape[1]))
    weights = np.ones(len(amounts))
    if extra:
        amounts[offsets[1:] - 1] = imaginary
        weights[offsets[1:] - 1] = weight
    rows = np.arange(len(group)) + extra * group
    amounts[rows, 0] = audits.gaps[audits.changed]
    amounts[rows, 1 : scale.shape[1] - kinds] = audits.expected[audits.changed]
    amounts[rows, scale.shape[1] - kinds :] = audits.counts[audits.changed]
    amounts[rows] /= scale[group]
    return HazardProblems(offsets, amounts, weights, against)
