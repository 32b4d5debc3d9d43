"""Trust in the signals of single pages: the host's, until a page's own audits say otherwise.

A page starts as its host: some imaginary signals of each kind that keep the host's precision, and an imaginary crawl
or two that keep the silent rate the host expects of a page with so many signals. Own audits outweigh them as they
come, so a page with hundreds of audits stands on its own.
"""

from __future__ import annotations

import math
from collections.abc import Hashable

import numpy as np

from recrawl.errors import InvalidInput
from recrawl.learning.group_sums import group_sums, share_of
from recrawl.learning.hazard_fit import HazardProblems, fit_hazards
from recrawl.learning.host_column import HostColumn, number_hosts
from recrawl.learning.inputs import Integers, check_made
from recrawl.learning.signal_history import SignalHistories
from recrawl.learning.signal_trust import fit_trust, usual_signal_rates
from recrawl.learning.trust import Estimate, Trust, errors_of
from recrawl.pages import Floats

IMAGINARY_SIGNALS = 10.0
"""How many signals of its own outweigh the host's precision."""

IMAGINARY_CRAWLS = 1.0
"""How many changes of its own outweigh the host's silent rate; small, because the pages of a host differ widely."""


def fit_page_trust(histories: SignalHistories, hosts: HostColumn, host_trust: Trust | None = None) -> Trust:
    """Fit trust per page, drawn to the trust in its host. O(audits · kinds²).

    Args:
        histories: the audits.
        hosts: the host of each page.
        host_trust: the trust in the hosts, one row for each, in the order of their numbers (`number_hosts`), and of the
            same kinds; fitted to the same audits if not given.

    >>> from recrawl.learning.signal_history import read_signal_histories
    >>> gaps, seen, heard = [[1.0] * 40, []], [[1, 0] * 20, []], [[1], [0]] * 20
    >>> pages = fit_page_trust(read_signal_histories(gaps, seen, heard, ["feed"]), hosts=["a.org", "a.org"])
    >>> bool(pages.precision[1, 0] > 0.9)  # never crawled twice, yet its host is known
    True
    """
    check_made(histories, SignalHistories, "histories", "read_signal_histories")
    numbered = number_hosts(hosts, len(histories))
    if host_trust is not None:
        _check_host_trust(host_trust, len(numbered.names), histories.kinds)
    of_host = fit_trust(histories, numbered) if host_trust is None else host_trust
    host, kinds = numbered.codes, len(histories.kinds)
    usual = usual_signal_rates(histories, host, len(of_host))
    silent = of_host.steady_rate[host] + (of_host.silent_per_signal[host] * usual).sum(axis=1)
    silent = np.where(silent > 0, silent, _least_rate(of_host)[host])
    fit = fit_hazards(_problems(histories, silent, of_host.precision[host]))
    scale = np.concatenate([silent[:, None], np.ones((len(host), kinds))], axis=1)
    values = fit.strengths * scale
    # The imaginary signal in the usual rate took as long as the host needs for one.
    heard_for = group_sums(histories.page_of_rows(), histories.listening(), len(histories))[:, None]
    listening = heard_for + share_of(np.ones_like(usual), of_host.signal_rate[host])
    covariance = fit.covariance * scale[:, :, None] * scale[:, None, :]
    return Trust(
        names=range(len(histories)),
        kinds=histories.kinds,
        audits=np.bincount(histories.page_of_rows()[histories.telling()], minlength=len(histories)),
        silent_rate=values[:, 0],
        signal_weight=values[:, 1:],
        signal_rate=usual,
        signalled=_signalled(histories),
        steady_rate=values[:, 0],
        silent_per_signal=np.zeros_like(usual),
        errors=errors_of(Estimate(values, covariance), usual, listening),
    )


def _check_host_trust(trust: Trust, hosts: int, kinds: tuple[Hashable, ...]) -> None:
    check_made(trust, Trust, "host_trust", "fit_trust")
    if len(trust) != hosts:
        raise InvalidInput(f"has {len(trust)} rows, but there are {hosts} hosts: one row each", field="host_trust")
    if trust.kinds != kinds:
        raise InvalidInput(f"has the kinds {trust.kinds!r}, but histories has {kinds!r}", field="host_trust")


def _least_rate(trust: Trust) -> Floats:
    """A silent rate to start from where the host's is 0: what its crawls may have missed; 1 if it was never crawled."""
    seen = trust.silent_rate + trust.errors.silent_rate
    return np.where(seen > 0, seen, 1.0)


def _signalled(histories: SignalHistories) -> Floats:
    telling = histories.telling()
    page = histories.page_of_rows()[telling]
    heard = group_sums(page, histories.counts[telling].max(axis=1, initial=0) > 0, len(histories))
    audits = np.bincount(page, minlength=len(histories)).astype(np.float64)
    return share_of(heard, audits)


def _problems(histories: SignalHistories, silent: Floats, precision: Floats) -> HazardProblems:
    """One problem per page: its audits, time measured in silent changes expected by the host, and imaginary audits."""
    pages, kinds = precision.shape
    telling = histories.telling()
    page = histories.page_of_rows()
    quiet = telling & ~histories.changed
    against = np.empty((pages, 1 + kinds))
    # An imaginary crawl after one expected change sees one with chance 1 − 1/e, so this is the odds against it.
    against[:, 0] = group_sums(page[quiet], histories.gaps[quiet], pages) * silent + IMAGINARY_CRAWLS / math.expm1(1)
    for kind in range(kinds):
        heard = group_sums(page[quiet], histories.counts[quiet, kind], pages)
        against[:, 1 + kind] = heard + IMAGINARY_SIGNALS * (1 - precision[:, kind])
    seen = np.flatnonzero(telling & histories.changed)
    return _with_imaginary(histories, seen, page[seen], silent, precision, against)


def _with_imaginary(
    histories: SignalHistories, seen: Integers, page: Integers, silent: Floats, precision: Floats, against: Floats
) -> HazardProblems:
    """Lay the changed audits of each page and its imaginary ones, one per cause, side by side."""
    pages, kinds = precision.shape
    causes = 1 + kinds
    offsets = np.concatenate([[0], np.cumsum(np.bincount(page, minlength=pages) + causes)])
    amounts = np.zeros((offsets[-1], causes))
    weights = np.ones(len(amounts))
    for cause in range(causes):
        rows = offsets[:-1] + cause
        amounts[rows, cause] = 1.0
        weights[rows] = IMAGINARY_CRAWLS if cause == 0 else IMAGINARY_SIGNALS * precision[:, cause - 1]
    # A kind that the host finds useless has an imaginary audit of weight 0, which needs some cause: expected time.
    amounts[weights == 0, 0] = 1.0
    rows = np.arange(len(seen)) + causes * (page + 1)
    amounts[rows, 0] = histories.gaps[seen] * silent[page]
    amounts[rows, 1:] = histories.counts[seen]
    return HazardProblems(offsets, amounts, weights, against)
