"""The kinds of signals and of sinks by name: one table each."""

from __future__ import annotations

from typing import NamedTuple

from recrawl.errors import InvalidInput
from recrawl.web.push.webhook import is_kind

SITEMAP, FEED, WEBSUB, NEIGHBOUR, NOW, OTHER = "sitemap", "feed", "websub", "neighbour", "now", "other"


class SignalKind(NamedTuple):
    """A kind of signal.

    Args:
        means: what it says of a page.
        ours: whether only the tracker itself tells it: a stranger who could borrow the name would spend, or spoil, the
            trust in it.
    """

    means: str
    ours: bool = False


SIGNALS: dict[str, SignalKind] = {
    SITEMAP: SignalKind("a sitemap dates the page later than our copy", ours=True),
    FEED: SignalKind("a feed lists the page as updated", ours=True),
    WEBSUB: SignalKind("a hub pushed, and the poll that followed found the page updated", ours=True),
    NEIGHBOUR: SignalKind("another page of the same section was found changed", ours=True),
    "indexnow": SignalKind("a site sent an IndexNow ping"),
    "webhook": SignalKind("a signed hook was called"),
    "manual": SignalKind("someone says so by hand: `recrawl signal`"),
    NOW: SignalKind("no signal, but a request kept like one: fetch the page as soon as its host allows", ours=True),
    OTHER: SignalKind("all kinds together that are more than `MOST_KINDS`", ours=True),
}
"""Kinds that something in recrawl tells. Any other well-formed name is a kind too, and is heard and audited alike."""

OURS = frozenset(name for name, kind in SIGNALS.items() if kind.ours)

MOST_KINDS = 15
"""Kinds that are told apart; further ones are counted as one."""

SINKS: dict[str, str] = {
    "jsonl": "recrawl.tracker.sinks.jsonl",
    "webhook": "recrawl.tracker.sinks.webhook",
    "atom": "recrawl.tracker.sinks.atom",
}
"""Kinds of sinks, and the module of each, which has `check` and `make` (`sinks/sink.py`)."""


def check_kind(name: str, field: str) -> None:
    """Refuse a text that is no name of a kind of signal."""
    if not is_kind(name):
        problem = f"has {name!r}, but a kind is a small letter and up to 39 small letters, digits, - and _"
        raise InvalidInput(problem, field=field)
