"""Crawl times that follow given rates: earliest deadline first, or at random.

Earliest deadline first (Azar et al. 2018, and the low-discrepancy schedule of the NCIS paper, which is the same):
one crawl per slot. Crawl k of a page at rate ρ per slot is released at k/ρ and due at (k+1)/ρ. Among the released
the earliest deadline is crawled, ties by page; if none is released, the next release. On every prefix no page is a
whole crawl ahead of its rate, and none is late.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.jit import exact
from recrawl.pages import Floats

Kind = Literal["edf", "low-discrepancy", "poisson"]
_AT_ONCE = 4096


def schedule(rates: Floats, kind: Kind, seed: int = 0) -> Iterator[tuple[float, int]]:
    """Yield (time, page) for ever at these rates; nothing if all are 0. O(log pages) per crawl."""
    if kind not in get_args(Kind):
        raise InvalidInput(f"is {kind!r}, but must be one of {', '.join(get_args(Kind))}", field="schedule")
    pages = np.flatnonzero(rates > 0)
    if not len(pages):
        return iter(())
    if kind == "poisson":
        return _at_random(pages, rates[pages], seed)
    return _by_deadline(pages, rates[pages])


def _at_random(pages: NDArray[np.int64], rates: Floats, seed: int) -> Iterator[tuple[float, int]]:
    random = np.random.default_rng(seed)
    heights = np.cumsum(rates)
    total = float(heights[-1])
    now = 0.0
    while True:
        times = now + np.cumsum(random.exponential(1 / total, _AT_ONCE))
        picks = np.searchsorted(heights, random.random(_AT_ONCE) * total, side="right")
        chosen = pages[np.minimum(picks, len(pages) - 1)]
        now = float(times[-1])
        yield from zip(times.tolist(), chosen.tolist(), strict=True)


def _by_deadline(pages: NDArray[np.int64], rates: Floats) -> Iterator[tuple[float, int]]:
    total = float(rates.sum())
    size = len(pages)
    # All first crawls are released at 0; in order of rate they form a heap by deadline.
    first = np.argsort(-rates, kind="stable")
    state = Queues(
        rate=rates / total,
        crawls=np.zeros(size),
        ready=first.astype(np.int64),
        waiting=np.zeros(size, dtype=np.int64),
        sizes=np.array([size, 0], dtype=np.int64),
    )
    slot = 0
    chosen = np.empty(_AT_ONCE, dtype=np.int64)
    while True:
        serve(state, slot, chosen)
        times = (np.arange(slot, slot + _AT_ONCE) + 1) / total
        slot += _AT_ONCE
        yield from zip(times.tolist(), pages[chosen].tolist(), strict=True)


class Queues(NamedTuple):
    """Two heaps of pages: `ready` by deadline, `waiting` by release; `crawls` counts those made, per page."""

    rate: Floats
    crawls: Floats
    ready: NDArray[np.int64]
    waiting: NDArray[np.int64]
    sizes: NDArray[np.int64]


@exact
def _time(queues: Queues, page: int, which: int) -> float:
    """Deadline of the next crawl of a page (heap 0), or its release (heap 1)."""
    time: float = (queues.crawls[page] + (1.0 if which == 0 else 0.0)) / queues.rate[page]
    return time


@exact
def _before(queues: Queues, left: int, right: int, which: int) -> bool:
    first, second = _time(queues, left, which), _time(queues, right, which)
    return first < second or (first == second and left < right)


@exact
def _push(queues: Queues, page: int, which: int) -> None:
    heap = queues.ready if which == 0 else queues.waiting
    place = queues.sizes[which]
    queues.sizes[which] += 1
    while place > 0:
        parent = (place - 1) // 2
        if not _before(queues, page, heap[parent], which):
            break
        heap[place] = heap[parent]
        place = parent
    heap[place] = page


@exact
def _pop(queues: Queues, which: int) -> int:
    heap = queues.ready if which == 0 else queues.waiting
    top = heap[0]
    queues.sizes[which] -= 1
    size = queues.sizes[which]
    page = heap[size]
    place = 0
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and _before(queues, heap[child + 1], heap[child], which):
            child += 1
        if not _before(queues, heap[child], page, which):
            break
        heap[place] = heap[child]
        place = child
    if size > 0:
        heap[place] = page
    return int(top)


@exact
def serve(queues: Queues, slot: int, chosen: NDArray[np.int64]) -> None:
    """Choose the pages of the next slots, one each; slot t ends at time t + 1."""
    for i in range(chosen.size):
        now = slot + i + 1.0
        while queues.sizes[1] > 0 and _time(queues, queues.waiting[0], 1) < now:
            _push(queues, _pop(queues, 1), 0)
        page = _pop(queues, 0) if queues.sizes[0] > 0 else _pop(queues, 1)
        chosen[i] = page
        queues.crawls[page] += 1.0
        _push(queues, page, 1)
