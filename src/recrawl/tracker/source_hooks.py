"""Where sources meet the loop: what the tracker asks of whoever finds pages, and hears signals, by reading them.

A source is an entry of its own in the scheduler. A page that is tracked for itself and is a source as well has two
entries: whichever is due first is fetched, and the loop tells the other one that a copy came (`Scheduler.seen`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from recrawl.pages import Floats
from recrawl.store.overview import ScheduleColumns
from recrawl.store.rows import PageRow, SourceRow
from recrawl.tracker.pipeline.decide import Settled
from recrawl.tracker.pipeline.examine import Examined
from recrawl.tracker.pipeline.fetch import Flight
from recrawl.web.fetch_result import FetchResult
from recrawl.web.fetch_steps import Channel

if TYPE_CHECKING:
    from recrawl.tracker.discovery.source import SourceBook


class Worth(NamedTuple):
    """What first crawls of found pages are worth, a row each: hits of a page, their decay per day, when it was found.

    Profit NaN: the page is entered as every other. Times are Unix seconds.
    """

    profit: Floats
    decay: Floats
    found_at: Floats


class SourceHooks(Protocol):
    """Reads sources for a tracker, and has them all in its book."""

    book: SourceBook

    async def load(self) -> None:
        """Enter the sources of the store into the scheduler; the pages are there already."""

    def page_of(self, scheduled: int) -> int | None:
        """The page behind an entry of the scheduler that is a source; None if it is no source. O(1)."""

    def entry_of(self, page_id: int) -> int | None:
        """The entry of a page as a source, None if it is none that is read. O(1)."""

    def channel_of(self, page: PageRow) -> Channel:
        """How a page is fetched: sitemaps and feeds that are tracked for what they list have bounds of their own."""

    async def harvest(self, flight: Flight, result: FetchResult, examined: Examined) -> SourceRow | None:
        """A page came or was not modified. If it is a source: add what it leads to, tell what it signals; its new row.

        Called before the result is settled, so that a crash loses nothing: what is added twice is added once. The row
        goes into the transaction of the result.
        """

    def latest(self, row: SourceRow) -> SourceRow:
        """A row that `harvest` gave, as it is to be written: with what became known of the source since."""

    def worth_of(self, columns: ScheduleColumns, rows: NDArray[np.int64]) -> Worth | None:
        """What pages are worth that are about to enter the scheduler, at these places of the columns. O(rows).

        None, or a profit of NaN, for pages that enter as every other.
        """

    async def tend(self) -> None:
        """Do what is due by itself; called every now and then."""

    def close(self) -> None:
        """End what runs beside."""

    def settled(self, flight: Flight, settled: Settled) -> None:
        """The fetch of a page ended, of a source or not, and the scheduler was told, also of the other entry.

        If the page was retired (`settled.told`), its entries have left the scheduler.
        """

    def leave(self, page_ids: set[int]) -> None:
        """Take the entries of these pages out of the scheduler, if they are sources: they are held, or gone."""

    async def enter(self, page_ids: set[int]) -> None:
        """Put the entries of these pages back, if they are sources: they are held no longer."""
