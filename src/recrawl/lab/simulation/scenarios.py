"""Every competitor by name, for the command line and for reports. Nothing is compiled until one crawls.

Names that end in `-known` are told true change rates, and the quality of signals where somebody knows it. All others
see what a crawler sees.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from recrawl.errors import InvalidInput
from recrawl.lab.peers.registry import PEERS, make_peer
from recrawl.lab.simulation.compare import seeds_of
from recrawl.lab.simulation.policy import Competitor

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recrawl.lab.worlds.auctions import Changes

KNOWN = "-known"


_TOLD = {"rates": "known", "hearing": "known"}

_CONTENDERS_POLICIES = {
    "argmax": "the page worth most, by an exact search",
    "greedy": "the exact search for freshness without signals",
    "greedy-cis": "the same, believing every signal",
    "greedy-cis+": "the same, believing good signals",
    "greedy-ncis": "the same, signals counting for what they are worth",
    "ncis-approx-1": "greedy-ncis with one term",
    "ncis-approx-2": "greedy-ncis with two terms",
    "edf": "rates for random times, earliest deadline first",
    "lds": "even rates with low discrepancy",
    "poisson": "rates for random times, in random order",
}
_APPROXIMATION = re.compile(r"ncis-approx-[1-9][0-9]{0,5}(-known)?")

NEWS_SUMMARIES = {
    "market": "whatever is worth most, a source or a new page, if it is worth the price",
    "echo-newpages": "all new pages first, then the source most behind its interval (ECHO, Lefortier et al. 2013)",
    "echo-schedule": "sources whose interval has passed, then new pages, newest first (ECHO)",
    "echo-greedy": "the source with most hits waiting, after it all its new pages (ECHO)",
    "fixed-quota": "half of the crawls for sources on ECHO's schedule, half for new pages, newest first",
    "frequency": "as echo-schedule, but all sources are worth the same",
    "bfs": "sources in a fixed order, after each all its new pages",
}
"""Policies of `discovery.py`, each with a line that says what it is."""

_MOST_SITE_DAYS = 20_000  # sites times days; the paper has 3,150

Beliefs = Literal["uncertain", "known", "none"]

INSTANTS_A_DAY = 1440
FALSE_SHARE, SPREAD = 0.1, 2.0
"""What beliefs are like: one in ten is false, and they are spread by two minutes (WIC, figures 7 to 9)."""

_URGENCIES = (0.5, 0.9)  # that utilities are told for
_MOST_CELLS = 30_000_000  # pages times instants


class _Contender(NamedTuple):
    summary: str
    make: Callable[[str], Competitor]


def _scheduler(**settings: Any) -> Callable[[str], Competitor]:
    def make(name: str) -> Competitor:
        from recrawl.lab.simulation.scheduler_run import SchedulerCompetitor, Settings

        return SchedulerCompetitor(name, Settings(**settings))

    return make


def _fixed(**settings: Any) -> Callable[[str], Competitor]:
    def make(name: str) -> Competitor:
        from recrawl.lab.simulation.fixed_rates import FixedRates

        return FixedRates(name=name, **settings)

    return make


def _round_robin(name: str) -> Competitor:
    from recrawl.lab.simulation.fixed_rates import RoundRobin

    return RoundRobin(name)


def _argmax_mle(name: str) -> Competitor:
    from recrawl.lab.simulation.contenders_mle import ArgmaxMle

    return ArgmaxMle(name)


_OWN = {
    "recrawl": _Contender("the scheduler for freshness, everything learned", _scheduler(objective="freshness")),
    "recrawl-harmonic": _Contender("the scheduler for harmonic cost, everything learned", _scheduler()),
    "recrawl-deaf": _Contender(
        "the scheduler for freshness, not hearing signals", _scheduler(objective="freshness", hearing="nothing")
    ),
    "recrawl-known": _Contender("the scheduler for freshness, told all", _scheduler(objective="freshness", **_TOLD)),
    "recrawl-harmonic-known": _Contender("the scheduler for harmonic cost, told all", _scheduler(**_TOLD)),
    "argmax-mle": _Contender("plain maximum likelihood by page, exact greedy choice for freshness", _argmax_mle),
    "round-robin": _Contender("the oldest copy first, new pages before all", _round_robin),
    "plan-known": _Contender("the even optimum for freshness, evenly spaced", _fixed(by="plan")),
    "plan-harmonic-known": _Contender(
        "the even optimum for harmonic cost, evenly spaced", _fixed(by="plan", objective="harmonic")
    ),
    "plan-azar-known": _Contender(
        "the optimum for random times, at random times (Azar et al. 2018)",
        _fixed(by="plan", solver="azar", at_random=True),
    ),
    "plan-lambdacrawl-known": _Contender(
        "LambdaCrawl's rates at random times (Kolobov et al. 2019)",
        _fixed(by="plan", objective="harmonic", solver="lambdacrawl", at_random=True),
    ),
}


def _summaries() -> dict[str, str]:
    own = {name: contender.summary for name, contender in _OWN.items()}
    policies = {}
    for name, summary in _CONTENDERS_POLICIES.items():
        policies[name] = f"{summary}; rates learned"
        policies[name + KNOWN] = f"{summary}; told all"
    return {**PEERS, **policies, **own}


CONTENDERS: dict[str, str] = _summaries()
"""All names, each with a line that says what it is; `ncis-approx-j` takes any whole number of terms."""


def make_contender(name: str) -> Competitor:
    """Make the competitor of this name.

    >>> make_contender("round-robin").name
    'round-robin'

    Raises:
        InvalidInput: if there is none, naming the nearest.
    """
    if name in _OWN:
        return _OWN[name].make(name)
    policy = str(name).removesuffix(KNOWN)
    if policy in _CONTENDERS_POLICIES or _APPROXIMATION.fullmatch(str(name)):
        told: dict[str, Any] = _TOLD if str(name).endswith(KNOWN) else {}
        return _scheduler(objective="freshness", policy=policy, batch=1, **told)(name)
    if name in PEERS:
        return make_peer(name)
    near = get_close_matches(str(name).lower(), CONTENDERS, n=1, cutoff=0.0)
    raise InvalidInput(f"is {name!r}, but there is none of that name; did you mean {near[0]!r}?", field="policy")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewsTrial:
    """News repeated: policies on graphs of sources and new pages, for `compare`. Nothing is compiled until one crawls.

    What is repeated; see `compare.Repeated`.

    Attributes:
        names: of the policies.
        sites: each has 20 sources.
        days: how long pages appear.
        budget: crawls a day, of sources and new pages together.
        learning: share of the days that is not measured.
        repetitions: how often.
        seed: the first seed.
    """

    names: tuple[str, ...]
    sites: int
    days: float
    budget: float
    learning: float
    repetitions: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        for name in self.names:
            if name not in NEWS_SUMMARIES:
                near = get_close_matches(name.lower(), NEWS_SUMMARIES, n=1, cutoff=0.5)
                hint = f"did you mean {near[0]!r}?" if near else f"use {', '.join(NEWS_SUMMARIES)}"
                raise InvalidInput(f"is {name!r}, but news has none of that name; {hint}", field="policy")
        if self.sites * self.days > _MOST_SITE_DAYS:
            problem = f"{self.sites:,} sites over {self.days:g} days are more than fit: give fewer pages or days"
            raise InvalidInput(problem)

    def repeat(self, number: int) -> list[dict[str, float]]:
        """One graph: the numbers of each policy."""
        from recrawl.lab.simulation.news import NewsRun, run_news
        from recrawl.lab.worlds.news import news_world

        world_seed, crawl_seed = seeds_of(self.seed, number)
        world = news_world(self.sites, self.days, world_seed)
        runs: list[NewsRun] = [
            replace(run_news(world, name, self.budget, crawl_seed), learning=self.learning) for name in self.names
        ]
        return [
            {
                "hits_captured": run.share_of_bound,
                "hits_per_day": run.hits_per_day,
                "delay": run.delay,
                "pages_crawled": run.pages_crawled,
                "on_sources": run.source_crawls / max(run.source_crawls + run.page_crawls, 1),
                "crawls": float(run.source_crawls + run.page_crawls),
            }
            for run in runs
        ]


class _Monitor(NamedTuple):
    """How a policy chooses: for this urgency, by beliefs that are uncertain, the truth, or the same for every page."""

    summary: str
    urgency: float
    beliefs: Beliefs = "uncertain"


_MONITORING_TRIAL_POLICIES = {
    "wic-1": _Monitor("WIC for completeness: a bid is worth the same whenever it is seen", 1.0),
    "wic-0.9": _Monitor("WIC, a bid loses a tenth of its worth each minute", 0.9),
    "wic-0.5": _Monitor("WIC, a bid loses half of its worth each minute", 0.5),
    "wic-0": _Monitor("WIC for timeliness: a bid is worth something only in its own minute", 0.0),
    "wic-1-known": _Monitor("WIC for completeness, told every bid", 1.0, "known"),
    "wic-0-known": _Monitor("WIC for timeliness, told every bid", 0.0, "known"),
    "round-robin": _Monitor("the page that was crawled longest ago", 1.0, "none"),
}

MONITORING_SUMMARIES = {name: policy.summary for name, policy in _MONITORING_TRIAL_POLICIES.items()}
"""Policies, each with a line that says what it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuctionTrial:
    """Auctions repeated: who captures bids as they come, for `compare`. Nothing is compiled until one crawls.

    An instant is a minute. Policies believe in probabilities of change that are partly wrong and spread in time, as
    WIC's (Pandey et al. 2004); those whose name ends in `-known` are told every change, and round robin needs no
    beliefs. Bids append: each that is seen in the end counts as captured, with the delay since it was made.

    What is repeated; see `compare.Repeated`.

    Attributes:
        names: of the policies.
        pages: auctions, each a page.
        days: how long, of 1,440 minutes each.
        budget: crawls a day.
        repetitions: how often.
        seed: the first seed.
    """

    names: tuple[str, ...]
    pages: int
    days: float
    budget: float
    repetitions: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        for name in self.names:
            if name not in _MONITORING_TRIAL_POLICIES:
                near = get_close_matches(name.lower(), _MONITORING_TRIAL_POLICIES, n=1, cutoff=0.5)
                hint = f"did you mean {near[0]!r}?" if near else f"use {', '.join(_MONITORING_TRIAL_POLICIES)}"
                raise InvalidInput(f"is {name!r}, but auctions have none of that name; {hint}", field="policy")
        if self.pages * self.instants > _MOST_CELLS:
            problem = f"{self.pages:,} auctions over {self.days:g} days are more than fit: give fewer pages or days"
            raise InvalidInput(problem)

    @property
    def instants(self) -> int:
        """Minutes, at least one."""
        return max(round(self.days * INSTANTS_A_DAY), 1)

    def repeat(self, number: int) -> list[dict[str, float]]:
        """One time of auctions: the numbers of each policy."""
        from recrawl.lab.simulation.auctions import Rule, monitor
        from recrawl.lab.worlds.auctions import auction_changes

        world_seed, belief_seed = seeds_of(self.seed, number)
        changes = auction_changes(self.pages, self.instants, world_seed)
        policies = [_MONITORING_TRIAL_POLICIES[name] for name in self.names]
        believed = {
            beliefs: _believed(changes, beliefs, belief_seed) for beliefs in {each.beliefs for each in policies}
        }
        numbers = []
        for policy in policies:
            rule = Rule(overwrites=False, urgency=policy.urgency)
            captured = monitor(changes, believed[policy.beliefs], self.budget / INSTANTS_A_DAY, rule)
            numbers.append(
                {
                    "completeness": captured.completeness,
                    "timely": captured.timely,
                    "delay": captured.delay,
                    **{f"utility_{urgency:g}": captured.utility(urgency) for urgency in _URGENCIES},
                    "changes": float(captured.changes),
                }
            )
        return numbers


def _believed(changes: Changes, beliefs: Beliefs, seed: int) -> NDArray[np.float32]:
    """Probabilities of change, instants × pages."""
    import numpy as np

    from recrawl.lab.worlds.auctions import believed_probabilities

    if beliefs == "known":
        return changes.astype(np.float32)
    if beliefs == "none":  # then the page that was left alone for longest is worth most
        return np.ones(changes.shape, dtype=np.float32)
    return believed_probabilities(changes, FALSE_SHARE, SPREAD, seed)
