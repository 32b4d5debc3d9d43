"""The end of one fetch, as one value.

Its `outcome` says what the world answered (`outcomes.py`); whether a page that came is changed or unchanged is for
`detect` to say.
"""

from __future__ import annotations

from dataclasses import dataclass

from recrawl.outcomes import FaultKind, Outcome
from recrawl.web.conditional import NO_VALIDATORS, Validators
from recrawl.web.url.address import Address

RawHeaders = tuple[tuple[bytes, bytes], ...]


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
    outcome: Outcome
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
