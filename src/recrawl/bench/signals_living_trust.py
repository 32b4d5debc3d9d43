"""Measures of the group `signals` on the living web for trust: the scenes of `signals_trust.py` with the whole tracker.

Pages are fetched over HTTP, change rates are learned from what came, and sites tell of changes over HTTP too
(`living_telling.py`). What the tracker reaches is held against the optimum of someone who knows rates, recall and
precision (NCIS, Busa-Fekete et al. 2025), against a tracker that is told nothing, and against one that fetches at once
whatever it is told of. Truth comes from the web itself. `recrawl bench signals` has one web; the mean of several:

    python -m recrawl.bench.signals_living_trust 5
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from recrawl.bench.living_run import LivingRun, crawl
from recrawl.bench.living_telling import PRECISION, RECALL, Manners, Teller, draw_said
from recrawl.bench.living_truth import calm_world, lasting_pages, log_of, truth_of
from recrawl.bench.measure import Bound, Measure, Reading, run
from recrawl.bench.once import Once
from recrawl.papers.workers import workers

if TYPE_CHECKING:
    from recrawl.livingweb.server import LivingWeb
    from recrawl.tracker.settings import Settings

Scene = Literal["silent", "honest", "useless", "mixture"]
Ears = Literal["learned", "all"]

POINT = 0.01
_MANNERS: dict[Scene, Manners] = {
    "silent": Manners(0.0, 0.0), "honest": Manners(0.3, 0.0), "useless": Manners(0.0, 0.3), "mixture": Manners(0.3, 0.3)
}  # fmt: skip
_RUNS: tuple[tuple[Scene, Ears], ...] = (
    ("silent", "learned"), ("honest", "learned"), ("useless", "learned"), ("mixture", "learned"), ("mixture", "all"),
)  # fmt: skip
_HICCUP_DAYS = 0.5  # budget of so long is not lost while the machine does something else


class Sizes(NamedTuple):
    """How large the webs are, how long they are crawled, how fast their time goes, and how many there are."""

    pages: int = 3_000  # of which more than 2,000 last
    hosts: int = 24
    changes_a_day: float = 0.4  # of a page by itself, on average
    crawls_a_day: float = 0.25  # of a page
    warm_up: float = 20.0  # crawls a page
    measured: float = 8.0
    speedup: float = 55_000.0
    seeds: int = 1
    processes: int = 2

    @property
    def days(self) -> float:
        """All of them."""
        return (self.warm_up + self.measured) / self.crawls_a_day


class Task(NamedTuple):
    """One web, what its sites are like, and how far they are believed."""

    sizes: Sizes
    seed: int
    scene: Scene
    ears: Ears


class Outcome(NamedTuple):
    """Freshness, and what the optima with and without signals would have.

    And pages, those of honest sites, crawls, and announcements.
    """

    freshness: float
    optimum: float
    optimum_without: float
    pages: int
    honest: int
    crawls: int
    told: int


def living_trust_measures(sizes: Sizes | None = None) -> tuple[Measure, ...]:
    """The measures, in the order they run; all share the same runs, and the first one pays."""
    work = _Work(sizes or Sizes())
    points, above = Bound("value", floor=-2), Bound("value", floor=0)
    return (
        Measure("living_honest_freshness", "points", "optimum that knows all", points, work.read_honest),
        Measure("living_honest_gain", "points", "gain of the optimum", points, work.read_gain),
        Measure("living_useless_loss", "points", "ignoring signals", points, work.read_useless),
        Measure("living_mixture_over_trust_all", "points", "believing every signal", above, work.read_over_all),
        Measure("living_mixture_over_trust_none", "points", "ignoring signals", above, work.read_over_none),
    )


class _Work:
    """Runs that the measures share."""

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        self._outcomes = Once(self._run_all)

    def _run_all(self) -> dict[tuple[Scene, Ears], list[Outcome]]:
        tasks = [Task(self._sizes, seed, *each) for seed in range(1, self._sizes.seeds + 1) for each in _RUNS]
        with workers(self._sizes.processes) as share:
            found = share(run_task, tasks)
        return {each: found[place :: len(_RUNS)] for place, each in enumerate(_RUNS)}

    def _difference(self, ours: tuple[Scene, Ears], theirs: tuple[Scene, Ears]) -> Reading:
        """Points of freshness between two runs in the same webs."""
        pairs = zip(self._outcomes()[ours], self._outcomes()[theirs], strict=True)
        gaps = [(one.freshness - other.freshness) / POINT for one, other in pairs]
        means = [np.mean([one.freshness for one in self._outcomes()[each]]) for each in (theirs, ours)]
        return Reading(float(np.mean(gaps)), None, f"{means[0]:.4f} against {means[1]:.4f}; {_spread(gaps)}")

    def read_honest(self) -> Reading:
        """Freshness with honest signals, less what the optimum would have."""
        found = self._outcomes()["honest", "learned"]
        gaps = [(one.freshness - one.optimum) / POINT for one in found]
        best, ours = np.mean([one.optimum for one in found]), np.mean([one.freshness for one in found])
        one = found[0]
        size = f"{one.pages:,} pages, {one.honest:,} of honest sites, {one.crawls:,} crawls, {one.told:,} announcements"
        return Reading(float(np.mean(gaps)), None, f"{best:.4f} against {ours:.4f}; {_spread(gaps)}; {size}")

    def read_gain(self) -> Reading:
        """What honest signals bring over silence, less what they bring the optimum."""
        honest, silent = self._outcomes()["honest", "learned"], self._outcomes()["silent", "learned"]
        found = [one.freshness - other.freshness for one, other in zip(honest, silent, strict=True)]
        best = [one.optimum - one.optimum_without for one in honest]
        gaps = [(ours - theirs) / POINT for ours, theirs in zip(found, best, strict=True)]
        return Reading(float(np.mean(gaps)), None, f"{np.mean(best):.4f} against {np.mean(found):.4f}; {_spread(gaps)}")

    def read_useless(self) -> Reading:
        """What listening to announcements at random times costs."""
        return self._difference(("useless", "learned"), ("silent", "learned"))

    def read_over_all(self) -> Reading:
        """Honest and useless sites: learned trust over fetching at once whatever is announced."""
        return self._difference(("mixture", "learned"), ("mixture", "all"))

    def read_over_none(self) -> Reading:
        """The same over being told nothing."""
        return self._difference(("mixture", "learned"), ("silent", "learned"))


def run_task(task: Task) -> Outcome:
    """Crawl a web whose sites tell of changes; what the copies were worth."""
    from recrawl.livingweb.world import MASS_EDITS_PER_DAY
    from recrawl.planning.solve import plan
    from recrawl.simulation.measures import measure
    from recrawl.tracker.newcomers import Wanted

    sizes = task.sizes
    world = calm_world(
        sizes.pages, sizes.hosts, task.seed, laws="poisson", decades=1.0, changes_per_day=sizes.changes_a_day
    )
    pages, urls = lasting_pages(world, sizes.days), list[str]()
    importance = np.random.default_rng([task.seed, 7]).uniform(0.0, 1.0, len(pages))
    truth = truth_of(world, pages, sizes.days, importance)
    rate = np.array([world.pages.rate[page] for page in pages]) + MASS_EDITS_PER_DAY
    hosts = np.array([world.pages.host[page] for page in pages], dtype=np.int64)
    said = draw_said(truth, rate, hosts, _MANNERS[task.scene], task.seed)

    def wanted(web: LivingWeb) -> list[Wanted]:
        urls.extend(web.url(page) for page in pages)
        return [Wanted(url, each) for url, each in zip(urls, importance.tolist(), strict=True)]

    living, budget = LivingRun(world, sizes.days, sizes.speedup), sizes.crawls_a_day * len(pages)
    teller = Teller(living, said, urls, wishes=task.ears == "all")
    # Each host is asked for its robots.txt once a day, which the plan knows nothing of.
    spent = budget + sizes.hosts
    log = log_of(crawl(living, lambda web, folder: _settings(spent, web, folder), wanted, teller), urls)
    columns = {"importance": importance, "change_rate": rate}
    noisy = {**columns, "recall": np.where(said.honest, RECALL, 0.0), "precision": np.where(said.honest, PRECISION, 1)}
    return Outcome(
        measure(truth, log, start=sizes.warm_up / sizes.crawls_a_day).freshness,
        plan(noisy, budget, "freshness", solver="signals").freshness,
        plan(columns, budget, "freshness").freshness,
        len(pages),
        int(said.honest.sum()),
        len(log.page),
        teller.told,
    )


def _settings(budget: float, web: LivingWeb, folder: str) -> Settings:
    from recrawl.tracker.discovery.rules import SignalRules
    from recrawl.tracker.settings import Settings
    from recrawl.web.egress import egress_policy

    return Settings(
        store=folder,
        budget_per_day=budget,
        burst=_HICCUP_DAYS * budget,
        objective="freshness",
        contact="https://example.org/bench",
        min_gap_s=0.0,
        max_in_flight=8,
        again_after_s=0.0,
        egress=egress_policy(allow=web.allow, resolve=web.resolve),
        signals=SignalRules(kinds=("webhook",)),
    )


def _spread(gaps: list[float]) -> str:
    """The points of each web."""
    return "by web " + ", ".join(f"{gap:+.2f}" for gap in gaps)


def main(seeds: int) -> None:
    """Print each measure for so many webs."""
    for measure in living_trust_measures(Sizes(seeds=seeds)):
        found = run(measure)
        sys.stdout.write(f"{measure.name}: {found.reading or found.reason}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]))
