"""The type of a change history: pages, and when each was created, changed or removed.

It is read from a trace, from a crawl log or from a git repository (`history_file.py`) and replayed as a world by the
laboratory. Nothing here does IO or loads Arrow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.pages import LARGEST, SMALLEST, Floats, check_number

CREATED, CHANGED, REMOVED = 0, 1, 2
SECONDS_A_DAY = 86_400.0

PageNumbers = NDArray[np.int32]
Kinds = NDArray[np.int8]


class PageEvents(NamedTuple):
    """What happened, in order of time: the page's number, unix seconds, and CREATED, CHANGED or REMOVED."""

    page: PageNumbers
    time: Floats
    kind: Kinds

    def __repr__(self) -> str:
        return f"PageEvents({len(self.page)} events)"


class ObservedCrawls(NamedTuple):
    """The crawls of a log, in order of time: the page's number, unix seconds, and whether the page had changed.

    Of the first crawl of a page the flag says nothing.
    """

    page: PageNumbers
    time: Floats
    changed: NDArray[np.bool_]

    def __repr__(self) -> str:
        return f"ObservedCrawls({len(self.page)} crawls)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeHistory:
    """A change history.

    Attributes:
        name: what it is called in reports.
        page_names: path or address of each page.
        importance: weight of each page; None if the history has none.
        events: what happened.
        start: where it begins, in unix seconds.
        end: where it ends.
        crawls: the crawls it was seen by, if it is a crawl log: today's schedule.
    """

    name: str
    page_names: tuple[str, ...]
    importance: Floats | None
    events: PageEvents
    start: float
    end: float
    crawls: ObservedCrawls | None = None

    def __len__(self) -> int:
        return len(self.page_names)

    @property
    def days(self) -> float:
        """How long the history is."""
        return (self.end - self.start) / SECONDS_A_DAY


def check_importance(values: Floats) -> Floats:
    """Check the importance of pages, as for a plan; some must be above 0."""
    for row in np.flatnonzero(~((values >= SMALLEST) & (values <= LARGEST)) & (values != 0))[:1]:
        try:
            check_number(float(values[row]), "importance")
        except InvalidInput as error:
            raise InvalidInput(error.problem, field="importance", row=int(row)) from None
    if len(values) and not values.any():
        raise InvalidInput("is 0 on every page: some page must matter", field="importance")
    return values
