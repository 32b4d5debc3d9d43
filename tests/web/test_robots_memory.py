"""robots.txt over time: asked again with its validators, kept while the site is down, and bounded in memory."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from flow_ground import address
from hostile_ground import PATIENT, fetch, guarded, settings_for

from recrawl.lab.livingweb.hostile import (
    HostileWeb,
    Script,
    Visit,
    answers,
    head,
    page,
    redirects,
    sends_and_hangs_up,
    sends_and_stalls,
)
from recrawl.outcomes import Outcome
from recrawl.web.conditional import NO_VALIDATORS, Validators
from recrawl.web.fetch.protocol import FetchJob, FetchResult, NeedRobots
from recrawl.web.fetch.robots_cache import RobotsMemory
from recrawl.web.fetch.transport import Transport
from recrawl.web.robots.entry import RobotsCopy, RobotsEntry, confirm, renew, robots_answer
from recrawl.web.robots.rules import ParsedRules

HOUR = 3600.0
DAY = 24 * HOUR
NOW = 1_700_000_000.0
RULES = b"User-agent: *\nDisallow: /shut"
SILENCE = sends_and_stalls(b"")
TAGGED = page(RULES, [("ETag", '"r1"'), ("Last-Modified", "odd date")])


async def _visits(scripts: list[Script], after_s: list[float], path: str = "/page") -> tuple[list[Outcome], HostileWeb]:
    """Fetch a page several times, so many seconds after each other, while its robots.txt answers by scripts in turn."""
    # Only silence is waited out; a page that is answered may take its time on a slow machine.
    limits = replace(PATIENT, total_s=1.0) if SILENCE in scripts else PATIENT
    wall = NOW
    outcomes: list[Outcome] = []
    async with HostileWeb() as web:
        web.on("/page", answers(page(b"hello")))
        web.on("/shut", answers(page(b"hello")))
        async with Transport(settings_for(web, limits=limits), wall=lambda: wall) as transport:
            for script, later_s in zip(scripts, after_s, strict=True):
                wall += later_s
                web.on("/robots.txt", script)
                outcomes.append((await fetch(transport, web.url(path))).outcome)
    return outcomes, web


def test_rules_are_asked_for_again_with_the_validators_they_came_with_and_a_304_renews_them() -> None:
    not_modified = answers(head(304, [("ETag", '"r1"')]))
    outcomes, web = guarded(_visits([answers(TAGGED), not_modified, not_modified], [0.0, DAY + 1, DAY + 1], "/shut"))
    assert outcomes == ["robots-denied"] * 3
    first, second, third = web.seen("/robots.txt")
    assert "if-none-match" not in first.headers
    assert (second.headers["if-none-match"], second.headers["if-modified-since"]) == ('"r1"', "odd date")
    assert third.headers["if-none-match"] == '"r1"'
    assert web.seen("/shut") == []


def test_rules_that_were_not_read_in_full_for_a_week_are_asked_for_without_condition() -> None:
    """Else a server that always says 304 would keep its rules of long ago in force."""
    steps = 9
    scripts = [answers(TAGGED)] + [answers(head(304))] * (steps - 2) + [answers(page(b"", [("ETag", '"r2"')]))]
    outcomes, web = guarded(_visits(scripts, [0.0] + [DAY + 1] * (steps - 1), "/shut"))
    assert ["if-none-match" in visitor.headers for visitor in web.seen("/robots.txt")] == [False] + [True] * 6 + [
        False
    ] * 2
    # The eighth is a 304 that nobody asked for, which is no answer; rules once read stay in force.
    assert outcomes == ["robots-denied"] * (steps - 1) + ["ok"]


def test_new_rules_take_the_place_of_the_old_ones() -> None:
    outcomes, _ = guarded(
        _visits([answers(TAGGED), answers(page(b"")), answers(page(RULES))], [0.0, DAY + 1, DAY + 1], "/shut")
    )
    assert outcomes == ["robots-denied", "ok", "robots-denied"]


def test_validators_of_rules_behind_a_redirect_go_to_where_they_came_from_alone() -> None:
    async def main() -> HostileWeb:
        wall = NOW
        async with HostileWeb() as web:
            web.on("/robots.txt", redirects(302, "/rules.txt"))
            web.on("/rules.txt", answers(TAGGED))
            async with Transport(settings_for(web), wall=lambda: wall) as transport:
                for _ in range(2):
                    await fetch(transport, web.url("/page"))
                    wall += DAY + 1
            return web

    web = guarded(main())
    assert ["if-none-match" in visitor.headers for visitor in web.seen("/robots.txt")] == [False, False]
    assert ["if-none-match" in visitor.headers for visitor in web.seen("/rules.txt")] == [False, True]


DOWN: dict[str, Script] = {
    "500": answers(page(b"User-agent: *\nAllow: /", status=500)),
    "503": answers(page(b"", [("Retry-After", "1")], 503)),
    "429": answers(page(b"", status=429)),
    "silence": SILENCE,
    "hangs up": sends_and_hangs_up(b""),
    "half a file": sends_and_hangs_up(head(200, [("Content-Length", "999")]) + b"User-agent: *"),
}


@pytest.mark.parametrize("name", DOWN)
def test_a_site_whose_robots_cannot_be_had_is_shut_and_asked_again_soon(name: str) -> None:
    outcomes, web = guarded(_visits([DOWN[name]] * 4, [0.0, 299.0, 2.0, 599.0]))
    assert "ok" not in outcomes
    assert web.seen("/page") == []
    # After 5 minutes, then after 10; a request that found a kept connection closed is sent once more.
    assert len(web.seen("/robots.txt")) in (2, 3)


@pytest.mark.parametrize("name", DOWN)
def test_rules_once_read_hold_for_30_days_while_robots_cannot_be_had(name: str) -> None:
    down = DOWN[name]
    outcomes, _ = guarded(_visits([answers(TAGGED), down, down], [0.0, DAY + 1, 30 * DAY]))
    assert outcomes[:2] == ["ok", "ok"]
    assert outcomes[2] != "ok"
    outcomes, _ = guarded(_visits([answers(TAGGED), down], [0.0, DAY + 1], "/shut"))
    assert outcomes == ["robots-denied", "robots-denied"]


@pytest.mark.parametrize(("hops", "allowed"), [(1, False), (5, False), (6, True)])
def test_five_redirects_are_followed_and_the_sixth_means_no_rules(hops: int, allowed: bool) -> None:
    async def main() -> FetchResult:
        async with HostileWeb() as web, HostileWeb() as other:
            for hop in range(hops):
                here = "/robots.txt" if hop == 0 else f"/r{hop}"
                # Every second hop leads to another host and port: the rules still hold for the first.
                web.on(here, redirects(301, other.url(f"/r{hop + 1}", "b.hostile.test")))
                other.on(here, redirects(302, web.url(f"/r{hop + 1}")))
            for each in (web, other):
                each.on(f"/r{hops}", answers(page(RULES)))
            web.on("/shut", answers(page(b"hello")))
            async with Transport(settings_for(web, other)) as transport:
                return await fetch(transport, web.url("/shut"))

    assert guarded(main()).outcome == ("ok" if allowed else "robots-denied")


def test_an_error_page_that_says_200_is_no_rules_at_all() -> None:
    html = page(b"<html><body>\n<p>User-agent: none of this\n<p>Disallow everything</body></html>")
    outcomes, _ = guarded(_visits([answers(html)], [0.0]))
    assert outcomes == ["ok"]


def _entry(copy: RobotsCopy | None = None) -> RobotsEntry:
    return renew(None, robots_answer(200, RULES, "recrawl", address("https://example.com/robots.txt")), NOW, None, copy)


def test_validators_live_a_week_and_not_before_they_were_read() -> None:
    copy = RobotsCopy(Validators(b'"a"'), address("https://example.com/robots.txt"), NOW)
    assert _entry().validators(NOW) == NO_VALIDATORS
    entry = confirm(_entry(copy), NOW + DAY)
    assert entry.copy == copy
    assert entry.validators(NOW + 6.9 * DAY) == Validators(b'"a"')
    assert entry.validators(NOW + 7 * DAY) == NO_VALIDATORS
    assert entry.validators(NOW - 1.0) == NO_VALIDATORS


def test_origins_and_their_text_are_forgotten_the_least_used_first() -> None:
    async def main() -> tuple[list[str], int]:
        asked: list[str] = []

        async def fetch_robots(job: FetchJob) -> FetchResult:
            asked.append(job.address.host)
            body = b"User-agent: *\n" + b"Disallow: /%b\n" % (b"x" * 1000)
            return FetchResult(job.address, "ok", "", job.address, status=200, body=body)

        memory = RobotsMemory("recrawl", fetch_robots, lambda: NOW, most_origins=50, most_characters=10_500)
        for number in range(30):
            await memory.robots(NeedRobots(address(f"https://host{number}.example/")))
            await memory.robots(NeedRobots(address("https://host0.example/")))
        assert asked == [f"host{number}.example" for number in range(30)]
        await memory.robots(NeedRobots(address("https://host29.example/")))
        await memory.robots(NeedRobots(address("https://host5.example/")))
        return asked[30:], memory._characters

    again, characters = asyncio.run(main())
    assert again == ["host5.example"]
    assert characters <= 10_500


def test_parsed_rules_are_shared_and_bounded() -> None:
    parsed = ParsedRules(max_characters=1000)
    for number in range(100):
        rules = f"Disallow: /{number}/" + "x" * 80
        assert parsed.allows(rules, "/else")
        assert not parsed.allows(rules, f"/{number}/" + "x" * 80)
    assert len(parsed) <= 11
    assert parsed.characters <= 1000
    long = "Disallow: /" + "y" * 5000
    assert not parsed.allows(long, "/" + "y" * 5000)
    assert len(parsed) == 1
    assert parsed.allows("", "/")


def test_a_thousand_hosts_that_wait_for_one_robots_txt_cause_one_fetch_and_no_more() -> None:
    async def main() -> HostileWeb:
        async with HostileWeb() as web:
            go = asyncio.Event()

            async def script(visit: Visit) -> None:
                await go.wait()
                await visit.send(page(RULES))

            web.on("/robots.txt", script)
            web.on("/page", answers(page(b"x")))
            async with Transport(settings_for(web), most_fetches=64) as transport:
                tasks = [asyncio.create_task(fetch(transport, web.url("/page"))) for _ in range(200)]
                while not web.log:
                    await asyncio.sleep(0)
                go.set()
                await asyncio.gather(*tasks)
            return web

    assert len(guarded(main()).seen("/robots.txt")) == 1
