"""What a crawl can end in: one vocabulary for the web, the store and the tracker, and what it means to a scheduler.

`Outcome` says what the world answered. Whether a page that came has changed is another question, which detection
answers; both together settle the crawl (`settles_as`), in the five words a scheduler knows.

| outcome | means |
|---|---|
| `ok` | the page is here, whole |
| `not-modified` | the server says the copy at hand is current, and may be believed |
| `moved` | the page is here, and lives at another address from now on |
| `missing`, `gone` | 404, 410 |
| `soft-404` | answered as a page, but what came is the host's way of saying that there is none |
| `forbidden` | 401, 402, 403, 407, 451 and every other 4xx that is not listed |
| `rate-limited` | 429, or 503 with a Retry-After |
| `server-error` | 5xx, 408, 421, 425 |
| `network-error` | no usable answer; a `FaultKind` says why |
| `robots-denied` | the site's robots.txt does not allow it, or cannot be read |
| `opted-out` | the owner asked for it: the opt-out list, or `noindex` |
| `refused` | an address that may not be fetched: the address rules or the gate |
| `too-large`, `truncated` | the body broke a bound, or ended before its end; it is not kept |
| `blocked-page` | a challenge in place of the page |
| `deferred` | not sent: the turn of the host has not come |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput

Outcome = Literal[
    "ok", "not-modified", "moved", "missing", "gone", "soft-404", "forbidden", "rate-limited", "server-error",
    "network-error", "robots-denied", "opted-out", "refused", "too-large", "truncated", "blocked-page", "deferred",
]  # fmt: skip
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

FaultKind = Literal[
    "dns-missing", "dns-failed", "connect-refused", "connect-timeout", "unreachable", "reset", "closed", "tls",
    "timeout", "protocol", "headers", "redirect", "coding", "no-page", "refused", "unknown",
]  # fmt: skip

Settlement = Literal["unchanged", "changed", "gone", "blocked", "failed"]
"""What a scheduler is told of a crawl."""
SETTLEMENTS: tuple[Settlement, ...] = get_args(Settlement)
CODES: dict[Settlement, int] = {settlement: code for code, settlement in enumerate(SETTLEMENTS)}
Codes = NDArray[np.uint8]

_SETTLES_AS: dict[Outcome, Settlement | None] = {
    "ok": None,
    "moved": None,
    "not-modified": "unchanged",
    "missing": "gone",
    "gone": "gone",
    "soft-404": "gone",
    "forbidden": "blocked",
    "robots-denied": "blocked",
    "opted-out": "blocked",
    "refused": "blocked",
    "blocked-page": "blocked",
    "rate-limited": "failed",
    "server-error": "failed",
    "network-error": "failed",
    "too-large": "failed",
    "truncated": "failed",
    "deferred": None,
}


def settles_as(outcome: Outcome) -> Settlement | None:
    """What an outcome means to a scheduler; None where that cannot be told yet.

    That is so where the page has come (`ok`, `moved`) and detection decides between changed and unchanged, and where
    nothing was asked (`deferred`) and the page is to be released.

    >>> settles_as("not-modified"), settles_as("too-large"), settles_as("ok")
    ('unchanged', 'failed', None)
    """
    return _SETTLES_AS[outcome]


def check_settlements(settlements: Sequence[Settlement], count: int) -> Codes:
    """The codes of so many settlements. O(count).

    >>> check_settlements(["changed", "gone"], 2).tolist()
    [1, 2]
    """
    if isinstance(settlements, str) or not hasattr(settlements, "__len__") or len(settlements) != count:
        raise InvalidInput(f"must hold {count} outcomes, one for each page", field="outcome")
    codes = np.empty(count, dtype=np.uint8)
    for row, settlement in enumerate(settlements):
        if settlement not in SETTLEMENTS:
            known = ", ".join(SETTLEMENTS)
            raise InvalidInput(f"is {settlement!r}, but must be one of {known}", field="outcome", row=row)
        codes[row] = CODES[settlement]
    return codes
