r"""WebSub, the subscriber's side (W3C recommendation of 2018): find hubs, ask them, answer them, check pushes. Pure.

    links = hub_links(header_values, elements, page)        which hub speaks for a page, and under which topic
    body = subscription_form(subscription)                  what is posted to the hub
    answer, subscription = verification(subscription, query, now, chance)    the hub asks whether we meant it
    is_genuine(secret, signature, body)                     whether a push comes from the hub that was asked

    wanted ──asked──▶ asked ──granted──▶ live ──(renew_at)──▶ asked ...
       ▲                │ refused, denied, or no word within an hour
       └──(retry_at)────┘   until then: poll

Each subscription has a callback of its own that nobody can guess. `next_step` says what to do and by when to ask again.
Store the state after `asked` and before the form is posted: hubs may verify before they answer. While a renewal is
under way the old lease goes on. Failures double the time to the next try, from an hour to a week; a source that has no
live subscription is polled as if it had no hub. A push is answered 2xx in any case; without a right signature it is
ignored, as the recommendation says, and a push says no more than that the topic has changed. Nothing here raises on
foreign text.

    >>> wanted = new_subscription("https://a.example/feed", "https://hub.example/", "https://me.example/websub/x", "s")
    >>> wanted.next_step(0.0)[1]
    Step(kind='subscribe', at=0.0)
    >>> live = wanted.asked(0.0).granted(864_000.0, now=10.0, chance=0.5)
    >>> live.is_active(20.0), live.next_step(20.0)[1]
    (True, Step(kind='wait', at=691210.0))
"""

from __future__ import annotations

import hashlib
import hmac
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple
from urllib.parse import parse_qs, urlencode

import msgspec

from recrawl.errors import InvalidInput
from recrawl.web.content.links import LinkElements, NamedLink, link_headers
from recrawl.web.refused import safe_text
from recrawl.web.url.address import Address, join_address

ASKED_LEASE_S = 10 * 86_400.0
LONGEST_LEASE_S = 90 * 86_400.0
VERIFIED_WITHIN_S = 3600.0
FIRST_RETRY_S = 3600.0
LONGEST_RETRY_S = 7 * 86_400.0
SHORTEST_RENEWAL_S = 300.0
_DENIED_RETRY_S = 86_400.0
_RENEW_FROM, _RENEW_TO = 0.7, 0.9  # of the lease
_MAX_UNSUBSCRIBE_ATTEMPTS = 3
_LONGEST_SECRET = 199  # the recommendation asks for less than 200 bytes
_LONGEST_PROBLEM = 200

Mode = Literal["subscribe", "unsubscribe"]
StepKind = Literal["subscribe", "unsubscribe", "wait", "done"]


class Step(NamedTuple):
    """What to do: post the form to the hub, or wait until a time, or forget the subscription."""

    kind: StepKind
    at: float


class Subscription(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription to one topic at one hub. Times are Unix seconds.

    Args:
        topic: the address we want to hear of.
        hub: where to ask.
        callback: our address for it, which nobody can guess.
        secret: with which the hub signs.
        mode: what we want of the hub.
        asked_at: when the hub was asked and has not yet verified, else None.
        lease_until: how long the hub will push, None if it does not.
        renew_at: when to ask for a new lease.
        retry_at: before which the hub is not asked.
        failures: tries in a row that came to nothing.
        problem: what went wrong last, empty if nothing did.
        is_over: whether there is nothing left to do.
    """

    topic: str
    hub: str
    callback: str
    secret: str
    mode: Mode = "subscribe"
    asked_at: float | None = None
    lease_until: float | None = None
    renew_at: float = 0.0
    retry_at: float = 0.0
    failures: int = 0
    problem: str = ""
    is_over: bool = False

    @property
    def is_asked(self) -> bool:
        """Whether the hub owes us a verification."""
        return self.asked_at is not None

    def is_active(self, now: float) -> bool:
        """Whether the hub pushes; if not, the topic must be polled."""
        return self.mode == "subscribe" and self.lease_until is not None and now < self.lease_until

    def next_step(self, now: float, chance: float = 0.5) -> tuple[Subscription, Step]:
        """The subscription with what time has done to it, and what to do. O(1).

        Args:
            now: Unix seconds.
            chance: a random number from 0 to 1, to spread retries.
        """
        state = self._in_time(now, chance)
        if state.is_over:
            return state, Step("done", now)
        due_at = state.due_at(now)
        return state, Step(state.mode, now) if now >= due_at else Step("wait", due_at)

    def asked(self, now: float) -> Subscription:
        """After it was decided to post the form."""
        return msgspec.structs.replace(self, asked_at=now)

    def answered(self, status: int, now: float, chance: float = 0.5) -> Subscription:
        """After the hub answered the form: 2xx means that it will verify, anything else that it will not.

        A hub that verified before it answered has no more to say; give 0 as status if there was no answer.
        """
        if 200 <= status < 300 or not self.is_asked:
            return self
        what = f"the hub answered {status}" if status else "the hub did not answer"
        return self.failed(what, now, chance)

    def granted(self, lease_s: float, now: float, chance: float) -> Subscription:
        """After the hub verified: the lease that it gave, of which no more than 90 days are believed."""
        lease_s = min(max(lease_s, 1.0), LONGEST_LEASE_S)
        share = _RENEW_FROM + (_RENEW_TO - _RENEW_FROM) * min(max(chance, 0.0), 1.0)
        return msgspec.structs.replace(
            self,
            asked_at=None,
            lease_until=now + lease_s,
            renew_at=now + max(share * lease_s, SHORTEST_RENEWAL_S),
            retry_at=now + SHORTEST_RENEWAL_S,
            failures=0,
            problem="",
        )

    def denied(self, reason: str, now: float, chance: float) -> Subscription:
        """After the hub said no, which it may at any time: it pushes no more, and is not asked for a day at least."""
        ended = msgspec.structs.replace(self, lease_until=None).failed(reason, now, chance)
        return msgspec.structs.replace(ended, retry_at=max(ended.retry_at, now + _DENIED_RETRY_S))

    def ending(self, now: float) -> Subscription:
        """When it is no longer wanted: the hub is told, and pushes count no more."""
        if self.lease_until is None and not self.is_asked:
            return self.ended()
        return msgspec.structs.replace(
            self, mode="unsubscribe", asked_at=None, lease_until=None, renew_at=now, retry_at=now, failures=0
        )

    def ended(self) -> Subscription:
        """After everything has been said."""
        return msgspec.structs.replace(self, asked_at=None, lease_until=None, is_over=True)

    def due_at(self, now: float) -> float:
        """When there is something to do next, or to give up waiting for."""
        if self.asked_at is not None:
            return self.asked_at + VERIFIED_WITHIN_S
        return max(self.renew_at, self.retry_at) if self.is_active(now) else self.retry_at

    def _in_time(self, now: float, chance: float) -> Subscription:
        """The state at a time: an hour without verification is a failure; times cannot lie further off than we set."""
        state = self
        if state.asked_at is not None and state.asked_at > now:  # the clock went back
            state = msgspec.structs.replace(state, asked_at=now)
        if state.retry_at > now + LONGEST_RETRY_S:
            state = msgspec.structs.replace(state, retry_at=now + LONGEST_RETRY_S)
        if state.lease_until is not None and state.lease_until > now + LONGEST_LEASE_S:
            state = msgspec.structs.replace(state, lease_until=now + LONGEST_LEASE_S, renew_at=now)
        if state.asked_at is not None and now >= state.asked_at + VERIFIED_WITHIN_S:
            state = state.failed("the hub did not verify within an hour", now, chance)
        if state.lease_until is not None and now >= state.lease_until:
            problem = state.problem or "the lease ended before it was renewed"
            state = msgspec.structs.replace(state, lease_until=None, problem=problem)
        return state

    def failed(self, problem: str, now: float, chance: float = 0.5) -> Subscription:
        """After a try came to nothing, for the reason given."""
        failures = min(self.failures + 1, 1000)
        if self.mode == "unsubscribe" and failures >= _MAX_UNSUBSCRIBE_ATTEMPTS:
            return self.ended()  # the lease runs out by itself, and its callback is gone
        wait_s = min(FIRST_RETRY_S * 2.0 ** min(failures - 1, 20), LONGEST_RETRY_S)
        wait_s *= 0.75 + 0.25 * min(max(chance, 0.0), 1.0)
        if self.lease_until is not None and self.is_active(now):  # several tries fit into what is left of the lease
            wait_s = min(wait_s, max((self.lease_until - now) / 3, SHORTEST_RENEWAL_S))
        return msgspec.structs.replace(
            self, asked_at=None, retry_at=now + wait_s, failures=failures, problem=problem[:_LONGEST_PROBLEM]
        )


def new_subscription(topic: str, hub: str, callback: str, secret: str) -> Subscription:
    """A subscription that has yet to be asked for.

    Raises:
        InvalidInput: for a secret that is empty or that hubs need not take.
    """
    if not 0 < len(secret.encode("utf-8", "replace")) <= _LONGEST_SECRET:
        raise InvalidInput(f"must have 1 to {_LONGEST_SECRET} bytes", field="secret")
    return Subscription(topic=topic, hub=hub, callback=callback, secret=secret)


def pack_subscription(subscription: Subscription) -> bytes:
    """The bytes to store, for `unpack_subscription`."""
    return msgspec.json.encode(subscription)


def unpack_subscription(packed: bytes) -> Subscription | None:
    """What `pack_subscription` wrote, or None for anything else: it is then asked for again."""
    try:
        read = msgspec.json.decode(packed, type=Subscription)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
    times = (read.asked_at or 0.0, read.lease_until or 0.0, read.renew_at, read.retry_at)
    return read if all(math.isfinite(time) for time in times) and read.failures >= 0 else None


MOST_HUBS = 5
LONGEST_QUERY = 16_384
LONGEST_CHALLENGE = 4096
_MOST_PARAMETERS = 20
_METHODS = {"sha1": hashlib.sha1, "sha256": hashlib.sha256, "sha384": hashlib.sha384, "sha512": hashlib.sha512}
_LEASE = re.compile(r"[0-9]{1,10}", re.ASCII)
_HEX = re.compile(r"[0-9a-fA-F]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class HubLinks:
    """The hubs that speak for a page, best first, and the topic to ask them for; no hubs if it has none."""

    hubs: tuple[Address, ...]
    topic: Address


def hub_links(header_values: Iterable[bytes], elements: LinkElements, page: Address) -> HubLinks:
    """The hubs and the topic that a page or feed names; headers come before elements. O(links).

    Args:
        header_values: of its `Link` headers.
        elements: of the page (`Page.elements`) or the feed (`Feed.elements`).
        page: its address, which is the topic where it names no `self`.

    A topic must be of the host that was asked: else a page could have us listen for others.

    >>> from recrawl.web.url.address import read_address
    >>> from recrawl.web.content.page import read_page
    >>> page = read_page(b'<link rel="hub" href="https://hub.example/"/><link rel="self" href="/atom"/>')
    >>> links = hub_links([], page.elements, read_address("https://a.example/feed"))
    >>> links.hubs[0].url, links.topic.url
    ('https://hub.example/', 'https://a.example/atom')
    """
    base = join_address(page, elements.base) if elements.base else page
    start = base if isinstance(base, Address) else page
    in_headers = link_headers(header_values)
    hubs = _named("hub", in_headers, page) or _named("hub", elements.links, start)
    topics = _named("self", in_headers, page) or _named("self", elements.links, start)
    topic = next((each for each in topics if each.host == page.host), page)
    return HubLinks(tuple(hubs[:MOST_HUBS]), topic)


def subscription_form(subscription: Subscription) -> bytes:
    """The form that asks a hub to begin, go on with or end a subscription, for `application/x-www-form-urlencoded`.

    The secret is sent to hubs without TLS too: who listens on the way may forge a push, but others cannot.
    """
    fields = {
        "hub.mode": subscription.mode,
        "hub.topic": subscription.topic,
        "hub.callback": subscription.callback,
    }
    if subscription.mode == "subscribe":
        fields["hub.lease_seconds"] = str(int(ASKED_LEASE_S))
        fields["hub.secret"] = subscription.secret
    return urlencode(fields).encode("ascii")


@dataclass(frozen=True, slots=True)
class Answer:
    """What the callback answers: a status, and the challenge as plain text where we agree."""

    status: int
    body: bytes = b""
    content_type: str = "text/plain; charset=utf-8"


def verification(
    subscription: Subscription | None, query: str, now: float, chance: float
) -> tuple[Answer, Subscription | None]:
    """The answer to a hub's GET at a callback, and the subscription after it. O(length).

    Args:
        subscription: whose callback was asked; None if there is no such callback.
        query: of the request, without its question mark.
        now: Unix seconds.
        chance: a random number from 0 to 1, to spread renewals.

    What was not asked for is answered 404 and changes nothing. A second verification is answered as the first was,
    but does not lengthen the lease.
    """
    given = _parameters(query)
    if subscription is None or given.get("hub.topic") != subscription.topic:
        return _NOT_FOUND, subscription
    mode, challenge = given.get("hub.mode", ""), given.get("hub.challenge", "")
    if mode == "denied":
        reason = safe_text(given.get("hub.reason", ""))
        return Answer(200), subscription.denied(f"the hub denied it: {reason}", now, chance)
    is_meant = mode == subscription.mode and (subscription.is_asked or subscription.is_active(now))
    if not is_meant or not 0 < len(challenge) <= LONGEST_CHALLENGE:
        return _NOT_FOUND, subscription
    echo = Answer(200, challenge.encode("utf-8", "replace"))
    if not subscription.is_asked:
        return echo, subscription
    if mode == "unsubscribe":
        return echo, subscription.ended()
    lease = given.get("hub.lease_seconds", "")
    lease_s = float(lease) if _LEASE.fullmatch(lease) else ASKED_LEASE_S
    return echo, subscription.granted(lease_s, now, chance)


def is_genuine(secret: str, header: str, body: bytes) -> bool:
    """Whether an `X-Hub-Signature` is the HMAC of a body under the secret that was sent to the hub. O(bytes).

    >>> is_genuine("key", "sha256=" + hmac.new(b"key", b"news", "sha256").hexdigest(), b"news")
    True
    >>> is_genuine("key", "", b"news"), is_genuine("key", "md5=00", b"news")
    (False, False)
    """
    method, _, written = header.strip().partition("=")
    make = _METHODS.get(method.strip().lower())
    if make is None or not _HEX.fullmatch(written) or len(written) > 2 * 64:
        return False
    expected = hmac.new(secret.encode("utf-8", "replace"), body, make).hexdigest()
    return hmac.compare_digest(expected, written.lower())


_NOT_FOUND = Answer(404)


def _named(rel: str, links: Iterable[NamedLink], start: Address) -> list[Address]:
    joined = (join_address(start, link.href) for link in links if rel in link.rels)
    return list(dict.fromkeys(address for address in joined if isinstance(address, Address)))


def _parameters(query: str) -> dict[str, str]:
    """The parameters of a query that stand there once; none if it is too long."""
    if len(query) > LONGEST_QUERY:
        return {}
    try:
        given = parse_qs(query, keep_blank_values=True, max_num_fields=_MOST_PARAMETERS)
    except ValueError:
        return {}
    return {name: values[0] for name, values in given.items() if len(values) == 1}
