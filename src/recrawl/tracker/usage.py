"""What was used: how visits ended, requests and bytes, and the budget of bytes. Pure.

    taken = fetched + deferred + retired + in flight

`fetched` is a fetch that was answered or failed on the network, `deferred` one that was not sent (pacing, budget, a
drain, a lost lease), `retired` a page that left while in flight. Each has reasons, which are counted by name and
written with the results.

The budget of bytes is beside the one in crawls: while it is overdrawn, nothing is taken. What a body will have is known
when it has come, so one fetch at a time may overdraw it by what it brings; over a day it evens out, since nothing is
taken until the debt is paid off.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from recrawl.tracker.clock import DAY_S
from recrawl.web.fetch.protocol import FetchResult

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


_ROOM_S = 60.0


class ByteBudget:
    """Bytes that come at a constant rate, a minute's worth at most.

    Args:
        per_day: bytes a day, None for no bound.
        now: the time.
    """

    def __init__(self, per_day: float | None, now: float) -> None:
        self._rate = None if per_day is None else per_day / DAY_S
        self._left = 0.0
        self._filled = now

    def spend(self, count: int) -> None:
        """Bytes came over the wire."""
        self._left -= count

    def wait_s(self, now: float) -> float:
        """Seconds until something may be taken; 0 if that is now."""
        if self._rate is None:
            return 0.0
        self._left = min(self._left + self._rate * max(now - self._filled, 0.0), self._rate * _ROOM_S)
        self._filled = max(now, self._filled)
        if self._left > -1.0:  # less than a byte is rounding
            return 0.0
        return -self._left / self._rate if self._rate > 0 else float("inf")


@dataclass(slots=True, kw_only=True)
class Usage(Accounts):
    """Counts, and the one place where requests are charged.

    Args:
        bytes_left: the budget of bytes.
        spend: pays for requests from the budget of crawls.
    """

    bytes_left: ByteBudget
    spend: Callable[[float], None]

    def charge(self, requests: int, wire_bytes: int, name: str = "", *, prepaid: int = 0) -> None:
        """Charge requests that were sent.

        Args:
            requests: how many.
            wire_bytes: of bodies.
            name: under which they are counted too.
            prepaid: how many of them were paid when their page was taken.
        """
        if requests > prepaid:
            self.spend(float(requests - prepaid))
        self.count("requests", requests)
        self.count("wire_bytes", wire_bytes)
        if name:
            self.count(name, requests)
        self.bytes_left.spend(wire_bytes)

    def charge_wasted(self, *answers: FetchResult) -> None:
        """Charge the requests of fetches whose results are discarded."""
        for answer in answers:
            self.charge(answer.requests, answer.wire_bytes, "requests_in_vain")
