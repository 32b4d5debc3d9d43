"""Signals: the kinds that a page listens to, the weight of a signal, and the count since the last crawl.

A page counts signals in units of its average signal: a page that listens to one kind counts each signal as 1. A page
with several kinds is valued as if all its signals were of the average kind, but each signal adds its own evidence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.jit import borrowing, kernel
from recrawl.learning.inputs import Flags
from recrawl.pages import Floats
from recrawl.scheduling.table.pages import PageTable
from recrawl.scheduling.table.records import (
    CAPTURES,
    FREE,
    FRESHNESS,
    IN_FLIGHT,
    LEARNED_FRESHNESS,
    LEARNS,
    LISTENS,
    NO_COPY,
    NO_KIND,
    NOISY_FRESHNESS,
    ONCE,
    SOURCE,
    WINDOW,
    Record,
    Records,
    Slots,
)
from recrawl.scheduling.types import Signal

MOST_KINDS = 64
_MOST_SIGNALS = 1e6  # upper bound of the count
_LEAST_RECALL = 1e-9  # smaller values count as 0
_LEAST_PRECISION = 1e-9  # lower bound; smaller values are raised to it
_SURE = 40.0  # upper bound of the evidence of a signal, in natural logarithms
_NEARLY_SURE = float(np.nextafter(np.float32(1), np.float32(0)))
_SPARE = 64
_ENTRY = 200  # bytes of a profile beside its row, roughly
Precisions = NDArray[np.float32]
# Laws with signals follow the others in the same order.
_FROM_KNOWN = NOISY_FRESHNESS - FRESHNESS
_FROM_LEARNED = NOISY_FRESHNESS - LEARNED_FRESHNESS


class Trust(NamedTuple):
    """Recall and precision of kinds of signals, by kind and page."""

    kinds: list[str]
    recall: Floats
    precision: Floats


class SignalKinds:
    """The kinds of signals that pages listen to, and the profiles of pages that listen to several kinds."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._room: Precisions = np.zeros((0, 0), dtype=np.float32)
        self._rows: dict[bytes, int] = {}
        self._used = 0  # rows in use when they were last counted

    @property
    def profiles(self) -> Precisions:
        """Rows of precision by kind, 0 for kinds that are ignored. The array is replaced when it grows."""
        return self._room[: len(self._rows)]

    @property
    def nbytes(self) -> int:
        """Bytes of the profiles."""
        return self._room.nbytes + _ENTRY * len(self._rows)

    def number(self, name: str) -> int:
        """Return the number of a kind; raise InvalidInput if no page listens to it."""
        if not isinstance(name, str):
            raise InvalidInput(f"is {name!r}, but must be a name", field="kind")
        if name not in self.names:
            known = ", ".join(self.names) or "none yet"
            raise InvalidInput(f"is {name!r}, but no page listens to that (kinds: {known})", field="kind")
        return self.names.index(name)

    def resume(self, names: list[str], profiles: Precisions) -> None:
        """Replace all kinds and profiles by those of a snapshot."""
        self.names, self._room = names, profiles
        self._rows = {row.tobytes(): number for number, row in enumerate(profiles)}
        self._used = len(profiles)

    def listen(self, table: PageTable, slots: Slots, trust: Trust) -> None:
        """Let pages that listen to no kind listen to these kinds; add kinds that are unknown. O(pages · kinds)."""
        total = trust.recall.sum(axis=0)
        heard = total > 0
        numbers = [self._enter(name) for name in trust.kinds]
        if not heard.any():
            return
        precision = np.zeros((len(self.names), len(slots)), dtype=np.float32)
        precision[numbers] = np.where(trust.recall > 0, trust.precision, 0.0)
        signals = (trust.recall / trust.precision).sum(axis=0)  # per change
        table.need_signals()
        self._drop_unused(table)
        chosen = slots[heard]
        table.signals["recall"][chosen] = np.minimum(total[heard], 1.0)
        table.signals["precision"][chosen] = _mean_precision(total[heard] / signals[heard], precision[:, heard])
        table.signals["profile"][chosen] = self._profiles_of(precision)[heard]
        table.pages["flags"][chosen] |= LISTENS
        law = table.pages["law"][chosen]
        table.pages["law"][chosen] = np.where(law >= LEARNED_FRESHNESS, law + _FROM_LEARNED, law + _FROM_KNOWN)

    def set_trust(self, table: PageTable, slots: Slots, trust: Trust) -> None:
        """Let pages listen to these kinds and no others, and forget the signals they counted. O(pages · kinds)."""
        self.forget(table, slots)
        self.listen(table, slots, trust)

    def forget(self, table: PageTable, slots: Slots) -> None:
        """Let pages ignore all signals, and forget those they counted. O(pages)."""
        listening = slots[table.pages["flags"][slots] & LISTENS != 0]
        table.pages["flags"][listening] &= ~np.uint8(LISTENS)
        table.pages["signals"][listening] = 0
        in_flight = listening[table.pages["state"][listening] == IN_FLIGHT]
        table.flights["signals"][table.pages["next"][in_flight]] = 0
        learns = table.pages["flags"][listening] & LEARNS != 0
        table.pages["law"][listening] -= np.where(learns, _FROM_LEARNED, _FROM_KNOWN).astype(np.uint8)

    def read(self, signals: Any, count: int) -> Trust:
        """Check the argument `signals` for `count` pages; change nothing. O(pages · kinds)."""
        if not isinstance(signals, Mapping):
            raise InvalidInput('must be a dict such as {"sitemap": Signal(recall=0.7, precision=0.6)}', field="signals")
        recall, precision = np.zeros((len(signals), count)), np.ones((len(signals), count))
        for row, (name, signal) in enumerate(signals.items()):
            if not isinstance(name, str) or not isinstance(signal, Signal):
                raise InvalidInput(f"holds {name!r}: {signal!r}, but must hold names and Signals", field="signals")
            recall[row] = _shares(signal.recall, f"{name} recall", count)
            given = _shares(signal.precision, f"{name} precision", count)
            vain = (recall[row] > 0) & (given == 0)
            if vain.any():
                problem = "is 0 while recall is not: signals that are never right cannot announce changes"
                raise InvalidInput(problem, field=f"{name} precision", row=int(np.argmax(vain)))
            precision[row] = np.maximum(given, _LEAST_PRECISION)
        if len({*self.names, *signals}) > MOST_KINDS:
            raise InvalidInput(f"there are more than {MOST_KINDS} kinds", field="signals")
        total = recall.sum(axis=0)
        if (total > 1 + 1e-9).any():
            row = int(np.argmax(total > 1 + 1e-9))
            problem = f"is {float(total[row])!r} for all kinds together, but must be at most 1"
            raise InvalidInput(problem, field="recall", row=row)
        recall[recall < _LEAST_RECALL] = 0.0
        return Trust(list(signals), recall, precision)

    def _enter(self, name: str) -> int:
        """Return the number of a kind; add the kind if it is unknown."""
        if name not in self.names:
            wider = np.zeros((len(self._rows), len(self.names) + 1), dtype=np.float32)
            wider[:, :-1] = self.profiles
            used = self._used
            self.resume([*self.names, name], wider)
            self._used = used
        return self.names.index(name)

    def _profiles_of(self, precision: Precisions) -> NDArray[np.int32]:
        """Return the profile of each page: -1 - kind if it has one kind, else a row of `profiles`. O(pages · kinds)."""
        listening = precision > 0
        count = listening.sum(axis=0)
        profile = np.where(count == 1, -1 - listening.argmax(axis=0), NO_KIND).astype(np.int32)
        several = np.flatnonzero(count > 1)
        if len(several):
            rows, which = np.unique(precision.T[several], axis=0, return_inverse=True)
            numbers = np.array([self._row(row) for row in np.ascontiguousarray(rows)], dtype=np.int32)
            profile[several] = numbers[which.reshape(-1)]
        return profile

    def _row(self, row: Precisions) -> int:
        """Return the number of a profile; add the profile if it is unknown. O(kinds), amortised."""
        number = self._rows.setdefault(row.tobytes(), len(self._rows))
        if number == len(self._room):
            longer = np.zeros((max(2 * number, 8), len(self.names)), dtype=np.float32)
            longer[:number] = self._room
            self._room = longer
        self._room[number] = row
        return number

    def _drop_unused(self, table: PageTable) -> None:
        """Drop profiles that no page uses, once they may be half of all. O(pages) then, else O(1)."""
        if len(self._rows) <= 2 * self._used + max(_SPARE, table.live // _SPARE):
            return
        signals = table.signals[: table.used]
        pages = table.pages[: table.used]
        slots = np.flatnonzero((pages["state"] != FREE) & (pages["flags"] & LISTENS != 0) & (signals["profile"] >= 0))
        rows, which = np.unique(signals["profile"][slots], return_inverse=True)
        table.signals["profile"][slots] = which
        self.resume(self.names, np.ascontiguousarray(self._room[rows]))


def _mean_precision(mean: Floats, precision: Precisions) -> Precisions:
    """Return the mean precision of pages in single precision: 1 only if no kind of the page is less certain.

    At a mean of 1 a signal of a less certain kind would weigh nothing beside an average one.
    """
    doubtful = ((precision > 0) & (precision < 1)).any(axis=0)
    return np.minimum(mean, np.where(doubtful, _NEARLY_SURE, 1.0)).astype(np.float32)


def takes_signals(table: PageTable, slots: Slots) -> Flags:
    """Return which pages have an objective that can use signals. O(slots)."""
    pages = table.pages[slots]
    other = (pages["law"] == WINDOW) | (pages["law"] == SOURCE) | (pages["law"] == ONCE)
    return ~other & (pages["flags"] & CAPTURES == 0)


def _shares(column: Any, field: str, count: int) -> Floats:
    try:
        shares = np.broadcast_to(np.asarray(column, dtype=np.float64), count)
    except (TypeError, ValueError):
        raise InvalidInput(f"must be a number or a column of {count}", field=field) from None
    wrong = ~((shares >= 0) & (shares <= 1))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InvalidInput(f"is {float(shares[row])!r}, but must be between 0 and 1", field=field, row=row)
    return shares


@kernel
def count_signals(
    pages: Records,
    signals: Records,
    flights: Records,
    profiles: Precisions,
    slots: Slots,
    kind: int,
    times: tuple[float, float],
) -> tuple[Slots, int]:
    """Count a signal for each of these pages. O(slots).

    A page without a copy ignores signals. So does a page whose last crawl is within the delay: that crawl has seen the
    change.

    Args:
        pages: the table.
        signals: beside it.
        flights: of the pages in flight.
        profiles: of pages that listen to several kinds.
        slots: which pages; a page may come more than once.
        kind: number of the kind.
        times: now, and the delay.

    Returns:
        The waiting pages whose count has changed, and how many pages counted the signal.
    """
    now, delay = times
    moved = np.empty(len(slots), dtype=np.int64)
    count = 0
    heard = 0
    for i in range(len(slots)):
        page = pages[slots[i]]
        if page["flags"] & LISTENS == 0 or page["flags"] & NO_COPY != 0 or now - page["last"] < delay:
            continue
        weight = _weight_of(page, signals[slots[i]], profiles, kind)
        if weight == 0.0:
            continue
        heard += 1
        if page["state"] == IN_FLIGHT:
            flight = flights[page["next"]]
            flight["signals"] = min(flight["signals"] + weight, _MOST_SIGNALS)
            flight["latest_signal"] = now
        if page["signals"] < _MOST_SIGNALS:
            page["signals"] += weight
            if page["state"] != IN_FLIGHT:
                moved[count] = slots[i]
                count += 1
    return moved[:count], heard


@borrowing
def _weight_of(page: Record, signal: Record, profiles: Precisions, kind: int) -> float:
    """Return the weight of a signal of this kind, in average signals of the page; 0 if the page ignores the kind."""
    profile = signal["profile"]
    if profile < 0:
        return 1.0 if profile == -1 - kind else 0.0
    precision = np.float64(profiles[profile, kind])
    mean = np.float64(signal["precision"])
    if page["law"] != NOISY_FRESHNESS or precision == mean:
        return precision / mean
    evidence = -math.log1p(-precision) if precision < 1.0 else _SURE
    return min(evidence, _SURE) / -math.log1p(-mean)
