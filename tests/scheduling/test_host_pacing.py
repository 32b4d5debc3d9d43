"""The pace of many hosts at once is the pace of each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from invariants import check

import recrawl
from recrawl.scheduling.table.records import HostName

GAPS, MOST, BLOCKED = np.array([0.0, 0.5, 2.0]), np.array([1, 2, 3]), np.array([0.0, 4.0, 1.0])
CAPS = np.array([3.0, np.inf, 0.5])


def scheduler() -> recrawl.Scheduler:
    made = recrawl.Scheduler(budget=50.0)
    made.add(importance=np.arange(1.0, 31.0), change_rate=1.0, last_crawled=0.0, host=np.arange(30) % 3)
    return made


def test_many_hosts_are_paced_as_each_by_itself() -> None:
    """Before the first crawl and between crawls; hosts without pages too."""
    one, many = scheduler(), scheduler()
    turns: list[tuple[float, list[HostName]]] = [(0.0, [0, 1, 2]), (3.0, [2, 0, "new"])]
    for now, hosts in turns:
        for host, gap, most, cap, blocked in zip(hosts, GAPS, MOST, CAPS, BLOCKED, strict=True):
            one.set_host(host, float(gap), int(most), float(cap), float(blocked))
        many.set_hosts(hosts, min_gap=GAPS, max_in_flight=MOST, rate_cap=CAPS, blocked_until=BLOCKED)
        for step in range(60):
            at = now + step / 20
            taken = one.take(at, 3).ids.tolist()
            assert many.take(at, 3).ids.tolist() == taken
            for made in (one, many):
                made.crawled(taken, at)
    check(many)


@pytest.mark.parametrize(
    ("limits", "match"),
    [
        ({"min_gap": [0.0, -1.0]}, "min_gap"),
        ({"max_in_flight": 0}, "max_in_flight"),
        ({"blocked_until": np.nan}, "blocked_until"),
        ({"rate_cap": [1.0, -1.0]}, "rate_cap"),
        ({"max_in_flight": [1, 1.5]}, "max_in_flight"),
        ({"min_gap": [1.0, 2.0, 3.0]}, "3 values"),
    ],
)
def test_limits_that_are_none_are_refused(limits: dict[str, Any], match: str) -> None:
    with pytest.raises(recrawl.InvalidInput, match=match):
        scheduler().set_hosts([0, 1], **limits)
    with pytest.raises(recrawl.InvalidInput, match="twice"):
        scheduler().set_hosts([0, 0], min_gap=1.0)
