"""What the online filter keeps of a page: 40 bytes.

Unchanged crawls tell of a rate only by their total time, and changed ones by their number and gaps
(`filter_gaps.py`). So the state holds these sums, not a distribution: no prior is baked in, nothing is rounded to a
grid, and a prior that is fitted anew tomorrow reads the same state. Beside the lasting memory there is a short one,
for a page that may have turned (`filter_turns.py`).

The state of many pages is one structured array, a page in one piece, so that a crawl touches one line of the cache.
A scheduler may own it: kernels take it as it is and change it in place.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

PAGE_STATE = np.dtype(
    [
        ("unchanged_time", np.float32),  # total gap of crawls that saw no change
        ("changes", np.float32),  # how many crawls saw one
        ("gap_mean", np.float32),  # of the roots of their gaps: mean,
        ("gap_variance", np.float32),  # variance,
        ("gap_skew", np.float32),  # and third central moment
        ("recent_unchanged_time", np.float32),  # the same since the page may have turned
        ("recent_changes", np.float32),
        ("recent_gap_mean", np.float32),
        ("turn_evidence", np.int16),  # in units of 1/EVIDENCE_UNITS, negative for a fall; 0: short memory empty
        ("log_rate_before", np.int16),  # in units of 1/LOG_RATE_UNITS: of the rate that the page may have left
        ("prior_row", np.int32),  # 0 is the prior of the population, r + 1 that of host r
    ]
)
"""A page; one never crawled is all zeros, but for its prior."""

EVIDENCE_UNITS = 1024.0
LOG_RATE_UNITS = 200.0  # rates from 1e-60 to 1e60 fit

FilterState = NDArray[np.void]
PageState = np.void


def empty_state(pages: int) -> FilterState:
    """The state of so many pages that were never crawled. O(pages).

    >>> PAGE_STATE.itemsize, len(empty_state(3))
    (40, 3)
    """
    return np.zeros(pages, dtype=PAGE_STATE)
