"""How often a client may ask: a bucket of tokens for each, of bounded number. Pure: the time is given."""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass

MOST_CLIENTS = 10_000


@dataclass(frozen=True, slots=True)
class Quota:
    """So many at once, and so many a second from then on."""

    burst: float
    per_s: float


class Buckets:
    """One bucket for each client; those not heard of for longest are forgotten, which fills them.

    Args:
        quota: of each.
    """

    def __init__(self, quota: Quota) -> None:
        self._quota = quota
        self._held: OrderedDict[str, tuple[float, float]] = OrderedDict()  # left, at

    def wait_s(self, client: str, now: float, cost: float = 1.0) -> float:
        """Take from a client's bucket; 0, or the seconds after which it would go and nothing is taken. O(1)."""
        quota = self._quota
        left, at = self._held.pop(client, (quota.burst, now))
        left = min(left + max(now - at, 0.0) * quota.per_s, quota.burst)
        enough = left >= cost
        self._held[client] = (left - cost if enough else left, now)
        if len(self._held) > MOST_CLIENTS:
            self._held.popitem(last=False)
        return 0.0 if enough else (cost - left) / quota.per_s


def retry_after(wait_s: float) -> str:
    """Whole seconds for the header.

    >>> retry_after(0.2)
    '1'
    """
    return str(max(1, math.ceil(wait_s)))
