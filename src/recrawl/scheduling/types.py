"""Values that callers of the scheduler exchange with it: Signal, Batch, Tuning, Counts and Status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from numpy.typing import ArrayLike

from recrawl.errors import InvalidInput
from recrawl.learning.filter_state import Memory
from recrawl.learning.grid import RatePrior
from recrawl.pages import Floats, check_number
from recrawl.scheduling.table.records import HostName, Ids

LONGEST = 1e30  # a wait that fits into single precision


@dataclass(frozen=True, slots=True)
class Signal:
    """Recall and precision of a kind of signal, one value for all pages or one for each.

    Args:
        recall: probability that a change comes with this signal; 0: signals of this kind are ignored.
        precision: probability that such a signal means a change.
    """

    recall: ArrayLike
    precision: ArrayLike


class Batch(NamedTuple):
    """Pages to crawl, most valuable first, each in flight until settled.

    `values` is what each crawl is worth by unit of cost, `price` what a crawl must be worth at present.
    """

    ids: Ids
    values: Floats
    price: float

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class Tuning:
    """Settings of a `Scheduler` that are seldom changed.

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


@dataclass(slots=True)
class Counts:
    """Counts of calls and crawls since the start."""

    taken: int = 0
    crawled: int = 0
    failed: int = 0
    released: int = 0
    seen: int = 0
    signals_heard: int = 0
    signals_ignored: int = 0
    clock_went_back: int = 0


@dataclass(frozen=True, slots=True)
class Status:
    """The scheduler at one moment.

    Args:
        now: the latest time it was told, in the caller's unit.
        budget: crawls, or cost, per unit time.
        price: what a crawl must be worth at present, by unit of cost.
        pages: how many there are: those in flight, on offer and waiting.
        in_flight: taken and not settled yet.
        on_offer: worth the price, and next in turn; 0 for policies that look at all pages each time.
        waiting: for their time, for the price to fall, or at their hosts.
        hosts: how many are known.
        hosts_saturated: hosts that cannot serve all that is worth the common price, and the price of each.
        counts: what happened so far.
    """

    now: float
    budget: float
    price: float
    pages: int
    in_flight: int
    on_offer: int
    waiting: int
    hosts: int
    hosts_saturated: Mapping[HostName, float]
    counts: Counts

    @property
    def marginal_value(self) -> float:
        """What one more crawl per unit time would add to the objective, per unit time: the price."""
        return self.price
