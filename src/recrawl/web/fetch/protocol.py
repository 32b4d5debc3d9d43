"""The words between a fetch and whoever drives it: steps go out, events come back.

| step | events that answer it |
|---|---|
| `NeedRobots` | `RobotsEntry`; `Fault` if the host cannot be reached at all |
| `NeedTurn` | `Turn` |
| `Send` | `Head`, `Fault` |
| `Read` | `Chunk`, `BodyEnd`, `Fault` |
| `Drop` | `Dropped` |

A driver answers each step with one event; `transport.py` does it with sockets, tests with a list.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Literal

from recrawl.outcomes import FaultKind
from recrawl.web.conditional import NO_VALIDATORS, Validators
from recrawl.web.fetch.credentials import HeaderPairs
from recrawl.web.fetch.result import FetchResult, RawHeaders
from recrawl.web.fetch.settings import FetchLimits
from recrawl.web.robots.entry import RobotsEntry
from recrawl.web.url.address import Address

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
class NeedTurn:
    """May a request go to this host now? The first was granted with the job, unless the driver knows better.

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
class Turn:
    """Whether the request may go; if not, `reason` says why."""

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


Step = NeedRobots | NeedTurn | Send | Read | Drop
Event = RobotsEntry | Turn | Head | Chunk | BodyEnd | Fault | Dropped
FetchFlow = Generator[Step, Event, FetchResult]
GRANTED = Turn(True)
