"""The kinds of signals by name."""

from __future__ import annotations

from recrawl.errors import InvalidInput
from recrawl.web.signed_ping import is_kind

SITEMAP, FEED, WEBSUB, INDEXNOW, WEBHOOK = "sitemap", "feed", "websub", "indexnow", "webhook"
MANUAL = "manual"
"""Someone says so by hand: `recrawl signal`."""

NEIGHBOUR = "neighbour"
"""Another page of the same section was found changed."""

NOW = "now"
"""No signal, but a wish that is kept like one: fetch the page as soon as its host allows."""

OTHER = "other"
"""All kinds together that are more than `MOST_KINDS`."""

OURS = frozenset({SITEMAP, FEED, WEBSUB, NEIGHBOUR, NOW, OTHER})
"""Kinds that only the tracker itself tells: who could borrow one would spend, or spoil, the trust in it."""

MOST_KINDS = 15
"""Kinds that are told apart; whoever invents more has them counted as one."""


def check_kind(name: str, field: str) -> None:
    """Refuse a text that is no name of a kind."""
    if not is_kind(name):
        problem = f"has {name!r}, but a kind is a small letter and up to 39 small letters, digits, - and _"
        raise InvalidInput(problem, field=field)
