"""An event of the change log as JSON, the same for every sink, command and answer. Pure."""

from __future__ import annotations

import json
from typing import Any

from recrawl.store.rows import Change
from recrawl.tracker.clock import iso


def event_dict(change: Change) -> dict[str, Any]:
    """Plain values: times as ISO 8601 in UTC, digests in hexadecimal."""
    event = change.event
    return {
        "id": change.id,
        "cursor": change.cursor,
        "kind": event.kind,
        "url": event.url,
        "page": event.page_id,
        "detected_at": iso(event.detected_at),
        "last_seen_unchanged_at": iso(event.last_seen_unchanged_at),
        "old_digest": _hex(event.old_digest),
        "new_digest": _hex(event.new_digest),
        "trigger": event.trigger or None,
        "detail": json.loads(event.detail),
    }


def event_json(change: Change) -> str:
    """One line of JSON."""
    return json.dumps(event_dict(change), ensure_ascii=False)


def _hex(digest: bytes | None) -> str | None:
    return None if digest is None else digest.hex()
