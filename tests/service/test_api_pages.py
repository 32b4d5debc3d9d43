"""Pages over HTTP follow the same rules as on the command line."""

from __future__ import annotations

import pytest
from service_ground import Ground

from recrawl.service.api import changes as changes_api
from recrawl.store.rows import ChangeKind, NewChange, NewPage

URL = "https://pages.example/"


def test_pages_are_added_found_changed_and_removed(ground: Ground) -> None:
    (number,) = ground.add(f"{URL}one")
    again = ground.ask("POST", "/api/v1/pages", json={"pages": [{"url": f"{URL}one"}, {"url": f"{URL}one#x"}]}).json()
    assert again["done"] == {"added": 0, "known": 1, "same": 1, "rejected": 0, "paused": 0}
    assert ground.ask("GET", "/api/v1/pages", params={"url": f"{URL}one"}).json()["pages"][0]["id"] == number
    changed = ground.ask("PATCH", f"/api/v1/pages/{number}", json={"importance": 7, "min_interval_s": 60}).json()
    assert (changed["importance"], changed["min_interval_s"]) == (7.0, 60.0)
    assert ground.harness.is_scheduled(number)
    assert ground.ask("DELETE", f"/api/v1/pages/{number}").json()["done"]["removed"] == 1
    assert not ground.harness.is_scheduled(number)
    assert ground.ask("GET", f"/api/v1/pages/{number}").json()["state"] == "retired"
    assert ground.ask("PATCH", f"/api/v1/pages/{number}", json={"importance": 7}).status_code == 409


def test_a_least_interval_is_null_while_nothing_is_said_and_0_if_that_is_said(ground: Ground) -> None:
    (number,) = ground.add(f"{URL}interval")
    path = f"/api/v1/pages/{number}"
    assert ground.ask("GET", path).json()["min_interval_s"] is None
    known = ground.ask("POST", "/api/v1/pages", json={"pages": [{"url": f"{URL}interval", "min_interval_s": 0}]})
    assert known.json()["done"]["changed"] == 1
    assert ground.ask("GET", path).json()["min_interval_s"] == 0.0
    assert ground.ask("PATCH", path, json={"min_interval_s": 90}).json()["min_interval_s"] == 90.0
    assert ground.ask("PATCH", path, json={"importance": 2}).json()["min_interval_s"] == 90.0
    assert ground.ask("GET", f"{path}/explain").json()["bounds"]["min_interval_s"] == 90.0


def test_a_page_that_settings_no_longer_allow_is_found_and_can_be_removed(ground: Ground) -> None:
    urls = ["https://pages.example:8443/closed", "https://pages.example:8443/shut"]
    added = ground.run(ground.harness.add_pages([NewPage(url, "pages.example") for url in urls]))
    number = added[0][0]
    refused = ground.ask("POST", "/api/v1/pages", json={"pages": [{"url": urls[0]}]}).json()
    assert refused["done"]["rejected"] == 1
    assert ground.ask("GET", "/api/v1/pages", params={"url": urls[0]}).json()["pages"][0]["id"] == number
    assert ground.ask("GET", "/api/v1/explain", params={"url": urls[0]}).json()["page"] == number
    assert ground.ask("GET", f"/api/v1/pages/{number}/explain").json()["url"] == urls[0]
    assert ground.ask("POST", "/api/v1/fetch-now", json={"urls": urls}).json()["done"]["wanted"] == 2
    held = {"kind": "page", "names": urls}
    assert ground.ask("POST", "/api/v1/pause", json=held).json()["done"]["paused"] == 2
    assert ground.ask("DELETE", f"/api/v1/pages/{number}").json()["done"]["removed"] == 1
    assert ground.ask("POST", "/api/v1/pages/remove", json={"urls": urls}).json()["done"]["removed"] == 1
    assert ground.ask("GET", "/api/v1/pages", params={"url": "nonsense"}).status_code == 422


def test_a_change_that_does_not_fit_is_refused(ground: Ground) -> None:
    """The page stays as it was."""
    (number,) = ground.add(f"{URL}bounds")
    for wrong in ({"importance": -1}, {"group": "nobody"}, {"min_interval_s": 10, "max_interval_s": 5}):
        assert ground.ask("PATCH", f"/api/v1/pages/{number}", json=wrong).status_code == 422, wrong
    assert ground.ask("GET", f"/api/v1/pages/{number}").json()["importance"] == 1.0


def test_lists_are_paged_without_gaps(ground: Ground) -> None:
    """Going on from `next` gives every page once."""
    ground.add(*(f"https://many.example/{i}" for i in range(7)))
    seen: list[str] = []
    after: int | None = 0
    while after is not None:
        answer = ground.ask("GET", "/api/v1/pages", params={"host": "many.example", "limit": 3, "after": after}).json()
        seen += [page["url"] for page in answer["pages"]]
        after = answer["next"]
    assert seen == [f"https://many.example/{i}" for i in range(7)]


def test_groups_apply_as_in_the_settings(ground: Ground) -> None:
    (number,) = ground.add("https://shop.example/thing")
    page = ground.ask("GET", f"/api/v1/pages/{number}").json()
    assert (page["group"], page["importance"]) == ("shop", 5.0)


def test_pages_are_paused_and_resumed(ground: Ground) -> None:
    (number,) = ground.add(f"{URL}paused")
    held = {"kind": "page", "names": [f"{URL}paused"]}
    assert ground.ask("POST", "/api/v1/pause", json=held).json()["done"]["paused"] == 1
    assert not ground.harness.is_scheduled(number)
    assert ground.ask("POST", "/api/v1/resume", json=held).json()["done"]["resumed"] == 1
    assert ground.harness.is_scheduled(number)


def test_a_file_is_imported_row_by_row(ground: Ground) -> None:
    """As `recrawl import` does; a dry run writes nothing."""
    body = b"url,importance\nhttps://import.example/a,2\nhttps://import.example/b,many\nnonsense,1\n"
    dry = ground.ask("POST", "/api/v1/import?dry_run=true", content=body).json()
    assert (dry["rows"], dry["added"], dry["refused"]) == (3, 1, 2)
    assert ground.run(ground.tracker.store.find_pages(["https://import.example/a"])) == {}
    done = ground.ask("POST", "/api/v1/import?format=csv", content=body).json()
    assert done["added"] == 1
    assert [each["row"] for each in done["refusals"]] == [row["row"] for row in dry["refusals"]]
    assert ground.ask("POST", "/api/v1/import?format=nonsense", content=body).status_code == 422
    assert ground.ask("POST", "/api/v1/import?group=nobody", content=body).status_code == 422


def test_explain_says_what_the_command_says(ground: Ground) -> None:
    (number,) = ground.add(f"{URL}explained")
    facts = ground.ask("GET", f"/api/v1/pages/{number}/explain", "read").json()
    assert facts["url"] == f"{URL}explained"
    assert facts["schedule"]["state"]
    assert ground.ask("GET", "/api/v1/explain", params={"url": f"{URL}explained"}).json()["page"] == number
    assert ground.ask("GET", "/api/v1/explain", params={"url": f"{URL}nowhere"}).status_code == 404


def test_what_the_budget_buys(ground: Ground) -> None:
    """A curve that rises, and the plan between its points."""
    ground.add(f"{URL}planned")
    points = ground.ask("GET", "/api/v1/what-if", "read").json()["points"]
    freshness = [point["freshness"] for point in points]
    assert len(points) > 10
    assert freshness == sorted(freshness)
    middle = (points[3]["budget_per_day"] + points[4]["budget_per_day"]) / 2
    plan = ground.ask("GET", "/api/v1/plan", params={"budget": f"{middle}/day"}).json()
    assert points[3]["freshness"] <= plan["planned"]["freshness"] <= points[4]["freshness"]


def test_status_hosts_and_sources_answer(ground: Ground) -> None:
    ground.add(f"{URL}status")
    assert ground.ask("GET", "/api/v1/status", "read").json()["pages"]["active"] > 0
    assert ground.ask("GET", "/api/v1/hosts", "read").status_code == 200
    assert ground.ask("GET", "/api/v1/sources", "read").json()["next"] is None


def test_the_api_is_documented_offline(ground: Ground) -> None:
    """As a document and as a page that loads nothing from elsewhere."""
    document = ground.ask("GET", "/api/v1/openapi", "read").json()
    page = ground.ask("GET", "/api", "read").text
    for path in document["paths"]:
        assert f" {path}</code>" in page
    assert "http://" not in page
    assert "https://" not in page
    assert "<script" not in page


def test_health_fails_when_the_store_cannot_write(ground: Ground) -> None:
    """Or when the loop is late, or nothing is taken for long."""
    from recrawl.service.monitor.health import STALLED_S, Pulse, troubles

    assert ground.ask("GET", "/healthz", None).json() == {"ok": True, "wrong": []}
    ground.harness.break_commits("the disk is full")
    try:
        assert ground.ask("GET", "/healthz", None).status_code == 503
    finally:
        ground.harness.break_commits("")
    ground.add(f"{URL}health")
    pulse = Pulse(100.0)
    pulse.beat(ground.tracker, 100.5)
    assert troubles(ground.tracker, pulse, 101.0) == []
    assert "the loop is late" in troubles(ground.tracker, pulse, 120.0)
    pulse.beat(ground.tracker, 100.5 + STALLED_S + 1)
    assert "nothing is taken" in troubles(ground.tracker, pulse, 100.5 + STALLED_S + 1)


def test_access_logs_are_counted(ground: Ground) -> None:
    """Of pages that are known; lines that cannot be read are said, compressed logs refused."""
    ground.add(f"{URL}hit")
    line = b'1.2.3.4 - - [16/Nov/2026:08:00:00 +0000] "GET /hit HTTP/1.1" 200 5 "-" "Mozilla/5.0"\n'
    done = ground.ask(
        "POST", "/api/v1/hits", "write", params={"host": "pages.example"}, content=line + b"nonsense\n"
    ).json()
    assert done["lines"] == 2
    assert sum(done["refused"].values()) == 1
    assert ground.ask("POST", "/api/v1/hits", content=b"\x1f\x8b\x08").status_code == 415
    assert ground.ask("POST", "/api/v1/hits?host=%20", content=line).status_code == 422


def test_changes_of_some_kinds_fill_an_answer_and_none_is_missed(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever lies between them; a request looks through a bounded part of the log."""
    monkeypatch.setattr(changes_api, "MOST_LOOKED_AT", 10)
    store = ground.tracker.store
    begin = ground.run(store.last_cursor())
    kinds: list[ChangeKind] = ["removed" if number % 12 == 11 else "discovered" for number in range(48)]
    ground.run(store.append_changes([NewChange(kind, 1e9, "https://kinds.example/") for kind in kinds]))
    found, after = [], begin
    while True:
        answer = ground.ask("GET", f"/api/v1/changes?after={after}&kinds=removed&limit=2").json()
        found += [each["kind"] for each in answer["changes"]]
        if answer["next"] == answer["last"]:
            break
        assert after < answer["next"] <= after + 10
        after = answer["next"]
    assert found == ["removed"] * 4
    monkeypatch.undo()
    answer = ground.ask("GET", f"/api/v1/changes?after={begin}&kinds=removed&limit=3").json()
    assert len(answer["changes"]) == 3
    assert answer["next"] == answer["changes"][-1]["cursor"] == begin + 36
