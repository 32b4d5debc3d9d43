"""Measures of the online filter: against the batch posterior, on pages that turn, and by speed and bytes.

A turn is measured on pages of the population that change at most once in three days. They are crawled quietly 98
times, then their rate is 20 times what it was; crawls come `crawl_gap` mean gaps between changes of the new rate apart.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from recrawl.bench.learning_histories import Schedule, draw_histories
from recrawl.bench.learning_rates import PAGES, error_of_log, learned_error
from recrawl.bench.measure import Bound, Measure, Reading, best_cpu_seconds
from recrawl.lab.worlds.laws import web_population
from recrawl.pages import Floats

if TYPE_CHECKING:
    from recrawl.learning.filter_state import Memory
    from recrawl.learning.grid import RatePrior
    from recrawl.learning.online_filter import OnlineFilter

TURN = 20.0
RUNS_OF_TURN = 1_000
_QUIET_CRAWLS = 98
_FASTEST = 7.0
_BATCH = 1_000
_TIMED_PAGES = 20_000


def filter_measures() -> tuple[Measure, ...]:
    """The measures of the online filter, in the order they run."""
    return (
        Measure("online_bytes", "bytes/page", "none", Bound("value", limit=40), _read_bytes),
        _error("online_rmse_14", 14, "daily"),
        _error("online_rmse_98", 98, "daily"),
        _error("online_rmse_98_irregular", 98, "irregular"),
        _error("online_rmse_98_missing", 98, "missing"),
        Measure("online_steady_98", "ln rate", "batch posterior", Bound("ratio", limit=1.05), _read_steady),
        Measure("online_turn_8", "share of runs", "forgetting nothing", Bound("value", floor=0.75), _read_turn),
        _crawls_to_notice("online_turn_crawls_short_gaps", 0.1, most=200),
        _crawls_to_notice("online_turn_crawls_long_gaps", 4.0, most=10),
        Measure("online_updates", "million/s", "NumPy weights on a grid", Bound("value", floor=1), _read_speed),
    )


@cache
def population_prior() -> RatePrior:
    """The prior learned from 98 daily crawls."""
    from recrawl.learning.prior import fit_prior

    return fit_prior(draw_histories(PAGES, 98).histories)


def shares_noticed(crawl_gap: float, crawls: int, memory: Memory | None = None, seed: int = 0) -> Floats:
    """The share of runs whose estimate is within a factor of 2 of the new rate, after each crawl since the turn."""
    random = np.random.default_rng(seed)
    rates = web_population(4 * RUNS_OF_TURN)["change_rate"]
    quiet = rates[rates * TURN < _FASTEST][:RUNS_OF_TURN]
    gaps = crawl_gap / (quiet * TURN)
    pages = np.arange(len(quiet))
    online = _filter(population_prior(), len(quiet), memory)
    for _ in range(_QUIET_CRAWLS):
        online.update_many(pages, gaps, random.random(len(quiet)) < -np.expm1(-quiet * gaps))
    noticed = np.empty(crawls)
    for crawl in range(crawls):
        online.update_many(pages, gaps, random.random(len(quiet)) < -np.expm1(-crawl_gap))
        off = online.estimate().log_mean - np.log(quiet * TURN)
        noticed[crawl] = np.mean(np.abs(off) <= np.log(2))
    return noticed


class GridOfWeights:
    """The plain filter: a weight for each page and each rate of a grid, in NumPy.

    Forgets nothing, takes eight times the memory, and a batch may hold a page only once.
    """

    def __init__(self, prior: RatePrior, pages: int) -> None:
        self.rates = prior.grid.rates
        self.log_rates = prior.grid.log_rates
        self.weights = np.tile(prior.weights, (pages, 1))

    def update_many(self, pages: NDArray[np.int64], gaps: Floats, changed: NDArray[np.bool_]) -> None:
        """Multiply by the likelihood of each crawl."""
        unchanged = np.exp(-gaps[:, None] * self.rates)
        weights = self.weights[pages] * np.where(changed[:, None], 1 - unchanged, unchanged)
        self.weights[pages] = weights / weights.sum(axis=1, keepdims=True)

    def log_mean(self) -> Floats:
        """Mean logarithm of each page's rate."""
        means: Floats = self.weights @ self.log_rates
        return means


def _filter(prior: RatePrior, pages: int, memory: Memory | None) -> OnlineFilter:
    from recrawl.learning.filter_state import Memory
    from recrawl.learning.online_filter import OnlineFilter

    return OnlineFilter(prior, pages, memory=Memory() if memory is None else memory)


@cache
def _online_error(crawls: int, schedule: Schedule, forgets: bool) -> float:
    """Error of rates from the filter, the prior learned from the same crawls as for the batch posterior."""
    from recrawl.learning.filter_state import FOREVER
    from recrawl.learning.prior import fit_prior

    drawn = draw_histories(PAGES, crawls, schedule)
    histories = drawn.histories
    online = _filter(fit_prior(histories), len(histories), None if forgets else FOREVER)
    online.update_many(histories.page_of_rows(), histories.gaps, histories.changed)
    return error_of_log(online.estimate().log_mean, drawn)


def _read_bytes() -> Reading:
    from recrawl.learning.filter_state import PAGE_STATE

    return Reading(PAGE_STATE.itemsize)


def _error(name: str, crawls: int, schedule: Schedule) -> Measure:
    def read() -> Reading:
        ours, batch = _online_error(crawls, schedule, False), learned_error(crawls, schedule)
        return Reading(ours, ours / batch, f"{batch:.3g}")

    return Measure(name, "ln rate", "batch posterior", Bound("ratio", limit=1.03), read)


def _read_steady() -> Reading:
    ours, batch = _online_error(98, "daily", True), learned_error(98, "daily")
    return Reading(ours, ours / batch, f"{batch:.3g}")


def _read_turn() -> Reading:
    from recrawl.learning.filter_state import FOREVER

    without = shares_noticed(1.0, 8, FOREVER)[-1]
    return Reading(float(shares_noticed(1.0, 8)[-1]), None, f"{without:.2g}")


def _crawls_to_notice(name: str, crawl_gap: float, most: int) -> Measure:
    def read() -> Reading:
        shares = shares_noticed(crawl_gap, most)
        enough = shares >= 0.75
        crawls = float(np.argmax(enough) + 1) if enough.any() else np.inf
        return Reading(crawls, None, f"{shares[-1]:.2f} of runs after {most}")

    return Measure(name, "crawls", "75 % of runs", Bound("value", limit=most), read)


def _read_speed() -> Reading:
    """Crawls taken in per second, in batches of a thousand pages drawn at random."""
    random = np.random.default_rng(0)
    drawn = draw_histories(_TIMED_PAGES, 50, "irregular")
    prior = population_prior()
    online, plain = _filter(prior, _TIMED_PAGES, None), GridOfWeights(prior, _TIMED_PAGES)
    online.update_many(drawn.histories.page_of_rows(), drawn.histories.gaps, drawn.histories.changed)
    batches = []
    for _ in range(100):
        pages = random.choice(_TIMED_PAGES, _BATCH, replace=False)
        gaps = random.exponential(1.0, _BATCH)
        batches.append((pages, gaps, random.random(_BATCH) < -np.expm1(-drawn.change_rate[pages] * gaps)))
    crawls = len(batches) * _BATCH / 1e6
    ours = crawls / best_cpu_seconds(partial(_take_in, online, batches))
    theirs = crawls / best_cpu_seconds(partial(_take_in, plain, batches))
    return Reading(ours, ours / theirs, f"{theirs:.3g} million/s, {8 * prior.grid.points} bytes per page")


def _take_in(
    learner: OnlineFilter | GridOfWeights, batches: list[tuple[NDArray[np.int64], Floats, NDArray[np.bool_]]]
) -> None:
    for pages, gaps, changed in batches:
        learner.update_many(pages, gaps, changed)
