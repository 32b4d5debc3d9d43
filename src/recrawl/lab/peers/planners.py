"""Policies that plan from time to time; between two plans the due-date engine keeps to the waits of the plan.

Plans are the optimum for evenly spaced crawls under the freshness objective (`recrawl.plan`), made with the change
rates as estimated by then. A small part of the budget is spread evenly, so that no page is lost sight of.

Learners of change rates crawl by the plan that is best for the rates learned so far:

learn-mle       maximum likelihood with one unseen changed and one unseen unchanged half-day, as LambdaCrawl's
                reference has it (Kolobov et al. 2019); then greedy
learn-moments   the method of moments (Upadhyay et al. 2020); then greedy
learn-lln       equal random crawls for a quarter of the time, law of large numbers, then the plan
learn-sa        the same with stochastic approximation (both Avrachenkov, Patil, Thoppe 2020)
threshold-known no learning: told the true rates, it is what learners could reach at best
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recrawl.lab.peers.rules import MIRROR_PROBE, MISSED, PLANNED, POISSON_PROBE, STEPS
from recrawl.lab.simulation.due_queue import Run
from recrawl.lab.worlds.world import CrawlLog, Ints, PageNumbers, World
from recrawl.learning.inputs import Flags
from recrawl.pages import Floats
from recrawl.planning.solve import plan

EXPLORED = 0.05
"""Share of the budget that is spread evenly."""

LEAST_RATE, MOST_RATE = 0.0005, 7.0
"""Limits of estimates, as in LambdaCrawl's reference; changes a day."""

_FEWEST_CRAWLS = 64


@dataclass(frozen=True, slots=True)
class Replanning:
    """Base of competitors that plan; they say what to do at the end of each stretch.

    Attributes:
        name: what reports call it.
        rounds: crawls per page between two plans.
    """

    name: str
    rounds: float = 0.5

    def crawl(self, world: World, budget: float, seed: int) -> CrawlLog:
        """Crawl a world from 0 to its horizon, at most `budget` crawls a day."""
        run = start_evenly(world, budget, seed, PLANNED)
        rates = 1.0 / run.queue.planned
        while run.serve(next_plan(run, self.rounds)):
            rates = self.estimate(run, rates)
            follow(run, optimal_rates(run, rates))
        return run.log()

    def estimate(self, run: Run, guess: Floats) -> Floats:
        """Change rates as of now; `guess` are those of the last stretch."""
        raise NotImplementedError


def next_plan(run: Run, rounds: float) -> int:
    """How many crawls will have been made at the next plan: so many rounds of the pages known by now."""
    return run.made + max(_FEWEST_CRAWLS, int(rounds * run.pages_known))


def start_evenly(world: World, budget: float, seed: int, kind: int, parameters: tuple[float, ...] = ()) -> Run:
    """Start with equal waits for all pages that are there."""
    from recrawl.lab.peers.rules import MOST_OVERDUE
    from recrawl.lab.simulation.due_queue import Rule, start_run

    there = max(int(np.count_nonzero(world.born <= 0)), 1)
    rule = Rule(kind, np.array(parameters, dtype=np.float64), MOST_OVERDUE, True)
    return start_run(world, rule, budget, seed, np.full(len(world), there / budget))


def optimal_rates(run: Run, change_rate: Floats, importance: Floats | None = None) -> Floats:
    """Crawl rates of known pages that are best for freshness at these change rates; 0 for others. O(n)."""
    importance = run.sight.importance if importance is None else importance
    known = np.flatnonzero(run.known())
    rates = np.zeros(len(change_rate))
    if len(known):
        columns = {
            "importance": importance[known],
            "change_rate": change_rate[known],
            "min_rate": np.full(len(known), EXPLORED * run.slots.budget / len(known)),
        }
        rates[known] = plan(columns, budget=run.slots.budget, objective="freshness", solver="even").rates
    return rates


def follow(run: Run, rates: Floats) -> None:
    """Keep to these crawl rates from now on: each page is due a wait after its last crawl. O(n log n)."""
    waits = np.full(len(rates), math.inf)
    np.divide(1.0, rates, out=waits, where=rates > 0)
    unknown = ~run.known()
    waits[unknown] = max(int(np.count_nonzero(~unknown)), 1) / run.slots.budget
    run.queue.planned[:] = waits
    run.replan(run.queue.last + waits)


_UNSEEN_DAYS = 0.5
_EXPLORING = 0.25  # of the crawls
_STEP_EXPONENT = 0.75
_LEAST_APPROXIMATION = 0.01  # of the crawl rate
_PRIOR_VISITS = 1.0


def learned_from_gaps(run: Run, moments: bool) -> Floats:
    """Estimates from all crawls so far. O(crawls · log crawls)."""
    made, crawls = run.made, run.crawls
    return estimates(crawls.page[:made], crawls.gap[:made], crawls.changed[:made], len(run.sight.importance), moments)


def estimates(page: PageNumbers, gap: Floats, changed: Flags, pages: int, moments: bool) -> Floats:
    """Change rates of so many pages from crawls in order of time, within the limits of estimates.

    A gap of 0 days is a first crawl and says nothing. By the method of moments, or by maximum likelihood with one
    changed and one unchanged half-day that were not seen; both as in `recrawl.learning.rates`.
    """
    from recrawl.learning.rates import moment_rates, smoothed_rates

    rows = np.flatnonzero(gap > 0.0)
    rows = rows[np.argsort(page[rows], kind="stable")]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(page[rows], minlength=pages))]).astype(np.int64)
    if moments:
        rates = moment_rates(offsets, gap[rows], changed[rows])
    else:
        rates = smoothed_rates(offsets, gap[rows], changed[rows], _UNSEEN_DAYS)
    return np.clip(rates, LEAST_RATE, MOST_RATE)


@dataclass(frozen=True, slots=True)
class LearnMle(Replanning):
    """Maximum likelihood with a prior."""

    def estimate(self, run: Run, guess: Floats) -> Floats:  # noqa: ARG002 - it starts from nothing
        """Estimates from all crawls so far. O(crawls)."""
        return learned_from_gaps(run, moments=False)


@dataclass(frozen=True, slots=True)
class LearnMoments(Replanning):
    """The method of moments."""

    def estimate(self, run: Run, guess: Floats) -> Floats:  # noqa: ARG002 - it starts from nothing
        """Estimates from all crawls so far. O(crawls)."""
        return learned_from_gaps(run, moments=True)


@dataclass(frozen=True, slots=True)
class Told(Replanning):
    """Told the true rates."""

    def estimate(self, run: Run, guess: Floats) -> Floats:  # noqa: ARG002 - nothing to guess
        """The true rates."""
        return run.sight.rate


@dataclass(frozen=True, slots=True)
class ExploreThenCommit(Replanning):
    """Crawls at random with equal rates, estimates once, and keeps to the plan for that.

    Attributes:
        approximate: whether to take stochastic approximation rather than the law of large numbers.
    """

    approximate: bool = False

    def crawl(self, world: World, budget: float, seed: int) -> CrawlLog:
        """Crawl a world from 0 to its horizon, at most `budget` crawls a day."""
        parameters = (_STEP_EXPONENT, _LEAST_APPROXIMATION)
        run = start_evenly(world, budget, seed, POISSON_PROBE, parameters)
        crawl_rate = 1.0 / run.queue.planned
        going = run.serve(int(_EXPLORING * run.slots.last))
        rates = self.estimate(run, crawl_rate)
        run.rule = run.rule._replace(kind=PLANNED)
        while going:  # new pages come in at every plan
            follow(run, optimal_rates(run, rates))
            going = run.serve(next_plan(run, self.rounds))
        return run.log()

    def estimate(self, run: Run, guess: Floats) -> Floats:
        """Estimates from what the probes left; `guess` holds the crawl rates. The mean where there were none."""
        from recrawl.lab.peers.rules import APPROXIMATED, CHANGED, VISITS

        changed, visits = run.queue.own[:, CHANGED], run.queue.own[:, VISITS]
        rates = guess * changed / (visits + _PRIOR_VISITS - changed)
        if self.approximate:
            rates = run.queue.own[:, APPROXIMATED].copy()
        rates = np.clip(rates, LEAST_RATE, MOST_RATE)
        seen = visits > 0
        rates[~seen] = rates[seen].mean() if seen.any() else LEAST_RATE
        return rates


_STRATEGIES = 4
_MIXED = 0.1  # share of choices made evenly


@dataclass(frozen=True, slots=True)
class Exp3:
    """A bandit over strategies (Han et al. 2020, with the EXP3 of Auer et al. 2002): each stretch is crawled by one.

    Strategies: all pages alike, by change rate, by importance, the optimal plan; rates are learned by maximum
    likelihood in all of them. The reward of a stretch is what a crawler sees of its success: the share of its crawls,
    weighted by importance, that found a change.

    Chooses one of four strategies for each stretch of crawls, by how they fared before.
    """

    name: str = "exp3"
    rounds: float = 0.5

    def crawl(self, world: World, budget: float, seed: int) -> CrawlLog:
        """Crawl a world from 0 to its horizon, at most `budget` crawls a day."""
        run = start_evenly(world, budget, seed, PLANNED)
        random = np.random.Generator(np.random.PCG64([seed, 3]))
        rates = 1.0 / run.queue.planned
        gains = np.zeros(_STRATEGIES)
        chosen, since = 0, 0
        chances = np.full(_STRATEGIES, 1.0 / _STRATEGIES)
        while run.serve(next_plan(run, self.rounds)):
            gains[chosen] += _MIXED * reward(run, since) / (_STRATEGIES * chances[chosen])
            weights = np.exp(gains - gains.max())
            chances = (1.0 - _MIXED) * weights / weights.sum() + _MIXED / _STRATEGIES
            chosen, since = int(random.choice(_STRATEGIES, p=chances)), run.made
            rates = learned_from_gaps(run, moments=False)
            follow(run, strategy_rates(chosen, run, rates))
        return run.log()


def reward(run: Run, since: int) -> float:
    """The share of crawls since then, by importance, that found a change. O(crawls since then)."""
    stretch = slice(since, run.made)
    weight = run.sight.importance[run.crawls.page[stretch]]
    total = float(weight.sum())
    return float(weight[run.crawls.changed[stretch]].sum()) / total if total > 0 else 0.0


def strategy_rates(strategy: int, run: Run, change_rate: Floats) -> Floats:
    """Crawl rates of known pages by a strategy."""
    if strategy == _STRATEGIES - 1:
        return optimal_rates(run, change_rate)
    column = (np.ones(len(change_rate)), change_rate, run.sight.importance)[strategy]
    weight = np.where(run.known(), column, 0.0)
    return run.slots.budget * weight / max(float(weight.sum()), math.ulp(0.0))


@dataclass(frozen=True, slots=True)
class Whittle:
    """The Whittle index for ephemeral content (Avrachenkov and Borkar 2018): changes are items whose worth decays.

    Items come at the page's true change rate and are worth its importance at first; a crawl collects what is left of
    those since the last one. In continuous time the value that waits at age a is X = gain/decay · (1 − e^(−decay·a)),
    with gain = rate · importance, and the index is X less a times its slope: gain/decay · (1 − (1 +
    decay·a)·e^(−decay·a)). That is the freshness index of a page of importance `gain` that changes at rate `decay`, so
    its plan is the freshness plan for these. The scheduler's objective `news` sells by the same index.

    Crawls at the waits at which all indices are equal.

    Attributes:
        name: what reports call it.
        decay: of the worth of an item, a day.
        rounds: crawls per page between two plans, which take in new pages.
    """

    name: str = "whittle-known"
    decay: float = 1.0
    rounds: float = 0.5

    def crawl(self, world: World, budget: float, seed: int) -> CrawlLog:
        """Crawl a world from 0 to its horizon, at most `budget` crawls a day."""
        run = start_evenly(world, budget, seed, PLANNED)
        gain = run.sight.rate * run.sight.importance
        decay = np.full(len(gain), self.decay)
        while run.serve(next_plan(run, self.rounds)):
            follow(run, optimal_rates(run, decay, gain))
        return run.log()


_PROBING = 0.05
_STEP = 2.7
_MEAN_RATE, _LOWEST, _HIGHEST = 0.4, 0.025, 3.0
_BISECTIONS = 80


@dataclass(frozen=True, slots=True)
class MirrorSync:
    """MirrorSync (Kolobov, Bubeck, Zimmert 2020): mirror descent on crawl rates, without a model of change.

    A round is as long as the wait of a page at the lowest rate. At its end the slopes that the probes found
    (`rules.py`) move the rates: r ← r / (1 + r·(step·slope + ν)), within limits, with ν such that the budget is
    kept. Parameters are the reference's: ε 0.05, step 2.7, rates from 1/16 to 7.5 of the mean, which is its budget of
    0.4 a page with rates from 0.025 to 3. Importance counts relative to its mean.

    Learns crawl rates round by round.
    """

    name: str = "mirror-sync"

    def crawl(self, world: World, budget: float, seed: int) -> CrawlLog:
        """Crawl a world from 0 to its horizon, at most `budget` crawls a day."""
        run = start_evenly(world, budget, seed, MIRROR_PROBE, (_PROBING,))
        rates = np.full(len(world), _MEAN_RATE / (1.0 + _PROBING))
        while run.serve(next_plan(run, _MEAN_RATE / _LOWEST)):
            known = run.known()
            if not known.any():
                continue
            rates[known] = mirror_step(rates[known], slopes(run.queue.own, run.sight.importance, rates, known))
            run.queue.own[:] = 0.0
            unit = budget / (_MEAN_RATE * np.count_nonzero(known))  # crawls a day
            follow(run, np.where(known, rates * unit, 0.0))
        return run.log()


def slopes(own: Floats, importance: Floats, rates: Floats, known: NDArray[np.bool_]) -> Floats:
    """How the cost of each known page rises with its crawl rate (it falls: below 0), as probes found it."""
    own, importance, rates = own[known], importance[known], rates[known]
    weight = importance / max(float(importance.mean()), np.finfo(np.float64).tiny)
    return weight * own[:, MISSED] / (_PROBING * rates * np.maximum(own[:, STEPS], 1.0))


def mirror_step(rates: Floats, slope: Floats) -> Floats:
    """Rates after a step of mirror descent, with the mean that leaves room for probes. O(n)."""
    mean = _MEAN_RATE / (1.0 + _PROBING)
    inverse = 1.0 / rates + _STEP * slope
    low, high = 1.0 / _HIGHEST - inverse.max(), 1.0 / _LOWEST - inverse.min()
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        if _moved(inverse + middle).mean() > mean:
            low = middle
        else:
            high = middle
    return _moved(inverse + high)


def _moved(inverse: Floats) -> Floats:
    return 1.0 / np.clip(inverse, 1.0 / _HIGHEST, 1.0 / _LOWEST)


_CYCLE = 0.5  # crawls per page
_SAMPLE = 10


@dataclass(frozen=True, slots=True)
class ChoNtoulas:
    """Sampling by site (Cho and Ntoulas 2002): no history, only samples.

    A cycle spends half a crawl for each known page. First some pages of each site are crawled, drawn by seed: ten, or
    fewer where there are many sites, so that samples take at most half of the cycle. The rest goes greedily to the
    sites with the largest share of changed samples, oldest copies first. A site is a host; without hosts it is the
    first folder of the page's name; without names all pages are one site.

    Crawls samples of all sites, then the sites whose samples changed most.
    """

    name: str = "cho-ntoulas"

    def crawl(self, world: World, budget: float, seed: int) -> CrawlLog:
        """Crawl a world from 0 to its horizon, at most `budget` crawls a day. O(n log n) a cycle."""
        run = start_evenly(world, budget, seed, PLANNED)
        run.queue.planned[:] = math.inf
        random = np.random.Generator(np.random.PCG64([seed, 2]))
        site = sites_of(world)
        share = np.zeros(int(site.max(initial=-1)) + 1)
        going = True
        while going:
            known = np.flatnonzero(run.known())
            cycle = max(1, int(_CYCLE * len(known)))
            sample = draw_sample(site[known], cycle, random)
            since = run.made
            going = _crawl_in_order(run, known[sample])
            if not going or not len(known):
                continue
            update_shares(share, site, run, since)
            rest = np.setdiff1d(known, run.crawls.page[since : run.made])
            order = np.lexsort((rest, run.queue.last[rest], -share[site[rest]]))
            going = _crawl_in_order(run, rest[order[: max(cycle - len(sample), 1)]])
        return run.log()


def sites_of(world: World) -> Ints:
    """The number of each page's site."""
    if world.hosts is not None:
        return np.asarray(world.hosts.number, dtype=np.int64)
    if world.page_names is not None:
        folders = [name.lstrip("/").partition("/")[0] for name in world.page_names]
        return np.unique(np.array(folders, dtype=np.str_), return_inverse=True)[1].astype(np.int64)
    return np.zeros(len(world), dtype=np.int64)


def draw_sample(site: Ints, cycle: int, random: np.random.Generator) -> Ints:
    """Positions of a few pages of each site, in random order; at most half a cycle. O(n log n)."""
    chance = random.random(len(site))
    order = np.lexsort((chance, site))
    first = np.flatnonzero(np.diff(site[order], prepend=-1))
    rank = np.arange(len(site)) - np.repeat(first, np.diff(np.append(first, len(site))))
    most = max(1, cycle // 2)
    each = min(max(most // max(len(first), 1), 1), _SAMPLE)
    drawn = order[rank < each]
    return drawn[np.argsort(random.random(len(drawn)))][:most]


def update_shares(share: Floats, site: Ints, run: Run, since: int) -> None:
    """The share of pages that had changed among those crawled since then; sites without any keep theirs."""
    pages = run.crawls.page[since : run.made]
    crawled = np.bincount(site[pages], minlength=len(share))
    changed = np.bincount(site[pages], weights=run.crawls.changed[since : run.made], minlength=len(share))
    np.divide(changed, crawled, out=share, where=crawled > 0)


def _crawl_in_order(run: Run, pages: Ints) -> bool:
    due = np.full(len(run.queue.last), math.inf)
    due[pages] = run.now + np.arange(len(pages))  # only their order counts
    run.replan(due)
    return run.serve(run.made + max(len(pages), 1))
