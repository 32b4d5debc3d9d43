"""A crawler's own transport on the living web, through the gate, by settings alone: the outcomes are the truth."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest
from living_client import DAY, small

from recrawl.lab.livingweb.clock import HandClock
from recrawl.lab.livingweb.server import LivingWeb
from recrawl.lab.livingweb.world import LivingWorld
from recrawl.web.fetch.egress import egress_policy
from recrawl.web.fetch.protocol import FetchJob, FetchResult
from recrawl.web.fetch.settings import FetchSettings, user_agent
from recrawl.web.fetch.transport import Transport
from recrawl.web.url.address import address_or_raise


def _crawl(at: float, *, opened: bool = True, **every_host: Any) -> tuple[LivingWorld, float, list[FetchResult]]:
    """Fetch every page once at the address of its birth, at a moment of the web."""

    async def run() -> tuple[LivingWorld, float, list[FetchResult]]:
        world = LivingWorld(small(pages=120, hosts=10, **every_host))
        clock = HandClock(world.epoch + at)
        async with LivingWeb(world, clock) as web:
            gate = egress_policy(allow=web.allow, resolve=web.resolve) if opened else egress_policy(resolve=web.resolve)
            settings = FetchSettings(user_agent("mailto:crawler@example.org"), egress=gate)
            async with Transport(settings, wall=clock) as transport:
                jobs = [FetchJob(address_or_raise(web.url(page), field="url")) for page in range(len(world))]
                return world, clock(), await asyncio.gather(*map(transport.fetch, jobs))

    return asyncio.run(run())


def test_outcomes_of_fetches_are_the_states_of_the_pages() -> None:
    world, now, results = _crawl(9 * DAY, robots="allow", gone="gone")
    expected = {"alive": "ok", "moved": "moved", "gone": "gone", "unborn": "missing"}
    for page, result in enumerate(results):
        assert result.outcome == expected[world.state(page, now)], result
        if result.outcome == "moved":
            assert world.page_of(result.final.url) == page
    assert len(Counter(result.outcome for result in results)) == 4


def test_closed_sections_are_left_alone() -> None:
    world, _, results = _crawl(0.0, robots="deny")
    for page, result in enumerate(results):
        assert (result.outcome == "robots-denied") == world.path(page).startswith("/private/")


def test_the_gate_refuses_a_web_that_was_not_opened() -> None:
    _, _, results = _crawl(0.0, opened=False, robots="allow")
    assert {result.outcome for result in results} == {"refused"}


@pytest.mark.parametrize(("trouble", "status"), [("too-many", 429), ("unavailable", 503)])
def test_trouble_is_a_rate_limit_with_a_time_to_come_back(trouble: str, status: int) -> None:
    seen = 0
    for hours in (2.0, 8.0, 14.0, 20.0):
        _, _, results = _crawl(hours * 3600.0, trouble=trouble, robots="allow")
        limited = [result for result in results if result.outcome == "rate-limited"]
        assert all(result.status == status and 0 < (result.retry_after_s or 0) <= 5401 for result in limited)
        seen += len(limited)
    assert seen > 10
