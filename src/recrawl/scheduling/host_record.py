"""What the scheduler keeps of a host: its limits, what it is doing, and its own market if it is paced."""

from __future__ import annotations

import numpy as np

HOST = np.dtype(
    [
        ("min_gap", np.float64),  # between the starts of two crawls; 0: none
        ("rate_cap", np.float64),  # crawls per unit time; infinity: no cap
        ("blocked_until", np.float64),  # told to stay away
        ("next_start", np.float64),  # by the gap
        ("cap_time", np.float64),  # when the crawls so far are paid for by the cap
        ("price", np.float64),  # its own price while it cannot serve all that is worth the common one
        ("offer_at", np.float64),  # when it has its next offer to make
        ("pace", np.float64),  # smoothed time between two of its crawls while pages wait
        ("last_start", np.float64),
        ("built_price", np.float64),  # at which the waiting times in its heap were computed
        ("max_in_flight", np.int32),  # 0: no limit
        ("in_flight", np.int32),
        ("root", np.int32),  # of its heap of pages by due time; -1: empty
        ("behind", np.int32),  # of its heap of pages that time alone does not bring, by the most they are worth
        ("waiting", np.int32),  # pages in both heaps
        ("book", np.int32),  # which heap of the agenda it is in; -1: none
        ("place", np.int32),  # in that heap
        ("offered", np.int32),  # its page on offer; -1: none
        ("sold", np.int32),  # crawls since the heap was built
        ("paced", np.int32),  # whether it has limits, and so a heap
    ]
)
