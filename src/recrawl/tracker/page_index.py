"""Which page of the store is which page of the scheduler: two arrays, for lookups in both directions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_SLOT = np.int64(0xFFFFFFFF)
_NONE = -1


class PageIndex:
    """Numbers of the store, which rise and are never reused, and ids of the scheduler, which carry a dense slot."""

    def __init__(self) -> None:
        self._scheduled = np.full(1024, _NONE, dtype=np.int64)  # by number of the store
        self._stored = np.full(1024, _NONE, dtype=np.int64)  # by slot of the scheduler

    def put(self, stored: NDArray[np.int64], scheduled: NDArray[np.int64]) -> None:
        """Remember pairs. O(pairs), amortised."""
        if not len(stored):
            return
        self._scheduled = _with_room(self._scheduled, int(stored.max()))
        slots = scheduled & _SLOT
        self._stored = _with_room(self._stored, int(slots.max()))
        self._scheduled[stored] = scheduled
        self._stored[slots] = stored

    def drop(self, stored: int) -> None:
        """Forget a page that the scheduler no longer has."""
        if stored < len(self._scheduled):
            self._scheduled[stored] = _NONE

    def stored(self, scheduled: NDArray[np.int64]) -> list[int]:
        """Numbers of the store for ids of the scheduler."""
        numbers: list[int] = self._stored[scheduled & _SLOT].tolist()
        return numbers

    def stored_of(self, scheduled: int) -> int:
        """The number of the store for an id of the scheduler."""
        return int(self._stored[scheduled & int(_SLOT)])

    def scheduled(self, stored: int) -> int | None:
        """The id of a page in the scheduler, None if it is not scheduled."""
        found = int(self._scheduled[stored]) if 0 <= stored < len(self._scheduled) else _NONE
        return None if found == _NONE else found

    def entries(self, stored: NDArray[np.int64]) -> NDArray[np.int64]:
        """The ids of pages in the scheduler, -1 for those that are not scheduled. O(pages)."""
        found = np.full(len(stored), _NONE, dtype=np.int64)
        held = stored < len(self._scheduled)
        found[held] = self._scheduled[stored[held]]
        return found

    def all_scheduled(self, stored: Sequence[int]) -> list[int]:
        """The ids of those pages that are scheduled."""
        return [found for number in stored if (found := self.scheduled(number)) is not None]


def _with_room(column: NDArray[np.int64], place: int) -> NDArray[np.int64]:
    if place < len(column):
        return column
    larger = np.full(max(2 * len(column), place + 1), _NONE, dtype=np.int64)
    larger[: len(column)] = column
    return larger
