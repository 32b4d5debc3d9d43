"""The arrays behind the market: pages, hosts, lists, and the desk with its few numbers. Kernels take them together.

A page that waits is in one list. Lists are doubly linked through the page records, so that a page leaves in constant
time; the record at the head of list k has prev = -2 - k. The lists are, in this order in `heads`:

    wheel, near        one for each bin of time in the next cycle or two
    wheel, middle      SPAN bins, each as long as a 64th of the near ones together
    wheel, far         SPAN bins, each as long as 16 of those
    later              what is due after all of these
    standing           by the most they will be worth: pages whose value does not rise to the price
    ready              on offer
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import borrowing
from recrawl.scheduling.table.records import Records

SPAN = 1024
FEWEST_BINS = 4096
PER_OCTAVE = 32  # standing lists for each doubling of value
OCTAVES = 1100  # from 2^-550 to 2^550
STANDING = 2 * PER_OCTAVE * OCTAVES  # two of each value: of pages that may yet rise to it, and that stand still
SAMPLE = 512  # pages of a host that are asked when its price is found anew
AFTER_NEAR = 2 * SPAN + 1 + STANDING + 1  # lists beside the near ones

DESK = np.dtype(
    [
        ("now", np.float64),  # the time of the call
        ("burst", np.float64),  # crawls that may be made at once after a pause
        ("width", np.float64),  # of a near bin
        ("origin", np.float64),  # time of bin 0
        ("base", np.int64),  # the first bin that is not drained
        ("bins", np.int64),  # near ones, a power of 2
        ("entry", np.float64),  # price at which a page comes on offer
        ("price", np.float64),  # what crawls are sold at, smoothed
        ("ready", np.int64),  # pages on offer
        ("live", np.int64),  # pages that are not free
        ("used", np.int64),  # slots ever used
        ("top", np.int64),  # no standing list above this one has a page
        ("still_top", np.int64),  # and none of pages that stand still above this one
        ("least_cost", np.float64),  # of any page so far
        ("swept", np.float64),  # entry price at the start of the last sweep
        ("sweep_at", np.int64),
        ("sweep_left", np.int64),
        ("parked", np.int64),  # whether pages worth their price were taken off the offers since the last sweep
        ("unswept", np.int64),  # crawls sold since then
        ("pen", np.int64),  # root of the heap of pages that may not be taken yet, by when they may; -1: empty
        ("agenda", np.int64, (2,)),  # hosts in each heap of the agenda
        ("touched", np.int64),  # a sum over memory that was read ahead of its use, so that it is read at all
        ("sample", np.int64, (SAMPLE,)),  # room for pages of a host
    ]
)


class Market(NamedTuple):
    """Everything the market kernels work on. `signals` is None where no page listens."""

    pages: Records
    limits: Records
    signals: Records | None
    hosts: Records
    agenda: NDArray[np.int32]  # two heaps of hosts: closed ones by when they open, open ones by their next page
    heads: NDArray[np.int32]
    bits: NDArray[np.uint64]  # which near bins have a page; behind them, which words of these bits have one
    desk: Records


Arrays = tuple[
    Records, Records, Records | None, Records, NDArray[np.int32], NDArray[np.int32], NDArray[np.uint64], Records
]
"""The same as a plain tuple: for a call from Python, whose type is found twice as fast as that of a named one."""


@borrowing
def begin(market: Market, now: float, burst: float) -> None:
    """Tell the desk the time; every kernel that enters the market does so first."""
    market.desk[0]["now"] = now
    market.desk[0]["burst"] = burst


@borrowing
def between(price: float, other: float, share: float) -> float:
    """A price this share of the way to another, in logarithms: their ratio may be beyond all floats."""
    return math.exp(math.log(price) + share * (math.log(other) - math.log(price)))


def empty_lists(bins: int) -> tuple[NDArray[np.int32], NDArray[np.uint64]]:
    """Heads of lists and the bits over them, for so many near bins (a power of 2, at least FEWEST_BINS)."""
    heads = np.full(bins + AFTER_NEAR, -1, dtype=np.int32)
    return heads, np.zeros(bins // 64 + bins // 4096, dtype=np.uint64)


def empty_desk(now: float) -> Records:
    """A desk that has sold nothing yet."""
    desk = np.zeros(1, dtype=DESK)
    desk["origin"], desk["width"], desk["bins"], desk["least_cost"] = now, 1.0, FEWEST_BINS, 1.0
    desk["top"] = desk["still_top"] = desk["pen"] = -1
    return desk
