"""Places where a test may kill the process, to show that nothing acknowledged is lost.

The command line reads `RECRAWL_CRASH=<point>[:n]` and hands it to `plan_crash`; the process is killed, as by
`kill -9`, when it passes the point for the n-th time. Without a plan, passing a point costs next to nothing.

| point | passed |
|---|---|
| `lease-selected`, `lease-committed` | just before and just after leases are durable |
| `robots`, `connect`, `mid-body` | in a fetch: before robots.txt is asked, before the request, with half a body read |
| `hashed` | a page has come and was compared, nothing is written yet |
| `blob-tmp`, `blob-renamed` | a body is on disk under a temporary name, or under its own |
| `before-txn`, `after-txn` | just before results are durable, and just after, before anyone knows |
| `webhook-sent`, `webhook-acked` | an event was sent, or taken by its sink, and the cursor is not yet noted |
"""

from __future__ import annotations

import os
import signal
import threading

from recrawl.errors import InvalidInput

CRASH_POINTS: tuple[str, ...] = (
    "lease-selected", "lease-committed", "robots", "connect", "mid-body", "hashed", "blob-tmp", "blob-renamed",
    "before-txn", "after-txn", "webhook-sent", "webhook-acked",
)  # fmt: skip

_passes_left: dict[str, int] = {}
_counting = threading.Lock()


def plan_crash(text: str | None) -> None:
    """Plan to die at a point, as `point` or `point:n`; None or "" for no plan.

    >>> plan_crash("after-txn:3")
    >>> plan_crash(None)
    >>> plan_crash("somewhere")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    recrawl.errors.InvalidInput: RECRAWL_CRASH is 'somewhere', but must be one of lease-selected, ..., or NAME:N
    """
    _passes_left.clear()
    if not text:
        return
    name, _, count = text.partition(":")
    if name not in CRASH_POINTS or (count and not (count.isascii() and count.isdigit() and int(count) > 0)):
        known = ", ".join(CRASH_POINTS)
        raise InvalidInput(f"is {text!r}, but must be one of {known}, or NAME:N", field="RECRAWL_CRASH")
    _passes_left[name] = int(count or 1)


def crash_planned() -> bool:
    """Whether the process is to end at a point."""
    return bool(_passes_left)


def crash_point(name: str) -> None:
    """Pass a point; the process ends here if that was planned."""
    if not _passes_left or name not in _passes_left:
        return
    with _counting:
        _passes_left[name] -= 1
        if _passes_left[name] == 0:
            _die()


def _die() -> None:
    kill = getattr(signal, "SIGKILL", None)
    if kill is None:
        os._exit(137)
    os.kill(os.getpid(), kill)
