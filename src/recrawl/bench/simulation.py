"""The group `simulation`: how fast worlds are simulated, and whether what comes out can be relied on.

The world is of the law `web`: 100,000 pages for 100 days at 20,000 crawls a day, which is 2 million crawls. What is
timed is crawling and measuring; drawing the world is not, neither here nor in the yardstick. The yardstick, a plain
event loop in Python, runs the same policy on 1,000 pages at as many crawls a page; its time for each event, change or
crawl, is multiplied by the events of the large world. That is kind to it: with 100,000 pages its heap is deeper and
out of the cache, and an event takes about three times as long. `round_robin_same_size` therefore runs the loop with all
pages, over a few days, and takes what a further day costs. Times are CPU seconds on one core, the best of three runs.

What is gained depends on the policy, so each has a floor of its own, about a quarter below what it reaches
(docs/bench.md).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from recrawl.bench.measure import RUNS, Bound, Measure, Reading, best_cpu_seconds, cpu_seconds
from recrawl.bench.simulation_yardstick import (
    LoopTotals,
    PythonAdaptive,
    PythonByPrice,
    PythonPolicy,
    PythonRates,
    PythonRoundRobin,
    python_loop,
)
from recrawl.lab.simulation.policy import Competitor
from recrawl.lab.worlds.world import CrawlLog, World

_SEED = 5
_LOOP = "Python event loop with heapq, 1,000 pages, scaled by events"
_SAME_SIZE = "the same loop with all pages, scaled by days"
_SHORT, _LONG = 2.0, 7.0  # days that the loop runs with all pages


class Sizes(NamedTuple):
    """How large worlds are, in pages and days, and how many crawls a page has each day."""

    many: int = 100_000
    few: int = 1_000
    days: float = 100.0
    crawls_per_page: float = 0.2


FULL = Sizes()


def measures(sizes: Sizes = FULL) -> tuple[Measure, ...]:
    """The measures, in the order they run; nothing is computed yet."""
    work = _Work(sizes)
    return (
        Measure("round_robin_100k", "s", _LOOP, Bound("ratio", floor=80), work.read_round_robin),
        Measure("round_robin_same_size", "s", _SAME_SIZE, Bound("ratio", floor=300), work.read_same_size),
        Measure("interval_rule_100k", "s", _LOOP, Bound("ratio", floor=5), work.read_interval_rule),
        Measure("plan_rates_100k", "s", _LOOP, Bound("ratio", floor=10), work.read_plan_rates),
        Measure("recrawl_known_100k", "s", _LOOP, Bound("ratio", floor=1.5), work.read_scheduler),
        Measure("same_seed_same_log", "differing logs", "none", Bound("value", limit=0), work.read_determinism),
        Measure("closed_form_error", "share", "expected freshness", Bound("value", limit=0.01), work.read_agreement),
    )


class _Work:
    """What measures of the group share."""

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes

    @cached_property
    def _large(self) -> World:
        return _web(self._sizes.many, self._sizes.days)

    @cached_property
    def _small(self) -> World:
        return _web(self._sizes.few, self._sizes.days)

    def read_round_robin(self) -> Reading:
        from recrawl.lab.simulation.fixed_rates import RoundRobin

        return self._race(RoundRobin(), lambda world, _: PythonRoundRobin(turns(len(world))))

    def read_same_size(self) -> Reading:
        """Round robin against the loop on as many pages; setting it up is left out, for days cost no more of that."""
        from recrawl.lab.simulation.fixed_rates import RoundRobin
        from recrawl.lab.simulation.measures import measure

        world, pages = self._large, self._sizes.many
        budget = self._sizes.crawls_per_page * pages
        ours = best_cpu_seconds(lambda: measure(world, RoundRobin().crawl(world, budget, _SEED)))
        (short, few), (long, more) = (
            _run_loop(_web(pages, days), PythonRoundRobin(turns(pages)), budget) for days in (_SHORT, _LONG)
        )
        scaled = max(long - short, 0.0) / (more - few) * _events(world, budget)
        return Reading(ours, scaled / ours, f"{scaled:.1f} s")

    def read_interval_rule(self) -> Reading:
        from recrawl.lab.peers.registry import make_peer

        return self._race(make_peer("stormcrawler-adaptive-scaled"), lambda world, _: PythonAdaptive(phases(world)))

    def read_plan_rates(self) -> Reading:
        from recrawl.lab.simulation.fixed_rates import FixedRates

        planned = FixedRates(name="plan-known", by="plan")
        return self._race(
            planned, lambda world, budget: PythonRates(planned.rates(world, budget).tolist(), phases(world))
        )

    def read_scheduler(self) -> Reading:
        from recrawl.lab.simulation.scenarios import make_contender

        return self._race(make_contender("recrawl-harmonic-known"), at_plan_price)

    def read_determinism(self) -> Reading:
        """Competitors whose log differs between two runs of the same seed."""
        from recrawl.lab.simulation.scenarios import make_contender

        budget = self._sizes.crawls_per_page * len(self._small)
        names = ("recrawl", "recrawl-known", "argmax-mle", "round-robin", "plan-azar-known", "exp3")
        differing = 0
        for name in names:
            logs = {digest(make_contender(name).crawl(self._small, budget, _SEED)) for _ in range(2)}
            differing += len(logs) > 1
        return Reading(float(differing))

    def read_agreement(self) -> Reading:
        """How far freshness on the changes that happened is from its expectation given the crawl times."""
        from recrawl.lab.simulation.fixed_rates import RoundRobin
        from recrawl.lab.simulation.measures import measure

        log = RoundRobin().crawl(self._large, self._sizes.crawls_per_page * len(self._large), _SEED)
        expected = measure(self._large, log, expected=True).freshness
        happened = measure(self._large, log).freshness
        return Reading(abs(happened - expected) / expected, None, f"{expected:.4f}")

    def _race(self, competitor: Competitor, twin: Callable[[World, float], PythonPolicy]) -> Reading:
        """CPU seconds of the simulator on the large world, against the loop's for as many events."""
        from recrawl.lab.simulation.measures import measure

        world, small = self._large, self._small
        budget, small_budget = (self._sizes.crawls_per_page * len(each) for each in (world, small))
        ours = best_cpu_seconds(lambda: measure(world, competitor.crawl(world, budget, _SEED)))
        seconds, events = zip(
            *(_run_loop(small, twin(small, small_budget), small_budget) for _ in range(RUNS)), strict=True
        )
        scaled = min(seconds) / events[0] * _events(world, budget)
        return Reading(ours, scaled / ours, f"{scaled:.1f} s")


def _events(world: World, budget: float) -> float:
    """Changes and crawls."""
    return float(np.count_nonzero(world.changes.times > 0)) + budget * world.horizon


def _run_loop(world: World, policy: PythonPolicy, budget: float) -> tuple[float, int]:
    """CPU seconds of the loop, and its events."""
    totals: list[LoopTotals] = []
    seconds = cpu_seconds(lambda: totals.append(python_loop(world, policy, budget)))
    return seconds, totals[0].events


def turns(pages: int) -> list[int]:
    """The order in which round robin goes round."""
    first = np.arange(pages, dtype=np.int32)
    order: list[int] = np.random.Generator(np.random.PCG64(_SEED)).permutation(first).tolist()
    return order


def phases(world: World) -> list[float]:
    """Where in their first round pages are, by the seed."""
    drawn: list[float] = np.random.Generator(np.random.PCG64(_SEED)).random(len(world)).tolist()
    return drawn


def at_plan_price(world: World, budget: float) -> PythonByPrice:
    """The loop's version of the scheduler with known rates: pages are crawled when they are worth the plan's price."""
    from recrawl.planning.solve import plan

    assert world.change_rate is not None
    price = plan({"importance": world.importance, "change_rate": world.change_rate}, budget, "harmonic").price
    return PythonByPrice(world.importance.tolist(), world.change_rate.tolist(), price)


def digest(log: CrawlLog) -> str:
    """A fingerprint of a log, to the bit."""
    return hashlib.sha256(log.page.tobytes() + log.time.tobytes()).hexdigest()


def _web(pages: int, days: float) -> World:
    from recrawl.lab.worlds.registry import build_world

    return build_world("web", pages, days, _SEED)
