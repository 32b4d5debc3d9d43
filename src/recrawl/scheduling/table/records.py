"""Records of pages and hosts, as kernels see them: fields, states, flags and laws.

A page is 64 bytes, one cache line. Limits and signals, which few pages have, are in arrays of their own, of length 0
until a page needs them. Times are absolute, in the caller's unit; durations since the last crawl are in single
precision, exact to a ten-millionth of the interval.
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
Ids = NDArray[np.int64]
"""Ids of pages: generation · 2³² + slot."""
HostName = str | int

PAGE = np.dtype(
    [
        ("gain", np.float64),  # by unit of cost: importance, or what the law says (laws, below)
        ("decay", np.float64),  # change rate, or what the law says
        ("last", np.float64),  # time of the last crawl; of being added or found if there was none
        ("wait", np.float32),  # its key in its queue: from `last` until it is due or may be taken; a value, by state
        ("not_before", np.float32),  # from `last` until it may be taken: least interval, or retry after a failure
        ("next", np.int32),  # links of its queue; of a candidate: its place; in flight: number of its FLIGHT record
        ("prev", np.int32),
        ("child", np.int32),
        ("host", np.int32),  # -1: none
        ("generation", np.uint32),
        ("law", np.uint8),  # how its value grows (laws, below)
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

FLIGHT = np.dtype(
    [
        ("taken_at", np.int64),  # clock of the budget when the page was taken (`budget.py`)
        ("latest_signal", np.float64),  # time of the latest signal that was counted in flight
        ("signals", np.float32),  # counted in flight, in signals of average weight
        ("next_free", np.int32),  # of a free record: the next free one, 0: no more; of record 0: the first
    ]
)
"""A page in flight. Records are numbered from 1; record 0 begins the chain of free records."""

NO_KIND = np.iinfo(np.int32).min
SLOT_BITS = 32  # of an id
MOST_FAILURES = 255  # in a row that the record counts

# States
FREE = 0  # nobody's
QUEUED = 1  # waits until it is due
STANDING = 2  # waits for the price to fall: its value does not rise to it
READY = 3  # a candidate of the next auction
IN_FLIGHT = 4  # taken, its result is not known yet
AT_HOST = 5  # waits at its host until it is due
IDLE = 6  # a crawl of it is worth nothing as things are
HELD = 7  # may not be taken yet: its least interval, or a wait after a failure
BY_VALUE = 8  # is due, and waits at its host until that opens
STATES = 9

# Flags
NO_COPY = 1  # never crawled: counts as one missed change
LEARNS = 2  # its change rate is learned
LIMITED = 4  # has an entry in the limits
LISTENS = 8  # has an entry in the signals
CAPTURES = 16  # captured changes count, not freshness

HOST = np.dtype(
    [
        ("min_gap", np.float64),  # between the starts of two crawls; 0: none
        ("rate_cap", np.float64),  # crawls per unit time; infinity: no cap
        ("blocked_until", np.float64),  # told to stay away
        ("next_start", np.float64),  # by the gap
        ("cap_time", np.float64),  # when the crawls so far are paid for by the cap
        ("price", np.float64),  # its own price while it cannot serve all that is worth the common one, else 0
        ("built_price", np.float64),  # at which the due times of its waiting pages were computed
        ("offer_at", np.float64),  # when it has pages to offer next
        ("max_in_flight", np.int32),  # 0: no limit
        ("in_flight", np.int32),
        ("by_due", np.int32),  # root of its heap of waiting pages by due time; -1: empty
        ("by_value", np.int32),  # root of its heap of waiting pages by value; -1: empty
        ("waiting", np.int32),  # pages in both heaps
        ("place", np.int32),  # in the queue of hosts; -1: not in it
        ("offered", np.int32),  # its pages among the candidates
        ("sold", np.int32),  # its crawls since `built_price` was set
        ("paced", np.int32),  # whether it has limits
    ]
)

FRESHNESS = 0  # (gain/decay) g(decay·elapsed): freshness, or changes captured before they fade
HARMONIC = 1  # (gain/decay) h(decay·elapsed)
WINDOW = 2  # 0 until `decay` time has passed, then gain·decay: captured changes that stay for a window
SOURCE = 3  # as FRESHNESS, but only new pages still worth their price count; gain is profit × rate of new pages
ONCE = 4  # gain·e^{−decay·elapsed} since it was found; crawled once
LEARNED_FRESHNESS = 5  # change rate by a Gamma distribution: mean `decay`, shape `belief`
LEARNED_HARMONIC = 6
NOISY_FRESHNESS = 7  # with change-indicating signals
NOISY_HARMONIC = 8

NAMES = (
    "freshness",
    "harmonic",
    "window",
    "source",
    "once",
    "learned freshness",
    "learned harmonic",
    "freshness with signals",
    "harmonic with signals",
)
