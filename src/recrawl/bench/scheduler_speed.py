"""Measures of the group `scheduler` for speed and memory, at ten million pages where the name says `10m`.

Pages are drawn by `web_population`, harmonic, at one crawl in ten days per page on average. They begin in the steady
state of the plan, since a scheduler spends its life there. Times are CPU seconds on one core; speeds are the best of
three runs after a warm-up, and all three are told. Setting up and restoring ten million pages run once, after a
warm-up with few pages: a run of seconds is steady enough. The scheduler of ten million pages is made once, and is
given up before the one with signals is made.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

import recrawl
from recrawl.bench.measure import RUNS, Bound, Measure, Reading, best_cpu_seconds, cpu_seconds
from recrawl.bench.plans import MILLION, draw_millions
from recrawl.lab.worlds.laws import web_population
from recrawl.pages import Floats

if TYPE_CHECKING:
    from recrawl.scheduling.columns import PageObjective
    from recrawl.scheduling.scheduler import Scheduler

Ids = NDArray[np.int64]

BATCH = 1_000
_INTERVAL = 10.0  # mean time between crawls of a page
_KIND = "sitemap"
_SIGNALS_PER_CRAWL = 4
_SLOT = 0xFFFFFFFF
_SEED = 4
_MB = 1e6


class Sizes(NamedTuple):
    """How many pages schedulers hold, and how much is timed in a run."""

    many: int = 10_000_000
    some: int = 1_000_000
    few: int = 100_000
    decisions: int = 1_000_000
    single_decisions: int = 50_000
    learned_decisions: int = 200_000
    signals: int = 500_000
    argmax_steps: int = 30


class Columns(NamedTuple):
    """Pages in the steady state of their plan."""

    importance: Floats
    change_rate: Floats
    last_crawled: Floats

    def part(self, start: int, end: int) -> Columns:
        """Some of the pages."""
        return Columns(*(column[start:end] for column in self))


FULL = Sizes()


def speed_measures(sizes: Sizes = FULL) -> tuple[Measure, ...]:
    """The measures, in the order they run; nothing is computed yet."""
    work = _Work(sizes)
    million, none = "million/s", "none"
    return (
        Measure("setup_10m", "s", none, Bound("value", limit=10), work.read_setup),
        Measure("decisions_batched_10m", million, none, Bound("value", floor=1), work.read_batched),
        Measure("decisions_single_10m", "thousand/s", none, Bound("value", floor=50), work.read_single),
        Measure("restore_10m", "s", "snapshot", Bound("value", limit=10), work.read_restore),
        Measure("scaling_10m", "µs", "100 thousand pages", Bound("ratio", limit=3), work.read_scaling),
        Measure("signals_10m", million, none, Bound("value", floor=1), work.read_many_signals),
        Measure("signals_freshness_1m", million, none, Bound("value", floor=1), work.read_freshness_signals),
        Measure("argmax_1m", million, "exact argmax", Bound("ratio", floor=5_000), work.read_argmax),
        Measure("decisions_learned_1m", "thousand/s", none, Bound("value", floor=50), work.read_learned),
        Measure("bytes_known", "bytes/page", none, Bound("value", limit=96), work.read_bytes),
        Measure("bytes_learned", "bytes/page", none, Bound("value", limit=136), work.read_learned_bytes),
    )


class Crawler:
    """Takes from a scheduler at exactly its budget, and settles at once."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.now = scheduler.now

    def crawl(self, decisions: int, batch: int) -> int:
        """Take and settle about so many crawls, so many at a time; how many there were."""
        scheduler, step, done = self.scheduler, batch / self.scheduler.budget, 0
        for _ in range(max(decisions // batch, 1)):
            self.now += step
            taken = scheduler.take(self.now, batch)
            scheduler.crawled(taken.ids, self.now)
            done += len(taken.ids)
        return done


class _Work:
    """What measures of the group share."""

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes

    @cached_property
    def _setup(self) -> tuple[Crawler, float, float]:
        """A crawler of many pages, and CPU seconds of adding them and of the first crawl."""
        set_up(settled_pages(self._sizes.few))  # compiles
        return set_up(settled_pages(self._sizes.many))

    @cached_property
    def _batched(self) -> tuple[float, ...]:
        return speeds(self._setup[0], self._sizes.decisions, BATCH)

    def read_setup(self) -> Reading:
        """CPU seconds from columns to the first crawl."""
        _, add, first = self._setup
        return Reading(add + first, None, f"add {add:.2f} s, first take {first:.2f} s")

    def read_batched(self) -> Reading:
        """Crawls taken and settled, a thousand at a time."""
        return _best(self._batched, 1e6)

    def read_single(self) -> Reading:
        """Crawls taken and settled one by one, after some that were taken in batches."""
        _ = self._batched
        return _best(speeds(self._setup[0], self._sizes.single_decisions, 1), 1e3)

    def read_restore(self) -> Reading:
        """CPU seconds from a file to a scheduler that goes on as the one that was written."""
        seconds, size, restore = snapshot_and_restore(self._setup[0].scheduler)
        return Reading(restore, None, f"written in {seconds:.2f} s, {size / _MB:.0f} MB")

    def read_scaling(self) -> Reading:
        """Cost of a decision with many pages against few."""
        many = 1e6 / max(self._batched)
        few = 1e6 / max(speeds(set_up(settled_pages(self._sizes.few))[0], self._sizes.decisions, BATCH))
        return Reading(many, many / few, f"{few:.3g} µs")

    def read_many_signals(self) -> Reading:
        """Signals taken in by many harmonic pages."""
        self.__dict__.pop("_setup", None)
        return _best(signal_speeds(self._sizes.many, "harmonic", self._sizes.signals), 1e6)

    def read_freshness_signals(self) -> Reading:
        """The same by pages of the other objective, whose values are other sums."""
        return _best(signal_speeds(self._sizes.some, "freshness", self._sizes.signals), 1e6)

    def read_argmax(self) -> Reading:
        """Decisions a second against those of an exact search, the faster of two."""
        from recrawl.bench import scheduler_yardsticks as yardsticks

        pages = settled_pages(self._sizes.some)
        ours = speeds(set_up(pages)[0], self._sizes.decisions, BATCH)
        times = np.linspace(0.0, self._sizes.argmax_steps * _INTERVAL / self._sizes.some, self._sizes.argmax_steps)
        plain = yardsticks.plain_pages(*pages)
        kernel = best_cpu_seconds(lambda: yardsticks.crawl_by_kernel(plain, times)) / len(times)
        numpy = best_cpu_seconds(lambda: yardsticks.crawl_by_numpy(plain, times)) / len(times)
        figure = f"{1e3 * kernel:.3g} ms compiled, {1e3 * numpy:.3g} ms in NumPy; runs {_shown(ours, 1e6)}"
        return Reading(max(ours) / 1e6, max(ours) * min(kernel, numpy), figure)

    def read_learned(self) -> Reading:
        """Crawls taken, settled and learned from, a thousand at a time."""
        return _best(learned_speeds(self._sizes.some, self._sizes.learned_decisions), 1e3)

    def read_bytes(self) -> Reading:
        """State of a page with a known rate that listens to signals."""
        return _bytes(settled_pages(self._sizes.few), learned=False)

    def read_learned_bytes(self) -> Reading:
        """State of a page with a learned rate that listens to signals."""
        return _bytes(settled_pages(self._sizes.few), learned=True)


def settled_pages(pages: int) -> Columns:
    """Draw pages in the steady state of the harmonic plan. O(pages)."""
    names = ("importance", "change_rate")
    drawn = draw_millions(pages // MILLION, names) if pages >= MILLION else web_population(pages)
    columns = {name: drawn[name] for name in names}
    plan = recrawl.plan(columns, budget=pages / _INTERVAL, objective="harmonic", solver="even")
    since = np.random.default_rng([_SEED, pages]).random(pages) / plan.rates
    return Columns(**columns, last_crawled=-since)


def set_up(pages: Columns) -> tuple[Crawler, float, float]:
    """A scheduler of these pages with whoever crawls; CPU seconds of adding the pages and of the first crawl."""
    scheduler = _scheduler(len(pages.importance), "harmonic")
    add = cpu_seconds(lambda: scheduler.add(**pages._asdict()))
    crawler = Crawler(scheduler)
    first = cpu_seconds(lambda: crawler.crawl(1, 1))
    return crawler, add, first


def speeds(crawler: Crawler, decisions: int, batch: int) -> tuple[float, ...]:
    """Decisions per CPU second in each of three runs, after one that is not timed."""
    return _timed(lambda: crawler.crawl(decisions, batch))


def snapshot_and_restore(scheduler: Scheduler) -> tuple[float, int, float]:
    """CPU seconds of writing a file, its size, and CPU seconds of reading it.

    Raises:
        ValueError: if the scheduler from the file does not go on as the other.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scheduler.snapshot"
        few = Path(folder) / "few.snapshot"
        set_up(settled_pages(1_000))[0].scheduler.snapshot(few)  # compiles the checks
        recrawl.Scheduler.restore(few)
        write = cpu_seconds(lambda: scheduler.snapshot(path))
        size = path.stat().st_size
        restored: list[Scheduler] = []
        read = cpu_seconds(lambda: restored.append(recrawl.Scheduler.restore(path)))
    later = scheduler.now + BATCH / scheduler.budget
    first, again = (each.take(later, BATCH) for each in (scheduler, restored[0]))
    if not len(first) or not np.array_equal(first.ids, again.ids):
        raise ValueError("the restored scheduler does not go on as the one that was written")
    scheduler.crawled(first.ids, later)
    return write, size, read


def signal_speeds(pages: int, objective: PageObjective, signals: int) -> tuple[float, ...]:
    """Signals per CPU second, a thousand at a time to pages drawn at random; crawls in between are not timed."""
    scheduler, ids = listening_scheduler(pages, objective)
    crawler = Crawler(scheduler)
    random = np.random.default_rng(_SEED)
    crawls = BATCH // _SIGNALS_PER_CRAWL
    found = []
    for _ in range(RUNS + 1):
        seconds = 0.0
        for _ in range(max(signals // BATCH, 1)):
            heard = ids[random.integers(0, len(ids), BATCH)]
            started = time.process_time()
            scheduler.signal(heard, crawler.now, kind=_KIND)
            seconds += time.process_time() - started
            crawler.crawl(crawls, crawls)
        found.append(max(signals // BATCH, 1) * BATCH / seconds)
    return tuple(found[1:])


def draw_trust(pages: int) -> tuple[Floats, Floats]:
    """Recall and precision of the signals of each page, by the law of `scheduler_worlds.draw_noisy_pages`."""
    random = np.random.default_rng([_SEED, pages, 1])
    recall = random.beta(0.25, 0.25, pages)
    return recall, recall / (recall + 2 * random.uniform(0.1, 0.6, pages))


def listening_scheduler(pages: int, objective: PageObjective) -> tuple[Scheduler, Ids]:
    """A scheduler whose pages have noisy signals.

    The price is found with the first pages, at their share of the budget, and the others follow: with signals a price
    is dear to find.
    """
    columns = settled_pages(pages)
    recall, precision = draw_trust(pages)
    scheduler = _scheduler(pages, objective)
    first = max(pages // 100, 1)
    ids = []
    for start, end in ((0, first), (first, pages)):
        scheduler.set_budget(end / _INTERVAL, 0.0)
        signals = {_KIND: recrawl.Signal(recall=recall[start:end], precision=precision[start:end])}
        ids.append(scheduler.add(**columns.part(start, end)._asdict(), signals=signals))
        scheduler.take(0.0, 0)
    return scheduler, np.concatenate(ids)


def learned_speeds(pages: int, decisions: int) -> tuple[float, ...]:
    """Decisions per CPU second with rates that are learned; what crawls find is drawn, and that is not timed."""
    columns = settled_pages(pages)
    scheduler = _scheduler(pages, "harmonic")
    scheduler.add(importance=columns.importance, change_rate=None, last_crawled=columns.last_crawled)
    random, last, now = np.random.default_rng(_SEED), columns.last_crawled.copy(), 0.0
    found = []
    for _ in range(RUNS + 1):
        seconds, done = 0.0, 0
        for _ in range(max(decisions // BATCH, 1)):
            now += BATCH / scheduler.budget
            started = time.process_time()
            batch = scheduler.take(now, BATCH)
            seconds += time.process_time() - started
            page = batch.ids & _SLOT
            changed = random.random(len(page)) < -np.expm1(-columns.change_rate[page] * (now - last[page]))
            last[page] = now
            started = time.process_time()
            scheduler.crawled(batch.ids, now, changed=changed)
            seconds += time.process_time() - started
            done += len(page)
        found.append(done / seconds)
    return tuple(found[1:])


def _scheduler(pages: int, objective: PageObjective) -> Scheduler:
    return recrawl.Scheduler(budget=pages / _INTERVAL, objective=objective, burst=float(BATCH), seed=_SEED)


def _bytes(pages: Columns, learned: bool) -> Reading:
    """State of a page with signals; in words without, and with limits as well."""
    signals = {_KIND: recrawl.Signal(recall=0.5, precision=0.5)}
    found = []
    for more in ({}, {"signals": signals}, {"signals": signals, "max_interval": 1e3}):
        scheduler = _scheduler(len(pages.importance), "harmonic")
        rate = None if learned else pages.change_rate
        scheduler.add(importance=pages.importance, change_rate=rate, last_crawled=pages.last_crawled, **more)
        scheduler.take(0.0, 0)
        found.append(scheduler.state_bytes_per_page)
    plain, listening, limited = found
    return Reading(listening, None, f"{plain:.1f} without signals, {limited:.1f} with a longest interval as well")


def _timed(work: Callable[[], int]) -> tuple[float, ...]:
    work()
    found = []
    for _ in range(RUNS):
        started = time.process_time()
        done = work()
        found.append(done / (time.process_time() - started))
    return tuple(found)


def _best(found: tuple[float, ...], unit: float) -> Reading:
    return Reading(max(found) / unit, None, f"runs {_shown(found, unit)}")


def _shown(found: tuple[float, ...], unit: float) -> str:
    return ", ".join(f"{speed / unit:.3g}" for speed in found)
