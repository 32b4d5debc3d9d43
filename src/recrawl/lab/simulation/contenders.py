"""Every competitor by name, for the command line and for reports. Nothing is compiled until one crawls.

Names that end in `-known` are told true change rates, and the quality of signals where somebody knows it. All others
see what a crawler sees.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, NamedTuple

from recrawl.errors import InvalidInput
from recrawl.lab.peers.registry import PEERS, make_peer
from recrawl.lab.simulation.competitor import Competitor

KNOWN = "-known"


class _Contender(NamedTuple):
    summary: str
    make: Callable[[str], Competitor]


def _scheduler(**settings: Any) -> Callable[[str], Competitor]:
    def make(name: str) -> Competitor:
        from recrawl.lab.simulation.scheduler_run import SchedulerCompetitor
        from recrawl.lab.simulation.scheduler_run_settings import Settings

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


_TOLD = {"rates": "known", "hearing": "known"}

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

_POLICIES = {
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


def _summaries() -> dict[str, str]:
    own = {name: contender.summary for name, contender in _OWN.items()}
    policies = {}
    for name, summary in _POLICIES.items():
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
    if policy in _POLICIES or _APPROXIMATION.fullmatch(str(name)):
        told: dict[str, Any] = _TOLD if str(name).endswith(KNOWN) else {}
        return _scheduler(objective="freshness", policy=policy, batch=1, **told)(name)
    if name in PEERS:
        return make_peer(name)
    near = get_close_matches(str(name).lower(), CONTENDERS, n=1, cutoff=0.0)
    raise InvalidInput(f"is {name!r}, but there is none of that name; did you mean {near[0]!r}?", field="policy")
