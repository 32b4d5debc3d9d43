"""The truth that the living web tells is what it serves, at every moment, and equal settings make an equal web."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from hashlib import blake2b
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from living_client import DAY, Client, small, visit

from recrawl.lab.livingweb.truth import Copy, events, freshness, is_fresh
from recrawl.lab.livingweb.world import MASS_EDITS_PER_DAY, LivingWorld
from recrawl.lab.livingweb.world_settings import WorldSettings


def _digest(said: bytes) -> str:
    return blake2b(said, digest_size=8).hexdigest()


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    moments=st.lists(st.tuples(st.integers(0, 299), st.floats(0, 40 * DAY, allow_nan=False)), min_size=8, max_size=20),
)
def test_what_is_served_is_what_the_truth_says(seed: int, moments: list[tuple[int, float]]) -> None:
    """At any moment, over any seed: state, address, version and words of a page are those of `/truth`."""

    async def talk(client: Client) -> None:
        world = client.web.world
        for page, at in moments:
            client.clock.now = world.epoch + at
            told = await client.truth(f"/truth?page={page}")
            got = await client.url(told["url"])
            if told["state"] in ("alive", "moved"):
                assert (got.status, _digest(got.said)) == (200, told["text_digest"])
            else:
                assert got.said == b""
            if told["state"] == "moved":
                assert (await client.old_page(page)).headers["location"] == told["url"]

    visit(small(seed), talk)


def test_every_change_shows_at_its_moment_and_only_then() -> None:
    """One tick before a change the old words are served, from the change on the new ones; nothing else differs."""

    async def talk(client: Client) -> None:
        world, epoch = client.web.world, client.web.world.epoch
        seen = 0
        for page in range(0, 300, 5):
            for at in world.changes(page, epoch, epoch + 10 * DAY)[:3]:
                client.clock.now = at - 1 / 1024
                before = await client.page(page)
                client.clock.now = at
                after = await client.page(page)
                assert before.said != after.said
                seen += 1
        assert seen > 50

    visit(small(), talk)


def test_two_versions_in_a_row_always_differ_in_what_they_say() -> None:
    world = LivingWorld(small())
    for page in range(0, 300, 10):
        texts = [world.pool.paragraphs(page, version, world.pages.paragraphs[page]) for version in range(80)]
        for old, new in pairwise(texts):
            assert sum(a != b for a, b in zip(old, new, strict=True)) == 1


def test_equal_settings_make_an_equal_web_and_the_order_of_asking_does_not_matter() -> None:
    first, second, other = LivingWorld(small(7)), LivingWorld(small(7)), LivingWorld(small(8))
    late = first.epoch + 100 * DAY
    forwards = [first.changes(page, first.epoch, late) for page in range(300)]
    assert [second.version(page, late) for page in reversed(range(300))] == [len(row) for row in reversed(forwards)]
    assert [second.changes(page, second.epoch, late) for page in range(300)] == forwards
    assert [other.changes(page, other.epoch, late) for page in range(300)] != forwards


def test_another_epoch_shifts_the_same_web() -> None:
    first, later = LivingWorld(small()), LivingWorld(replace(small(), epoch=1_800_000_000))
    shift = later.epoch - first.epoch
    for page in range(50):
        times = first.changes(page, first.epoch, first.epoch + 20 * DAY)
        assert [at + shift for at in times] == later.changes(page, later.epoch, later.epoch + 20 * DAY)


def test_versions_and_changes_of_the_control_host_agree() -> None:
    """Counting the real events since the beginning gives the versions at any time."""

    async def talk(client: Client) -> None:
        epoch = client.web.world.epoch
        client.clock.now = epoch + 12 * DAY
        told = await client.truth(f"/truth/changes?first=0&count=300&since={epoch}")
        versions = (await client.truth(f"/truth/versions?at={epoch + 6 * DAY}"))["versions"]
        edits = [event for event in told if event["kind"] in ("edit", "mass-edit")]
        for page in range(300):
            times = [event["at"] for event in edits if event["page"] == page]
            assert versions[page] == bisect_right(times, epoch + 6 * DAY)
        assert [event["at"] for event in told] == sorted(event["at"] for event in told)
        assert {event["kind"] for event in told} == {"born", "edit", "mass-edit", "redesign", "moved", "gone"}
        assert all(event["real"] == (event["kind"] != "redesign") for event in told)

    visit(small(), talk)


def test_a_redesign_changes_the_frame_of_every_page_and_nothing_they_say() -> None:
    async def talk(client: Client) -> None:
        world = client.web.world
        quiet = [page for page in range(300) if not world.pages.noise[page] and world.law(page) == "static"]
        seen = 0
        for event in events(world, quiet, world.epoch, world.epoch + 30 * DAY):
            if event.kind == "redesign" and world.state(event.page, event.at) == "alive":
                client.clock.now = event.at - 1 / 1024
                before = await client.page(event.page)
                client.clock.now = event.at
                after = await client.page(event.page)
                assert before.body != after.body
                assert before.said == after.said
                seen += 1
        assert seen > 3

    visit(small(), talk)


def test_freshness_is_measured_on_the_truth() -> None:
    """Copies fetched now are all fresh; later exactly those are fresh whose page did not change."""
    world = LivingWorld(small())
    start, later = world.epoch + 20 * DAY, world.epoch + 22 * DAY
    copies = [Copy(page, start) for page in range(len(world))]
    assert freshness(world, copies, start)[:2] == (1.0, 1.0)
    existing = [page for page in range(len(world)) if world.state(page, later) in ("alive", "moved")]
    unchanged = [page for page in existing if not world.changes(page, start, later)]
    measured = freshness(world, copies, later)
    assert measured.pages == len(unchanged) / len(existing)
    assert 0.2 < measured.pages < 0.95
    assert freshness(world, [], later).pages == 0.0
    assert not is_fresh(world, Copy(0, None), later)


def test_a_world_made_anew_from_what_the_control_host_tells_is_the_same() -> None:
    async def talk(client: Client) -> None:
        client.clock.advance(9 * DAY)
        told = await client.truth("/truth/clock")
        again = LivingWorld(WorldSettings(**told["settings"]))
        versions = (await client.truth("/truth/versions"))["versions"]
        assert versions == [again.version(page, told["now"]) for page in range(len(again))]
        assert again.hosts == client.web.world.hosts

    visit(small(11, etag="frozen"), talk)


def test_facts_of_pages_and_hosts_are_told_in_runs() -> None:
    async def talk(client: Client) -> None:
        world = client.web.world
        hosts = await client.truth("/truth/hosts")
        assert [row["pages"] for row in hosts] == [len(world.pages_of(host)) for host in range(len(hosts))]
        pages = await client.truth("/truth/pages?first=290&count=50")
        assert [row["page"] for row in pages] == list(range(290, 300))
        for row in pages:
            assert (row["law"] == "static") == (row["changes_per_day"] == MASS_EDITS_PER_DAY)
            by_url = await client.truth(f"/truth?url=http://{row['host']}{row['path']}")
            assert by_url["page"] == row["page"]
        of_host = await client.truth(f"/truth/pages?host={hosts[4]['name']}")
        assert [row["page"] for row in of_host] == list(world.pages_of(4))

    visit(small(), talk)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("/truth?page=300", "the pages are 0 to 299"),
        ("/truth?page=-1", "whole number"),
        ("/truth?url=http://elsewhere.test/", "no page of this web"),
        ("/truth?page=1&at=nan", "Unix seconds"),
        ("/truth?page=1&at=5", "Unix seconds"),
        ("/truth/changes?host=elsewhere", "no host of this web"),
        ("/truth/versions?first=x", "whole number"),
    ],
)
def test_a_bad_question_is_answered_with_what_to_repair(target: str, words: str) -> None:
    async def talk(client: Client) -> None:
        got = await client.get("truth.living.test", target)
        assert got.status == 400
        assert words in got.json["error"]

    visit(small(), talk)


def test_pages_are_found_by_any_of_their_urls() -> None:
    world = LivingWorld(small())
    for page in range(300):
        assert world.page_of(world.url(page, 8080)) == page
        assert world.page_of(world.url(page, 80, world.epoch + 60 * DAY) + "?utm_source=x") == page
    assert world.page_of("http://site-1.living.test/") is None
    assert world.page_of("http://site-1.elsewhere.test/guides/ba-3") is None
