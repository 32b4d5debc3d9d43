r"""WebSub, the subscriber's side (W3C recommendation of 2018): find hubs, ask them, answer them, believe no stranger.

    links = hub_links(header_values, elements, page)        which hub speaks for a page, and under which topic
    body = subscription_form(subscription)                  what is posted to the hub
    answer, subscription = verification(subscription, query, now, chance)    the hub asks whether we meant it
    is_genuine(secret, signature, body)                     whether a push comes from the hub that was asked

The states of one subscription are in `push/subscription.py`. Each has a callback of its own that nobody can guess.
A push is answered 2xx in any case; without a right signature it is ignored, as the recommendation says, and a push
tells no more than that the topic has changed. Nothing here raises on foreign text.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import parse_qs, urlencode

from recrawl.web.content.links import LinkElements, NamedLink, link_headers
from recrawl.web.push.subscription import ASKED_LEASE_S, Subscription
from recrawl.web.refused import safe_text
from recrawl.web.url.address import Address, join_address

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
    is_meant = mode == subscription.mode and (subscription.is_asked or subscription.hears(now))
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
