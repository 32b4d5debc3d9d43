"""What leases and results cost over HTTP, durable, for the group `service`.

A service runs in a process of its own on SQLite, `synchronous=FULL`; requests come over loopback on some connections
at once. Every page has a copy, and every result says that it is not modified, a hundred in a request. An answer is
given when all of its results are durable. Two ways to ask:

- rounds: all pages are leased, and then all results are handed in, which is timed by the clock;
- flow: each connection leases a hundred pages and hands in their results, again and again, as fetchers do, which is
  measured by the CPU time of the service.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from recrawl.bench.measure import RUNS, CannotRun
from recrawl.bench.service_decoding import BATCH, body_of, result_of
from recrawl.bench.service_process import Asking, Served, served

_LEASED_AT_ONCE = 1000
_CONNECTIONS = 8
_PATIENCE_S = 60.0
_PAUSE_S = 0.05


class Speeds(NamedTuple):
    """Results a second on the clock, and fetches, leases with their results, for each second of CPU time."""

    results: float
    fetches: float


def api_speeds(pages: int) -> Speeds:
    """Of a service with so many pages; the best of some runs."""
    with TemporaryDirectory(prefix="recrawl-bench-") as folder, ExitStack() as stack:
        service = stack.enter_context(served(Path(folder) / "data", pages, 0))
        connections = [stack.enter_context(service.asking()) for _ in range(_CONNECTIONS)]
        _round(connections, pages, brings_text=True)  # so that all have a copy
        results = max(_round(connections, pages) for _ in range(RUNS))
        _flow(service, connections, pages)  # until prices have settled
        return Speeds(results, max(_flow(service, connections, pages) for _ in range(RUNS)))


def _flow(service: Served, connections: Sequence[Asking], pages: int) -> float:
    """Lease and hand in at the same time, about as many as there are pages; fetches for each second of CPU time."""
    share = max(pages // len(connections), 1)
    cpu_s = service.cpu_s()
    with ThreadPoolExecutor(len(connections)) as pool:
        applied = sum(pool.map(_fetch, connections, [share] * len(connections)))
    return applied / (service.cpu_s() - cpu_s)


def _fetch(connection: Asking, wanted: int) -> int:
    """Lease a batch and hand in its results, until so many counted; how many did."""
    applied = 0
    give_up = time.monotonic() + _PATIENCE_S
    while applied < wanted:
        tokens = _lease(connection, BATCH)
        if tokens:
            applied += _hand_in(connection, [body_of([result_of(token) for token in tokens])])
            continue
        if time.monotonic() > give_up:
            raise CannotRun(f"{applied} of {wanted} pages were leased, and then none")
        time.sleep(_PAUSE_S)
    return applied


def _round(connections: Sequence[Asking], pages: int, *, brings_text: bool = False) -> float:
    """Lease all pages, and hand in a result for each; how many in a second."""
    results = [result_of(token, brings_text=brings_text) for token in _lease_all(connections[0], pages)]
    bodies = [body_of(results[start : start + BATCH]) for start in range(0, len(results), BATCH)]
    shares = [bodies[place :: len(connections)] for place in range(len(connections))]
    started = time.perf_counter()
    with ThreadPoolExecutor(len(connections)) as pool:
        applied = sum(pool.map(_hand_in, connections, shares))
    seconds = time.perf_counter() - started
    if applied != pages:
        raise CannotRun(f"{applied} of {pages} results counted")
    return pages / seconds


def _lease_all(connection: Asking, pages: int) -> list[int]:
    tokens: list[int] = []
    give_up = time.monotonic() + _PATIENCE_S
    while len(tokens) < pages:
        found = _lease(connection, min(_LEASED_AT_ONCE, pages - len(tokens)))
        tokens += found
        if not found:
            if time.monotonic() > give_up:
                raise CannotRun(f"{len(tokens)} of {pages} pages were leased, and then none")
            time.sleep(_PAUSE_S)
    return tokens


def _lease(connection: Asking, most: int) -> list[int]:
    wish = json.dumps({"n": most, "worker": "bench"}).encode()
    told: dict[str, Any] = json.loads(connection.ask("POST", "/api/v1/leases", wish))
    return [each["token"] for each in told["leases"]]


def _hand_in(connection: Asking, bodies: Sequence[bytes]) -> int:
    """How many results counted."""
    answers = [json.loads(connection.ask("POST", "/api/v1/leases/complete", body))["answers"] for body in bodies]
    return sum(each.count("applied") for each in answers)
