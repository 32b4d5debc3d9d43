"""Sources over HTTP: what each brings, is worth and costs, as `recrawl sources` says it, page by page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from selectolax.lexbor import LexborHTMLParser
from service_ground import SETTINGS, Ground, Service

from recrawl.store.rows import DeadLetter, NewChange, NewPage, SinkRow, SourceKind, SourceRow
from recrawl.store.store import Store
from recrawl.tracker.commands.commands import ListSources
from recrawl.tracker.discovery.memory import Memory, to_bytes

AT = 1_790_000_000.0
SITE = "https://fed.example"
PROBLEM = "the sitemap ends before its last element"


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
    broken = Memory(problem=PROBLEM, problem_at=AT, refused={"sitemap-cap": 7})
    named = Memory(polls=polls, refused={"robots": 2, "sitemap-cap": 1})
    memories = [Memory(), named, broken, Memory(polls=polls, parent=pages[2].url)]
    kinds: tuple[SourceKind, ...] = ("hub", "feed", "sitemap", "sitemap")
    rows = [
        SourceRow(number, kind, found_by="user", added_at=AT, polls=3, found=15, memory=to_bytes(memory))
        for number, kind, memory in zip(ids, kinds, memories, strict=True)
    ]
    await store.save_sources(rows)
    await store.append_changes([NewChange("changed", AT, f"{SITE}/") for _ in range(5)])
    letters = [DeadLetter("hook", cursor, AT + cursor, f"its target answered {410 + cursor}") for cursor in (1, 2, 3)]
    await store.save_sink(SinkRow("hook", 4, 2, AT + 60, "gone"), letters)


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
    reply = ground.run(ground.harness.do(ListSources()))
    sources: list[dict[str, Any]] = reply.facts["sources"]
    return sources


def test_sources_are_paged(fed: Ground) -> None:
    one, three = ([each["page"] for each in listed(fed, limit)] for limit in (1, 3))
    assert one == three == sorted(one)
    assert len(one) == 4


def test_sources_have_their_last_problem_and_what_was_not_taken(fed: Ground) -> None:
    """Each for itself, and all together with every part of the list."""
    told = {each["url"]: each for each in listed(fed)}
    broken = told[f"{SITE}/sitemap.xml"]
    assert (broken["problem"], broken["problem_at"]) == (PROBLEM, "2026-09-21T14:13:20.000Z")
    assert told[f"{SITE}/feed"]["problem"] is told[f"{SITE}/feed"]["problem_at"] is None
    assert told[f"{SITE}/feed"]["refused"] == {"robots": 2, "sitemap-cap": 1}
    part = fed.ask("GET", "/api/v1/sources", "read", params={"limit": 1}).json()
    assert (part["refused"], part["problems"]) == ({"sitemap-cap": 8, "robots": 2}, 1)


def test_sinks_have_the_newest_events_that_they_could_not_take(fed: Ground) -> None:
    (hook,) = fed.ask("GET", "/api/v1/sinks", "read", params={"limit": 2}).json()["sinks"]
    assert hook == {
        "sink": "hook",
        "cursor": 4,
        "behind": 1,
        "failures": 2,
        "retry_at": "2026-09-21T14:14:20.000Z",
        "stopped": "gone",
        "dead_letters": 3,
        "newest_dead_letters": [
            {"event": 3, "at": "2026-09-21T14:13:23.000Z", "error": "its target answered 413"},
            {"event": 2, "at": "2026-09-21T14:13:22.000Z", "error": "its target answered 412"},
        ],
    }
    (whole,) = fed.ask("GET", "/api/v1/sinks", "read").json()["sinks"]
    assert whole == fed.ask("GET", "/api/v1/status", "read").json()["sinks"][0]
    assert fed.ask("GET", "/api/v1/sinks", "read", params={"limit": 1001}).status_code == 422


def test_the_openapi_document_has_the_shape_of_a_sink_and_of_a_problem(fed: Ground) -> None:
    shapes = fed.ask("GET", "/api/v1/openapi/openapi.json", "read").json()["components"]["schemas"]
    assert {"event", "at", "error"} == set(shapes["DeadLetter"]["properties"])
    assert {"problem", "problem_at", "refused"} <= set(shapes["Source"]["properties"])


def test_the_dashboard_shows_problems_addresses_not_taken_and_dead_letters(fed: Ground) -> None:
    """Problems where sources are read; a tracker that follows no site has none to show."""
    sources = LexborHTMLParser(fed.ask("GET", "/sources", "read").text)
    said = {name: " ".join(node.text().split()) for name in ("problems", "refused") for node in sources.css(f"#{name}")}
    if fed.harness.follows_sites:
        assert PROBLEM in said["problems"]
        assert "sitemap-cap8robots2" in said["refused"]
        assert [node.text() for node in sources.css("#list .tag.failing")] == ["problem"]
    else:
        assert "None" in said["problems"]
    settings = LexborHTMLParser(fed.ask("GET", "/settings", "read").text)
    (letters,) = settings.css("#dead-letters")
    assert "hook: 3 events could not be taken" in " ".join(letters.text().split())
    assert [node.attributes["href"] for node in letters.css("a")] == ["/changes/3", "/changes/2", "/changes/1"]
    assert "its target answered 413" in letters.text()
