"""The dashboard over HTTP: every page answers, searches are bounded, texts and tables are safe to open."""

from __future__ import annotations

import csv
import io
import math
import time

import pytest
from selectolax.lexbor import LexborHTMLParser
from service_ground import Ground, statements_of

from recrawl.service.dashboard import data
from recrawl.service.dashboard.views import PLACES
from recrawl.service.monitor.monitor import Watch
from recrawl.service.monitor.timeline import Sample
from recrawl.store.bodies import packed
from recrawl.store.queries import load_queries
from recrawl.store.rows import NewChange, NewVersion, Observation, PageEdit, Result, edited
from recrawl.tracker.commands.export import _FORMULA

HOST = "dash.example"


@pytest.fixture(scope="module")
def pages(ground: Ground) -> list[int]:
    """Pages of one host: the first has two versions and a change; the second has failed."""
    ids = ground.add(*(f"https://{HOST}/{name}" for name in ("a", "b", "c/1", "c/2")))
    ground.run(_publish(ground, ids[0]))
    return ids


async def _publish(ground: Ground, page_id: int) -> None:
    """Two visits of a page, as a tracker writes them."""
    store, now = ground.tracker.store, ground.harness.now()
    for version, text in ((1, b"Price ten today"), (2, b"Price <b>twelve</b> today")):
        ((page, lease),) = await store.lease([page_id], "outside:test", now, now + 60)
        digest = bytes([version]) * 16
        event = NewChange(
            "discovered" if version == 1 else "changed", now + version, page.url, page_id=page_id, new_digest=digest,
            last_seen_unchanged_at=page.fetched_at, detail='{"reason": "=1+1"}',
        )  # fmt: skip
        seen = Observation(
            page_id, lease.token, now + version, "ok", "first" if version == 1 else "changed", status=200, gap_s=1.0
        )
        row = edited(page, fetched_at=now + version, outcome="ok", visits=version, version=version)
        published = NewVersion(version, now + version, digest, packed(text))
        await store.complete([Result(seen, row, None, (event,), published)])


def get(ground: Ground, path: str) -> LexborHTMLParser:
    answer = ground.ask("GET", path, scope="read")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/html")
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    assert "unsafe" not in answer.headers["content-security-policy"]
    return LexborHTMLParser(answer.text)


def text_of(tree: LexborHTMLParser) -> str:
    main = tree.css_first("main")
    assert main is not None
    return " ".join(main.text().split())


@pytest.mark.parametrize(("name", "path"), [place[:2] for place in PLACES])
def test_every_place_of_the_navigation_answers(ground: Ground, pages: list[int], name: str, path: str) -> None:
    """And says where one is."""
    assert pages
    here = get(ground, path).css_first("nav [aria-current]")
    assert here is not None
    assert here.attributes["href"] == path
    assert name in here.text().lower()


def test_the_overview_shows_what_is_measured(ground: Ground, pages: list[int]) -> None:
    """Figures, charts, the slider, and tables that are not empty."""
    assert pages
    tree = get(ground, "/")
    assert len(tree.css(".tile .figure")) == 6
    assert len(tree.css("figure[data-chart]")) == 4
    assert tree.css_first("#budget") is not None
    assert f"{HOST}/a" in text_of(tree)


def test_the_change_stream_shows_diffs_as_text(ground: Ground, pages: list[int]) -> None:
    """What was taken away and what came, with markup as text; by kind only that kind."""
    assert pages
    tree = get(ground, "/changes?kind=changed")
    assert [node.text() for node in tree.css(".diff ins")][:1] == ["<b>twelve</b>"]
    assert [node.text() for node in tree.css(".diff del")][:1] == ["ten"]
    assert {node.text().strip() for node in tree.css(".event .tag")} == {"changed"}
    cursor = next(node.attributes["id"] for node in tree.css(".event"))
    one = get(ground, f"/changes/{str(cursor).removeprefix('event-')}")
    assert one.css_first(".diff ins") is not None


def test_the_change_stream_is_paged_without_gaps(ground: Ground) -> None:
    """From the newest to the first, each event once, also by kind."""
    store = ground.tracker.store
    kinds = ("host_degraded", "host_recovered")
    events = [NewChange(kinds[i % 2], 1.0 + i, "many.example") for i in range(1300)]  # type: ignore[arg-type]
    ground.run(store.append_changes(events))
    last = ground.run(store.last_cursor())
    for kind in ("", "host_recovered"):
        seen: list[int] = []
        before: int | None = None
        while True:
            found = ground.run(data.read_events(store, kind, before))
            seen += [event.cursor for event in found.events]
            assert len(found.events) <= data.SHOWN
            if found.older is None:
                break
            before = found.older
        everything = ground.run(store.changes(0, last))
        assert seen == [each.cursor for each in reversed(everything) if not kind or each.event.kind == kind]


def test_tables_for_spreadsheets_hold_no_formula(ground: Ground, pages: list[int]) -> None:
    """Whatever addresses and reasons say: every cell that could be run has a ' before it."""
    assert pages
    bad = ["=cmd|'/c calc'!A1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", "\n=1", " =1", "\N{NO-BREAK SPACE}=1", 'a,"b\nc']
    ground.run(ground.tracker.store.append_changes([NewChange("host_degraded", 1.0, url, trigger=url) for url in bad]))
    answer = ground.ask("GET", "/changes.csv", scope="read")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"].startswith("attachment")
    rows = list(csv.reader(io.StringIO(answer.text, newline="")))
    assert {len(row) for row in rows} == {7}
    assert not [cell for row in rows for cell in row if cell.startswith(_FORMULA)]
    assert {f"'{text}" for text in bad[:9]} | {bad[9]} <= {row[2] for row in rows}


def test_pages_are_found_by_address_prefix_host_and_group(ground: Ground, pages: list[int]) -> None:
    """With and without the scheme; what does not exist is not found."""
    assert pages

    def found(query: str) -> int:
        return len(get(ground, f"/pages?{query}").css("#list tbody a.url"))

    assert found(f"q=https://{HOST}/a") == 1
    assert found(f"q=https://{HOST}/c/") == 2
    assert found(f"q={HOST}/c") == 2
    assert found(f"host={HOST}") == 4
    assert found(f"host={HOST}&q=https://{HOST}/b") == 1
    assert found("group=nobody") == 0
    assert found("q=https://nowhere.example/") == 0
    assert found("q=%00&host=%27%22%3C") == 0


def test_pages_are_paged_by_cursor(ground: Ground) -> None:
    """Each once, whatever the size."""
    ids = ground.add(*(f"https://paged.example/{i}" for i in range(120)))
    store, settings = ground.tracker.store, ground.tracker.settings
    seen: list[int] = []
    after: int | None = 0
    while after is not None:
        found = ground.run(data.list_of_pages(store, settings, "", "paged.example", "", after))
        seen += [page.id for page in found.pages]
        assert len(found.pages) <= data.SHOWN
        after = found.after
    assert seen == sorted(ids)


def test_a_page_tells_why_and_what_was_seen(ground: Ground, pages: list[int]) -> None:
    """Its explanation, visits, events and versions."""
    said = text_of(get(ground, f"/pages/{pages[0]}"))
    for part in (f"{HOST}/a", "Worth a crawl now", "Last visits", "changed", "version 2"):
        assert part in said
    assert ground.ask("GET", "/pages/999999", scope="read").status_code == 404
    assert ground.ask("GET", "/pages/99999999999999999999", scope="read").status_code in (404, 422)


def test_texts_are_plain_and_in_a_sandbox(ground: Ground, pages: list[int]) -> None:
    """No browser makes a page of them."""
    answer = ground.ask("GET", f"/pages/{pages[0]}/text?version=2", scope="read")
    assert answer.text == "Price <b>twelve</b> today"
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in answer.headers["content-security-policy"]
    assert ground.ask("GET", f"/pages/{pages[0]}/text?version=77", scope="read").status_code == 404


def test_hosts_can_be_chosen_by_name_and_class(ground: Ground, pages: list[int]) -> None:
    """One that asked for quiet is among those."""
    assert pages
    ground.harness.host(HOST).blocked_until = ground.harness.now() + 3600
    try:
        assert HOST in text_of(get(ground, f"/hosts?q={HOST}"))
        assert HOST in text_of(get(ground, "/hosts?class=quiet"))
        assert HOST not in text_of(get(ground, "/hosts?class=degraded"))
        assert ground.ask("GET", "/hosts?class=nonsense", scope="read").status_code == 200
    finally:
        ground.harness.host(HOST).blocked_until = 0.0


def test_a_new_host_is_in_the_list_at_once(ground: Ground) -> None:
    """Though the order of the others is kept for some seconds."""
    assert "newcomer.example" not in text_of(get(ground, "/hosts"))
    ground.add("https://newcomer.example/")
    assert "newcomer.example" in text_of(get(ground, "/hosts?q=newcomer"))


def test_settings_show_no_secret(ground: Ground) -> None:
    """Neither those of hooks nor those of sinks."""
    said = text_of(get(ground, "/settings"))
    assert "budget" in said
    assert "whsec_" not in said
    assert "QUJDREVG" not in said


def test_numbers_for_charts_are_columns_of_the_same_length(ground: Ground) -> None:
    """With null for what is not known, and nothing that JSON does not have."""
    get(ground, "/")
    for span in ("minutes", "hour", "day", "month"):
        columns = ground.ask("GET", f"/series?span={span}", scope="read").json()
        assert len({len(column) for column in columns.values()}) == 1
        assert columns["at"]
    assert ground.ask("GET", "/series?span=year", scope="read").status_code == 422
    points = ground.ask("GET", "/curve", scope="read").json()
    assert all(math.isfinite(value) for point in points for value in point.values())


def test_static_files_are_those_that_there_are(ground: Ground) -> None:
    """Nothing else, whatever the name; they may be kept, for their address changes with them."""
    answer = ground.ask("GET", "/static/dashboard.css", scope=None)
    assert answer.status_code == 200
    assert "immutable" in answer.headers["cache-control"]
    for name in ("routes.py", "..%2froutes.py", "%2e%2e/views.py", "", "nothing.css", "dashboard.css%00"):
        assert ground.ask("GET", f"/static/{name}", scope=None).status_code in (401, 404, 405), name


def test_who_is_not_signed_in_is_led_to_the_door(ground: Ground) -> None:
    """From pages; numbers answer with what is wrong."""
    assert ground.ask("GET", "/changes", scope=None).headers.get("location", "/login") == "/login"
    assert ground.ask("GET", "/series", scope=None).status_code == 401


def test_what_was_measured_outlives_the_watch(ground: Ground) -> None:
    """Another watch over the same store goes on with the timeline, and knows pages that are gone."""
    ids = ground.add("https://gone.example/", "https://kept.example/")
    store = ground.tracker.store

    async def measured() -> tuple[int, int, int]:
        first = Watch(ground.tracker)
        before = (await first.look()).estimates.pages
        first.timeline.add(later(first))
        await store.save_facts(first.timeline.to_facts(everything=True))
        await store.edit_pages([PageEdit(ids[0], state="removed", reason="gone", not_before=time.time() + 1e6)])
        second = Watch(ground.tracker)
        after = (await second.look()).estimates.pages
        return before, after, len(second.timeline.samples("minutes"))

    before, after, samples = ground.run(measured())
    assert after == before - 1
    assert samples >= 2


def later(watch: Watch) -> Sample:
    latest = watch.timeline.latest()
    assert latest is not None
    return latest._replace(at=latest.at + 10)


WHOLE = ("hosts_all", "signals_all", "schedule_common")
"""Queries that read all there is of something."""


@pytest.mark.parametrize("path", ["/pages/{page}", "/api/v1/pages/{page}/explain", "/api/v1/hosts", "/api/v1/status"])
def test_a_view_reads_what_it_shows(ground: Ground, path: str) -> None:
    """And not all hosts, signals or events for the few that are on it."""
    (page,) = ground.add("https://busy.example/")
    store, queries = ground.tracker.store, load_queries("sqlite")
    events = [NewChange("changed", time.time(), f"https://busy.example/#{i}", page) for i in range(700)]
    ground.run(store.append_changes(events))
    ground.run(store.add_signals([page], "ping", time.time()))
    read = ground.run(statements_of(store))
    answer = ground.ask("GET", path.format(page=page))
    assert answer.status_code == 200
    assert not [name for name in WHOLE if queries[name] in read]
    assert queries["changes_of_page"] not in read
    assert read.count(queries["changes_of_page_before"]) == (1 if path == "/pages/{page}" else 0)


def test_the_newest_events_of_a_page_are_shown(ground: Ground) -> None:
    """Fifty of them, however many there are."""
    (page,) = ground.add("https://newest.example/")
    events = [NewChange("changed", time.time(), f"https://newest.example/#{i}", page) for i in range(700)]
    cursors = ground.run(ground.tracker.store.append_changes(events))
    shown = ground.run(data.events_of_page(ground.tracker.store, page))
    assert [each.cursor for each in shown] == cursors[:-51:-1]


def test_measuring_reads_neither_all_pages_nor_all_hosts(ground: Ground, pages: list[int]) -> None:
    """From the first look on: every two seconds it may read only what is new."""
    assert pages
    ground.run(ground.tracker.store.pause("host", "paused.example", time.time()))
    read = ground.run(statements_of(ground.tracker.store))
    ground.run(Watch(ground.tracker).look())
    queries = load_queries("sqlite")
    assert not [name for name in (*WHOLE, "count_paused") if queries[name] in read]
    assert read.count(queries["observations_all"]) <= 2
