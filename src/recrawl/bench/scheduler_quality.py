"""Measures of the group `scheduler` for quality: how close to the best its crawls come, and whether it stays so.

A scheduler that knows the parameters of its pages is asked for one page at a time, at times k/R, and told at once that
the page was crawled. Its crawls are held against the plan of the same pages, a bound that no schedule can beat
(`scheduler_worlds.py` says how). Worlds begin in the plan's steady state, and the first fifth of a run does not count.
Numbers of crawls are chosen so that all measures here take about two minutes; standard errors are told where signals
make them.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

import recrawl
from recrawl.bench.measure import Bound, Measure, Reading
from recrawl.bench.memory import held_bytes
from recrawl.bench.scheduler_hosts import read_crawls_tailed, read_excess_tailed
from recrawl.pages import Floats

if TYPE_CHECKING:
    from recrawl.bench.scheduler_worlds import Judged, Population, World
    from recrawl.scheduling.scheduler import Scheduler

BUDGET = 100.0
OBJECTIVES: tuple[Judged, ...] = ("freshness", "harmonic")
# Crawls of a run by number of pages.
EVEN_CRAWLS = {200: 20_000, 1_000: 20_000, 10_000: 30_000, 100_000: 100_000}
NOISY_CRAWLS = {1_000: 10_000, 10_000: 10_000}
PAIRED_CRAWLS = {200: 10_000, 1_000: 10_000, 10_000: 4_000}
NOISY_PAIRED_CRAWLS = {200: 6_000, 1_000: 6_000, 10_000: 1_500}
# Few hosts offer few pages at a time, and many hosts many.
HOSTS = (1, 6, 40, 300)
# With few pages much depends on which of them have good signals: the mean of so many worlds counts.
WORLDS = {1_000: 5, 10_000: 1}

_SEED = 4
_KIND = "sitemap"
_SLOT = 0xFFFFFFFF
_PARTS = 10
_WARM_UP = 0.2
_CHANGES = ((133.0, 150.0), (266.0, 100.0))
_CHANGES_END = 400.0
_YEAR_PAGES, _YEAR_BUDGET, _YEAR_STEP = 100_000, 10_000.0, 0.02
_BURST = 2.0
_AT_ONCE = 8
_POLLED = 0.2

Policy = Literal["price", "argmax"]
_COMPARED: tuple[Policy, Policy] = ("price", "argmax")


@dataclass(frozen=True, slots=True)
class Case:
    """Pages to be judged on, in number and kind."""

    population: Population
    objective: Judged
    pages: int
    noisy: bool = False
    seed: int = _SEED


class Excess(NamedTuple):
    """Cost beyond the optimum, as a percentage of the best freshness or harmonic cost, with its standard error."""

    percent: float
    error: float


class Taken(NamedTuple):
    """A log: which page was crawled at which time (-1 if none was handed out), and the price then."""

    page: NDArray[np.int64]
    time: Floats
    price: Floats


def quality_measures() -> tuple[Measure, ...]:
    """The measures, in the order they run; nothing is computed yet."""
    optimum, change, year = "optimum", _BudgetChange(), _Year()
    even, noisy, close = Bound("value", limit=0.2), Bound("value", limit=0.3), Bound("value", limit=0.1)
    populations: tuple[Population, ...] = ("uniform", "heavy")
    plain = [(population, objective) for population in populations for objective in OBJECTIVES]
    return (
        *(Measure(f"excess_{p}_{o}", "%", optimum, even, partial(read_even, p, o)) for p, o in plain),
        *(Measure(f"excess_signals_uniform_{o}", "%", optimum, noisy, partial(read_noisy, o)) for o in OBJECTIVES),
        Measure("excess_signals_heavy_harmonic", "%", "exact argmax", Bound("value", limit=0.05), read_noisy_heavy),
        Measure("excess_signals_heavy_harmonic_10k", "%", optimum, noisy, read_noisy_heavy_10k),
        Measure("excess_over_argmax", "%", "exact argmax", close, partial(read_paired, False)),
        Measure("excess_over_argmax_signals", "%", "exact argmax", close, partial(read_paired, True)),
        Measure("excess_hosts", "%", optimum, Bound("value", limit=0.05), partial(read_hosts, False)),
        Measure("excess_hosts_signals", "%", optimum, close, partial(read_hosts, True)),
        Measure("excess_hosts_tailed", "%", optimum, Bound("value", limit=0.4), read_excess_tailed),
        Measure("crawls_hosts_tailed", "of planned", optimum, Bound("value", floor=0.995), read_crawls_tailed),
        Measure("window_overshoot", "crawls", "budget", Bound("value", limit=_BURST), read_overshoot),
        Measure("window_unevenness", "of allowed", "budget", Bound("value", limit=1.0), read_unevenness),
        Measure("budget_change_price", "%", "optimum", Bound("value", limit=2.0), change.read_price),
        Measure("budget_change_freshness", "%", "optimum", Bound("value", limit=0.5), change.read_freshness),
        Measure("year_price_drift", "%", "second quarter", Bound("value", limit=0.5), year.read_drift),
        Measure("year_memory_growth", "MB", "first quarter", Bound("value", limit=1.0), year.read_memory),
        Measure("year_longest_wait", "intervals", "optimum", Bound("value", limit=1.5), year.read_wait),
    )


@cache
def world_of(case: Case) -> World:
    """The world of a case, drawn once: its signals last for the longest run."""
    from recrawl.bench import scheduler_worlds as worlds

    draw = worlds.draw_noisy_pages if case.noisy else worlds.draw_pages
    crawls = (NOISY_PAIRED_CRAWLS | NOISY_CRAWLS if case.noisy else EVEN_CRAWLS)[case.pages]
    columns = draw(case.population, case.pages, case.seed)
    return worlds.make_world(columns, case.objective, BUDGET, crawls / BUDGET, case.seed)


def open_scheduler(
    world: World, policy: Policy = "price", burst: float = 1.0, hosts: int = 0
) -> tuple[Scheduler, NDArray[np.int64]]:
    """A scheduler that holds the pages of a world and knows what they have been through; page i has slot i.

    Hosts, if there are any, have a limit that is never reached.
    """
    scheduler = recrawl.Scheduler(
        budget=world.budget, objective=world.objective, now=0.0, burst=burst, seed=_SEED, policy=policy
    )
    rules = world.rules
    for number in range(hosts):
        scheduler.set_host(number, max_in_flight=_AT_ONCE)
    signals = {_KIND: recrawl.Signal(recall=rules.recall, precision=world.precision)} if world.noisy else None
    ids = scheduler.add(
        importance=rules.importance, change_rate=rules.change_rate, last_crawled=world.start.last_crawled,
        signals=signals, host=np.arange(len(world)) % hosts if hosts else None,
    )  # fmt: skip
    if not np.array_equal(ids & _SLOT, np.arange(len(world))):
        raise ValueError("slots of the first pages are not 0, 1, 2 …")
    if world.noisy:
        scheduler.signal(np.repeat(ids, world.start.heard.astype(np.int64)), 0.0, kind=_KIND)
    return scheduler, ids


def run_slots(world: World, policy: Policy, crawls: int, hosts: int = 0) -> Taken:
    """Take one page at each of the times k/R, after the signals that have come by then, and settle it at once."""
    scheduler, ids = open_scheduler(world, policy, hosts=hosts)
    times = np.arange(1, crawls + 1) / world.budget
    order = np.argsort(world.signals.times, kind="stable")
    heard = np.repeat(ids, np.diff(world.signals.offsets))[order]
    ends = np.searchsorted(world.signals.times[order], times, side="right").tolist()
    taken, price = np.full(crawls, -1), np.zeros(crawls)
    told = 0
    for k, now in enumerate(times.tolist()):
        if ends[k] > told:
            scheduler.signal(heard[told : ends[k]], now, kind=_KIND)
            told = ends[k]
        batch = scheduler.take(now, 1)
        price[k] = batch.price
        if len(batch.ids):
            taken[k] = batch.ids[0]
            scheduler.crawled(batch.ids, now)
    return Taken(np.where(taken < 0, -1, taken & _SLOT), times, price)


def excess_of(world: World, taken: Taken) -> Excess:
    """What a run cost beyond the optimum after its warm-up; budget that was not used counts at the price."""
    from recrawl.bench.scheduler_worlds import Window, settle_account, stream_of

    first = int(_WARM_UP * len(taken.time))
    window = Window(float(taken.time[first - 1]), float(taken.time[-1]), _PARTS)
    crawled = taken.page >= 0
    account = settle_account(world, stream_of(taken.page[crawled], taken.time[crawled], len(world)), window)
    length = window.end - window.start
    losses = account.loss * _PARTS / length
    unused = world.budget - int(np.count_nonzero(crawled[first:])) / length
    percent = 100 * world.relative(float(losses.mean()) + world.rules.price * unused)
    return Excess(percent, 100 * world.relative(float(losses.std(ddof=1))) / _PARTS**0.5)


def read_even(population: Population, objective: Judged) -> Reading:
    """The worst excess without signals, of all numbers of pages."""
    found = {}
    for pages, crawls in EVEN_CRAWLS.items():
        world = world_of(Case(population, objective, pages))
        found[f"{pages:,}"] = excess_of(world, run_slots(world, "price", crawls))
    return _worst(found)


def read_noisy(objective: Judged) -> Reading:
    """The worst excess with noisy signals in the uniform population, of all numbers of pages."""
    found = {f"{pages:,}": mean_excess(Case("uniform", objective, pages, noisy=True)) for pages in NOISY_CRAWLS}
    return _worst(found)


def read_noisy_heavy() -> Reading:
    """The excess with noisy signals of 1,000 heavy-tailed pages beyond that of the exact argmax in the same worlds.

    A signal waits for the next slot, half of 1/R on average. Where a single page with good signals holds much of the
    importance, that alone is more than a percent, whoever chooses.
    """
    case = Case("heavy", "harmonic", 1_000, noisy=True)
    ours, exact = (mean_excess(case, policy) for policy in _COMPARED)
    shown = f"{_shown(ours)}; the exact argmax in the same worlds {_shown(exact)}"
    return Reading(ours.percent - exact.percent, None, shown)


def read_noisy_heavy_10k() -> Reading:
    """The same with 10,000 pages, of which none holds so much."""
    return _worst({"10,000": mean_excess(Case("heavy", "harmonic", 10_000, noisy=True))})


def mean_excess(case: Case, policy: Policy = "price") -> Excess:
    """The mean excess of some worlds with signals that differ in their seed, and its error within these worlds."""
    excesses = []
    for seed in range(case.seed, case.seed + WORLDS[case.pages]):
        world = world_of(replace(case, seed=seed))
        excesses.append(excess_of(world, run_slots(world, policy, NOISY_CRAWLS[case.pages])))
    percents, errors = np.array(excesses).T
    return Excess(float(percents.mean()), float(np.hypot.reduce(errors)) / len(errors))


def read_paired(noisy: bool) -> Reading:
    """How much more the price costs than the exact argmax in the same world; the worst of sizes and objectives."""
    lengths = NOISY_PAIRED_CRAWLS if noisy else PAIRED_CRAWLS
    cases = [Case("uniform", objective, pages, noisy) for objective in OBJECTIVES for pages in lengths]
    cases.append(Case("heavy", "harmonic", 1_000, noisy))
    found = {}
    for case in cases:
        world = world_of(case)
        runs = (run_slots(world, policy, lengths[case.pages]) for policy in _COMPARED)
        ours, exact = (excess_of(world, run) for run in runs)
        # Both run on the same signals: the errors go together, so the larger one bounds that of the difference.
        name = f"{case.population} {case.objective} {case.pages:,}"
        found[name] = Excess(ours.percent - exact.percent, max(ours.error, exact.error))
    return _worst(found)


def read_hosts(noisy: bool) -> Reading:
    """The worst excess of 1,000 pages on few or many hosts whose limits are never reached."""
    world, crawls = world_of(Case("uniform", "freshness", 1_000, noisy)), (NOISY_CRAWLS if noisy else EVEN_CRAWLS)
    return _worst(
        {f"{hosts} hosts": excess_of(world, run_slots(world, "price", crawls[1_000], hosts)) for hosts in HOSTS}
    )


def _worst(found: dict[str, Excess]) -> Reading:
    shown = ", ".join(f"{name} {_shown(excess)}" for name, excess in found.items())
    return Reading(max(excess.percent for excess in found.values()), None, shown)


def _shown(excess: Excess) -> str:
    return f"{excess.percent:.3f} ± {excess.error:.3f}"


@cache
def polled_crawls() -> Floats:
    """Times of crawls of a scheduler that is asked for all it has at random times, some five times per crawl."""
    world = world_of(Case("uniform", "harmonic", 1_000))
    scheduler, _ = open_scheduler(world, burst=_BURST)
    gaps = np.random.default_rng(_SEED).uniform(0.0, 2 * _POLLED / world.budget, 60_000)
    times: list[float] = []
    for now in np.cumsum(gaps).tolist():
        batch = scheduler.take(now, 10)
        if len(batch.ids):
            scheduler.crawled(batch.ids, now)
            times += [now] * len(batch.ids)
    return np.array(times)


def overshoot(times: Floats, budget: float) -> float:
    """The most by which the crawls in any window exceed its share of the budget. O(crawls).

    >>> overshoot(np.array([0.0, 1.0, 1.0, 5.0]), budget=1.0)
    2.0
    """
    # A window from crawl i to crawl j holds j − i + 1 of them.
    ahead = np.arange(len(times)) - budget * times
    return round(float((ahead - np.minimum.accumulate(ahead)).max()) + 1, 6)


def unevenness(times: Floats, budget: float, length: float) -> float:
    """The worst deviation from the budget in windows of this length after warm-up, by max(1 crawl, 1 %)."""
    starts = np.arange(_WARM_UP * times[-1], times[-1] - length, length / 50)
    counts = np.searchsorted(times, starts + length, side="right") - np.searchsorted(times, starts, side="right")
    return float(np.abs(counts - budget * length).max()) / max(1.0, 0.01 * budget * length)


def read_overshoot() -> Reading:
    """The most by which the crawls of any window exceed its share of the budget; the burst is allowed."""
    times = polled_crawls()
    return Reading(overshoot(times, BUDGET), None, f"burst {_BURST:g}, {len(times):,} crawls")


def read_unevenness() -> Reading:
    """The worst deviation from the budget in windows of 2, 10 and 50 time units."""
    times = polled_crawls()
    worst = max(unevenness(times, BUDGET, length) for length in (2.0, 10.0, 50.0))
    return Reading(worst, None, f"{len(times) / times[-1]:.2f} crawls per unit time")


class _BudgetChange:
    """The budget rises from 100 to 150 and falls again, 1,000 pages (NCIS, Busa-Fekete et al. 2025, figure 9)."""

    @cached_property
    def _world(self) -> World:
        return world_of(Case("uniform", "freshness", 1_000))

    @cached_property
    def _taken(self) -> Taken:
        scheduler, _ = open_scheduler(self._world)
        pages, times, prices = [], [], []
        start, budget = 0.0, self._world.budget
        for end, next_budget in (*_CHANGES, (_CHANGES_END, 0.0)):
            for now in np.arange(start + 1 / budget, end, 1 / budget).tolist():
                batch = scheduler.take(now, 1)
                scheduler.crawled(batch.ids, now)
                pages += (batch.ids & _SLOT).tolist()
                times += [now] * len(batch.ids)
                prices += [batch.price] * len(batch.ids)
            start, budget = end, next_budget
            if budget:
                scheduler.set_budget(budget, end)
        return Taken(np.array(pages), np.array(times), np.array(prices))

    def _after_changes(self) -> Iterable[tuple[World, float, float]]:
        """The world at each new budget, and the time from a cycle after the change to the next change."""
        from recrawl.bench.scheduler_worlds import make_world

        columns = {"importance": self._world.rules.importance, "change_rate": self._world.rules.change_rate}
        for (changed, budget), (end, _) in zip(_CHANGES, (*_CHANGES[1:], (_CHANGES_END, 0.0)), strict=True):
            world = make_world(columns, self._world.objective, budget, _CHANGES_END, _SEED)
            yield replace(world, start=self._world.start), changed + len(world) / budget, end

    def read_price(self) -> Reading:
        """How far the price is from that of the new optimum in the second cycle after a change."""
        found = []
        for world, start, _ in self._after_changes():
            cycle = (self._taken.time > start) & (self._taken.time <= start + len(world) / world.budget)
            found.append(100 * (float(self._taken.price[cycle].mean()) / world.rules.price - 1))
        return Reading(max(map(abs, found)), None, ", ".join(f"{percent:+.2f}" for percent in found))

    def read_freshness(self) -> Reading:
        """How far freshness is below the new optimum, from one cycle after a change to the next change."""
        from recrawl.bench.scheduler_worlds import Window, settle_account, stream_of

        found = []
        for world, start, end in self._after_changes():
            crawls = stream_of(self._taken.page, self._taken.time, len(world))
            cost = float(settle_account(world, crawls, Window(start, end, 1)).cost[0])
            found.append(100 * world.relative(cost / (end - start) - world.best_cost))
        return Reading(max(found), None, ", ".join(f"{percent:+.3f}" for percent in found))


class _Year:
    """A year of 100,000 heavy-tailed pages, harmonic, each crawled once in ten days on average."""

    @cached_property
    def _run(self) -> tuple[Floats, Floats, float]:
        """Mean prices and held bytes of each quarter, and the longest wait in optimal intervals."""
        from recrawl.bench.scheduler_worlds import draw_pages, make_world

        world = make_world(draw_pages("heavy", _YEAR_PAGES, _SEED), "harmonic", _YEAR_BUDGET, 365.0, _SEED)
        most = round(_YEAR_BUDGET * _YEAR_STEP)
        scheduler, _ = open_scheduler(world, burst=float(most))
        last, longest = world.start.last_crawled.copy(), 0.0
        times = np.arange(1, round(365 / _YEAR_STEP) + 1) * _YEAR_STEP
        prices, held = np.zeros(len(times)), []
        for k, now in enumerate(times.tolist()):
            batch = scheduler.take(now, most)
            scheduler.crawled(batch.ids, now)
            page = batch.ids & _SLOT
            longest = max(longest, float(((now - last[page]) * world.rates[page]).max(initial=0.0)))
            last[page] = now
            prices[k] = batch.price
            if (k + 1) % (len(times) // 4) == 0:
                gc.collect()
                held.append(held_bytes("VmRSS"))
        longest = max(longest, float(((times[-1] - last) * world.rates).max()))
        quarters = prices[: len(times) // 4 * 4].reshape(4, -1).mean(axis=1)
        return quarters / world.rules.price, np.array(held, dtype=np.float64), longest

    def read_drift(self) -> Reading:
        """How far the mean price of the last quarter is from that of the second."""
        prices = self._run[0]
        shown = ", ".join(f"{price:.4f}" for price in prices)
        return Reading(100 * abs(float(prices[3] / prices[1]) - 1), None, f"of the optimum, by quarter {shown}")

    def read_memory(self) -> Reading:
        """How much more memory the process holds at the end than after the first quarter."""
        held = self._run[1]
        return Reading(float(held[-1] - held[0]) / 1e6, None, f"{held[0] / 1e6:.0f} MB")

    def read_wait(self) -> Reading:
        """The longest that a page waited for a crawl, in units of its optimal interval."""
        return Reading(self._run[2], None, f"{_YEAR_PAGES:,} pages, {_YEAR_BUDGET * 365:,.0f} crawls")
