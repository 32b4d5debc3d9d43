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


def test_each_host_is_left_alone_for_the_longest_time_that_its_pages_were_told() -> None:
    """Earlier blocks that last longer stay, pages without a host block nobody."""
    random = np.random.default_rng(4)
    made = recrawl.Scheduler(budget=1e6, burst=1e6)
    hosts = random.integers(0, 20, 300)
    ids = np.append(
        made.add(importance=np.ones(300), change_rate=1.0, last_crawled=0.0, host=hosts),
        made.add(importance=np.ones(5), change_rate=1.0, last_crawled=0.0),
    )
    made.set_host(3, blocked_until=90.0)
    made.claim(ids, 1.0)
    waits = random.uniform(0.0, 50.0, 305)
    made.failed(ids, 1.0, retry_after=waits)
    found = made._table.hosts.records["blocked_until"]
    expected = [1.0 + waits[:300][hosts == host].max() for host in made._table.hosts.names]
    assert found.tolist() == [
        90.0 if host == 3 else at for host, at in zip(made._table.hosts.names, expected, strict=True)
    ]
    check(made, set())
