"""The addresses that discovery may still take: bounded by scope, by caps and by the day. No IO.

What is refused is never kept, so memory grows with what was taken only.
"""

from __future__ import annotations

from collections import Counter

from recrawl.tracker.clock import DAY_S
from recrawl.tracker.discovery.scope import outside
from recrawl.tracker.settings.settings import DiscoveryRules
from recrawl.web.address import Address
from recrawl.web.crawl_caps import Discovered

DAY_CAP = "day-cap"


class Frontier:
    """What was taken so far, as counts.

    Args:
        rules: scope and caps.
    """

    def __init__(self, rules: DiscoveryRules) -> None:
        self._rules = rules
        self._taken = Discovered(rules.caps)
        self._today: Counter[str] = Counter()
        self._day = -1
        self.hosts: dict[str, int] = {}
        """Hosts whose pages of earlier lives are counted, with the addresses of each that were taken, then and now."""

    def note(self, host: str, *, taken: bool) -> None:
        """An address of a host was taken or refused; a host of which nothing was taken is forgotten."""
        if taken:
            self.hosts[host] = self.hosts.get(host, 0) + 1
        elif not self.hosts.get(host):
            self.hosts.pop(host, None)

    def remember(self, address: Address, source: str) -> None:
        """Count an address that was taken in an earlier life. O(length)."""
        self._taken.offer(address, source)

    def offer(self, address: Address, source: str, root: str, depth: int, now: float) -> str | None:
        """Take a new address, or say by which rule it is refused. O(length).

        Args:
            address: in canonical form, not tracked and never tracked before.
            source: the address of the source that named it.
            root: see `outside`.
            depth: links from the page that the user named.
            now: Unix seconds.
        """
        rule = outside(address, root, depth, self._rules) or self._full_today(address, now)
        if rule is None:
            refused = self._taken.offer(address, source)
            rule = None if refused is None else refused.rule
        if rule is None:
            self._today[address.host] += 1
        return rule

    def _full_today(self, address: Address, now: float) -> str | None:
        if int(now // DAY_S) != self._day:
            self._day = int(now // DAY_S)
            self._today.clear()
        return DAY_CAP if self._today[address.host] >= self._rules.by_day else None
