"""How well a crawler behaves, as the hosts see it: requests by status, and breaches of what the host asked for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from recrawl.lab.livingweb.behaviour import HostProfile

# A crawler keeps its delay between departures; on arrival the gap may be a little shorter.
DELAY_TOLERANCE = 0.8


@dataclass(slots=True)
class HostAudit:
    """What one host saw.

    Args:
        statuses: answers by status.
        denied: requests for addresses that the robots rules close.
        early: requests sooner after the last one than the crawl delay.
        pestering: requests within a phase of trouble after the host had said when to come back.
    """

    statuses: Counter[int] = field(default_factory=Counter)
    denied: int = 0
    early: int = 0
    pestering: int = 0
    last_at: float | None = None
    told_until: float = 0.0

    def note(self, profile: HostProfile, path: bytes, now: float, status: int) -> None:
        """Count one request."""
        self.statuses[status] += 1
        if path == b"/robots.txt":
            return
        if profile.robots == "deny" and path.startswith(b"/private/"):
            self.denied += 1
        delay = profile.crawl_delay_s * DELAY_TOLERANCE if profile.robots == "crawl-delay" else 0.0
        if self.last_at is not None and now - self.last_at < delay:
            self.early += 1
        if now < self.told_until:
            self.pestering += 1
        self.last_at = now

    def told(self, until: float) -> None:
        """Note that the host said to come back at this time."""
        self.told_until = until


class Audit:
    """The audits of all hosts, by number. O(hosts)."""

    def __init__(self, hosts: list[HostProfile]) -> None:
        self._profiles = hosts
        self.hosts = [HostAudit() for _ in hosts]

    def note(self, host: int, path: bytes, now: float, status: int, told_until: float | None) -> None:
        """Count one request to a host, and when the answer said to come back."""
        audit = self.hosts[host]
        audit.note(self._profiles[host], path, now, status)
        if told_until is not None:
            audit.told(told_until)

    def totals(self) -> dict[str, object]:
        """Sums over all hosts."""
        statuses: Counter[int] = Counter()
        for audit in self.hosts:
            statuses.update(audit.statuses)
        return {
            "requests": statuses.total(),
            "statuses": {str(status): count for status, count in sorted(statuses.items())},
            "denied": sum(audit.denied for audit in self.hosts),
            "early": sum(audit.early for audit in self.hosts),
            "pestering": sum(audit.pestering for audit in self.hosts),
        }
