"""Precision and recall of signals by counting intervals: simple, and wrong.

An interval may hold a false signal and a silent change, and several of each: so counting credits signals with changes
they did not announce. It is kept as a comparison for `fit_trust`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from recrawl.learning.inputs import HostColumn, check_made, number_hosts
from recrawl.learning.signal_history import SignalHistories
from recrawl.learning.trust import group_sums, share_of
from recrawl.pages import Floats


class CountedTrust(NamedTuple):
    """Counting estimates, groups by kinds; 0 where nothing was counted."""

    precision: Floats
    recall: Floats


def count_trust(histories: SignalHistories, hosts: HostColumn | None = None) -> CountedTrust:
    """Count intervals with signal and change, over those with a signal (precision) or with a change (recall).

    NCIS, Busa-Fekete et al. 2025, appendix E, which calls it the naive estimate. Biased by about +0.2. O(audits).
    """
    check_made(histories, SignalHistories, "histories", "read_signal_histories")
    pages = len(histories)
    codes = np.arange(pages) if hosts is None else number_hosts(hosts, pages).codes
    groups = int(codes.max(initial=-1)) + 1
    group = codes[histories.page_of_rows()]
    changed = group_sums(group, histories.changed, groups)
    precision, recall = np.zeros((2, groups, len(histories.kinds)))
    for kind in range(len(histories.kinds)):
        heard = histories.counts[:, kind] > 0
        both = group_sums(group, heard & histories.changed, groups)
        precision[:, kind] = share_of(both, group_sums(group, heard, groups))
        recall[:, kind] = share_of(both, changed)
    return CountedTrust(precision, recall)
