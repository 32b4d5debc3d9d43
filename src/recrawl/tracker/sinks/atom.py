"""The newest events as an Atom feed in a file, for any feed reader. Written whole and put in place at once."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from recrawl._atomic import open_atomic
from recrawl.errors import InvalidInput
from recrawl.store.rows import CHANGE_KINDS, Change
from recrawl.store.store import Store
from recrawl.tracker.clock import iso
from recrawl.tracker.settings.settings import Settings, SinkRule
from recrawl.tracker.sinks.sink import Delivery, Sink, check_file

ENTRIES = 100
_TITLES = {
    "discovered": "New",
    "changed": "Changed",
    "moved": "Moved",
    "removed": "Removed",
    "restored": "Back again",
    "source_retired": "Source retired",
    "host_degraded": "Host in trouble",
    "host_recovered": "Host well again",
    "network_down": "Network down",
    "network_up": "Network back",
    "quarantined": "Quarantined",
}


def check(rule: SinkRule, settings: Settings, where: str) -> None:  # noqa: ARG001 - by the contract
    """Refuse what is no file."""
    check_file(rule, where)
    if rule.target == "-":
        raise InvalidInput("is standard output, but a feed is a file", field=f"{where}.target")


async def make(rule: SinkRule, settings: Settings, store: Store, now: Callable[[], float]) -> Sink:  # noqa: ARG001
    """Make the sink of a rule."""
    return AtomSink(rule.target, store, store.store_id, frozenset(rule.kinds))


class AtomSink:
    """Keeps the last hundred events in a feed.

    Args:
        target: the file.
        store: where the events before a restart are.
        store_id: names the feed.
        kinds: of events that it holds; empty for all.
    """

    def __init__(self, target: str, store: Store, store_id: str, kinds: frozenset[str] = frozenset()) -> None:
        self._path = Path(target)
        self._store = store
        self._id = store_id
        self._kinds = kinds
        self._newest: deque[Change] | None = None

    async def take(self, changes: Sequence[Change], attempt: int) -> Delivery:  # noqa: ARG002 - all are alike
        """Write the whole feed again."""
        if self._newest is None:
            self._newest = await self._newest_before(changes[0].cursor)
        self._newest.extend(changes)
        try:
            await asyncio.to_thread(_replace, self._path, feed(self._id, self._newest).encode("utf-8", "replace"))
        except OSError as error:
            self._newest = None
            return Delivery(0, failed=f"cannot write {self._path}: {error.strerror or error}")
        return Delivery(len(changes))

    async def _newest_before(self, cursor: int) -> deque[Change]:
        """Read the last events of its kinds before a cursor, in their order. O(events back to the hundredth)."""
        kinds = [kind for kind in CHANGE_KINDS if kind in self._kinds] or None
        found = await self._store.changes(limit=ENTRIES, before=cursor, kinds=kinds, newest_first=True)
        return deque(reversed(found), maxlen=ENTRIES)

    async def close(self) -> None:
        """Nothing is kept open."""


def feed(feed_id: str, changes: Sequence[Change] | deque[Change]) -> str:
    """The feed of events, the newest first; what pages say of themselves is text in it and nothing else."""
    entries = "".join(_entry(feed_id, change) for change in reversed(changes))
    updated = iso(changes[-1].event.detected_at if changes else 0.0)
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">\n'
        f"<id>urn:recrawl:{_text(feed_id)}</id>\n<title>Changes seen by recrawl</title>\n"
        f"<updated>{updated}</updated>\n<author><name>recrawl</name></author>\n{entries}</feed>\n"
    )


def _entry(feed_id: str, change: Change) -> str:
    event = change.event
    link = f"<link href={quoteattr(_clean(event.url))}/>" if event.url.startswith(("http://", "https://")) else ""
    return (
        f"<entry><id>urn:recrawl:{_text(feed_id)}:{_text(change.id)}</id>"
        f"<title>{_text(_TITLES.get(event.kind, event.kind))}: {_text(event.url)}</title>{link}"
        f"<updated>{iso(event.detected_at)}</updated><summary>{_text(event.detail)}</summary></entry>\n"
    )


def _text(text: str) -> str:
    return escape(_clean(text))


def _clean(text: str) -> str:
    """Without what XML cannot hold."""
    return "".join(
        each for each in text if each >= " " and not 0xD800 <= ord(each) <= 0xDFFF and each not in "\ufffe\uffff"
    )


def _replace(path: Path, content: bytes) -> None:
    with open_atomic(path) as file:
        file.write(content)
