"""Looks at a whole store: all pages as columns, which a scheduler starts from, and how many there are of everything."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recrawl.store.rows import PageState


@dataclass(frozen=True, slots=True)
class ScheduleColumns:
    """What a scheduler needs of all pages that are tracked, a row for each, in the order of their ids.

    Tracked are those that are not retired; what is fetched only as a source (role `source`) is not among them.

    Args:
        page_id: int64.
        host: int32, a place in `hosts`.
        importance: float64.
        objective: int16, a place in `objectives`.
        min_interval_s: float64, NaN where nothing is said.
        max_interval_s: float64, infinity for no bound.
        fetched_at, not_before: float64, NaN for None.
        failures: int32.
        held: bool: paused by itself, its group or its host, or quarantined.
        belief: uint8, a row of `belief_bytes` each, zeros for a page without; belief_bytes 0 if no page has any.
        hosts: names.
        objectives: names, None for that of the tracker.
    """

    page_id: NDArray[np.int64]
    host: NDArray[np.int32]
    importance: NDArray[np.float64]
    objective: NDArray[np.int16]
    min_interval_s: NDArray[np.float64]
    max_interval_s: NDArray[np.float64]
    fetched_at: NDArray[np.float64]
    not_before: NDArray[np.float64]
    failures: NDArray[np.int32]
    held: NDArray[np.bool_]
    belief: NDArray[np.uint8]
    hosts: tuple[str, ...]
    objectives: tuple[str | None, ...]

    def __len__(self) -> int:
        return len(self.page_id)


@dataclass(frozen=True, slots=True)
class StoreCounts:
    """How many there are.

    Args:
        pages: by state; those of role `source` are not counted.
        leases, observations: of pages and sources.
        last_cursor: of the change log.
        hosts: that something is known of.
        sources: that are active, whatever the role of their pages.
        last_page_id: the highest id of a page, of either role.
    """

    pages: dict[PageState, int]
    leases: int
    observations: int
    last_cursor: int
    hosts: int
    sources: int
    last_page_id: int
