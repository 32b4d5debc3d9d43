"""What the head of an answer says: status, challenge, directives, redirects that smell of a page that is gone."""

from __future__ import annotations

import re
from collections.abc import Sequence

from recrawl.outcomes import Outcome
from recrawl.web.fetch.protocol import NO_DIRECTIVES, Directives, Head, Hop
from recrawl.web.url.address import Address

FOLLOWED = frozenset({301, 302, 303, 307, 308})
_OUTCOMES: dict[int, Outcome] = {
    200: "ok",
    203: "ok",
    404: "missing",
    410: "gone",
    408: "server-error",
    421: "server-error",
    425: "server-error",
    429: "rate-limited",
}
# Headers by which the large shields say that the answer is a challenge, not the page.
_CHALLENGES = {b"cf-mitigated": (b"challenge",), b"x-amzn-waf-action": (b"challenge", b"captcha")}
# What error pages are called, as whole words of a path: /404.html, /page-not-found, /errors/500.
_GONE_WORD = re.compile(r"(?<![^/_.-])(?:404|(?:page[_-]?)?not[_-]?found|errors?|error[_-]?page)(?![^/_.-])", re.I)
# The front page of a site or of a part of it, under its other names.
_INDEX_NAME = re.compile(r"(?:/(?:index|default|home)(?:\.[a-z]{2,5})?)?/?$", re.I)
_WORD = re.compile(r"[^/_.-]+")
_LONGEST_TAG_BYTES = 4096
_NAMED = re.compile(r"\s*([A-Za-z0-9_-]+)\s*:\s*(.*)", re.DOTALL)
# Rules that themselves hold a colon, and so are no name of a crawler.
_RULES_WITH_VALUE = frozenset({"max-snippet", "max-image-preview", "max-video-preview", "unavailable_after"})


def announced_bytes(head: Head) -> int:
    """Bytes on the wire that the head announces; 0 if it does not say, or not in a way that can be believed."""
    length = head.fields.get(b"content-length", b"")
    return int(length) if length.isdigit() and len(length) <= 18 else 0


def is_packed_for_transfer(head: Head) -> bool:
    """Whether the body is more than cut into chunks: a coding that no request asks for (RFC 9112, 7).

    >>> is_packed_for_transfer(Head(200, ((b"Transfer-Encoding", b"gzip, Chunked"),)))
    True
    """
    codings = [part.strip(b" \t").lower() for part in head.fields.get(b"transfer-encoding", b"").split(b",")]
    return [coding for coding in codings if coding not in (b"", b"identity")] not in ([], [b"chunked"])


def shown_status(head: Head) -> str:
    """The status in a sentence."""
    return f"the answer {head.status}"


def outcome_of_status(head: Head) -> tuple[Outcome | None, str]:
    """The outcome that a status which is no redirect stands for, and a reason; None if it carries no page.

    >>> outcome_of_status(Head(503, ((b"Retry-After", b"9"),)))
    ('rate-limited', 'the server answered 503')
    """
    reason = f"the server answered {head.status}"
    if not head.fields.keys().isdisjoint(_CHALLENGES) and _is_challenge(head):
        return "blocked-page", f"{reason} with a challenge"
    if head.status == 503 and b"retry-after" in head.fields:
        return "rate-limited", reason
    outcome = _OUTCOMES.get(head.status)
    if outcome is not None:
        return outcome, reason
    if head.status >= 500:
        return "server-error", reason
    if head.status >= 400:
        return "forbidden", reason
    return None, f"{reason}, which carries no page"


def _is_challenge(head: Head) -> bool:
    return any(head.fields[name].lower() in words for name, words in _CHALLENGES.items() if name in head.fields)


def directives_of(head: Head, token: str) -> Directives:
    """What X-Robots-Tag asks of all crawlers or of this one by name. O(headers).

    >>> head = Head(200, ((b"X-Robots-Tag", b"otherbot: noindex"), (b"x-robots-tag", b"recrawl: nofollow")))
    >>> directives_of(head, "recrawl")
    Directives(noindex=False, nofollow=True)
    """
    if b"x-robots-tag" not in head.fields:
        return NO_DIRECTIVES
    rules: set[str] = set()
    for name, value in head.headers:  # a name on one line says nothing about the next
        if name.lower() == b"x-robots-tag":
            rules |= _rules_for(value[:_LONGEST_TAG_BYTES].decode("latin-1"), token)
    everything = "none" in rules
    return Directives(everything or "noindex" in rules, everything or "nofollow" in rules)


def _rules_for(tag: str, token: str) -> set[str]:
    """The rules of one header line; a name holds for the rules that follow it on the line."""
    rules: set[str] = set()
    meant = True
    for part in tag.split(","):
        named = _NAMED.fullmatch(part)
        has_name = named is not None and named[1].lower() not in _RULES_WITH_VALUE
        if named is not None and has_name:
            meant = named[1].lower() in (token, "*")
        if meant:
            rules.add((named[2] if named is not None and has_name else part).strip().lower())
    return rules


def looks_like_soft_404(asked: Address, hops: Sequence[Hop]) -> bool:
    """Whether the redirects lead from a page to the front page or to an error page: a hint that it is gone. O(length).

    Another spelling of the asked path is no error page, nor is a name that the words of the asked path explain:
    /index.html leads to /, /errors to /errors/, /room to /room-404.
    """
    if not hops or asked.target == "/":
        return False
    before, after = _plain_path(asked), _plain_path(hops[-1].to_address)
    if before == after:
        return False
    return after == "" or _names_an_error(before, after)


def _plain_path(address: Address) -> str:
    """The path without a slash or a name of the front page at its end."""
    return _INDEX_NAME.sub("", address.target.partition("?")[0].lower())


def _names_an_error(before: str, after: str) -> bool:
    known = set(_WORD.findall(before))
    name = set(_WORD.findall(before.rpartition("/")[2]))
    for gone in _GONE_WORD.finditer(after):
        if known.issuperset(_WORD.findall(gone[0])):
            continue
        # The name of the page goes on in the same part of the path: /room-404.
        around = after[after.rfind("/", 0, gone.start()) + 1 : gone.start()]
        if not name or not name.issubset(_WORD.findall(around)):
            return True
    return False
