"""Measures of the group `scheduler` on hosts of heavy-tailed sizes: what crawls cost, and whether all are made.

All hosts have the same gap, which a tenth of them would like to be shorter; more are saturated once those give way. The
scheduler is asked at equal times for all that it has, and is held against the plan with host caps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import recrawl
from recrawl.bench.measure import Reading
from recrawl.pages import Floats

if TYPE_CHECKING:
    from recrawl.bench.scheduler_worlds import Judged

_OBJECTIVES: tuple[Judged, ...] = ("freshness", "harmonic")
_SEEDS = (7, 11, 13)
_CYCLE = 10.0  # mean time between two crawls of a page
_AGE = 60.0  # expected changes since the last crawl of a page that the plan never crawls
_WARM_UP = 3  # the first third of a run is not measured
_TINY = 1e-12
_SLOT = 0xFFFFFFFF


class Shape(NamedTuple):
    """Size and length of a world, and how often it is polled in each gap of a host."""

    pages: int
    hosts: int
    polls: int
    cycles: float


FEW_HOSTS = Shape(pages=2_000, hosts=100, polls=24, cycles=6.0)
MANY_HOSTS = Shape(pages=100_000, hosts=5_000, polls=17, cycles=4.0)


class Run(NamedTuple):
    """Cost beyond the plan in percent, and the crawls that were made for each that was planned."""

    excess: float
    made: float


def read_excess_tailed() -> Reading:
    """Read the mean excess over some worlds of 2,000 pages, a quarter of whose hosts are saturated."""
    worlds = {seed: [run_tailed(FEW_HOSTS, objective, seed).excess for objective in _OBJECTIVES] for seed in _SEEDS}
    shown = ", ".join(
        f"world {seed} {freshness:.2f} / {harmonic:.2f}" for seed, (freshness, harmonic) in worlds.items()
    )
    return Reading(float(np.mean(list(worlds.values()))), None, f"freshness / harmonic: {shown}")


def read_crawls_tailed() -> Reading:
    """Read the least share of the planned crawls that is made where most of 5,000 hosts are saturated."""
    made = [run_tailed(MANY_HOSTS, objective, _SEEDS[0]).made for objective in _OBJECTIVES]
    return Reading(min(made), None, "freshness / harmonic: " + " / ".join(f"{share:.4f}" for share in made))


def run_tailed(shape: Shape, objective: Judged, seed: int) -> Run:
    """Crawl a world for some cycles and compare what is crawled after the first third with the plan."""
    random = np.random.default_rng(seed)
    count = shape.pages
    columns = {"importance": random.pareto(1.5, count) + 0.1, "change_rate": 10 ** random.uniform(-2.5, 0.5, count)}
    sizes = random.pareto(1.0, shape.hosts) + 0.05
    host = np.unique(random.choice(shape.hosts, count, p=sizes / sizes.sum()), return_inverse=True)[1]
    budget = count / _CYCLE
    use = np.bincount(host, recrawl.plan({**columns, "host": host}, budget, objective).rates)
    cap = float(np.quantile(use[use > 0], 0.9))
    plan = recrawl.plan({**columns, "host": host}, budget, objective, host_caps=dict.fromkeys(range(len(use)), cap))
    since = np.where(
        plan.rates > 0, random.random(count) / np.maximum(plan.rates, _TINY), _AGE / columns["change_rate"]
    )
    step = 1.0 / (cap * shape.polls)
    scheduler = recrawl.Scheduler(budget, objective, burst=budget * step + 1.0)
    scheduler.set_hosts(range(len(use)), min_gap=1.0 / cap)
    scheduler.add(importance=columns["importance"], change_rate=columns["change_rate"], host=host, last_crawled=-since)
    steps = round(shape.cycles * _CYCLE / step)
    start, last = steps // _WARM_UP * step, -since
    cost, crawls = 0.0, 0
    everything = np.arange(count)
    for poll in range(1, steps + 1):
        now = poll * step
        batch = scheduler.take(now, count)
        scheduler.crawled(batch.ids, now)
        slots = batch.ids & _SLOT
        if poll > steps // _WARM_UP:
            cost += _cost(columns, objective, slots, last[slots], (start, now))
            crawls += len(slots)
        last[slots] = now
    cost += _cost(columns, objective, everything, last, (start, steps * step))
    length = steps * step - start
    best = plan.costs.binary if objective == "freshness" else plan.costs.harmonic
    scale = float(columns["importance"].sum()) - best if objective == "freshness" else best
    return Run(100 * (cost / length - best) / scale, crawls / length / min(budget, plan.used))


def _cost(
    columns: dict[str, Floats], objective: Judged, slots: np.ndarray, last: Floats, window: tuple[float, float]
) -> float:
    """Return what pages cost in a window, at whose end they are crawled."""
    start, end = window
    rate = columns["change_rate"][slots]
    gathered = _area(objective, rate * (end - last)) - _area(objective, rate * np.maximum(start - last, 0.0))
    return float((columns["importance"][slots] / rate * gathered).sum())


def _area(objective: Judged, missed: Floats) -> Floats:
    """Return the integral of the cost over the changes missed: of 1 - e^{-x}, or of Ein(x)."""
    from recrawl.values import shape_h

    h = np.asarray(shape_h(missed))
    if objective == "freshness":
        return h
    from scipy.special import exp1

    x = np.maximum(missed, _TINY)
    area: Floats = x * (np.euler_gamma + np.log(x) + exp1(x)) - h
    return area
