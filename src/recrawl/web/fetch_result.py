"""How a fetch can end, as one value.

`FetchOutcome` says what the world answered; whether a page that came (`ok`, `moved`) is changed or unchanged is for
`detect` to say. `settles_as` gives the coarse outcome of `outcomes.py` where no detection is needed.

| outcome | means |
|---|---|
| `ok` | the page is here, whole |
| `not-modified` | the server says the copy at hand is current, and may be believed |
| `moved` | the page is here, and lives at `moved_to` from now on |
| `missing`, `gone` | 404, 410 |
| `forbidden` | 401, 402, 403, 407, 451 and every other 4xx that is not listed |
| `rate-limited` | 429, or 503 with a Retry-After; `retry_after_s` says how long |
| `server-error` | 5xx, 408, 421, 425 |
| `network-error` | no usable answer; `fault` says why |
| `robots-denied` | the site's robots.txt does not allow it, or cannot be read |
| `opted-out` | the owner asked for it: the opt-out list, or `noindex` |
| `refused` | an address that may not be fetched: the address rules or the gate |
| `too-large`, `truncated` | the body broke a bound, or ended before its end; it is not kept |
| `blocked-page` | a challenge in place of the page |
| `deferred` | not sent: the turn of the host has not come |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from recrawl.outcomes import Outcome
from recrawl.web.address import Address
from recrawl.web.conditional import NO_VALIDATORS, Validators

FetchOutcome = Literal[
    "ok", "not-modified", "moved", "missing", "gone", "forbidden", "rate-limited", "server-error", "network-error",
    "robots-denied", "opted-out", "refused", "too-large", "truncated", "blocked-page", "deferred",
]  # fmt: skip
FETCH_OUTCOMES: tuple[FetchOutcome, ...] = get_args(FetchOutcome)

FaultKind = Literal[
    "dns-missing", "dns-failed", "connect-refused", "connect-timeout", "unreachable", "reset", "closed", "tls",
    "timeout", "protocol", "headers", "redirect", "coding", "no-page", "refused", "unknown",
]  # fmt: skip

RawHeaders = tuple[tuple[bytes, bytes], ...]

_SETTLES_AS: dict[FetchOutcome, Outcome | None] = {
    "ok": None,
    "moved": None,
    "not-modified": "unchanged",
    "missing": "gone",
    "gone": "gone",
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


def settles_as(outcome: FetchOutcome) -> Outcome | None:
    """The coarse outcome; None where none can be told yet.

    That is so where the page has come (`ok`, `moved`) and `detect` decides between changed and unchanged, and where
    nothing was asked (`deferred`) and the page is to be released.

    >>> settles_as("not-modified"), settles_as("too-large"), settles_as("ok")
    ('unchanged', 'failed', None)
    """
    return _SETTLES_AS[outcome]


@dataclass(frozen=True, slots=True)
class Hop:
    """A redirect that was followed: the status, from where, to where."""

    status: int
    from_address: Address
    to_address: Address

    @property
    def is_permanent(self) -> bool:
        """Whether the server says that the page has moved for good."""
        return self.status in (301, 308)


@dataclass(frozen=True, slots=True)
class Directives:
    """What `X-Robots-Tag` asks of this crawler."""

    noindex: bool = False
    nofollow: bool = False
    noarchive: bool = False


NO_DIRECTIVES = Directives()


@dataclass(frozen=True, slots=True)
class FetchResult:
    """The end of one fetch.

    Args:
        address: what was asked for.
        outcome: how it ended.
        reason: one short text for people, safe to print.
        final: the last address that was asked.
        fault: the class of the fault for `network-error`, `truncated` and refusals at the gate.
        status: of the last answer, None if there was none.
        hops: redirects that were followed.
        headers: of the last answer, as bytes.
        body: decoded and whole; empty unless the answer was read to its end. Error pages have one too.
        sent: the validators that the last request carried.
        validators: those of the answer.
        retry_after_s: how long the server asks to be left alone, capped.
        fresh_for_s: how long the server calls the page fresh, capped; 0 if it does not say.
        directives: of X-Robots-Tag.
        soft_404: whether the redirects look like those of a page that is gone: a hint, no verdict.
        requests: sent, each counts against the budget.
        wire_bytes: bytes of bodies that came over the wire.
        elapsed_s: seconds on the network.
    """

    address: Address
    outcome: FetchOutcome
    reason: str
    final: Address
    fault: FaultKind | None = None
    status: int | None = None
    hops: tuple[Hop, ...] = ()
    headers: RawHeaders = ()
    body: bytes = b""
    sent: Validators = NO_VALIDATORS
    validators: Validators = NO_VALIDATORS
    retry_after_s: float | None = None
    fresh_for_s: float = 0.0
    directives: Directives = NO_DIRECTIVES
    soft_404: bool = False
    requests: int = 0
    wire_bytes: int = 0
    elapsed_s: float = 0.0

    @property
    def has_page(self) -> bool:
        """Whether the whole page is in `body`."""
        return self.outcome in ("ok", "moved")

    @property
    def moved_to(self) -> Address | None:
        """Where the page lives from now on: the end of the permanent redirects that the fetch began with."""
        moved: Address | None = None
        for hop in self.hops:
            if not hop.is_permanent:
                break
            moved = hop.to_address
        return moved

    @property
    def was_downgraded(self) -> bool:
        """Whether a hop led from https to http."""
        return any(hop.from_address.scheme == "https" and hop.to_address.scheme == "http" for hop in self.hops)

    def header(self, name: bytes) -> bytes:
        """All values of a header, joined by commas; empty if there is none. O(headers).

        Args:
            name: in lower case.
        """
        return b", ".join(value for found, value in self.headers if found.lower() == name)
