"""The group `web`: what a page costs from its address to its digests, and whether noise is told from change.

Pages of 10,240 bytes with 20 links come from a server in a process of its own, on the other core where there are two
(`page_server.py`). recrawl goes the whole way of a crawl short of the store (`web_crawl.py`); Scrapy fetches the same
pages and extracts their links (`web_scrapy.py`). Each run is a fresh process on one core; the two take turns, three
times, and the best run of each counts. Figures are of CPU time, so that other work on the machine disturbs them
little; what the clock says is told beside them.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

from recrawl.bench.measure import RUNS, Bound, CannotRun, Measure, Reading
from recrawl.bench.web_changes import change_measures
from recrawl.bench.web_noise import noise_measures
from recrawl.bench.web_processes import page_server, run_crawler
from recrawl.extras import is_installed, missing

OURS, SCRAPY = "recrawl.bench.web_crawl", "recrawl.bench.web_scrapy"
_SETTINGS = "64 requests at once, no delay, robots off, no log"
_SCRAPY = f"Scrapy 2.19, {_SETTINGS}"
_SERVER = "recrawl's pages a second"
_MB = 1e6


class Sizes(NamedTuple):
    """Pages of one run: of recrawl, of Scrapy, and of recrawl where memory is watched."""

    ours: int = 10_000
    scrapy: int = 2_000
    memory: int = 100_000


FULL = Sizes()


def measures(sizes: Sizes = FULL) -> tuple[Measure, ...]:
    """The measures, in the order they run; nothing is computed yet."""
    work = _Work(sizes)
    return (
        Measure("pages_per_second", "pages/s", _SCRAPY, Bound("ratio", floor=4), work.read_speed),
        Measure("cpu_per_page", "µs", "none", Bound("value", limit=350), work.read_cost),
        Measure("page_server_speed", "pages/s", _SERVER, Bound("ratio", floor=1), work.read_server),
        Measure("memory_100k", "MB", "after a fifth of the pages", Bound("ratio", limit=1.02), work.read_memory),
        *noise_measures(),
        *change_measures(),
    )


class _Work:
    """What measures of the group share."""

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        self._ours: list[dict[str, Any]] = []
        self._scrapy: list[dict[str, Any]] = []
        self._server: dict[str, float] = {}

    @cached_property
    def _race(self) -> None:
        """Run both in turns, on one server; Scrapy only where it is installed."""
        with_scrapy = is_installed("scrapy")
        with page_server() as served:
            for _ in range(RUNS):
                self._ours.append(run_crawler(OURS, served.port, self._sizes.ours))
                if with_scrapy:
                    self._scrapy.append(run_crawler(SCRAPY, served.port, self._sizes.scrapy))
        self._server = served.figures

    def read_speed(self) -> Reading:
        """Pages a second of CPU time, against Scrapy's."""
        _ = self._race
        if not self._scrapy:
            raise CannotRun(missing("scrapy", "the yardstick"))
        ours, theirs = _best(self._ours), _best(self._scrapy)
        clock = f"on the clock {1 / ours.clock_s:.0f} against {1 / theirs.clock_s:.0f}"
        return Reading(1 / ours.cpu_s, theirs.cpu_s / ours.cpu_s, f"{1 / theirs.cpu_s:.0f} pages/s; {clock}")

    def read_cost(self) -> Reading:
        """CPU microseconds from the address of a page to its digests."""
        _ = self._race
        return Reading(1e6 * _best(self._ours).cpu_s)

    def read_server(self) -> Reading:
        """Pages that the server could give in a second of its CPU time, against those that recrawl takes."""
        _ = self._race
        speed, ours = self._server["answers"] / self._server["cpu_s"], 1 / _best(self._ours).cpu_s
        return Reading(speed, speed / ours, f"{ours:.0f} pages/s")

    def read_memory(self) -> Reading:
        """Memory that the process holds after all pages, against that after a fifth of them."""
        with page_server() as served:
            run = run_crawler(OURS, served.port, self._sizes.memory)
        if not run["bytes_early"]:
            raise CannotRun("this system does not tell the memory of a process in /proc/self/status")
        early, late = run["bytes_early"], run["bytes_late"]
        return Reading(late / _MB, late / early, f"{early / _MB:.1f} MB; {run['pages']} pages in all")


class _PerPage(NamedTuple):
    cpu_s: float
    clock_s: float


def _best(runs: list[dict[str, Any]]) -> _PerPage:
    best = min(runs, key=lambda run: run["cpu_s"])
    return _PerPage(best["cpu_s"] / best["pages"], best["clock_s"] / best["pages"])
