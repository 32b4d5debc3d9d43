"""The online filter: change rates learned crawl by crawl, in 40 bytes per page and constant time.

`OnlineFilter` checks what enters and owns the arrays; the work is done by kernels that a scheduler with arrays of its
own may call as well (`filter.update_many`, `filter.believe_many`). docs/learning-filter.md explains how the
representation was chosen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from recrawl.learning.filter import Law, believe_many, law_of, update_many
from recrawl.learning.filter_state import PAGE_STATE, FilterState, Memory, check_memory, empty_state
from recrawl.learning.grid import (
    RatePrior,
)
from recrawl.learning.inputs import (
    MOST,
    HostColumn,
    check_amounts,
    check_codes,
    check_count,
    check_flags,
    check_made,
    check_share,
    number_hosts,
)
from recrawl.learning.prior import Indices
from recrawl.pages import Floats

_NOTICING_TURNS = Memory()


@dataclass(frozen=True, slots=True)
class Beliefs:
    """What is believed of change rates, one entry per page, per unit time.

    The first five are as in `RatePosterior`. `shape` and `exposure` are those of the Gamma distribution with
    the same mean and variance: so many changes in so much time.
    """

    mean: Floats
    median: Floats
    low: Floats
    high: Floats
    log_mean: Floats
    shape: Floats
    exposure: Floats

    def __len__(self) -> int:
        return len(self.mean)


class OnlineFilter:
    """Learns the change rates of pages from their crawls as they come.

    Args:
        prior: from `fit_prior`; what is believed of a page before its first crawl.
        pages: how many pages there are at first; they are counted from 0.
        hosts: the host of each of them, where the prior knows hosts.
        memory: what is forgotten. By default a page whose rate has jumped is noticed, and nothing else is forgotten.
        doubt: further evidence that a jump needs, in logarithms; a scheduler doubts more than an observer.

    >>> from recrawl.learning.histories import read_histories
    >>> from recrawl.learning.prior import fit_prior
    >>> seen = read_histories([[1.0] * 8, [1.0] * 8], [[0] * 8, [1, 1, 0, 1, 1, 0, 1, 1]])
    >>> rates = OnlineFilter(fit_prior(seen), pages=2)
    >>> rates.update_many([0, 1, 1], [2.0, 0.5, 0.5], [False, True, True])
    >>> known = rates.estimate()
    >>> bool(known.mean[0] < 0.5 < 1 < known.mean[1]), rates.bytes_per_page
    (True, 40)
    """

    def __init__(
        self,
        prior: RatePrior,
        pages: int = 0,
        hosts: HostColumn | None = None,
        memory: Memory = _NOTICING_TURNS,
        doubt: float = 0.0,
    ) -> None:
        check_made(prior, RatePrior, "prior", "fit_prior")
        self._memory = check_memory(memory)
        self._doubt = float(doubt)
        self._use(prior)
        self._pages = 0
        self._state = empty_state(0)
        self.add(check_count(pages, "pages"), hosts)

    def __len__(self) -> int:
        return self._pages

    @property
    def prior(self) -> RatePrior:
        """The prior in use."""
        return self._prior

    @property
    def memory(self) -> Memory:
        """What is forgotten."""
        return self._memory

    @property
    def bytes_per_page(self) -> int:
        """What the state of a page takes."""
        return PAGE_STATE.itemsize

    @property
    def state(self) -> FilterState:
        """The array behind the filter, one entry per page; not copied, and no longer its own once pages are added."""
        return self._state[: self._pages]

    @property
    def law(self) -> Law:
        """Prior and memory in the form that kernels take."""
        return self._law

    def add(self, count: int, hosts: HostColumn | None = None) -> Indices:
        """Add pages that were never crawled and return their numbers. O(count), amortised."""
        count = check_count(count, "count", most=MOST - self._pages)
        rows = rows_of_prior(self._prior, hosts, count)
        first, self._pages = self._pages, self._pages + count
        if self._pages > len(self._state):
            larger = empty_state(max(self._pages, len(self._state) * 3 // 2))
            larger[:first] = self._state[:first]
            self._state = larger
        self._state["prior_row"][first : self._pages] = rows
        return np.arange(first, self._pages)

    def reset(self, pages: ArrayLike, hosts: HostColumn | None = None) -> None:
        """Make pages new again, with the prior of these hosts; for numbers that are given to other pages. O(pages)."""
        numbers = self._checked_pages(pages)
        rows = rows_of_prior(self._prior, hosts, len(numbers))
        self._state[numbers] = empty_state(1)
        self._state["prior_row"][numbers] = rows

    def renew(self, prior: RatePrior, hosts: HostColumn | None = None) -> None:
        """Use another prior from now on; all crawls taken in so far stay known. O(pages).

        Args:
            prior: another prior, on any grid.
            hosts: the host of each page, where the prior knows hosts.
        """
        check_made(prior, RatePrior, "prior", "fit_prior")
        rows = rows_of_prior(prior, hosts, self._pages)
        self._use(prior)
        self._state["prior_row"][: self._pages] = rows

    def update_many(self, pages: ArrayLike, gaps: ArrayLike, changed: ArrayLike) -> None:
        """Take in crawls, in order of time; a page may come more than once.

        Args:
            pages: the page of each crawl.
            gaps: the time since the crawl before it. 0 or more; a gap of 0 says nothing.
            changed: 0 or 1 (or booleans), whether it saw a change.

        Nothing is taken in if anything is wrong. A crawl that was recorded twice is the caller's to drop.
        O(crawls · grid); O(crawls) if turns are not noticed.
        """
        numbers = self._checked_pages(pages)
        times = check_amounts(gaps, "gaps", len(numbers))
        flags = check_flags(changed, "changed", len(numbers))
        update_many(self._state, self._law, numbers, times, flags)

    def update(self, page: int, gap: float, changed: bool) -> None:
        """Take in one crawl; see `update_many`."""
        self.update_many([page], [gap], [changed])

    def estimate(self, pages: ArrayLike | None = None, level: float = 0.9) -> Beliefs:
        """What is believed of these pages, or of all, with intervals that hold `level`. O(pages · grid)."""
        tail = (1 - check_share(level, "level")) / 2
        numbers = np.arange(self._pages) if pages is None else self._checked_pages(pages)
        columns = believe_many(self._state, self._law, numbers, tail).T
        return Beliefs(*(np.ascontiguousarray(column) for column in columns))

    def _use(self, prior: RatePrior) -> None:
        self._prior = prior
        self._law = law_of(prior, self._memory, self._doubt)

    def _checked_pages(self, pages: ArrayLike) -> Indices:
        return check_codes([pages] if np.isscalar(pages) else pages, "pages", self._pages)


def rows_of_prior(prior: RatePrior, hosts: HostColumn | None, pages: int) -> Indices:
    """The prior of each page: 0 is that of the population, r + 1 that of `host_weights[r]`. O(pages)."""
    if hosts is None:
        return np.zeros(pages, dtype=np.int64)
    numbered = number_hosts(hosts, pages)
    of_host = np.array([prior.host_rows.get(name, -1) + 1 for name in numbered.names], dtype=np.int64)
    return of_host[numbered.codes]
