"""The kinds of signals by name."""

from __future__ import annotations

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
