"""The group `service`: what the API and the dashboard cost, what the demo makes of its budget, and an index in step."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from recrawl.bench.measure import Bound, Measure, Reading
from recrawl.bench.once import Once
from recrawl.bench.service_dashboard import dashboard_measures
from recrawl.bench.service_demo import demo_measures
from recrawl.bench.service_index import index_measures

if TYPE_CHECKING:
    from recrawl.bench.service_api import Speeds

_MICRO = 1e6
_SHARE = 0.7


class Sizes(NamedTuple):
    """Batches that are decoded in a run, pages whose results are handed in, and those of the store group."""

    batches: int = 200
    pages: int = 10_000
    store_pages: int = 20_000
    store_fetches: int = 10_000


def measures(sizes: Sizes | None = None) -> tuple[Measure, ...]:
    """The measures, in the order they run; nothing is computed yet."""
    work = _Work(sizes or Sizes())
    share = Bound("ratio", floor=_SHARE)
    tracker, store = "fetches of a tracker by itself, tracker_cpu_unchanged", "results that are judged, sqlite_commits"
    api = (
        Measure("decode", "results/s", "none", Bound("value", floor=100_000), work.read_decoding),
        Measure("api_fetches", "fetches/s of CPU", tracker, share, work.read_fetches),
        Measure("api_results", "results/s", store, share, work.read_results),
    )
    return (*api, *dashboard_measures(), *demo_measures(), *index_measures())


class _Work:
    """What measures of the API share."""

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        self._api = Once(self._speeds)

    def _speeds(self) -> Speeds:
        from recrawl.bench.service_api import api_speeds

        return api_speeds(self._sizes.pages)

    def _of_store(self, name: str) -> float:
        """The value of a measure of the group `store`, taken now."""
        from recrawl.bench import store

        sizes = store.Sizes(self._sizes.store_pages, self._sizes.store_fetches)
        return next(each for each in store.measures(sizes) if each.name == name).read().value

    def read_decoding(self) -> Reading:
        """Results a second that are decoded and validated; no store."""
        from recrawl.bench.service_decoding import read_decoding

        return read_decoding(self._sizes.batches)

    def read_fetches(self) -> Reading:
        """Leases with their results for each second of CPU time, against fetches of a tracker that needs no HTTP."""
        ours, alone = self._api().fetches, _MICRO / self._of_store("tracker_cpu_unchanged")
        return Reading(ours, ours / alone, f"{alone:.0f} fetches/s of CPU")

    def read_results(self) -> Reading:
        """Durable results a second on the clock, against handing judged ones to the store."""
        ours, bare = self._api().results, self._of_store("sqlite_commits")
        return Reading(ours, ours / bare, f"{bare:.0f} results/s")
