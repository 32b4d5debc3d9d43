"""Every route against what floods and forged requests try, taken from the router and from the OpenAPI document."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
from service_ground import NAME, Ground, Service
from test_api_access import concrete, routes
from test_api_sessions import cookie_of, csrf_of, signed_in

from recrawl.service import middleware
from recrawl.service.app import make_app
from recrawl.service.auth.access import Quota, Quotas
from recrawl.service.auth.guard import OWN, PUBLIC
from recrawl.service.openapi import SAID

ENTRIES: dict[str, Any] = {
    "urls": "https://flood.example/",
    "names": "flood.example",
    "pages": {"url": "https://flood.example/"},
    "tokens": 1,
    "results": {"token": 1, "outcome": "missing"},
    "scopes": "read",
}
"""An entry of each list that a body may hold."""


def changing(ground: Ground) -> list[tuple[str, str]]:
    """Method and path of all routes that change something for whoever is signed in."""
    found = [(method, path) for method, path, scope in routes(ground) if scope not in (PUBLIC, OWN)]
    return [(method, path) for method, path in found if method not in ("GET", "HEAD")]


@pytest.fixture
def session(ground: Ground) -> dict[str, str]:
    """The cookie of somebody who is signed in and may do everything."""
    return cookie_of(signed_in(ground, ground.access.sessions.new_code(ground.access.now())))


def test_no_route_changes_anything_without_the_csrf_token_of_the_session(
    ground: Ground, session: dict[str, str]
) -> None:
    """Neither with none, a wrong one, nor as a form, which any site can make a browser send."""
    for method, path in changing(ground):
        for headers in ({}, {"X-CSRF-Token": "0" * 32}):
            answer = ground.ask(method, concrete(path), None, headers=session | headers, json={})
            assert answer.status_code == 403, (method, path)
        assert ground.ask(method, concrete(path), None, headers=session, data={"a": "b"}).status_code == 403


def test_no_route_takes_a_change_from_another_site(ground: Ground, session: dict[str, str]) -> None:
    """Even with the right token: someone may have read it."""
    right = session | {"X-CSRF-Token": csrf_of(ground, session)}
    for method, path in changing(ground):
        for elsewhere in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            answer = ground.ask(method, concrete(path), None, headers=right | elsewhere, json={})
            assert answer.status_code == 403, (method, path)


def test_reading_changes_nothing(ground: Ground) -> None:
    """Every GET, and what a store holds before and after."""
    ground.add("https://flood.example/read", "https://flood.example/only")

    async def held() -> tuple[object, ...]:
        store = ground.tracker.store
        return (
            (await store.counts()).pages,
            await store.last_cursor(),
            [(row.id, row.url, row.state, row.version) for row in await store.list_pages(limit=10_000, role=None)],
            await store.pending_signals(),
            await store.leases(),
            await store.paused(),
            await ground.access.records(),
        )

    ground.headers("admin")
    before = ground.run(held())
    for method, path, scope in routes(ground):
        if method == "GET" and scope != OWN and not path.endswith(("/stream", "/live")):
            assert ground.ask(method, concrete(path)).status_code < 500, path
    assert ground.run(held()) == before


@pytest.fixture(scope="module")
def document(ground: Ground) -> dict[str, Any]:
    found: dict[str, Any] = ground.ask("GET", "/api/v1/openapi").json()
    return found


def lists_of(document: dict[str, Any]) -> Iterator[tuple[str, str, str, int | None]]:
    """Method, path, field and bound of all lists in bodies."""
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            for content in operation.get("requestBody", {}).get("content", {}).values():
                name = content["schema"].get("$ref", "").rpartition("/")[2]
                fields = document["components"]["schemas"].get(name, {}).get("properties", {})
                for field, schema in fields.items():
                    if schema.get("type") == "array":
                        yield method.upper(), path, field, schema.get("maxItems")


def test_every_list_in_a_body_has_a_bound_that_holds(ground: Ground, document: dict[str, Any]) -> None:
    """One entry more, and the refusal names the list."""
    found = list(lists_of(document))
    assert len(found) >= 9
    for method, path, field, most in found:
        assert most is not None, (path, field)
        body: dict[str, Any] = {field: [ENTRIES[field]] * (most + 1)}
        body |= {"kind": "host"} if field == "names" else {}
        answer = ground.ask(method, path, json=body)
        assert answer.status_code == 422, (path, field, answer.text)
        assert answer.json()["error"]["field"] == field


def test_as_many_entries_as_a_body_holds_cost_some_times_its_bytes(ground: Ground) -> None:
    """They are refused, and what they took is given back."""
    path, field, most = "/api/v1/signals", "urls", 16 << 20
    entry = json.dumps(ENTRIES[field])
    count = most // (len(entry) + 1) - 10
    body = f'{{"{field}": [{",".join([entry] * count)}]}}'.encode()
    assert most - 10_000 < len(body) <= most
    ground.headers("admin")
    tracemalloc.start()
    try:
        answer = ground.ask("POST", path, content=body, headers={"Content-Type": "application/json"})
        left, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert answer.status_code == 422
    assert answer.json()["error"]["field"] == field
    assert peak < 7 * most + 20_000_000
    assert left < 10_000_000


def test_long_bodies_share_a_room(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one takes it, another long one is told to wait; short ones pass, and all do when it has ended."""
    monkeypatch.setattr(middleware, "MOST_HELD_BYTES", 3 << 20)
    headers = ground.headers("admin") | {"Content-Type": "application/json"}
    app: Any = make_app(ground.tracker, ground.access)

    async def asking() -> None:
        ended, began = asyncio.Event(), asyncio.Event()

        async def slow() -> AsyncIterator[bytes]:
            yield b" " * (3 << 20)
            began.set()
            await ended.wait()
            yield b"{"

        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{NAME}", headers=headers) as client:
            first = asyncio.ensure_future(client.post("/api/v1/pages", content=slow()))
            await began.wait()
            second = await client.post("/api/v1/pages", content=b" " * (3 << 20))
            assert (second.status_code, second.headers["retry-after"]) == (503, "1")
            assert (await client.post("/api/v1/pages", content=b"{")).status_code == 400
            ended.set()
            assert (await first).status_code == 400
            assert (await client.post("/api/v1/pages", content=b" " * (3 << 20))).status_code == 400

    ground.run(asking())


def test_every_parameter_that_says_how_many_has_a_bound(ground: Ground, document: dict[str, Any]) -> None:
    for path, operations in document["paths"].items():
        for each in operations.get("get", {}).get("parameters", ()):
            if each["name"] == "limit":
                most = each["schema"]["maximum"]
                asked = concrete(path)
                assert ground.ask("GET", asked, params={"limit": most + 1}).status_code == 422, path


def test_every_operation_lists_its_refusals_with_the_typed_error(document: dict[str, Any]) -> None:
    """Those that its scope, parameters and body make possible."""
    failure = {"$ref": "#/components/schemas/Failure"}
    assert set(document["components"]["schemas"]["Failure"]["required"]) == {"error"}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            listed = {int(status): each for status, each in operation["responses"].items()}
            refusals = {status: each for status, each in listed.items() if status >= 400}
            for status, each in refusals.items():
                assert each["content"]["application/json"]["schema"] == failure, (method, path, status)
                assert each["description"] == SAID[status]
            assert {429, 421, 503} <= set(refusals)
            if path.startswith("/api/v1"):
                assert {401, 403} <= set(refusals), (method, path)
            if "{" in path:
                assert 404 in refusals, (method, path)
            if "requestBody" in operation:
                assert {400, 413, 415, 422} <= set(refusals), (method, path)


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """A service that bears three wrong keys, and five requests of a client."""
    service = Service(
        tmp_path_factory.mktemp("floods"), quotas=Quotas(Quota(5, 0.001), Quota(1e9, 1e9), Quota(3, 0.001))
    )
    try:
        yield service.begin()
    finally:
        service.end()


def test_pings_have_a_quota_and_forged_ones_a_smaller_one(strict: Ground) -> None:
    """By key, wherever they come from; no flood of wrong keys keeps the right one out."""
    strict.headers("signal")
    key = strict.tokens["signal"]

    def ping(key: str) -> int:
        body = {"host": "flood.example", "key": key, "urlList": ["https://flood.example/"]}
        return strict.ask("POST", "/ping", None, json=body).status_code

    assert [ping("recrawl-0123456789ab-" + "0" * 64) for _ in range(6)] == [403] * 3 + [429] * 3
    assert [ping(key) for _ in range(7)] == [200] * 5 + [429] * 2
