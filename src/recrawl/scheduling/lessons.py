"""What crawls teach: they enter the online filter, and what it believes then becomes the value of the pages. Kernels.

A page that listens tells of its rate twice: by changes that no signal announced, and by signals. How many of the
signals were true, and whether a change after a signal had a silent one among it, is drawn by its chance given what is
believed, so that rates come out right on average. What is drawn depends on page and gap alone: the same calls give the
same answers, one by one or together.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from recrawl.jit import borrowing, kernel
from recrawl.learning.filter_beliefs import believe_many
from recrawl.learning.filter_state import FilterState
from recrawl.learning.filter_turns import update_many
from recrawl.learning.filter_weights import Law
from recrawl.learning.inputs import Flags
from recrawl.pages import Floats
from recrawl.scheduling.laws import NOISY_FRESHNESS
from recrawl.scheduling.page_record import LEARNS, Record, Records, Slots
from recrawl.scheduling.settling import look_back, renew

TAIL = 0.05
_MEAN, _SHAPE = 0, 5  # places in the numbers of the filter
_MOST_DOUBT = 4.0
_SHORT = 0.6  # of the time in which announced changes happened; shorter gaps would be taken for turns
_MOST_AT_ONCE = 8  # announced changes that are learned from between two crawls
_LEAST_SILENT = 0.1  # share of changes that signals miss, at least as far as learning goes


class Crawls(NamedTuple):
    """Crawls of pages, each of another page."""

    slots: Slots
    gaps: Floats  # since the crawl before; NaN for a first one
    heard: Floats  # signals, meanwhile
    changed: Flags


class Ledger(NamedTuple):
    """The arrays that a crawl is entered into."""

    pages: Records
    limits: Records
    signals: Records
    hosts: Records
    beliefs: FilterState


@kernel
def settle_and_learn(
    ledger: Ledger, law: Law, slots: Slots, changed: Flags, now: float, seen: float
) -> tuple[int, int]:
    """Settle pages that were crawled, as `renew` does, and take in what the crawls saw. O(slots · grid)."""
    gaps, heard = look_back(ledger.pages, slots, now)
    bad, once = renew(ledger.pages, ledger.limits, ledger.signals, ledger.hosts, slots, now, seen)
    if bad < 0:
        learn_from(ledger, law, Crawls(slots, gaps, heard, changed))
    return bad, once


@kernel
def learn_from(ledger: Ledger, law: Law, crawls: Crawls) -> None:
    """Take in crawls, also of pages that do not learn and first ones, which say nothing. O(crawls · grid)."""
    pages, beliefs = ledger.pages, ledger.beliefs
    taught = np.empty(len(crawls.slots), dtype=np.int64)
    plain, gaps, changed = np.empty_like(taught), np.empty(len(taught)), np.empty(len(taught), dtype=np.bool_)
    count = silent = 0
    for i in range(len(crawls.slots)):
        page = pages[crawls.slots[i]]
        if page["flags"] & LEARNS == 0 or math.isnan(crawls.gaps[i]):
            continue
        taught[count] = crawls.slots[i]
        count += 1
        if page["law"] >= NOISY_FRESHNESS:
            _learn_with_signals(ledger, law, crawls, i)
        else:
            plain[silent], gaps[silent], changed[silent] = crawls.slots[i], crawls.gaps[i], crawls.changed[i]
            silent += 1
    if silent > 0:
        update_many(beliefs, law, plain[:silent], gaps[:silent], changed[:silent])
    if count > 0:
        write_beliefs(pages, beliefs, law, taught[:count])


@kernel
def _learn_with_signals(ledger: Ledger, law: Law, crawls: Crawls, which: int) -> None:
    """Learn apart from silent changes and from announced ones, each in its share of the time."""
    slot, gap, heard = crawls.slots[which], crawls.gaps[which], crawls.heard[which]
    signal = ledger.signals[slot]
    precision = np.float64(signal["precision"])
    announced = min(np.float64(signal["recall"]), 1.0 - _LEAST_SILENT)
    silent_gap, announced_gap = gap * (1.0 - announced), gap * announced
    chance = _uniform(slot, crawls.gaps[which : which + 1].view(np.uint64)[0])
    true_signals = int(min(np.floor(heard * precision + chance), _MOST_AT_ONCE))
    quiet = math.exp(-ledger.pages[slot]["decay"] * silent_gap)
    # So many changes in a time are as likely as so many short gaps with a change, and the rest of it without one.
    gaps, changed = np.empty(2 + true_signals), np.ones(2 + true_signals, dtype=np.bool_)
    gaps[0], changed[0] = silent_gap, False
    if crawls.changed[which]:
        changed[0] = chance * (1.0 - (1.0 - precision) ** heard * quiet) < 1.0 - quiet
    gaps[1], changed[1] = (1.0 - _SHORT) * announced_gap if true_signals > 0 else announced_gap, False
    for k in range(2, 2 + true_signals):
        gaps[k] = _SHORT * announced_gap / true_signals
    # These gaps are made up: right in their sum, but a test for turns looks at them one by one.
    calm = Law(law.table, law.log_rates, law.priors, law.fading, False, law.doubt)
    update_many(ledger.beliefs, calm, np.full(2 + true_signals, slot), gaps, changed)


@kernel
def write_beliefs(pages: Records, beliefs: FilterState, law: Law, slots: Slots) -> None:
    """Write what is believed into the pages. O(slots · grid)."""
    numbers = believe_many(beliefs, law, slots, TAIL)
    for i in range(len(slots)):
        page = pages[slots[i]]
        page["decay"] = _rate_to_act_on(page, numbers[i, _MEAN], numbers[i, _SHAPE])
        page["belief"] = numbers[i, _SHAPE]


@borrowing
def _rate_to_act_on(page: Record, mean: float, shape: float) -> float:
    """The mean rate; where a page is valued at one rate, by freshness with signals, that of the mean logarithm.

    ψ(k) − ln θ with ψ(k) ≈ ln(k + ½) − 1/k: it does not give up a page of which little is known.
    """
    if page["law"] != NOISY_FRESHNESS:
        return mean
    return mean * (1.0 + 0.5 / shape) * math.exp(-min(1.0 / shape, _MOST_DOUBT))


@borrowing
def _uniform(slot: int, bits: int) -> float:
    """A number from 0 up to 1 that depends on page and gap alone."""
    word = np.uint64(slot) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(bits)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.float64(word >> np.uint64(11)) * 2.0**-53
