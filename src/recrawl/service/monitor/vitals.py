"""A tracker at one moment, as it was measured: what metrics and dashboard are made from. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from recrawl.scheduling.estimates import Estimates
from recrawl.service.monitor.activity import Mover, Score
from recrawl.service.monitor.host_watch import HostsNow
from recrawl.service.monitor.timeline import Sample
from recrawl.store.columns import StoreCounts

_SENSELESS = 1e-9  # of the mean importance: no crawl is worth as little


class SinkLag(NamedTuple):
    """How far a sink is behind: events, and failures in a row; why it was stopped, or ""."""

    name: str
    behind: int
    failures: int
    stopped: str


@dataclass(frozen=True, slots=True)
class Vitals:
    """A tracker at one moment.

    Args:
        at: Unix seconds.
        estimates: of all pages.
        freshness_range: between which values the freshness is, 95 %.
        audits: crawls that put beliefs to the test.
        price: that a crawl must be worth.
        budget_per_day: crawls.
        budget_used: share of it that was spent in the last minute; None before that is known.
        crawls_per_minute, changes_per_minute: in the last minute.
        wasted: share of the last fetches that brought nothing new.
        delays_s: from a change to its detection: median and 90 %.
        found_by_expected: changes found by changes expected.
        scores: of signals.
        tallies: counters of the store.
        counts: of the store.
        sinks: how far they are behind.
        hosts: how they are.
        network_down: whether hosts cannot be reached at all.
        last_success_at: when a page last came.
        movers: pages that changed most.
        unwritten: results that are not durable yet.
        gone: pages that are not there any more; they are not among those of the estimates.
        references: freshness that others have or would have, by name, to compare with; NaN where it is not known.
        budget_usable: share of the budget that the least intervals of pages let be used.
        min_interval_s: between two crawls of a page of which nothing else is said.
    """

    at: float
    estimates: Estimates
    freshness_range: tuple[float, float]
    audits: int
    price: float
    budget_per_day: float
    budget_used: float | None
    crawls_per_minute: float | None
    changes_per_minute: float | None
    wasted: float | None
    delays_s: tuple[float | None, float | None]
    found_by_expected: float
    scores: Sequence[Score]
    tallies: Mapping[str, int]
    counts: StoreCounts
    sinks: Sequence[SinkLag]
    hosts: HostsNow
    network_down: bool
    last_success_at: float | None
    movers: Sequence[Mover]
    unwritten: int
    gone: int = 0
    references: Mapping[str, float] = field(default_factory=dict)
    budget_usable: float = 1.0
    min_interval_s: float = 0.0

    @property
    def known_price(self) -> float | None:
        """The price, None while it is still far from what anything sold for, as before the first crawls."""
        mean = self.estimates.importance / max(self.estimates.pages, 1)
        return None if 0.0 < self.price < _SENSELESS * mean else self.price


def sample_of(vitals: Vitals) -> Sample:
    """What goes into the timeline."""
    estimates = vitals.estimates

    def known(value: float | None) -> float:
        return math.nan if value is None else float(value)

    return Sample(
        at=vitals.at,
        freshness=estimates.freshness,
        fresh_pages=estimates.fresh_pages,
        age_p50_s=known(estimates.ages.percentile(0.5)),
        age_p90_s=known(estimates.ages.percentile(0.9)),
        price=known(vitals.known_price),
        budget_used=known(vitals.budget_used),
        crawls=known(vitals.crawls_per_minute),
        changes=known(vitals.changes_per_minute),
        wasted=known(vitals.wasted),
        backlog=float(estimates.on_offer + estimates.at_hosts),
    )
