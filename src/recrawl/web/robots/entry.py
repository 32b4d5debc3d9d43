"""What a site's robots.txt allows this crawler, and for how long that answer holds (RFC 9309).

    answer = robots_answer(status, body, token, base)     or     unreachable(reason)
    entry  = renew(previous_entry, answer, now, max_age_s)
    entry.allows(address)

Rules: 2xx is parsed (`robots/rules.py`); 4xx and more than five redirects mean no rules; 5xx, 429, a timeout or any
network fault mean that nothing may be fetched, unless a good copy is still at hand (2.3.1.4 and 2.4). An answer holds
for at most 24 hours, and is asked for again with the validators it came with.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from recrawl.web.conditional import NO_VALIDATORS, Validators
from recrawl.web.refused import Refused
from recrawl.web.robots.rules import allows, parse_robots
from recrawl.web.url.address import DEFAULT_RULES, Address, AddressRules, join_address, read_address

MAX_REDIRECTS = 5
MAX_LIFE_S = 86_400.0
MIN_LIFE_S = 300.0
_FIRST_RETRY_S = 300.0
_MAX_RETRY_S = 3_600.0
_MAX_REMEMBERED_S = 30 * 86_400.0
_MAX_UNREAD_S = 7 * 86_400.0

RobotsKind = Literal["rules", "unavailable", "unreachable"]


@dataclass(frozen=True, slots=True)
class RobotsAnswer:
    """What one fetch of a robots.txt said.

    Args:
        kind: `rules` were read, there are none (`unavailable`), or they cannot be known (`unreachable`).
        reason: where the answer comes from, for `explain`.
        crawl_delay_s: seconds between two requests that the site asks for, 0 to 30, or None.
        sitemaps: addresses of its sitemaps; lines that are no address are left out.
        rules: the lines that hold for this crawler.
    """

    kind: RobotsKind
    reason: str
    crawl_delay_s: float | None = None
    sitemaps: tuple[Address, ...] = ()
    rules: str = field(default="", repr=False)

    def allows(self, address: Address) -> bool:
        """Whether the site lets this crawler fetch an address. Time is bounded by the size limits of both."""
        if self.kind == "unreachable":
            return False
        if not self.rules or address.target.partition("?")[0] == "/robots.txt":
            return True
        return allows(self.rules, address.target)


@dataclass(frozen=True, slots=True)
class RobotsCopy:
    """The robots.txt that the rules were read from: its validators, the address that gave them, and when."""

    validators: Validators
    address: Address
    read_at: float


@dataclass(frozen=True, slots=True)
class RobotsEntry:
    """An answer with its life: kept by host, asked before every fetch.

    Args:
        answer: the answer that holds.
        fetched_at: when it was read.
        expires_at: when it must be fetched again.
        failures: fetches of robots.txt that failed since then.
        copy: where and when the answer was read in full, for the next conditional request; None if it was not.
    """

    answer: RobotsAnswer
    fetched_at: float
    expires_at: float
    failures: int = 0
    copy: RobotsCopy | None = None

    def allows(self, address: Address) -> bool:
        """Whether an address may be fetched; ask only before `expires_at`."""
        return self.answer.allows(address)

    def validators(self, now: float) -> Validators:
        """The validators to send with the next request.

        Ask without validators once a week, to catch servers that always answer 304.
        """
        if self.copy is None or not 0.0 <= now - self.copy.read_at < _MAX_UNREAD_S:
            return NO_VALIDATORS
        return self.copy.validators


def robots_answer(status: int, body: bytes, token: str, base: Address) -> RobotsAnswer:
    """What a response to /robots.txt means.

    Args:
        status: of the last hop; a 3xx here is one that could not be followed or the sixth.
        body: decoded bytes, of which the first 500 KiB count.
        token: the product token of this crawler.
        base: the address of the robots.txt, for its sitemap lines.
    """
    if 200 <= status < 300:
        file = parse_robots(body, token)
        sitemaps = tuple(dict.fromkeys(each for value in file.sitemaps if (each := _sitemap(value, base)) is not None))
        return RobotsAnswer("rules", "robots.txt was read", file.crawl_delay_s, sitemaps, "\n".join(file.rules))
    if status == 429 or status >= 500 or status < 200:
        return unreachable(f"robots.txt answered {status}")
    return RobotsAnswer("unavailable", f"robots.txt answered {status}")


def unreachable(reason: str) -> RobotsAnswer:
    """No answer at all: a timeout, a refused connection, a broken response."""
    return RobotsAnswer("unreachable", reason)


def renew(
    previous: RobotsEntry | None,
    answer: RobotsAnswer,
    now: float,
    max_age_s: float | None = None,
    copy: RobotsCopy | None = None,
) -> RobotsEntry:
    """The entry after a fetch.

    Args:
        previous: the entry so far.
        answer: what the fetch said.
        now: seconds.
        max_age_s: what the site's Cache-Control says, held between 5 minutes and 24 hours.
        copy: the file that the answer was read from, if it has validators.

    While a site is unreachable, rules read within the last 30 days stay in force and are asked for again after 5
    minutes, 10, 20, at most an hour.
    """
    if answer.kind != "unreachable":
        life_s = MAX_LIFE_S if max_age_s is None else min(max(max_age_s, MIN_LIFE_S), MAX_LIFE_S)
        return RobotsEntry(answer, now, now + life_s, 0, copy)
    failures = 1 if previous is None else previous.failures + 1
    retry_at = now + min(_FIRST_RETRY_S * 2.0 ** min(failures - 1, 10), _MAX_RETRY_S)
    if previous is not None and previous.answer.kind == "rules" and now - previous.fetched_at < _MAX_REMEMBERED_S:
        return replace(previous, expires_at=retry_at, failures=failures)
    return RobotsEntry(answer, now, retry_at, failures)


def confirm(previous: RobotsEntry, now: float, max_age_s: float | None = None) -> RobotsEntry:
    """The entry after the site answered 304 to a conditional request for its robots.txt."""
    return renew(previous, previous.answer, now, max_age_s, previous.copy)


def robots_address(page: Address) -> Address:
    """Where the robots.txt of a page's origin is."""
    return page.with_target("/robots.txt")


def _sitemap(value: str, base: Address) -> Address | None:
    own = DEFAULT_RULES if base.is_ip else AddressRules(local_names=frozenset({base.host}))  # it was let in
    address = join_address(base, value) if value.startswith("/") else read_address(value, own)
    return None if isinstance(address, Refused) else address
