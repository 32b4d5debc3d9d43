"""Whether a host, or the way to all of them, is ill: then a failure says nothing of the page. Pure.

Pages that were fetched before and fail now are counted over the last answers of a host. If most fail, the host is
degraded: nothing of it is removed, and nobody is punished, until most answer again. If most hosts cannot be reached at
all, the fault is on our side.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from recrawl.outcomes import FaultKind, Outcome

Turn = Literal["fell-ill", "recovered"]

_WELL: frozenset[Outcome] = frozenset({"ok", "moved", "not-modified"})
_NOT_ASKED: frozenset[Outcome] = frozenset({"deferred", "refused", "opted-out", "robots-denied"})
_UNREACHED: frozenset[FaultKind] = frozenset(
    {"dns-failed", "connect-refused", "connect-timeout", "unreachable", "tls", "timeout"}
)
SEEN = 20
"""Pages of a host whose last answers are looked at."""
_LEAST = 4
_ILL, _WELL_AGAIN = 0.5, 0.2
_HOSTS_SEEN = 12
_LEAST_HOSTS = 4


@dataclass(slots=True)
class HostHealth:
    """The last answer for each of the pages of one host that were asked last, of those that it had served before."""

    failed: OrderedDict[int, bool] = field(default_factory=OrderedDict)
    degraded: bool = False

    def hear(self, page: int, outcome: Outcome, *, known_good: bool) -> Turn | None:
        """Count one answer; whether the host fell ill or recovered by it.

        Args:
            page: which page.
            outcome: of the fetch.
            known_good: whether the page had come before. Pages that never came tell nothing of the host, but one that
                comes does.
        """
        if not self._note(page, outcome, known_good=known_good):
            return None
        share = sum(self.failed.values()) / len(self.failed)
        if not self.degraded and len(self.failed) >= _LEAST and share >= _ILL:
            self.degraded = True
            return "fell-ill"
        if self.degraded and share <= _WELL_AGAIN:
            self.degraded = False
            return "recovered"
        return None

    def restore(self, answers: Iterable[tuple[int, Outcome, bool]]) -> None:
        """Go on after a restart with a host that is degraded, so that it needs what it needed before to recover.

        Args:
            answers: page, last outcome, and whether the page had come before, the oldest first.
        """
        for page, outcome, known_good in answers:
            self._note(page, outcome, known_good=known_good)
        self.degraded = True

    def _note(self, page: int, outcome: Outcome, *, known_good: bool) -> bool:
        """Note one answer; whether it says something of the host."""
        well = outcome in _WELL
        if outcome in _NOT_ASKED or (not well and not known_good):
            return False
        self.failed[page] = not well
        self.failed.move_to_end(page)
        while len(self.failed) > SEEN:
            self.failed.popitem(last=False)
        return True


@dataclass(slots=True)
class NetworkHealth:
    """Whether hosts can be reached at all: the last answer of each of the hosts asked last."""

    unreached: OrderedDict[str, bool] = field(default_factory=OrderedDict)
    down: bool = False

    def hear(self, host: str, outcome: Outcome, fault: FaultKind | None, *, known_good: bool) -> Turn | None:
        """Count one answer; whether the network went down or came back by it.

        Args:
            host: whose.
            outcome: of the fetch.
            fault: of a network error.
            known_good: whether the page had come before: hosts that were never reached say nothing of the network.
        """
        if outcome in _NOT_ASKED or (outcome == "network-error" and not known_good):
            return None
        lost = outcome == "network-error" and fault in _UNREACHED
        self.unreached[host] = lost
        self.unreached.move_to_end(host)
        while len(self.unreached) > _HOSTS_SEEN:
            self.unreached.popitem(last=False)
        if self.down and not lost:
            self.down = False
            self.unreached.clear()
            return "recovered"
        share = sum(self.unreached.values()) / len(self.unreached)
        if not self.down and len(self.unreached) >= _LEAST_HOSTS and share > 0.8:
            self.down = True
            return "fell-ill"
        return None
