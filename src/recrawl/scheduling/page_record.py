"""What the scheduler keeps of a page: 64 bytes, one line of the cache, in one array of records.

Kernels take the array as it is. Limits and signals, which few pages have, are in arrays of their own beside it, of
length 0 until a page needs them. Times are absolute in the caller's unit; what is counted from the last crawl is in
single precision, which is good to a ten-millionth of the interval.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Records = NDArray[np.void]
"""An array of one of the records below."""
Record = Any
"""One entry of such an array, as kernels see it."""
Slots = NDArray[np.int64]
"""Places of pages in the arrays."""

PAGE = np.dtype(
    [
        ("gain", np.float64),  # by unit of cost: importance, or what stands for it (`laws.py`)
        ("decay", np.float64),  # change rate, or what stands for it
        ("last", np.float64),  # time of the last crawl; of being added or found if there was none
        ("wait", np.float32),  # from `last` until it is due at the price of its market
        ("not_before", np.float32),  # from `last` until it may be taken: least interval, or retry after a failure
        ("next", np.int32),  # links of the list or heap it is in; in flight: when it was taken (`leases.py`)
        ("prev", np.int32),
        ("child", np.int32),
        ("host", np.int32),  # -1: none
        ("generation", np.uint32),
        ("law", np.uint8),  # how its value grows (`laws.py`)
        ("state", np.uint8),  # where it is, one of the states below
        ("failures", np.uint8),  # in a row
        ("flags", np.uint8),
        ("signals", np.float32),  # heard since the last crawl, in signals of average weight
        ("belief", np.float32),  # shape of the Gamma distribution of a learned rate, whose mean is `decay`
    ]
)

LIMITS = np.dtype(
    [
        ("cost", np.float32),
        ("min_interval", np.float32),
        ("max_interval", np.float32),
        ("profit", np.float32),  # of a content source: of one new page, by unit of cost
    ]
)

SIGNALS = np.dtype(
    [
        ("recall", np.float32),  # of all kinds together
        ("precision", np.float32),  # of all kinds together
        ("threshold", np.float32),  # of the level or cost at which it is due at the price of its market
        ("profile", np.int32),  # -1 - kind if it has one kind, else its row in the table of profiles; NO_KIND: none
    ]
)

NO_KIND = np.iinfo(np.int32).min

# States
FREE = 0  # nobody's
QUEUED = 1  # waits for its time
STANDING = 2  # waits for the price to fall: its value does not rise to it
READY = 3  # on offer
IN_FLIGHT = 4  # taken, not settled yet
AT_HOST = 5  # waits in the heap of its host
IDLE = 6  # a crawl of it is worth nothing as things are
HELD = 7  # may not be taken yet: its least interval, or a wait after a failure

# Flags
NO_COPY = 1  # never crawled: counts as one missed change
LEARNS = 2  # its change rate is learned
LIMITED = 4  # has an entry in the limits
LISTENS = 8  # has an entry in the signals
CAPTURES = 16  # captured changes count, not freshness
