"""Apache Nutch's AdaptiveFetchSchedule: a shorter interval after a change, a longer one after none.

With `sync_delta` on, a page that has not changed for longer than its interval gets that time as its interval, and the
next fetch is moved towards the last change that was found by a share of it. Where the source means to scale an offset
above the longest interval it divides whole numbers and gets 0, and so do we.

`nutch-default.xml` has increase 0.4, decrease 0.2, sync rate 0.3; without the file the class falls back to increase
0.2 and sync rate 0.2. Both have 60 seconds to 365 days. Beside the class, the crawl database has a limit of its own,
90 days: an interval beyond is cut to nine tenths of it and the signature forgotten, so the next fetch can tell no
change; and a page due further ahead than the limit is due at once. (Source of July 2026.)
"""

from __future__ import annotations

from recrawl.jit import exact
from recrawl.lab.peers.visit import Visit
from recrawl.pages import Floats

_INTERVAL, _MODIFIED, _FORGOTTEN = range(3)


@exact
def nutch_wait(parameters: Floats, own: Floats, visit: Visit) -> float:
    """Parameters: start, increase, decrease, shortest, longest, sync rate (0: sync off), limit of the database."""
    start, increase, decrease, shortest, longest, sync_rate, limit = (
        parameters[0],
        parameters[1],
        parameters[2],
        parameters[3],
        parameters[4],
        parameters[5],
        parameters[6],
    )
    if visit.first:
        own[_INTERVAL] = start
    interval = own[_INTERVAL]
    if visit.first or own[_FORGOTTEN] > 0.0:
        own[_MODIFIED] = visit.now
    elif visit.changed:
        interval *= 1.0 - decrease
        own[_MODIFIED] = visit.now
    else:
        interval *= 1.0 + increase
    offset = 0.0
    if sync_rate > 0.0:
        unchanged = visit.now - own[_MODIFIED]
        interval = max(interval, unchanged)
        offset = sync_rate * unchanged
        if offset > longest:
            offset = 0.0
    interval = min(max(interval, shortest), longest)
    wait = max(interval - offset, 0.0)
    own[_FORGOTTEN] = 0.0
    if interval > limit:
        interval = 0.9 * limit
        own[_FORGOTTEN] = 1.0
        if wait > limit:
            wait = 0.0
    own[_INTERVAL] = interval
    return float(wait)
