"""Sources over HTTP: what each brings, is worth and costs, as `recrawl sources` says it, page by page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from service_ground import SETTINGS, Ground, Service

from recrawl.store.contract import Store
from recrawl.store.rows import NewPage, SourceKind, SourceRow
from recrawl.tracker.commands import Hand
from recrawl.tracker.discovery.commands import ListSources
from recrawl.tracker.discovery.memory import Memory, to_bytes

AT = 1_790_000_000.0
SITE = "https://fed.example"


@pytest.fixture(scope="module", params=[True, False], ids=["discovers", "does not discover"])
def fed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """A service over a store in which an earlier life has found sources."""
    folder: Path = tmp_path_factory.mktemp("fed")
    settings = replace(SETTINGS, discover=request.param)
    first = Service(folder, settings)
    ground = first.begin()
    ground.run(_found(ground.tracker.store))
    first.end()
    second = Service(folder, settings)
    try:
        yield second.begin()
    finally:
        second.end()


async def _found(store: Store) -> None:
    names = ("", "feed", "sitemap.xml", "sitemap-1.xml")
    pages = [NewPage(f"{SITE}/{name}", "fed.example", added_at=AT, role="source") for name in names]
    ids = [number for number, _new in await store.add_pages(pages)]
    polls = [(AT + day * 86_400.0, 5) for day in range(3)]
    memories = [Memory(), Memory(polls=polls), Memory(), Memory(polls=polls, parent=pages[2].url)]
    kinds: tuple[SourceKind, ...] = ("hub", "feed", "sitemap", "sitemap")
    rows = [
        SourceRow(number, kind, found_by="user", added_at=AT, polls=3, found=15, memory=to_bytes(memory))
        for number, kind, memory in zip(ids, kinds, memories, strict=True)
    ]
    await store.save_sources(rows)


def listed(ground: Ground, limit: int = 100) -> list[dict[str, Any]]:
    """All sources, page by page."""
    found: list[dict[str, Any]] = []
    after: int | None = 0
    while after is not None:
        answer = ground.ask("GET", "/api/v1/sources", "read", params={"after": after, "limit": limit}).json()
        found += answer["sources"]
        after = answer["next"]
    return found


def test_sources_have_worth_trust_and_cost_as_on_the_command_line(fed: Ground) -> None:
    """Field by field; some are known only while it runs, as the time of the next poll."""
    told = {each["url"]: each for each in listed(fed)}
    said = {each["url"]: each for each in _said(fed)}
    assert set(told) == set(said)
    assert len(told) == 4
    moving = {"value", "price", "due_at"}  # of the moment in which it was asked
    for url, source in said.items():
        for name in set(source) - moving:
            assert told[url][name] == pytest.approx(source[name]), (url, name)
        assert moving <= set(told[url])
    assert told[f"{SITE}/feed"]["new_pages_per_day"] > 0
    assert told[f"{SITE}/feed"]["worth_per_day"] > told[f"{SITE}/"]["worth_per_day"]
    assert told[f"{SITE}/sitemap.xml"]["worth_per_day"] > 0  # an index is worth what is below it


def _said(ground: Ground) -> list[dict[str, Any]]:
    hand = Hand(ground.tracker.store, ground.tracker.settings, ground.tracker)
    reply = ground.run(hand.do(ListSources(), ground.tracker.desk.clock.now()))
    sources: list[dict[str, Any]] = reply.facts["sources"]
    return sources


def test_sources_are_paged(fed: Ground) -> None:
    one, three = ([each["page"] for each in listed(fed, limit)] for limit in (1, 3))
    assert one == three == sorted(one)
    assert len(one) == 4
