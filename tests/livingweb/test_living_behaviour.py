"""Hosts behave as their profile says: robots, trouble, validators true and lying, moves, removals, soft-404s."""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from itertools import pairwise
from typing import Any, get_args

import pytest
from living_client import DAY, Client, host_with, small, visit

from recrawl.errors import InvalidInput
from recrawl.lab.livingweb.hosts import (
    EtagKind,
    FeedKind,
    GoneKind,
    ModifiedKind,
    RobotsKind,
    SitemapKind,
    TroubleKind,
    phase_end,
)
from recrawl.lab.livingweb.world import LivingWorld
from recrawl.lab.livingweb.world_settings import WorldSettings


def test_a_web_of_thirty_hosts_has_every_kind_of_behaviour() -> None:
    hosts = LivingWorld(WorldSettings(pages=60, hosts=30)).hosts
    kinds: dict[str, Any] = {
        "sitemap": SitemapKind, "feed": FeedKind, "etag": EtagKind, "modified": ModifiedKind, "robots": RobotsKind,
        "trouble": TroubleKind, "gone": GoneKind,
    }  # fmt: skip
    for name, kind in kinds.items():
        assert {getattr(host, name) for host in hosts} == set(get_args(kind))
    assert {host.hub for host in hosts} == {True, False}


@pytest.mark.parametrize(
    ("kind", "status", "words"),
    [
        ("allow", 200, b"Allow: /\n"),
        ("deny", 200, b"Disallow: /private/\n"),
        ("crawl-delay", 200, b"Crawl-delay: "),
        ("missing", 404, b""),
    ],
)
def test_robots_rules(kind: str, status: int, words: bytes) -> None:
    async def talk(client: Client) -> None:
        got = await client.get("site-3.living.test", "/robots.txt")
        assert got.status == status
        assert words in got.body
        if status == 200:
            assert f"Sitemap: http://site-3.living.test:{client.web.port}/sitemap.xml\n".encode() in got.body

    visit(small(robots=kind, sitemap="honest"), talk)


def _phase(world: LivingWorld, host: int) -> tuple[float, float]:
    """The first moment seen inside a phase of trouble, and its end."""
    for minute in range(100 * 24 * 60):
        end = phase_end(world.seed, host, minute * 60.0)
        if end is not None:
            return world.epoch + minute * 60.0, world.epoch + end
    raise AssertionError("no phase in 100 days")


def test_failing_robots_answer_503_in_phases_while_pages_go_on() -> None:
    async def talk(client: Client) -> None:
        world = client.web.world
        inside, end = _phase(world, 0)
        client.clock.now = inside
        assert (await client.get("site-0.living.test", "/robots.txt")).status == 503
        assert (await client.get("site-0.living.test", "/")).status == 200
        client.clock.now = end
        assert (await client.get("site-0.living.test", "/robots.txt")).status == 200

    visit(small(robots="failing"), talk)


@pytest.mark.parametrize(("kind", "status"), [("too-many", 429), ("unavailable", 503)])
def test_trouble_says_when_to_come_back_and_is_over_then(kind: str, status: int) -> None:
    async def talk(client: Client) -> None:
        inside, end = _phase(client.web.world, 2)
        client.clock.now = inside
        assert (await client.get("site-2.living.test", "/robots.txt")).status in (200, 404)
        got = await client.get("site-2.living.test", "/")
        assert got.status == status
        after = got.headers["retry-after"]
        wait = int(after) if status == 429 else parsedate_to_datetime(after).timestamp() - int(inside)
        assert end <= inside + wait <= end + 1.5
        client.clock.now = inside + wait
        assert (await client.get("site-2.living.test", "/")).status == 200
        assert client.web.answers.audit.hosts[2].pestering == 0
        client.clock.now = inside
        await client.get("site-2.living.test", "/")
        assert client.web.answers.audit.hosts[2].pestering == 1

    visit(small(trouble=kind, robots="allow"), talk)


def _changing(client: Client) -> tuple[int, float, float]:
    """A page that lives on at its address, a moment some seconds after a change, and one after the next change."""
    world = client.web.world
    for page in range(len(world)):
        times = [world.epoch + 1.0, *world.changes(page, world.epoch, world.epoch + 20 * DAY)]
        for before, after in pairwise(times):
            lives = world.state(page, before) == "alive" == world.state(page, after + 5)
            host = world.pages.host[page]
            if lives and after - before > 60 and not world.redesigns(host).between(0, after + 5 - world.epoch):
                return page, before + 5, after + 5
    raise AssertionError("no such page")


def _echo(headers: dict[str, str], header: str) -> str:
    return f"{'If-None-Match' if header == 'etag' else 'If-Modified-Since'}: {headers[header]}"


@pytest.mark.parametrize(
    ("every_host", "header", "same", "changed"),
    [
        ({"etag": "true"}, "etag", 304, 200),
        ({"etag": "frozen"}, "etag", 304, 304),
        ({"etag": "restless"}, "etag", 200, 200),
        ({"etag": "none", "modified": "true"}, "last-modified", 304, 200),
        ({"etag": "none", "modified": "frozen"}, "last-modified", 304, 304),
        ({"etag": "none", "modified": "always-now"}, "last-modified", 200, 200),
    ],
)
def test_validators_true_and_lying(every_host: dict[str, Any], header: str, same: int, changed: int) -> None:
    """`same` is the status of a conditional request before the page changes, `changed` after: 304 there is a lie."""

    async def talk(client: Client) -> None:
        page, before, after = _changing(client)
        client.clock.now = before
        first = await client.page(page)
        client.clock.now = before + 2
        again = await client.page(page, _echo(first.headers, header))
        assert again.status == same
        assert again.status == 200 or (again.body == b"" and again.headers[header] == first.headers[header])
        client.clock.now = after
        assert (await client.page(page, _echo(first.headers, header))).status == changed
        assert (await client.page(page)).said != first.said

    visit(small(**every_host), talk)


def test_hosts_without_validators_never_answer_304() -> None:
    async def talk(client: Client) -> None:
        got = await client.page(1, 'If-None-Match: "1"', "If-Modified-Since: Thu, 01 Jan 2026 00:00:00 GMT")
        assert got.status == 200
        assert not {"etag", "last-modified"} & set(got.headers)

    visit(small(etag="none", modified="none"), talk)


def test_if_none_match_goes_before_if_modified_since_and_may_list_several() -> None:
    async def talk(client: Client) -> None:
        page, before, _ = _changing(client)
        client.clock.now = before
        headers = (await client.page(page)).headers
        since = _echo(headers, "last-modified")
        assert (await client.page(page, 'If-None-Match: "other"', since)).status == 200
        assert (await client.page(page, f'If-None-Match: "other", {headers["etag"]}')).status == 304

    visit(small(etag="true", modified="true"), talk)


def test_true_last_modified_is_withheld_within_its_own_second() -> None:
    """Two changes within one second could not be told apart by it."""

    async def talk(client: Client) -> None:
        page, _, after = _changing(client)
        change = after - 5
        client.clock.now = change
        assert "last-modified" not in (await client.page(page)).headers
        client.clock.now = change + 1
        assert parsedate_to_datetime((await client.page(page)).headers["last-modified"]).timestamp() == int(change)

    visit(small(modified="true"), talk)


def test_max_age_is_sent_where_the_host_has_one() -> None:
    async def talk(client: Client) -> None:
        assert (await client.page(0)).headers["cache-control"] == "max-age=60"

    visit(small(max_age_s=60), talk)


def test_a_moved_page_redirects_for_good_and_lives_on_elsewhere() -> None:
    async def talk(client: Client) -> None:
        world = client.web.world
        movers = [page for page in range(300) if world.pages.moved[page] < 60 * DAY]
        statuses, hosts = set(), set()
        for page in movers:
            moved = world.epoch + world.pages.moved[page]
            client.clock.now = moved - 1
            before = await client.old_page(page)
            new = world.url(page, client.web.port, moved)
            assert (await client.url(new)).status == 404
            client.clock.now = moved
            old = await client.old_page(page)
            assert old.headers["location"] == new
            there = await client.url(new)
            assert (before.status, there.status) == (200, 200)
            assert before.said == there.said or world.changes(page, moved - 1, moved)
            statuses.add(old.status)
            hosts.add(world.pages.new_host[page] == world.pages.host[page])
        assert statuses == {301, 308}
        assert hosts == {True, False}

    visit(small(gone="not-found"), talk)


@pytest.mark.parametrize(
    ("kind", "removed", "unknown"),
    [("not-found", 404, 404), ("gone", 410, 404), ("soft", 200, 200), ("home", 302, 404)],
)
def test_removed_and_unknown_pages_answer_in_the_way_of_the_host(kind: str, removed: int, unknown: int) -> None:
    async def talk(client: Client) -> None:
        world = client.web.world
        page = next(page for page in range(300) if world.pages.gone[page] < 60 * DAY and world.pages.born[page] < 0)
        gone = world.epoch + world.pages.gone[page]
        client.clock.now = gone - 1 / 1024
        assert (await client.page(page)).said
        client.clock.now = gone
        got = await client.page(page)
        assert (got.status, got.said) == (removed, b"")
        if kind == "soft":
            assert b"could not be found" in got.body
        if kind == "home":
            assert got.headers["location"] == "/"
        assert (await client.get(client.host_of(page), "/guides/nothing-here")).status == unknown

    visit(small(gone=kind), talk)


def test_a_page_is_not_there_before_its_birth() -> None:
    async def talk(client: Client) -> None:
        world = client.web.world
        page = next(page for page in range(300) if world.pages.born[page] > 10)
        client.clock.now = world.epoch + world.pages.born[page] - 1
        assert (await client.page(page)).status == 404
        client.clock.now += 1
        assert (await client.page(page)).status == 200

    visit(small(gone="not-found"), talk)


def test_short_links_and_index_pages_redirect() -> None:
    async def talk(client: Client) -> None:
        got = await client.get("site-1.living.test", "/go/7")
        assert (got.status, got.headers["location"]) == (302, client.web.url(7))
        got = await client.get("site-1.living.test", "/index.html")
        assert (got.status, got.headers["location"]) == (301, f"http://site-1.living.test:{client.web.port}/")
        assert (await client.get("site-1.living.test", "/go/300")).status == 404

    visit(small(gone="not-found"), talk)


def test_the_audit_counts_breaches_of_what_hosts_ask_for() -> None:
    async def talk(client: Client) -> None:
        web, names = client.web, [host.name for host in client.web.world.hosts]
        denying, slow = host_with(web, robots="deny"), host_with(web, robots="crawl-delay")
        await client.get(names[denying], "/private/")
        await client.get(names[denying], "/guides/")
        await client.get(names[slow], "/robots.txt")
        await client.get(names[slow], "/")
        client.clock.advance(web.world.hosts[slow].crawl_delay_s)
        await client.get(names[slow], "/")
        assert web.answers.audit.hosts[slow].early == 0
        await client.get(names[slow], "/")
        told = await client.truth("/truth/audit")
        assert (told["requests"], told["denied"], told["early"], told["pestering"]) == (6, 1, 1, 0)
        assert told["statuses"]["200"] >= 5

    visit(small(), talk)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"pages": 0}, "pages is 0"),
        ({"pages": 5, "hosts": 6}, "hosts is 6"),
        ({"noise_share": 1.5}, "noise_share is 1.5"),
        ({"seed": -1}, "seed is -1"),
        ({"pages": 10.5, "hosts": 2}, "pages must be a whole number"),
        ({"every_host": {"colour": "red"}}, "colour"),
        ({"every_host": {"name": "x"}}, "name"),
        ({"every_host": {"etag": "wrong"}}, "etag"),
    ],
)
def test_settings_that_make_no_web_are_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        WorldSettings(**wrong)
