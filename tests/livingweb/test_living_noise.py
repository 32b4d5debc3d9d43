"""Noise shows without a change, one kind at a time, and the frame and words of a page stay apart from it."""

from __future__ import annotations

import re

import pytest
from living_client import DAY, Client, small, visit

from recrawl.lab.livingweb.text import (
    NOISES,
    Moment,
    NoiseKind,
    TextPool,
    bottom_noise,
    head_noise,
    noise_kinds,
    top_noise,
    views,
)

POOL = TextPool(1)
NOW = 1_768_000_000.0
# Seconds within which a kind certainly differs, and words that tell it.
KINDS: dict[NoiseKind, tuple[float, bytes]] = {
    "clock": (1.0, b"Server time"),
    "nonce": (0.001, b"nonce="),
    "request-id": (0.001, b"Request "),
    "ads": (0.1, b'class="ad"'),
    "variants": (1.0, b"<div>"),
    "views": (DAY, b" views"),
    "age": (60.0, b"Updated "),
    "related": (0.1, b"class=related"),
    "rotation": (7200.0, b"<div>"),
}


def _shown(kind: NoiseKind, now: float, page: int = 5) -> bytes:
    moment = Moment(page, now, 50.0, NOW - 30 * DAY, NOW - 100.0)
    bits = 1 << NOISES.index(kind)
    return head_noise(bits, moment) + top_noise(bits, moment, POOL) + bottom_noise(bits, moment, POOL)


@pytest.mark.parametrize("kind", NOISES)
def test_a_kind_of_noise_differs_over_time_and_only_then(kind: NoiseKind) -> None:
    within, words = KINDS[kind]
    assert words in _shown(kind, NOW)
    assert _shown(kind, NOW) == _shown(kind, NOW)
    assert len({_shown(kind, NOW + step * within / 20) for step in range(21)}) > 1


def test_variants_are_two_and_adverts_and_related_lists_are_few() -> None:
    assert len({_shown("variants", NOW + step) for step in range(100)}) == 2
    assert len({_shown("ads", NOW + step) for step in range(200)}) == 8
    assert len({_shown("related", NOW + step) for step in range(300)}) == 12
    assert len({_shown("rotation", NOW + 600 * step) for step in range(100)}) == 4
    assert _shown("rotation", NOW // 600 * 600) == _shown("rotation", NOW // 600 * 600 + 599)


def test_view_counters_only_grow_and_at_the_rate_of_the_clicks() -> None:
    counts = [views(Moment(5, NOW + step * 600, 50.0, NOW, NOW)) for step in range(1000)]
    assert counts == sorted(counts)
    assert counts[-1] == int(999 * 600 / DAY * 50)


def test_ages_are_told_in_minutes_hours_and_days() -> None:
    told = [_shown("age", NOW - 100 + age) for age in (120.0, 3 * 3600.0, 5 * DAY)]
    assert [re.findall(rb"Updated (.*)</div>", text)[0] for text in told] == [
        b"2 minutes ago", b"3 hours ago", b"5 days ago",
    ]  # fmt: skip


def test_a_noisy_page_says_the_same_while_its_bytes_differ() -> None:
    async def talk(client: Client) -> None:
        world = client.web.world
        restless = [page for page in range(300) if {"nonce", "request-id"} & set(noise_kinds(world.pages.noise[page]))]
        quiet = [page for page in range(300) if not world.pages.noise[page]]
        for pages, noisy in ((restless[:30], True), (quiet[:30], False)):
            for page in pages:
                client.clock.now = world.epoch + 3 * DAY
                first = await client.page(page)
                client.clock.advance(0.25)
                second = await client.page(page)
                if world.changes(page, client.clock() - 0.25, client.clock()):
                    continue
                assert first.said == second.said
                assert (first.body != second.body) == (noisy and first.said != b"")

    visit(small(), talk)


@pytest.mark.parametrize("noise_share", [0.0, 1.0])
def test_the_share_of_noisy_pages_is_a_setting(noise_share: float) -> None:
    from dataclasses import replace

    from recrawl.lab.livingweb.world import LivingWorld

    world = LivingWorld(replace(small(), noise_share=noise_share))
    assert {world.pages.noise[page] != 0 for page in range(300)} == {noise_share == 1.0}
