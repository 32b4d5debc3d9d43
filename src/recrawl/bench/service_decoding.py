"""How fast the API reads results of outside fetchers, for the group `service`. No store, no network.

A body as `POST /api/v1/leases/complete` takes it is decoded into the types of that route and each result is made into
what the tracker is handed, by the route's own functions: types, ranges, lengths and unknown fields are checked on the
way. What would follow, the tracker and the store, is left out. Nine results in ten say that nothing changed, one brings
a text of a thousand letters.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from recrawl.bench.measure import Reading, best_cpu_seconds

BATCH = 100
_ONE_IN = 10
_TEXT = "It was a bright cold day in the park. " * 27
_TOKEN = 1_000_000


def result_of(token: int, *, brings_text: bool = False) -> dict[str, Any]:
    """A result as a fetcher hands it in."""
    if not brings_text:
        return {"token": token, "outcome": "not-modified", "status": 304, "elapsed_s": 0.2}
    headers = {"etag": f'"{token}"', "last_modified": "Mon, 02 Nov 2026 10:00:00 GMT"}
    return {"token": token, "outcome": "ok", "status": 200, "text": _TEXT, "wire_bytes": 1500, **headers}


def body_of(results: list[dict[str, Any]]) -> bytes:
    """A request."""
    return json.dumps({"results": results}).encode()


def read_decoding(batches: int) -> Reading:
    """Results a second of CPU time."""
    rows = [[result_of(_TOKEN + row, brings_text=row % _ONE_IN == 0) for row in range(BATCH)]] * batches
    bodies = [body_of(each) for each in rows]
    ours = best_cpu_seconds(partial(read_all, bodies))
    return Reading(BATCH * batches / ours)


def read_all(bodies: list[bytes]) -> int:
    """Read bodies as the route does; how many results."""
    from recrawl.service.api.json_body import decoded
    from recrawl.service.api.leases import Results, report_of

    count = 0
    for body in bodies:
        reports = [report_of(each, row) for row, each in enumerate(decoded(body, Results).results)]
        count += len(reports)
    return count
