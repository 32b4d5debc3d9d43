"""How long pages of the dashboard take with a million pages behind it, for the group `service`.

The store is the one of the measure `open_1m` of the group `store`: a million pages on ten thousand hosts, all crawled
before. Some hundred of them are crawled twice more, so that there are changes with texts to compare, and ten thousand
are sources as well. The service runs in a process of its own, with all pages in its scheduler. Each page is asked for
on a connection that is open, as is a file that the same server only reads from its memory.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from recrawl.bench.measure import RUNS, Bound, Measure, Reading
from recrawl.bench.once import Once
from recrawl.bench.service_process import Asking, served

PLACES = {
    "overview": "/",
    "changes": "/changes",
    "pages": "/pages",
    "search": "/pages?q=nothing-begins-so",
    "page": "/pages/{page}",
    "hosts": "/hosts",
    "sources": "/sources",
}
_STATIC = "/static/dashboard.css"
_LIMIT_MS = 50.0


class Sizes(NamedTuple):
    """Pages behind the dashboard, those of them with a history, and how often each place is asked for in a run."""

    pages: int = 1_000_000
    sights: int = 500
    requests: int = 20


class Served1M(NamedTuple):
    """Milliseconds of an answer by place, and of the file; bytes of the answers."""

    answer_ms: dict[str, float]
    file_ms: float
    size: dict[str, int]


def dashboard_measures(sizes: Sizes | None = None) -> tuple[Measure, ...]:
    """The measures, in the order they run; all share one service, and the first one pays."""
    work = _Work(sizes or Sizes())
    yardstick, bound = "a file of the same server", Bound("value", limit=_LIMIT_MS)
    return tuple(
        Measure(f"dashboard_{place}_1m", "ms", yardstick, bound, lambda place=place: work.read(place))  # type: ignore[misc]
        for place in PLACES
    )


class _Work:
    """The service that the measures share."""

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        self._outcome = Once(self._ask)

    def _ask(self) -> Served1M:
        from recrawl.bench.store_opening import build

        with TemporaryDirectory(prefix="recrawl-bench-") as folder:
            data = Path(folder) / "data"
            asyncio.run(build(data, self._sizes.pages))
            return ask_all(data, self._sizes)

    def read(self, place: str) -> Reading:
        """Milliseconds of one place."""
        found = self._outcome()
        ms = found.answer_ms[place]
        return Reading(ms, ms / found.file_ms, f"{found.file_ms:.2f} ms; the page has {found.size[place]:,} bytes")


def ask_all(data: Path, sizes: Sizes) -> Served1M:
    """Serve a store, and ask for every place: the median of a run, the best of some runs."""
    with served(data, 0, sizes.sights) as service, service.asking() as connection:
        paths = {place: path.format(page=service.page) for place, path in PLACES.items()}
        size = {place: len(connection.ask("GET", path)) for place, path in paths.items()}  # and a first look at all
        return Served1M(
            {place: _best(connection, path, sizes.requests) for place, path in paths.items()},
            _best(connection, _STATIC, sizes.requests),
            size,
        )


def _best(connection: Asking, path: str, requests: int) -> float:
    return 1000.0 * min(median(_seconds(connection, path) for _ in range(requests)) for _ in range(RUNS))


def _seconds(connection: Asking, path: str) -> float:
    started = time.perf_counter()
    connection.ask("GET", path)
    return time.perf_counter() - started
