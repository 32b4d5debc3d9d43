"""The contract between the scheduler and a policy: the policy chooses pages, the scheduler does everything else.

A policy sees the pages through a `PageTable` and host limits through its `hosts`. It never sees ids, budgets over
time, true changes or outcomes: the scheduler has written into the table what may be known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from recrawl.errors import InvalidInput

if TYPE_CHECKING:
    from recrawl.pages import Floats
    from recrawl.scheduling.table.records import Slots


class Chosen(NamedTuple):
    """Pages to crawl now, most valuable first, and what each crawl is worth by unit of cost."""

    slots: Slots
    values: Floats


class Policy(Protocol):
    """Chooses which pages are crawled next. `budget` is set when it changes."""

    budget: float

    def place(self, slots: Slots, now: float) -> None:
        """Let these pages compete: they are new, or were changed, crawled, failed or released. O(slots), amortised.

        Their state is IDLE; the policy sets the state it needs.
        """

    def withdraw(self, slots: Slots, now: float) -> None:
        """Let these pages compete no more: they will be removed or changed. They are not in flight. O(slots).

        Leaves their state IDLE.
        """

    def signalled(self, slots: Slots, now: float) -> None:
        """Signals were counted for these pages, which are waiting. May hold a page more than once. O(slots)."""

    def hosts_changed(self, numbers: Slots, now: float) -> None:
        """The limits of these hosts were changed, or crawls of theirs have ended. O(numbers)."""

    def choose(self, now: float, most: int, tokens: float) -> Chosen:
        """Choose at most `most` pages that cost no more than `tokens` together and whose hosts allow it now.

        Marks them IN_FLIGHT and counts them at their hosts. A page that costs more than a full bucket may be chosen
        when `tokens` is a full bucket.
        """

    def price(self) -> float:
        """Return what a crawl must be worth at present, by unit of cost."""

    def state(self) -> dict[str, float]:
        """Return what `restore` needs beside the table: numbers by name."""

    def restore(self, state: Mapping[str, float]) -> None:
        """Continue from what `state` returned, with the pages of the table, which is restored already. O(pages).

        Raises:
            InvalidInput: if a number is missing or impossible; the state may come from a damaged file.
        """


def check_state(state: Mapping[str, float], ranges: Mapping[str, tuple[float, float]]) -> None:
    """Refuse a state whose names are not those of the ranges, or with a number that is not within its range.

    >>> check_state({"price": -1.0}, {"price": (0.0, 1e300)})
    Traceback (most recent call last):
    ...
    recrawl.errors.InvalidInput: price is -1.0, but must be from 0.0 to 1e+300
    """
    if state.keys() != ranges.keys():
        raise InvalidInput(
            f"has {', '.join(sorted(state)) or 'no numbers'}, but needs {', '.join(ranges)}", field="state"
        )
    for name, (low, high) in ranges.items():
        if not low <= state[name] <= high:
            raise InvalidInput(f"is {state[name]!r}, but must be from {low!r} to {high!r}", field=name)
