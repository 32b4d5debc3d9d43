"""What a snapshot keeps of a scheduler: facts, which are plain values by name, and arrays. Pure.

Kept is everything that decides what the scheduler does next: pages with what is learned of them, hosts, signals, the
budget's tokens, the clock, counts, settings, and the lists and prices of the policy `price`. With that policy, and with
all that value every page each time, a restored scheduler does exactly what the other would have done. Policies that
follow a plan (`edf`, `lds`, `poisson`) make their plan anew and begin it from the start.
"""

# ruff: noqa: SLF001 - the one module that looks into the scheduler and its parts, so that they need no doors for it

from __future__ import annotations

import math
from dataclasses import asdict, fields
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.learning.filter_memory import Memory, check_memory
from recrawl.learning.filter_state import PAGE_STATE, empty_state
from recrawl.learning.prior import RatePrior
from recrawl.learning.rate_grid import RateGrid
from recrawl.pages import LARGEST, SMALLEST
from recrawl.scheduling.budget import TURN
from recrawl.scheduling.columns import PageObjective
from recrawl.scheduling.market_checks import check_host_links, check_market
from recrawl.scheduling.market_state import DESK
from recrawl.scheduling.policies.by_price import ByPrice
from recrawl.scheduling.scheduler import Scheduler
from recrawl.scheduling.snapshot_checks import Extents, check_flights, check_hosts, check_pages
from recrawl.scheduling.snapshot_facts import Facts, plain
from recrawl.scheduling.table.pages import aligned_records
from recrawl.scheduling.table.records import (
    AT_HOST,
    FLIGHT,
    HELD,
    HOST,
    LIMITS,
    PAGE,
    QUEUED,
    READY,
    SIGNALS,
    STANDING,
    HostName,
)
from recrawl.scheduling.table.signals import MOST_KINDS
from recrawl.scheduling.types import Counts, Tuning

Arrays = dict[str, NDArray[Any]]


class Form(NamedTuple):
    """What an array of a snapshot is made of."""

    dtype: np.dtype[Any]
    dimensions: int = 1


FORMS = {
    "pages": Form(PAGE),
    "limits": Form(LIMITS),
    "signals": Form(SIGNALS),
    "beliefs": Form(PAGE_STATE),
    "hosts": Form(HOST),
    "flights": Form(FLIGHT),
    "profiles": Form(np.dtype(np.float32), 2),
    "prior": Form(np.dtype(np.float64), 2),
    "desk": Form(DESK),
    "agenda": Form(np.dtype(np.int32), 2),
    "heads": Form(np.dtype(np.int32)),
    "bits": Form(np.dtype(np.uint64)),
}
"""The arrays that a snapshot may hold, by name."""

_ALWAYS = ("pages", "limits", "signals", "beliefs", "hosts", "flights", "profiles")
_MARKET = ("desk", "agenda", "heads", "bits")
_MOST_COUNTED = 2**62
_LATER_COUNTS = ("seen",)  # that earlier snapshots do not have


def keep(scheduler: Scheduler) -> tuple[dict[str, Any], Arrays]:
    """The facts and arrays of a scheduler; arrays are not copied. O(hosts)."""
    table, bucket, policy, tuning = scheduler._table, scheduler._bucket, scheduler._policy, scheduler._tuning
    used = table.used
    arrays: Arrays = {
        "pages": table.pages[:used],
        "limits": table.limits[:used],
        "signals": table.signals[:used],
        "beliefs": table.beliefs[:used],
        "hosts": table.hosts.records,
        "flights": table.flights,
        "profiles": scheduler._kinds.profiles,
    }
    facts: dict[str, Any] = {
        "objective": scheduler._objective,
        "policy": scheduler._policy_name,
        "seed": scheduler._seed,
        "now": scheduler._now,
        "budget": bucket.rate,
        "burst": bucket.burst,
        "tokens": plain(bucket.tokens),
        "filled": bucket.filled,
        "clock": bucket.clock,
        "counts": asdict(scheduler.counts),
        "live": table.live,
        "first_free": int(table._first_free),
        "least_cost": table.least_cost,
        "hosts": table.hosts.names,
        "kinds": scheduler._kinds.names,
        "tuning": _keep_tuning(tuning),
    }
    if tuning.prior is not None:
        arrays["prior"] = np.vstack([tuning.prior.weights, tuning.prior.host_weights])
    if isinstance(policy, ByPrice):
        arrays |= policy.state()
        facts["market"] = {"budget": policy._built_budget, "latest": policy._latest}
    else:
        facts["price"] = float(policy.state()["price"][0])
    return facts, arrays


def put_back(facts: Facts, arrays: Arrays) -> Scheduler:
    """The scheduler with these facts and arrays, which it owns from then on. O(pages + hosts).

    Raises:
        InvalidInput: if they do not fit each other.
    """
    scheduler = Scheduler(
        budget=facts.number("budget", 0.0, LARGEST),
        objective=cast(PageObjective, facts.text("objective")),  # the scheduler checks it
        now=facts.number("now", -LARGEST, LARGEST),
        burst=facts.number("burst", SMALLEST, LARGEST),
        seed=facts.whole("seed", 0, 2**63 - 1),
        policy=facts.text("policy"),
        tuning=_tuning(facts.part("tuning"), arrays.get("prior")),
    )
    _check_names(scheduler, arrays)
    bucket = scheduler._bucket
    bucket.tokens = facts.number("tokens", -math.inf, bucket.burst)
    bucket._filled = facts.number("filled", -LARGEST, scheduler.now)
    bucket.clock = facts.whole("clock", 0, TURN - 1)
    counts = facts.part("counts")
    counted = [field.name for field in fields(Counts) if field.name not in _LATER_COUNTS or counts.has(field.name)]
    scheduler.counts = Counts(**{name: counts.whole(name, 0, _MOST_COUNTED) for name in counted})
    _put_back_hosts(scheduler, facts.names("hosts"), arrays)
    _put_back_kinds(scheduler, facts.names("kinds"), arrays)
    _put_back_pages(scheduler, facts, arrays)
    if len(scheduler._table.beliefs):
        scheduler._get_learner()
    if isinstance(scheduler._policy, ByPrice):
        _put_back_market(scheduler, facts.part("market"), arrays)
    else:
        _put_back_exact(scheduler, facts)
    return scheduler


def _keep_tuning(tuning: Tuning) -> dict[str, Any]:
    prior = tuning.prior
    kept: dict[str, Any] = {
        "signal_delay": tuning.signal_delay,
        "shortest_retry": tuning.shortest_retry,
        "longest_retry": tuning.longest_retry,
        "half_life": plain(tuning.memory.half_life),
        "notices_turns": bool(tuning.memory.notices_turns),
    }
    if prior is not None:
        rows = {name: row for key, row in prior.host_rows.items() if (name := _host_name(key)) is not None}
        grid = {"lowest": prior.grid.lowest, "step": prior.grid.step, "points": prior.grid.points}
        kept["prior"] = {**grid, "hosts": list(rows), "rows": list(rows.values())}
    return kept


def _host_name(key: Any) -> HostName | None:
    """The name of a host that a prior knows, as the scheduler would have it; None: no host of its can have it."""
    if isinstance(key, np.generic):
        key = key.item()
    if isinstance(key, (bool, float)) and key == key // 1:
        key = int(key)
    return key if isinstance(key, (str, int)) else None


def _tuning(kept: Facts, weights: NDArray[Any] | None) -> Tuning:
    memory = Memory(kept.number("half_life", SMALLEST, math.inf), kept.whole("notices_turns", 0, 1) == 1)
    prior = None
    if weights is not None:
        known = kept.part("prior")
        points = known.whole("points", 2, 2**31)
        grid = RateGrid(known.number("lowest", SMALLEST, LARGEST), known.number("step", 0.0, LARGEST), points)
        names, rows = known.names("hosts"), known.whole_numbers("rows", 0, len(weights) - 2)
        if weights.shape[1] != points or not len(weights) or len(names) != len(rows):
            raise InvalidInput("is damaged: the prior of change rates does not fit its grid or hosts")
        if not ((weights >= 0) & (weights <= LARGEST)).all():
            raise InvalidInput("is damaged: the prior of change rates has impossible weights")
        prior = RatePrior(grid, weights[0], weights[1:], dict(zip(names, rows, strict=True)))
    delay, shortest, longest = (
        kept.number(name, 0.0, LARGEST) for name in ("signal_delay", "shortest_retry", "longest_retry")
    )
    return Tuning(delay, shortest, longest, prior, check_memory(memory))


def _check_names(scheduler: Scheduler, arrays: Arrays) -> None:
    needed = {*_ALWAYS, *(_MARKET if isinstance(scheduler._policy, ByPrice) else ())}
    if missing := needed - arrays.keys():
        raise InvalidInput(f"is damaged: it has no {', '.join(sorted(missing))}")


def _put_back_hosts(scheduler: Scheduler, names: list[HostName], arrays: Arrays) -> None:
    records = arrays["hosts"]
    if len(names) != len(records) or len(set(names)) != len(names):
        raise InvalidInput("is damaged: hosts and their names do not fit each other")
    check_hosts(records)
    scheduler._table.hosts.resume(names, records)


def _put_back_kinds(scheduler: Scheduler, names: list[HostName], arrays: Arrays) -> None:
    profiles = arrays["profiles"]
    kinds = [name for name in names if isinstance(name, str)]
    distinct = len({row.tobytes() for row in profiles}) == len(profiles)
    if len(set(kinds)) != len(names) or len(names) > MOST_KINDS or not distinct:
        raise InvalidInput("is damaged: its kinds of signals are not what they can be")
    if profiles.shape[1] != len(kinds) or not ((profiles >= 0) & (profiles <= 1)).all():
        raise InvalidInput("is damaged: what pages think of kinds of signals is not what it can be")
    scheduler._kinds.resume(kinds, profiles)


def _put_back_pages(scheduler: Scheduler, facts: Facts, arrays: Arrays) -> None:
    table = scheduler._table
    used = len(arrays["pages"])
    for name in ("limits", "signals", "beliefs"):
        if len(arrays[name]) not in (0, used):
            raise InvalidInput(f"is damaged: it has {used} pages, but {len(arrays[name])} {name}")
    table.pages, table.limits, table.signals = arrays["pages"], arrays["limits"], arrays["signals"]
    table.beliefs = arrays["beliefs"] if len(arrays["beliefs"]) else empty_state(0)
    table.flights = arrays["flights"]
    table.used, table.live = used, facts.whole("live", 0, used)
    table._first_free = facts.whole("first_free", -1, used - 1)
    table.least_cost = facts.number("least_cost", SMALLEST, 1.0)
    table.version += 1
    kinds, prior = scheduler._kinds, scheduler._tuning.prior
    priors = 0 if prior is None else len(prior.host_weights)
    extents = Extents(len(table.hosts), len(kinds.names), len(kinds.profiles), priors)
    check_pages(table, table._first_free, extents)
    check_flights(table)


def _put_back_market(scheduler: Scheduler, kept: Facts, arrays: Arrays) -> None:
    policy, table = scheduler._policy, scheduler._table
    assert isinstance(policy, ByPrice)
    lists = {name: arrays[name] for name in _MARKET}
    latest = kept.number("latest", -LARGEST, scheduler.now)
    if lists["desk"].shape != (1,) or lists["agenda"].shape[0] != 2:
        raise InvalidInput("is damaged: it has no desk or no agenda")
    check_market(table.pages, table.hosts.records, lists, latest)
    policy.restore(lists)
    policy._latest = latest
    policy._built_budget = kept.number("budget", 0.0, LARGEST)
    if (policy._built_budget > 0) != (policy.entry_price() > 0):
        raise InvalidInput("is damaged: there is a price without a market, or a market without a price")


def _put_back_exact(scheduler: Scheduler, facts: Facts) -> None:
    """Let a policy that reads the table go on: what it keeps of pages, it learns from their being placed."""
    policy, table = scheduler._policy, scheduler._table
    state = table.pages["state"]
    if ((state == READY) | (state == STANDING) | (state == AT_HOST) | (state == HELD)).any():
        raise InvalidInput("is damaged: pages wait in lists that its policy does not have")
    no_agenda = np.zeros((2, 0), dtype=np.int32)
    check_host_links(table.pages, table.hosts.records, no_agenda, np.zeros(2, dtype=np.int64))
    if facts.has("price"):
        policy.restore({"price": np.array([facts.number("price", 0.0, math.inf)])})
    policy.place(np.flatnonzero(state == QUEUED), scheduler.now)


def room_for(form: Form, shape: tuple[int, ...]) -> NDArray[Any]:
    """An array to read into, beginning at a line of the cache."""
    return aligned_records(math.prod(shape), form.dtype).reshape(shape)
