"""One fetch from address to outcome, as a generator without IO.

    robots → turn → request with validators → redirects → bounded body → outcome

`fetch_flow` yields the steps of `fetch/protocol.py`, takes events, and returns a `FetchResult`; it never raises on what
the network says. Each hop passes the address rules, the early check of the gate, the opt-out list, robots.txt and the
pacing of its host again. Credentials and validators stay with the first origin. The body of a redirect is not read.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field

from recrawl.outcomes import FaultKind, Outcome
from recrawl.web.conditional import (
    NO_VALIDATORS,
    Validators,
    fresh_for_s,
    is_not_modified,
    request_headers,
    validators_of,
)
from recrawl.web.fetch.decoding import BodyDecoder, DecodingFault, body_decoder
from recrawl.web.fetch.egress import check_target
from recrawl.web.fetch.protocol import (
    NO_DIRECTIVES,
    BodyEnd,
    Chunk,
    Clock,
    Directives,
    Drop,
    Event,
    Fault,
    FetchFlow,
    FetchJob,
    FetchResult,
    Head,
    Hop,
    NeedRobots,
    Read,
    Send,
    Slot,
    Step,
    WaitForSlot,
)
from recrawl.web.fetch.retry import retry_after_s
from recrawl.web.fetch.settings import (
    FREE_BYTES,
    NO_CREDENTIALS,
    UNLIMITED,
    FetchLimits,
    FetchSettings,
    HeaderPairs,
    MemoryBudget,
    robots_limits,
    sitemap_limits,
)
from recrawl.web.fetch.status import (
    FOLLOWED,
    announced_bytes,
    directives_of,
    is_packed_for_transfer,
    looks_like_soft_404,
    outcome_of_status,
    shown_status,
)
from recrawl.web.refused import Refused, safe_text
from recrawl.web.robots.entry import RobotsEntry
from recrawl.web.url.address import Address, join_address
from recrawl.web.url.hostname import matches_name

MAX_OPEN_ORIGINS = 4096
_MAX_LOCATION_BYTES = 8190


@dataclass(frozen=True, slots=True)
class _End:
    """How a part of the fetch ended the whole of it."""

    outcome: Outcome
    reason: str
    fault: FaultKind | None = None
    body: bytes = b""


_Part = Generator[Step, Event, "_End | None"]
_NO_MEMORY = _End("deferred", "the memory budget for large bodies is used up; the page will be retried")


def fetch_flow(
    job: FetchJob,
    settings: FetchSettings,
    clock: Clock,
    now: float,
    budget: MemoryBudget = UNLIMITED,
    open_origins: set[str] | None = None,
) -> FetchFlow:
    """The flow of one fetch.

    Args:
        job: what to fetch.
        settings: what every fetch carries.
        clock: seconds that only rise; the deadlines of the steps are moments on it.
        now: seconds since 1970, for dates in headers.
        budget: memory that its body shares with those of other fetches.
        open_origins: origins that the early check of the gate let through, shared by fetches with the same settings.
    """
    return _Fetch(job, settings, clock, now, budget, set() if open_origins is None else open_origins).run()


@dataclass(slots=True)
class _Fetch:
    job: FetchJob
    settings: FetchSettings
    clock: Clock
    now: float
    budget: MemoryBudget
    open_origins: set[str]
    at: Address = field(init=False)
    limits: FetchLimits = field(init=False)
    validators: Validators = field(init=False)
    sent: Validators = NO_VALIDATORS
    hops: list[Hop] = field(default_factory=list)
    head: Head | None = None
    left_origin: bool = False
    requests: int = 0
    wire_bytes: int = 0
    spent_s: float = 0.0
    held_bytes: int = 0

    def __post_init__(self) -> None:
        self.at = self.job.address
        self.validators = self.job.validators
        self.limits = self.job.limits or _channel_limits(self.job, self.settings.limits)

    def run(self) -> FetchFlow:
        try:
            while True:
                end = yield from self._one_request()
                if end is not None:
                    return self._result(end)
        finally:
            self.budget.release(self.held_bytes)

    def _one_request(self) -> _Part:
        """Send one request to the current URL. Return None to continue at the redirect target."""
        end = self._check_address() or (yield from self._check_robots_and_pacing())
        if end is not None:
            return end
        began = self.clock()
        deadline = began + self.limits.total_s - self.spent_s
        self.requests += 1
        answer = yield self._request(deadline)
        if isinstance(answer, Head):
            self.head = answer
            end = yield from self._judge(answer, deadline)
        else:
            assert isinstance(answer, Fault)
            self.head = None
            end = _end_of_fault(answer)
        if self._has_spent(began) and end is None:
            return _End("network-error", "the redirects took too long", "timeout")
        return end

    def _has_spent(self, began: float) -> bool:
        """Count the time since a moment; whether all of it is gone."""
        self.spent_s += max(self.clock() - began, 0.0)
        return self.spent_s >= self.limits.total_s

    def _check_address(self) -> _End | None:
        opted_out = self.settings.opted_out
        if opted_out and any(matches_name(self.at.host, pattern) for pattern in opted_out):
            return _End("opted-out", f"{self.at.host} is on the opt-out list")
        origin = self.at.origin
        if origin in self.open_origins:
            return None
        decision = check_target(self.at, self.settings.egress)
        if decision is not None:
            return _End("refused", decision.sentence, "refused")
        if len(self.open_origins) >= MAX_OPEN_ORIGINS:
            self.open_origins.clear()
        self.open_origins.add(origin)
        return None

    def _check_robots_and_pacing(self) -> _Part:
        delay_s: float | None = None
        if self.job.channel != "robots":
            began = self.clock() if self.hops else 0.0
            entry = yield NeedRobots(self.at)
            if self.hops and self._has_spent(began):  # else ten hosts with slow rules hold a slot for ten times as long
                return _End("network-error", "the redirects took too long", "timeout")
            if isinstance(entry, Fault):  # the host cannot be reached at all
                return _end_of_fault(entry)
            assert isinstance(entry, RobotsEntry)
            if not entry.allows(self.at):
                why = "robots.txt disallows it" if entry.answer.kind == "rules" else entry.answer.reason
                return _End("robots-denied", why)
            delay_s = entry.answer.crawl_delay_s
        turn = yield WaitForSlot(self.at, delay_s, len(self.hops))
        assert isinstance(turn, Slot)
        return None if turn.granted else _End("deferred", turn.reason)

    def _request(self, deadline: float) -> Send:
        credentials = self.settings.credentials
        own: HeaderPairs = ()
        if not self.left_origin and credentials is not NO_CREDENTIALS:
            own = credentials.headers_for(self.at)
        # Validators mean something only to the address they came from.
        validated_at = self.job.validated_at or self.job.address
        self.sent = self.validators if self.at.url == validated_at.url else NO_VALIDATORS
        headers = self.settings.own_headers
        if any(name.lower() == "accept" for name, _ in own):
            headers = tuple(pair for pair in headers if pair[0] != "Accept")
        if self.sent or own:
            headers = (*headers, *request_headers(self.sent), *own)
        unverified = self.settings.unverified_tls
        verify_tls = not unverified or self.at.origin not in unverified
        return Send(self.at, headers, deadline, min(self.limits.connect_s, deadline - self.clock()), verify_tls)

    def _judge(self, head: Head, deadline: float) -> _Part:
        broken = self._check_head(head)
        if broken is not None:
            yield Drop()
            return broken
        if head.status in FOLLOWED:
            yield Drop()
            return self._follow(head)
        if head.status == 304:
            yield Drop()
            return self._not_modified(head)
        if head.status in (200, 203) and self._asks_not_to_be_read(head):
            yield Drop()
            return _End("opted-out", "the page asks by X-Robots-Tag not to be indexed")
        outcome, reason = outcome_of_status(head)
        if outcome is None:
            yield Drop()
            return _End("network-error", reason, "no-page")
        return (yield from self._read_body(head, outcome, reason, deadline))

    def _check_head(self, head: Head) -> _End | None:
        if len(head.headers) > self.limits.most_headers:
            return _End("network-error", f"the answer has more than {self.limits.most_headers} headers", "headers")
        if _has_long_line(head, self.limits.longest_line_bytes):
            return _End("network-error", "the answer has a header that is too long", "headers")
        if not 200 <= head.status <= 599:
            return _End("network-error", f"the answer has the status {head.status}", "protocol")
        return None

    def _follow(self, head: Head) -> _End | None:
        """Step to where a redirect points, or say why not."""
        locations = {value for name, value in head.headers if name.lower() == b"location"}
        location = locations.pop() if len(locations) == 1 else b""  # of two that differ, none is right
        if not location or len(location) > _MAX_LOCATION_BYTES:
            return _End("network-error", f"{shown_status(head)} without a usable Location", "redirect")
        target = join_address(self.at, _location_text(location), self.settings.address_rules)
        if isinstance(target, Refused):
            return _End(
                "refused", f"{shown_status(head)} redirects to a URL that is refused: {target.sentence}", "refused"
            )
        if len(self.hops) >= self.limits.most_redirects:
            return _End("network-error", f"more than {self.limits.most_redirects} redirects", "redirect")
        if target.url == self.job.address.url or any(target.url == hop.to_address.url for hop in self.hops):
            return _End("network-error", f"redirect loop at {safe_text(target.url)}", "redirect")
        self.hops.append(Hop(head.status, self.at, target))
        self.left_origin = self.left_origin or target.origin != self.at.origin
        self.at = target
        return None

    def _not_modified(self, head: Head) -> _End | None:
        if is_not_modified(self.sent, validators_of(head.headers)):
            return _End("not-modified", "the server says it has not changed")
        if self.sent:  # it names another version: ask again, for the page itself
            self.validators = NO_VALIDATORS
            return None
        return _End("network-error", "the answer is 304, but no condition was sent", "protocol")

    def _read_body(self, head: Head, outcome: Outcome, reason: str, deadline: float) -> _Part:
        is_error = outcome != "ok"
        if b"transfer-encoding" in head.fields and is_packed_for_transfer(head):
            yield Drop()
            packed = "the body is packed in a way that was not asked for"
            return _End(outcome, reason) if is_error else _End("network-error", packed, "protocol")
        encoding = head.fields.get(b"content-encoding", b"")
        decoder = body_decoder(encoding, self.limits.decoding(is_error=is_error))
        if isinstance(decoder, BodyDecoder) and self.job.channel != "robots":
            decoder = decoder.unless_too_large(announced_bytes(head))
        if isinstance(decoder, DecodingFault):
            yield Drop()
            return _End(outcome, reason) if is_error else _end_of_decoding(decoder)
        end = yield from self._drain(decoder, deadline)
        self.wire_bytes += decoder.wire_bytes
        if is_error:  # the status says it all; its page is kept only if it came whole
            return _End(outcome, reason, None, b"" if end is not None else decoder.body())
        if end is not None and not (self.job.channel == "robots" and end.outcome == "too-large"):
            return end
        is_moved = bool(self.hops) and self.hops[0].is_permanent
        return _End("moved" if is_moved else "ok", reason, None, decoder.body())

    def _drain(self, decoder: BodyDecoder, deadline: float) -> _Part:
        step = Read(deadline)
        while True:
            event = yield step
            if isinstance(event, Chunk):
                fault = decoder.feed(event.data)
                if fault is None and (
                    decoder.decoded_bytes <= FREE_BYTES or self._fits_in_memory(decoder.decoded_bytes)
                ):
                    continue
                yield Drop()
                return _NO_MEMORY if fault is None else _end_of_decoding(fault)
            if isinstance(event, BodyEnd):
                fault = decoder.finish()
                return None if fault is None else _end_of_decoding(fault)
            assert isinstance(event, Fault)
            if event.kind in ("closed", "reset"):
                return _End("truncated", event.detail, event.kind)
            return _end_of_fault(event)

    def _fits_in_memory(self, body_bytes: int) -> bool:
        more = body_bytes - FREE_BYTES - self.held_bytes
        if more > 0 and not self.budget.acquire(more):
            return False
        self.held_bytes += max(more, 0)
        return True

    def _asks_not_to_be_read(self, head: Head) -> bool:
        """Pages only: many sites mark their robots.txt, sitemaps and feeds `noindex`, and mean search results."""
        return self.job.channel == "page" and self.settings.honour_noindex and self._directives(head).noindex

    def _directives(self, head: Head) -> Directives:
        return directives_of(head, self.settings.user_agent.token)

    def _wait_s(self, value: bytes | None) -> float | None:
        return None if value is None else retry_after_s(value.decode("latin-1"), self.now)

    def _result(self, end: _End) -> FetchResult:
        # What was asked before says nothing about a page that was not asked for.
        head = None if end.outcome in ("robots-denied", "deferred") else self.head
        fields = {} if head is None else head.fields
        headers = () if head is None else head.headers
        validators, fresh_s = NO_VALIDATORS, 0.0
        if head is not None and (b"etag" in fields or b"last-modified" in fields):
            validators = validators_of(head.only(b"etag", b"last-modified", b"date"))
        if head is not None and (b"cache-control" in fields or b"expires" in fields):
            fresh_s = fresh_for_s(head.only(b"cache-control", b"age", b"expires", b"date"), self.now)
        return FetchResult(
            address=self.job.address,
            outcome=end.outcome,
            reason=end.reason,
            final=self.at,
            fault=end.fault,
            status=None if head is None else head.status,
            hops=tuple(self.hops),
            headers=headers,
            body=end.body,
            sent=self.sent,
            validators=validators,
            retry_after_s=self._wait_s(fields.get(b"retry-after")),
            fresh_for_s=fresh_s,
            directives=NO_DIRECTIVES if head is None else self._directives(head),
            soft_404=looks_like_soft_404(self.job.address, self.hops),
            requests=self.requests,
            wire_bytes=self.wire_bytes,
            elapsed_s=self.spent_s,
        )


def _has_long_line(head: Head, most: int) -> bool:
    fields = head.fields
    if not fields or max(map(len, fields)) + max(map(len, fields.values())) <= most:  # true of nearly all
        return False
    return any(len(name) + len(value) > most for name, value in head.headers)


def _channel_limits(job: FetchJob, limits: FetchLimits) -> FetchLimits:
    if job.channel == "robots":
        return robots_limits(limits)
    return sitemap_limits(limits) if job.channel == "sitemap" else limits


def _end_of_fault(fault: Fault) -> _End:
    return _End("refused" if fault.kind == "refused" else "network-error", fault.detail, fault.kind)


def _end_of_decoding(fault: DecodingFault) -> _End:
    if fault.is_cut:
        return _End("too-large", fault.reason)
    return (
        _End("truncated", fault.reason, "closed")
        if fault.problem == "truncated"
        else _End("network-error", fault.reason, "coding")
    )


def _location_text(location: bytes) -> str:
    """As browsers read it: UTF-8 where it is, else byte by byte."""
    try:
        return location.decode("utf-8")
    except UnicodeDecodeError:
        return location.decode("latin-1")
