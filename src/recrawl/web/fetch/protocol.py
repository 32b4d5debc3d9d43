"""The words between a fetch and its driver: steps go out, events come back, a `FetchResult` ends it.

| step | events that answer it |
|---|---|
| `NeedRobots` | `RobotsEntry`; `Fault` if the host cannot be reached at all |
| `WaitForSlot` | `Slot` |
| `Send` | `Head`, `Fault` |
| `Read` | `Chunk`, `BodyEnd`, `Fault` |
| `Drop` | `Dropped` |

A driver answers each step with one event; `transport.py` does it with sockets, tests with a list. The outcome of a
result says what the world answered (`outcomes.py`); whether a page that came has changed is for `change/` to say.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Literal

from recrawl.outcomes import FaultKind, Outcome
from recrawl.web.conditional import NO_VALIDATORS, Validators
from recrawl.web.fetch.settings import FetchLimits, HeaderPairs
from recrawl.web.robots.entry import RobotsEntry
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

    def header(self, name: bytes) -> bytes:
        """All values of a header, joined by commas; empty if there is none. O(headers).

        Args:
            name: in lower case.
        """
        return b", ".join(value for found, value in self.headers if found.lower() == name)


Channel = Literal["page", "robots", "sitemap", "feed"]
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class FetchJob:
    """One thing to fetch.

    Args:
        address: where.
        validators: of the copy at hand, to be sent back; none for a full fetch.
        channel: what it is; a robots.txt needs no leave of robots.txt.
        limits: bounds of this fetch where they differ from those of the settings.
        validated_at: the address whose answer the validators came with, where that was the end of redirects;
            nobody else is sent them. None for `address`.
    """

    address: Address
    validators: Validators = NO_VALIDATORS
    channel: Channel = "page"
    limits: FetchLimits | None = None
    validated_at: Address | None = None


@dataclass(frozen=True, slots=True)
class NeedRobots:
    """Which rules hold for the origin of this address?"""

    address: Address


@dataclass(frozen=True, slots=True)
class WaitForSlot:
    """Ask for a slot in the pacing of a host; the first was granted with the job, unless the driver knows better.

    Args:
        address: what will be asked.
        crawl_delay_s: seconds between requests that its robots.txt asks for.
        hop: 0 for the first request of the fetch.
    """

    address: Address
    crawl_delay_s: float | None
    hop: int


@dataclass(frozen=True, slots=True)
class Send:
    """Send a GET with exactly these headers and Host; follow nothing, decode nothing, keep no cookies.

    Args:
        address: whom to ask; the gate decides again when it is dialled.
        headers: all of them but Host and Connection.
        deadline: moment on the clock by which head and body must be here.
        connect_s: seconds until the connection stands.
        verify_tls: whether the certificate is checked.
    """

    address: Address
    headers: HeaderPairs
    deadline: float
    connect_s: float
    verify_tls: bool = True


@dataclass(frozen=True, slots=True)
class Read:
    """Give the next bytes of the body as they came over the wire."""

    deadline: float


@dataclass(frozen=True, slots=True)
class Drop:
    """The rest of the answer is not wanted."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Whether the request may be sent now; if not, `reason` says why."""

    granted: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Head:
    """Status and headers of an answer; `fields` has them by lower-case name, several of one name joined by commas."""

    status: int
    headers: RawHeaders
    fields: dict[bytes, bytes] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        fields = {name.lower(): value for name, value in self.headers}
        if len(fields) < len(self.headers):
            fields = {}
            for raw_name, value in self.headers:
                name = raw_name.lower()
                fields[name] = fields[name] + b", " + value if name in fields else value
        object.__setattr__(self, "fields", fields)

    def only(self, *names: bytes) -> RawHeaders:
        """The headers of these names, by name in lower case; all headers where some name came twice."""
        if len(self.fields) < len(self.headers):
            return self.headers
        return tuple((name, self.fields[name]) for name in names if name in self.fields)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some bytes of the body."""

    data: bytes


@dataclass(frozen=True, slots=True)
class BodyEnd:
    """The body has come to its end as the protocol has it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What went wrong between us and the server; `detail` is safe to print."""

    kind: FaultKind
    detail: str


@dataclass(frozen=True, slots=True)
class Dropped:
    """The answer was let go."""


Step = NeedRobots | WaitForSlot | Send | Read | Drop
Event = RobotsEntry | Slot | Head | Chunk | BodyEnd | Fault | Dropped
FetchFlow = Generator[Step, Event, FetchResult]
GRANTED = Slot(True)
