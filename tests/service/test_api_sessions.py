"""People sign in with a code or a token; what they change needs the CSRF token of their session."""

from __future__ import annotations

import httpx
import pytest
from service_ground import NAME, Ground

from recrawl.service.auth.access import COOKIE

CHANGE = ("POST", "/api/v1/pause")
BODY = {"kind": "host", "names": ["nobody.example"]}


def signed_in(ground: Ground, key: str) -> httpx.Response:
    return ground.ask("POST", "/login", None, data={"key": key})


def cookie_of(answer: httpx.Response) -> dict[str, str]:
    return {"Cookie": f"{COOKIE}={answer.cookies[COOKIE]}"}


def csrf_of(ground: Ground, headers: dict[str, str]) -> str:
    session = ground.access.sessions.find(headers["Cookie"].partition("=")[2], ground.access.now())
    assert session is not None
    return session.csrf


def test_a_code_signs_in_once(ground: Ground) -> None:
    """The second time it opens nothing."""
    code = ground.access.sessions.new_code(ground.access.now())
    first = signed_in(ground, code)
    assert (first.status_code, first.headers["location"]) == (303, "/")
    said = first.headers["set-cookie"].lower()
    assert "httponly" in said
    assert "samesite=strict" in said
    assert ground.ask("GET", "/api/v1/status", None, headers=cookie_of(first)).status_code == 200
    assert signed_in(ground, code).status_code == 401


def test_a_code_runs_out() -> None:
    """After ten minutes."""
    from recrawl.service.auth.access import CODE_S, Sessions

    sessions = Sessions()
    code = sessions.new_code(1000.0)
    assert not sessions.use_code(code, 1000.0 + CODE_S + 1)


def test_changes_need_the_csrf_token_of_the_session(ground: Ground) -> None:
    """As a header; reading needs none, and bearer tokens neither."""
    cookie = cookie_of(signed_in(ground, ground.access.sessions.new_code(ground.access.now())))
    method, path = CHANGE
    assert ground.ask(method, path, None, headers=cookie, json=BODY).status_code == 403
    wrong = cookie | {"X-CSRF-Token": "x"}
    assert ground.ask(method, path, None, headers=wrong, json=BODY).status_code == 403
    right = cookie | {"X-CSRF-Token": csrf_of(ground, cookie)}
    assert ground.ask(method, path, None, headers=right, json=BODY).status_code == 200
    assert ground.ask(method, path, json=BODY).status_code == 200


def test_what_a_browser_sends_from_our_own_pages_passes(ground: Ground) -> None:
    """With its origin, as browsers add it."""
    ours = {"Origin": f"http://{NAME}", "Sec-Fetch-Site": "same-origin"}
    code = ground.access.sessions.new_code(ground.access.now())
    begun = ground.ask("POST", "/login", None, headers=ours, data={"key": code})
    assert begun.status_code == 303
    right = cookie_of(begun) | {"X-CSRF-Token": csrf_of(ground, cookie_of(begun))} | ours
    assert ground.ask(*CHANGE, None, headers=right, json=BODY).status_code == 200


def test_forms_carry_it_as_a_field(ground: Ground) -> None:
    """Without it nobody is signed out."""
    cookie = cookie_of(signed_in(ground, ground.access.sessions.new_code(ground.access.now())))
    assert ground.ask("POST", "/logout", None, headers=cookie, data={"a": "b"}).status_code == 403
    right = {"csrf_token": csrf_of(ground, cookie)}
    assert ground.ask("POST", "/logout", None, headers=cookie, data=right).status_code == 303
    assert ground.ask("GET", "/api/v1/status", None, headers=cookie).status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": f"http://{NAME}:9"},
    ],
)
def test_what_another_site_sends_is_refused(ground: Ground, headers: dict[str, str]) -> None:
    """Even with the right CSRF token, and on the form to sign in."""
    cookie = cookie_of(signed_in(ground, ground.access.sessions.new_code(ground.access.now())))
    right = cookie | {"X-CSRF-Token": csrf_of(ground, cookie)} | headers
    assert ground.ask(*CHANGE, None, headers=right, json=BODY).status_code == 403
    assert ground.ask("POST", "/login", None, headers=headers, data={"key": "x"}).status_code == 403


def test_a_session_ends_with_its_token(ground: Ground) -> None:
    """And has no more rights than that had."""

    async def making() -> tuple[str, str]:
        token, record = await ground.access.make(["read"], "for a session")
        return token, record.id

    token, number = ground.run(making())
    cookie = cookie_of(signed_in(ground, token))
    right = cookie | {"X-CSRF-Token": csrf_of(ground, cookie)}
    assert ground.ask("GET", "/api/v1/status", None, headers=cookie).status_code == 200
    assert ground.ask(*CHANGE, None, headers=right, json=BODY).status_code == 403
    ground.run(ground.access.revoke(number))
    assert ground.ask("GET", "/api/v1/status", None, headers=cookie).status_code == 401


def test_nothing_redirects_to_where_a_client_says(ground: Ground) -> None:
    """There is no parameter for it."""
    for path in ("/login?next=//evil.example", "/login?next=/%5Cevil.example", "//evil.example/login"):
        answer = ground.ask("GET", path, None)
        assert "location" not in answer.headers
