"""Outside fetchers lease pages, prolong them, and hand in what came, each result once."""

from __future__ import annotations

import base64
from typing import Any

from service_ground import Ground

MOST = 1e9  # worth more than whatever other tests have added, so that it comes first


def leased(ground: Ground, most: int) -> dict[str, dict[str, Any]]:
    """What there is to fetch, by address."""
    found = ground.ask("POST", "/api/v1/leases", "fetch", json={"n": most, "worker": "w1"}).json()["leases"]
    return {each["url"]: each for each in found}


def complete(ground: Ground, *results: dict[str, Any]) -> Any:
    return ground.ask("POST", "/api/v1/leases/complete", "fetch", json={"results": list(results)})


def until_leased(ground: Ground, url: str) -> dict[str, Any]:
    """The lease of one page; others are given back."""
    for _ in range(200):
        found = leased(ground, 5)
        others = [{"token": each["token"], "outcome": "deferred"} for each in found.values() if each["url"] != url]
        if others:
            complete(ground, *others)
        if url in found:
            return found[url]
    raise AssertionError("never leased")


def test_a_result_counts_once(ground: Ground) -> None:
    """Handed in again it is a duplicate; the history has it once."""
    url = "https://lease.example/once"
    (number,) = ground.add(url, importance=MOST)
    lease = until_leased(ground, url)
    result = {"token": lease["token"], "outcome": "ok", "status": 200, "text": "<p>hello</p>", "etag": '"v1"'}
    assert complete(ground, result).json() == {"answers": ["applied"]}
    assert complete(ground, result, result).json() == {"answers": ["duplicate", "duplicate"]}
    seen = ground.ask("GET", f"/api/v1/pages/{number}/observations").json()["observations"]
    assert [each["outcome"] for each in seen] == ["ok"]
    assert seen[0]["worker"].endswith("w1")
    text = ground.ask("GET", f"/api/v1/pages/{number}/text")
    assert text.text == "hello"
    assert "sandbox" in text.headers["content-security-policy"]
    assert text.headers["content-type"].startswith("text/plain")
    assert len(ground.ask("GET", f"/api/v1/pages/{number}/versions").json()["versions"]) == 1


def test_leases_are_prolonged_and_given_back(ground: Ground) -> None:
    url = "https://lease.example/back"
    ground.add(url, importance=MOST)
    lease = until_leased(ground, url)
    beat = {"tokens": [lease["token"], 10**12]}
    assert ground.ask("POST", "/api/v1/leases/heartbeat", "fetch", json=beat).json() == {"good": [lease["token"]]}
    assert complete(ground, {"token": lease["token"], "outcome": "deferred"}).json() == {"answers": ["applied"]}
    assert ground.ask("POST", "/api/v1/leases/heartbeat", "fetch", json=beat).json() == {"good": []}


def test_bodies_come_as_base64_too(ground: Ground) -> None:
    url = "https://lease.example/bytes"
    (number,) = ground.add(url, importance=MOST)
    body = base64.b64encode("<p>grüße</p>".encode("latin-1")).decode()
    result = {"outcome": "ok", "body": body, "content_type": "text/html; charset=iso-8859-1"}
    assert complete(ground, {"token": until_leased(ground, url)["token"]} | result).json()["answers"] == ["applied"]
    assert ground.ask("GET", f"/api/v1/pages/{number}/text").text == "grüße"


def test_results_that_cannot_be_are_named_by_their_row(ground: Ground) -> None:
    """Nothing of the batch is taken then."""
    good = {"token": 1, "outcome": "missing"}
    for wrong, field in [
        ({"token": 1, "outcome": "splendid"}, "results[1].outcome"),
        ({"token": 1, "outcome": "ok", "body": "not base64!"}, "results[1].body"),
        ({"token": 1, "outcome": "ok", "text": "a", "body": "YQ=="}, "results[1].text"),
        ({"token": -1, "outcome": "ok"}, "results[1].token"),
        ({"token": 1, "outcome": "ok", "elapsed_s": -5}, "results[1].elapsed_s"),
        ({"token": 1, "outcome": "ok"}, "body"),
    ]:
        answer = complete(ground, good, wrong)
        assert answer.status_code == 422, wrong
        assert (answer.json()["error"]["field"], answer.json()["error"]["row"]) == (field, 1)


def test_a_fetcher_sees_nothing_else(ground: Ground) -> None:
    """Its token opens neither pages nor changes."""
    assert ground.ask("GET", "/api/v1/pages", "fetch").status_code == 403
    assert ground.ask("POST", "/api/v1/signals", "fetch", json={"urls": ["https://a.example/"]}).status_code == 403
