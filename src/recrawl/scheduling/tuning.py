"""Settings of the scheduler that are seldom changed."""

from __future__ import annotations

from dataclasses import dataclass, field

from recrawl.errors import InvalidInput
from recrawl.learning.filter_memory import Memory
from recrawl.learning.prior import RatePrior
from recrawl.pages import check_number

LONGEST = 1e30  # a wait that fits into single precision


@dataclass(frozen=True, slots=True)
class Tuning:
    """What is seldom changed.

    Args:
        signal_delay: a signal that comes within this time of a page's last crawl is dropped: the crawl has seen it.
        shortest_retry: least wait after a failure without Retry-After; else a quarter of the page's interval, doubled
            for each failure in a row.
        longest_retry: most wait after a failure.
        prior: of change rates that are learned, from `fit_prior`; if None, rates around what a page is crawled on
            average, budget/pages.
        memory: what learning forgets.
    """

    signal_delay: float = 0.0
    shortest_retry: float = 0.0
    longest_retry: float = LONGEST
    prior: RatePrior | None = None
    memory: Memory = field(default_factory=Memory)

    def __post_init__(self) -> None:
        for name in ("signal_delay", "shortest_retry", "longest_retry"):
            check_number(getattr(self, name), name)
        if self.shortest_retry > self.longest_retry:
            raise InvalidInput(f"is {self.shortest_retry!r}, above longest_retry", field="shortest_retry")
