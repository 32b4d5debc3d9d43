"""What the head of an answer says: status, challenge, directives, redirects that smell of a page that is gone."""

from __future__ import annotations

import re
from collections.abc import Sequence

from recrawl.outcomes import Outcome
from recrawl.web.address import Address
from recrawl.web.fetch_result import NO_DIRECTIVES, Directives, Hop
from recrawl.web.fetch_steps import Head

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
_GONE_TARGET = re.compile(r"(?:^|[/_.-])(?:404|(?:page)?[_-]?not[_-]?found|errors?|error[_-]?page)(?:[/_.-]|$)", re.I)
_LONGEST_TAG_BYTES = 4096
_NAMED = re.compile(r"\s*([A-Za-z0-9_-]+)\s*:\s*(.*)", re.DOTALL)
# Rules that themselves hold a colon, and so are no name of a crawler.
_RULES_WITH_VALUE = frozenset({"max-snippet", "max-image-preview", "max-video-preview", "unavailable_after"})


def announced_bytes(head: Head) -> int:
    """Bytes on the wire that the head announces; 0 if it does not say, or not in a way that can be believed."""
    length = head.fields.get(b"content-length", b"")
    return int(length) if length.isdigit() and len(length) <= 18 else 0


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
    Directives(noindex=False, nofollow=True, noarchive=False)
    """
    if b"x-robots-tag" not in head.fields:
        return NO_DIRECTIVES
    rules: set[str] = set()
    for name, value in head.headers:  # a name on one line says nothing about the next
        if name.lower() == b"x-robots-tag":
            rules |= _rules_for(value[:_LONGEST_TAG_BYTES].decode("latin-1"), token)
    everything = "none" in rules
    return Directives(everything or "noindex" in rules, everything or "nofollow" in rules, "noarchive" in rules)


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
    """Whether the redirects lead from a page to the front page or to an error page: a hint that it is gone."""
    if not hops:
        return False
    path = hops[-1].to_address.target.partition("?")[0]
    if asked.target == "/" or path == asked.target.partition("?")[0]:
        return False
    return path in ("/", "/index.html", "/index.php", "/home") or _GONE_TARGET.search(path) is not None
