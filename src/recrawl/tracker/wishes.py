"""Pages that someone wants fetched now: as soon as their hosts allow, paid for by the budget, before all others.

A wish is durable as a signal of the kind `now`, which the fetch ends. It does not raise the rate: it takes the next
crawl that the budget gives, and the turn of its host.
"""

from __future__ import annotations

from collections.abc import Container

from recrawl.tracker.clock import DAY_S
from recrawl.tracker.desk import Desk
from recrawl.tracker.fetching import Flight
from recrawl.tracker.kinds import NOW

_SLACK = 1e-6  # of a token


class Wishes:
    """Wishes that wait, by host, in the order in which they came.

    Args:
        desk: has the scheduler and the hosts.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._waiting: dict[str, dict[int, float]] = {}  # by host and page: not before, by the hours of its group

    def __len__(self) -> int:
        return sum(len(pages) for pages in self._waiting.values())

    def add(self, page_id: int, host: str) -> None:
        """Wish for a page; twice is once."""
        self._waiting.setdefault(host, {}).setdefault(page_id, 0.0)

    def grant(self, page_id: int, host: str) -> bool:
        """A page was taken; whether it was wished for, which it is no longer."""
        pages = self._waiting.get(host, {})
        granted = pages.pop(page_id, None) is not None
        if granted and not pages:
            del self._waiting[host]
        return granted

    def put_off(self, flight: Flight, until: float) -> None:
        """A page that was taken by a wish may not be fetched before a time; the wish stays."""
        if flight.trigger == NOW:
            self._waiting.setdefault(flight.page.host, {})[flight.page.id] = until

    def claim(self, most: int, now: float, flying: Container[int]) -> list[int]:
        """Take entries of the scheduler for wishes whose hosts may be asked now, while the budget pays: one a host.

        O(hosts with wishes).
        """
        if not self._waiting or most < 1:
            return []
        desk = self._desk
        desk.scheduler.spend(0.0, now / DAY_S)  # for the tokens of now
        claimed: list[int] = []
        for host in list(self._waiting):
            if len(claimed) >= most or desk.scheduler.tokens + _SLACK < 1.0:
                break
            entry = self._next_of(host, now, flying) if desk.hosts.may_ask(host, now) else None
            if entry is not None:
                desk.scheduler.claim([entry], now / DAY_S)
                claimed.append(entry)
        return claimed

    def _next_of(self, host: str, now: float, flying: Container[int]) -> int | None:
        for page_id, not_before in list(self._waiting[host].items()):
            if page_id in flying or page_id in self._desk.unwritten or not_before > now:
                continue
            entry = self._entry(page_id)
            if entry is not None:
                return entry
            self.grant(page_id, host)  # it has left, or is held: nobody is waited for
        return None

    def _entry(self, page_id: int) -> int | None:
        desk = self._desk
        entry = desk.index.scheduled(page_id)
        if entry is None and desk.sources is not None:
            entry = desk.sources.entry_of(page_id)
        return entry
