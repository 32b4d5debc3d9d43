"""Compile kernels before they are needed: do with a handful of pages what trackers, commands and tests do with many.

    python -m recrawl.warming                  # everything, with a process for each core
    python -m recrawl.warming web market       # these parts, in this process

Parts are independent, so that each can be compiled in a process of its own. A part that ran to its end is noted beside
the compiled code. What a part does is decided by what numba compiles on the way: each kernel once for every
combination of argument types that the program uses.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from recrawl.errors import InvalidInput, RecrawlError
from recrawl.jit import compiling
from recrawl.jit.folders import compile_lock, complete_parts, note_complete
from recrawl.jit.way import VARIABLE

if TYPE_CHECKING:
    from recrawl.scheduling.scheduler import Scheduler

Report = Callable[[str, int, int], None]
"""Called when a part is complete: its name, how many are, and how many there are."""

_PAGES = 24
_TURNS = 40
_HOSTS = 4
_BEGINS = 1_767_225_600
_HOUR_S = 3600.0
_FETCHES = (
    b"<h1>News</h1><p>Nothing yet.<p>It is 10:00:00<p>3 views<p>advert one",
    b"<h1>News</h1><p>Something new.<p>It is 11:00:05<p>5 views<p>advert two",
    b"<h1>News</h1><p>Something new.<p>It is 11:00:08<p>5 views<p>advert three",
)


def web() -> None:
    """Read a page that changes and shows noise as well, and one that a parser must be guarded from."""
    from recrawl.web.change.detect import Visit, detect
    from recrawl.web.change.digests import digest_page, layer_text
    from recrawl.web.content.page import read_page

    texts = []
    for body in (*_FETCHES, b"<b>" * 20_000):
        page = read_page(body, "text/html")
        digest_page(body, page)
        texts.append(layer_text("text", body, page))
    memory = detect(None, Visit(texts[0], fetched_at=_BEGINS)).memory
    for hour in range(1, 6):
        before, now, again = (texts[(hour + each) % 3] for each in range(3))
        memory = detect(memory, Visit(now, before, (again,), _BEGINS + hour * _HOUR_S)).memory


def market() -> None:
    """Schedule pages as a tracker does: learned rates, hosts, limits; no signals."""
    from recrawl.scheduling.scheduler import Scheduler

    _schedule(_tracked())
    scheduler = Scheduler(1.0)
    scheduler.add(importance=np.ones(_PAGES))
    _estimate(scheduler)


def signals() -> None:
    """Schedule pages that listen to signals, too."""
    from recrawl.scheduling.types import Signal

    _schedule({**_tracked(), "signals": {"sitemap": Signal(0.7, 0.6)}})


def plain() -> None:
    """Schedule pages as a program does that sets no limits, with rates that are learned and that are known."""
    for known in ({}, {"change_rate": np.ones(_PAGES), "last_crawled": 0.0}):
        for hosts in ({}, {"host": np.arange(_PAGES) % _HOSTS}):
            _schedule({"importance": np.ones(_PAGES), **known, **hosts})


def service() -> None:
    """Estimate what the dashboard shows."""
    from recrawl.scheduling.scheduler import Scheduler

    for objective in ("freshness", "harmonic"):
        scheduler = Scheduler(float(_PAGES), objective, burst=float(_PAGES))
        scheduler.add(importance=np.ones(_PAGES), host=np.zeros(_PAGES, dtype=np.int64))
        scheduler.take(1.0, _PAGES // 2)
        _estimate(scheduler)
        scheduler.budget_curve()


def planning() -> None:
    """Plan by every solver, with limits, costs, host caps and schedules."""
    from recrawl.planning.schedules import Kind, schedule
    from recrawl.planning.solve import SOLVERS, plan

    rng = np.random.default_rng(1)
    pages = {"importance": rng.random(_PAGES) + 0.1, "change_rate": rng.random(_PAGES) + 0.1}
    limits = {"min_rate": np.full(_PAGES, 0.01), "max_rate": np.full(_PAGES, 9.0), "cost": np.ones(_PAGES)}
    heard = {"recall": np.full(_PAGES, 0.6), "precision": np.full(_PAGES, 0.7)}
    for solver in SOLVERS:
        with suppress(RecrawlError):  # not every solver takes everything
            plan(pages, 9.0, solver=solver).freshness  # noqa: B018 - is computed when it is read
        with suppress(RecrawlError):
            plan({**pages, **limits, "host": np.arange(_PAGES) % 3}, 9.0, solver=solver, host_caps={0: 1.0})
        with suppress(RecrawlError):
            plan({**pages, **heard}, 9.0, solver=solver)
    for kind in get_args(Kind):
        next(schedule(plan(pages, 9.0).rates, kind))


def simulation() -> None:
    """Let every competitor crawl a small world."""
    from recrawl.lab.simulation.measures import measure
    from recrawl.lab.simulation.scenarios import CONTENDERS, make_contender
    from recrawl.lab.worlds.registry import build_world

    for name in ("churn", "announced"):
        world = build_world(name, _PAGES, 6.0, 1)
        for contender in CONTENDERS:
            with suppress(RecrawlError):  # not every one takes every world
                measure(world, make_contender(contender).crawl(world, 9.0, seed=1), start=1.0)


def news() -> None:
    """Let every policy look for news in a small graph."""
    from recrawl.lab.simulation.news import NEWS_POLICIES, run_news
    from recrawl.lab.worlds.news import news_world

    for policy in NEWS_POLICIES:
        run_news(news_world(sites=2, days=2.0, seed=1), policy, 200.0, seed=1)


def _tracked() -> dict[str, Any]:
    """What a tracker says of pages."""
    return {
        "importance": np.ones(_PAGES),
        "host": np.arange(_PAGES) % _HOSTS,
        "min_interval": np.full(_PAGES, 1e-6),
        "max_interval": np.full(_PAGES, 10.0),
    }


def _schedule(pages: dict[str, Any]) -> None:
    from recrawl.learning.population import fit_population
    from recrawl.scheduling.learner import prior_around
    from recrawl.scheduling.scheduler import Scheduler

    scheduler, learns = Scheduler(1000.0, burst=100.0), "change_rate" not in pages
    for host in range(_HOSTS):
        scheduler.set_host(host, min_gap=1e-9, max_in_flight=8)
    ids = scheduler.add(**pages)
    if learns:
        scheduler.resume(ids, scheduler.beliefs(ids).tobytes(), failures=0)
    now = 0.0
    for turn in range(_TURNS):
        now += 0.05
        taken = scheduler.take(now, 8).ids
        if turn % 8 == 6:
            scheduler.failed(taken, now)
        elif turn % 8 == 7:
            scheduler.release(taken, now)
        else:
            scheduler.crawled(taken, now, changed=np.arange(len(taken)) % 2 == turn % 2)
        if learns:
            scheduler.beliefs(taken[:1])
        if "signals" in pages:
            scheduler.signal(ids[:2], now, "sitemap")
    scheduler.spend(1.0, now)
    scheduler.claim(ids[-1:], now)
    scheduler.remove(ids[:1])
    scheduler.explain(int(ids[1]), now)
    scheduler.status()
    if learns:
        scheduler.set_prior(fit_population(scheduler.learned(_PAGES), prior_around(1000.0 / _PAGES)))


def _estimate(scheduler: Scheduler) -> None:
    estimator = scheduler.estimator()
    estimator.look(1.0)
    estimator.believed(scheduler.ids(), np.ones(_PAGES))


# Those that take longest come first, so that processes end together.
PARTS: dict[str, Callable[[], None]] = {
    each.__name__: each for each in (market, signals, plain, web, planning, simulation, service, news)
}


def warm(parts: Sequence[str]) -> None:
    """Compile parts in this process, one after the other.

    Raises:
        InvalidInput: there is no such part.
    """
    with compiling():
        for name in parts:
            if name not in PARTS:
                raise InvalidInput(f"is {name!r}, but must be one of {', '.join(PARTS)}", field="part")
            if name not in complete_parts():
                PARTS[name]()
                note_complete(name)


def warm_all(
    processes: int, report: Report = lambda _name, _done, _all: None, parts: Sequence[str] = tuple(PARTS)
) -> list[str]:
    """Compile everything that is not complete, several parts at a time.

    Args:
        processes: how many to start at once.
        report: called with the name of each part that has ended, how many have, and how many there are.
        parts: what to compile.

    Returns:
        the parts that failed, with what they wrote to their error output.
    """
    waiting = [name for name in parts if name not in complete_parts()]
    total, done, failed = len(waiting), 0, []
    running: dict[str, subprocess.Popen[str]] = {}
    while waiting or running:
        while waiting and len(running) < processes:
            name = waiting.pop(0)
            running[name] = _start(name)
        for name, process in list(running.items()):
            with suppress(subprocess.TimeoutExpired):
                _, errors = process.communicate(timeout=0.1)
                del running[name]
                done += 1
                if process.returncode:
                    failed.append(f"{name}: {errors.strip()}")
                report(name, done, total)
    return failed


def _start(name: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "recrawl.warming", name],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, VARIABLE: "compiled"},
    )


def _end_with(parent: int) -> None:
    """End this process when the one that started it has ended, however it did."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(0)


def _beside(parts: Sequence[str]) -> None:
    """Compile for another process, one at a time: what a third one compiles meanwhile is not compiled again."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    with suppress(OSError, AttributeError):  # AttributeError: on Windows
        os.nice(10)
    with compile_lock():
        warm(parts)


def main(arguments: Sequence[str]) -> int:
    """Compile; 0 if everything could be."""
    if arguments[:1] == ["--beside"]:
        _beside(arguments[1:])
        return 0
    if arguments:
        try:
            warm(arguments)
        except RecrawlError as error:
            print(error, file=sys.stderr)  # noqa: T201
            return 2
        return 0
    failed = warm_all(os.cpu_count() or 1, lambda name, done, total: print(f"compiled {name} ({done} of {total})"))  # noqa: T201
    for each in failed:
        print(f"could not compile {each}", file=sys.stderr)  # noqa: T201
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
