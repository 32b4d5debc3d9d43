"""Every page that was due ends in one of three ways, and the counts add up. Pure.

    taken = fetched + deferred + retired + in flight

`fetched` is a fetch that was answered or failed on the network, `deferred` one that was not sent (pacing, budget, a
drain, a lost lease), `retired` a page that left while in flight. Each has reasons, which are counted by name and
written with the results.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

ROBOTS_REQUESTS = "robots_requests_beside"
"""Requests for robots.txt, among all `requests`; other fetches that crawl no page are counted by channel likewise."""
End = Literal["fetched", "deferred", "retired"]


@dataclass(slots=True)
class Accounts:
    """Counts since the start, and what is not written yet."""

    taken: int = 0
    ended: Counter[str] = field(default_factory=Counter)
    counted: Counter[str] = field(default_factory=Counter)
    """Everything else by name, such as `requests`: each is counted when it is paid from the budget."""
    unwritten: Counter[str] = field(default_factory=Counter)

    def take(self, pages: int) -> None:
        """Pages were taken from the scheduler."""
        self.taken += pages
        self.unwritten["taken"] += pages

    def end(self, how: End, reason: str, pages: int = 1) -> None:
        """Pages ended in a way, for a reason."""
        if pages:
            self.ended[how] += pages
            self.unwritten[f"{how}:{reason}"] += pages

    def count(self, name: str, by: int = 1) -> None:
        """Count anything else, such as requests or bytes."""
        self.counted[name] += by
        self.unwritten[name] += by

    @property
    def in_flight(self) -> int:
        """Pages taken that have not ended."""
        return self.taken - sum(self.ended.values())

    def to_write(self) -> dict[str, int]:
        """What happened since the last call, to be written; put it back with `keep` if that fails."""
        counts = dict(self.unwritten)
        self.unwritten.clear()
        return counts

    def keep(self, counts: dict[str, int]) -> None:
        """Take back what could not be written."""
        self.unwritten.update(counts)
