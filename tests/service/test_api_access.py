"""Every route is closed unless it says otherwise: taken from the router, with no, wrong, weak and revoked tokens."""

from __future__ import annotations

import re

import pytest
from litestar.handlers import HTTPRouteHandler
from service_ground import Ground

from recrawl.service.auth.guard import OWN, PUBLIC
from recrawl.service.auth.tokens import SCOPES, allowed

OPEN = {
    ("GET", "/login"), ("POST", "/login"),
    ("GET", "/healthz"), ("GET", "/static/{name:str}"),
}  # fmt: skip
"""Routes that anybody may ask: they show no data."""
PROVEN = {
    ("GET", "/ping"), ("POST", "/ping"), ("GET", "/indexnow"), ("POST", "/indexnow"), ("POST", "/hooks/{name:str}"),
    ("GET", "/websub/{token:str}"), ("POST", "/websub/{token:str}"),
}  # fmt: skip
"""Routes that ask for a proof of their own; each has tests of its own."""


def routes(ground: Ground) -> list[tuple[str, str, str | None]]:
    """Method, path and scope of every route."""
    found: list[tuple[str, str, str | None]] = []
    for route in ground.app.routes:
        for handler in getattr(route, "route_handlers", ()):
            if isinstance(handler, HTTPRouteHandler):
                scope = handler.opt.get("scope")
                found += [(method, route.path, scope) for method in sorted(handler.http_methods) if method != "OPTIONS"]
    return found


def concrete(path: str) -> str:
    """A path with something in place of its parameters."""
    return re.sub(r"\{[^}]+\}", "1", path)


def test_every_route_says_what_it_needs(ground: Ground) -> None:
    """Those that are open are listed above, one by one."""
    found = routes(ground)
    assert len(found) > 40
    assert {(method, path) for method, path, scope in found if scope == PUBLIC} == OPEN
    assert {(method, path) for method, path, scope in found if scope == OWN} == PROVEN
    assert {scope for _, _, scope in found} <= {PUBLIC, OWN, *SCOPES}


@pytest.mark.parametrize("kind", ["none", "wrong", "revoked", "basic", "cookie"])
def test_closed_routes_stay_closed_without_a_good_token(ground: Ground, kind: str) -> None:
    """All of them answer 401; the dashboard may lead to where one signs in instead."""
    headers = {
        "none": {},
        "wrong": {"Authorization": "Bearer recrawl-0123456789ab-" + "0" * 64},
        "revoked": {"Authorization": f"Bearer {revoked(ground)}"},
        "basic": {"Authorization": "Basic YWRtaW46YWRtaW4="},
        "cookie": {"Cookie": "recrawl_session=" + "A" * 43},
    }[kind]
    for method, path, scope in routes(ground):
        if scope in (PUBLIC, OWN):
            continue
        answer = ground.ask(method, concrete(path), scope=None, headers=headers)
        assert answer.status_code == 401 or (
            answer.status_code == 303 and answer.headers["location"] == "/login" and not path.startswith("/api")
        ), (method, path, answer.status_code)


def revoked(ground: Ground) -> str:
    """A token that may do everything, and no longer may."""

    async def making() -> str:
        token, record = await ground.access.make(["admin"], "soon revoked")
        await ground.access.revoke(record.id)
        return token

    return ground.run(making())


@pytest.mark.parametrize("scope", SCOPES)
def test_a_token_opens_what_its_scope_allows_and_nothing_else(ground: Ground, scope: str) -> None:
    """Elsewhere it is 403, whatever is asked."""
    may = allowed([scope])  # type: ignore[list-item]
    for method, path, needed in routes(ground):
        if needed in (PUBLIC, OWN) or path.endswith(("/stream", "/live")):
            continue
        if needed in may:
            if method == "GET" or scope == "admin":
                continue  # what they do is tested elsewhere
            answer = ground.ask(
                method, concrete(path), scope, content=b"{", headers={"Content-Type": "application/json"}
            )
            assert answer.status_code not in (401, 403), (method, path)
        else:
            answer = ground.ask(method, concrete(path), scope)
            assert answer.status_code == 403, (method, path, answer.status_code)


def test_tokens_are_kept_as_digests_only(ground: Ground) -> None:
    """Nothing in the store's facts holds a token or its secret."""
    ground.headers("read")
    facts = "".join(ground.run(ground.tracker.store.facts()).values())
    for token in ground.tokens.values():
        assert token not in facts
        assert token.rpartition("-")[2] not in facts


def test_the_first_token_is_made_once(ground: Ground) -> None:
    """There are tokens by now, so there is no first one any more."""
    ground.headers("admin")
    assert ground.run(ground.access.first_token()) is None


def test_tokens_are_made_listed_and_revoked_over_http(ground: Ground) -> None:
    """A token is in the answer once; from its end on it opens nothing."""
    made = ground.ask("POST", "/api/v1/tokens", json={"scopes": ["read"], "name": "a reader"}).json()
    bearer = {"Authorization": f"Bearer {made['token']}"}
    assert ground.ask("GET", "/api/v1/status", None, headers=bearer).status_code == 200
    listed = {each["id"]: each for each in ground.ask("GET", "/api/v1/tokens").json()["tokens"]}
    assert listed[made["id"]]["token"] is None
    assert ground.ask("DELETE", f"/api/v1/tokens/{made['id']}").json()["revoked_at"] is not None
    assert ground.ask("GET", "/api/v1/status", None, headers=bearer).status_code == 401
    assert ground.ask("DELETE", "/api/v1/tokens/nobody").status_code == 404
