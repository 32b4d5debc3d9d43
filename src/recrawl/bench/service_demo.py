"""Measures of the group `service` on the living web of the demo: what the tracker makes of its budget, on the truth.

The demo runs twice, without a view: with Pareto importance from a cold start, and with uniform importance until every
page was crawled some thirty times on average before measuring begins. Measured is the last third of each. Beside it
runs what measures a tracker for the metrics and the dashboard, and its freshness is held against the truth: on average
over the last third, and in the worst ten seconds from the thirtieth second on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from recrawl.bench.measure import Bound, CannotRun, Measure, Reading
from recrawl.bench.once import Once

if TYPE_CHECKING:
    from recrawl.lab.demo.running import DemoResult, Show
    from recrawl.lab.demo.scene import Scene
    from recrawl.tracker.tracker import Tracker

_POINT = 0.01
_MEASURED = 1 / 3
_HALF_A_MINUTE_S = 30.0
_MEAN_S = 10.0  # at a single moment a few important pages decide


class Sizes(NamedTuple):
    """How large the demos are, and how long they take; `uniform_s` is the most, the crawls decide."""

    pages: int = 2000
    pareto_per_s: float = 200.0
    pareto_s: float = 300.0
    uniform_per_s: float = 250.0
    uniform_s: float = 420.0
    crawls_a_page: float = 30.0
    seed: int = 1


class Outcome(NamedTuple):
    """A demo that ran: its result, crawls of a page before the last third, and freshness in it, estimated and true.

    `worst` is the largest difference of the two from the thirtieth second on, on average over ten seconds, in points;
    None for a demo that was shorter.
    """

    result: DemoResult
    crawls_before: float
    estimated: float
    true: float
    worst: float | None = None

    @property
    def error(self) -> float:
        """Of the estimate, in points."""
        return abs(self.estimated - self.true) / _POINT

    def __str__(self) -> str:
        """Freshness of all three, and what came before."""
        found = self.result
        shown = f"{found.round_robin:.3f} to {found.optimum:.3f}, the tracker {found.freshness:.3f}"
        return f"{shown}; {found.crawls:,} crawls in {found.seconds:.0f} s, {self.crawls_before:.1f} a page before"


def demo_measures(sizes: Sizes | None = None) -> tuple[Measure, ...]:
    """The measures, in the order they run; nothing is computed yet."""
    work = _Work(sizes or Sizes())
    gap = "from round robin to the optimum of known rates"
    return (
        Measure("demo_gap_pareto", "share of gap", gap, Bound("value", floor=0.85), work.read_pareto),
        Measure("demo_gap_uniform", "share of gap", gap, Bound("value", floor=0.5), work.read_uniform),
        Measure("estimated_freshness", "points", "the truth", Bound("value", limit=3), work.read_estimate),
        Measure("estimated_freshness_worst", "points", "the truth", Bound("value", limit=3), work.read_worst),
    )


class _Work:
    """The runs that the measures share."""

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        self._pareto = Once(self._run_pareto)
        self._uniform = Once(self._run_uniform)

    def _run_pareto(self) -> Outcome:
        from recrawl.lab.demo.scene import Scene

        sizes = self._sizes
        return run_scene(Scene(sizes.pages, sizes.pareto_per_s, "pareto", seed=sizes.seed), sizes.pareto_s)

    def _run_uniform(self) -> Outcome:
        from recrawl.lab.demo.scene import Scene

        sizes = self._sizes
        scene = Scene(sizes.pages, sizes.uniform_per_s, "uniform", seed=sizes.seed)
        return run_scene(scene, sizes.uniform_s, crawls=sizes.crawls_a_page * sizes.pages / (1 - _MEASURED))

    def read_pareto(self) -> Reading:
        """Share of the gap closed, Pareto importance, cold start."""
        return _gap(self._pareto())

    def read_uniform(self) -> Reading:
        """The same with uniform importance, after some crawls of each page."""
        found, wanted = self._uniform(), self._sizes.crawls_a_page
        if found.crawls_before < 0.95 * wanted:
            raise CannotRun(
                f"only {found.crawls_before:.1f} crawls a page came before the last third, not {wanted:g}: "
                "this machine is too busy for the demo"
            )
        return _gap(found)

    def read_estimate(self) -> Reading:
        """How far the metric of freshness is off, in the worse of both runs."""
        runs = {"pareto": self._pareto(), "uniform": self._uniform()}
        told = ", ".join(f"{name} {each.true:.3f}, estimated {each.estimated:.3f}" for name, each in runs.items())
        return Reading(max(each.error for each in runs.values()), None, told)

    def read_worst(self) -> Reading:
        """How far it is off in the worst ten seconds after half a minute, from a cold start."""
        worst = self._pareto().worst
        if worst is None:
            raise CannotRun("the demo was shorter than half a minute")
        return Reading(worst, None, "Pareto importance, ten-second means")


def _gap(found: Outcome) -> Reading:
    closed = found.result.gap_closed
    if closed is None:
        raise CannotRun("the optimum is no better than round robin here")
    return Reading(closed, None, str(found))


def run_scene(scene: Scene, seconds: float, crawls: float = float("inf")) -> Outcome:
    """Run a demo for so long, or until it made so many crawls."""
    from recrawl._event_loop import run
    from recrawl.lab.demo.running import run_demo

    async def runs() -> Outcome:
        follower = _Follower(crawls)
        try:
            result = await run_demo(scene, seconds, follower.look)
        finally:
            await follower.end()
        if was_interrupted(result, seconds, crawls):
            raise KeyboardInterrupt  # the tracker took the signal for itself, and a short demo is no measure
        return follower.outcome(result)

    return run(runs())


def was_interrupted(result: DemoResult, seconds: float, crawls: float) -> bool:
    """Whether a demo ended before its time and its crawls: then someone sent a signal."""
    return result.seconds < seconds and result.crawls < crawls


class _Seen(NamedTuple):
    """At so many seconds: crawls, and freshness, estimated and true."""

    at: float
    crawls: int
    estimated: float
    true: float


class _Follower:
    """Looks on: has the service's measurements taken, notes them beside the truth, and ends the demo in time.

    Args:
        crawls: after which the demo ends.
    """

    def __init__(self, crawls: float) -> None:
        self._crawls = crawls
        self._seen: list[_Seen] = []
        self._estimated: float | None = None
        self._looking: asyncio.Task[None] | None = None

    def look(self, show: Show) -> None:
        """A sample was taken."""
        if self._looking is None:
            self._looking = asyncio.create_task(self._estimate(show.tracker))
        if self._estimated is not None:
            self._seen.append(_Seen(show.seconds, show.crawls, self._estimated, show.race.course.last.ours))
        if show.crawls >= self._crawls:
            show.tracker.stop()

    async def _estimate(self, tracker: Tracker) -> None:
        from recrawl.service.monitor.monitor import LOOK_EVERY_S, Watch

        watch = Watch(tracker)
        while not tracker.stopping:
            self._estimated = (await watch.look()).estimates.freshness
            await tracker.pause(LOOK_EVERY_S)

    async def end(self) -> None:
        """Look no longer."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    def outcome(self, result: DemoResult) -> Outcome:
        """Means over the last third."""
        last = [each for each in self._seen if each.at >= result.seconds * (1 - _MEASURED)]
        if not last:
            raise CannotRun("nothing was measured in the last third of the demo")
        count = len(last)
        return Outcome(
            result,
            last[0].crawls / result.pages,
            sum(each.estimated for each in last) / count,
            sum(each.true for each in last) / count,
            worst_difference([(each.at, each.estimated - each.true) for each in self._seen]),
        )


def worst_difference(differences: Sequence[tuple[float, float]]) -> float | None:
    """The largest mean difference over ten seconds, of those that begin from the twentieth second on, in points.

    Args:
        differences: each with its time in seconds, in order.

    >>> worst_difference([(float(second), 0.02 * (second == 35)) for second in range(60)])
    0.2
    """
    late = [each for each in differences if each[0] >= _HALF_A_MINUTE_S - _MEAN_S]
    worst = None
    for place, (end, _) in enumerate(late):
        if end >= _HALF_A_MINUTE_S:
            within = [each for at, each in late[: place + 1] if at > end - _MEAN_S]
            found = abs(sum(within)) / len(within) / _POINT
            worst = found if worst is None else max(worst, found)
    return worst
