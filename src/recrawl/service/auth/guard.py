"""At the door of every route: who asks, whether they may, how often, and whether they meant to.

A route says what it needs in `opt={"scope": …}`: a scope of a token, `public`, or `own` if it asks for a proof of its
own (a signature, a key). A route that says nothing is closed.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from litestar.connection import ASGIConnection
from litestar.handlers.base import BaseRouteHandler

from recrawl.service.auth.access import COOKIE, Access, Caller, retry_after, same
from recrawl.service.errors import ApiError, Asked
from recrawl.service.listening import network_of

PUBLIC, OWN = "public", "own"
_SAFE = ("GET", "HEAD", "OPTIONS")
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
_FORWARDED = "x-forwarded-for"  # no other header is read: a proxy may pass on those that it does not write
_CSRF_FIELD, _CSRF_HEADER = "csrf_token", "x-csrf-token"
Connection = ASGIConnection[Any, Any, Any, Any]


async def need_scope(connection: Connection, handler: BaseRouteHandler) -> None:
    """Let a request pass, or refuse it; `connection.auth` is the `Caller` from then on, None on open routes."""
    access: Access = connection.app.state["access"]
    needed = handler.opt.get("scope")
    caller = await who(connection, access)
    connection.scope["auth"] = caller
    _check_quota(connection, access, caller)
    if connection.scope.get("method", "GET") not in _SAFE and "authorization" not in connection.headers:
        _check_origin(connection)
    if needed in (PUBLIC, OWN):
        return
    if caller is None:
        raise _unauthorized(connection, access)
    if needed not in caller.scopes:
        raise ApiError(403, f"this token does not allow it: the scope {needed} is needed")
    if caller.session is not None:
        _check_csrf_header(connection, caller)


async def who(connection: Connection, access: Access) -> Caller | None:
    """Who asks, by bearer token or session; None if nobody that is known."""
    kind, _, token = connection.headers.get("authorization", "").partition(" ")
    if kind:
        return await access.by_token(token.strip()) if kind.lower() == "bearer" else None
    cookie = connection.cookies.get(COOKIE)
    return await access.by_cookie(cookie) if cookie else None


def client_of(connection: Connection) -> str:
    """Return the address of the client, of IPv6 its /64 network; a proxy that the settings name may say it."""
    access: Access = connection.app.state["access"]
    peer = connection.client.host if connection.client is not None else "local"
    return network_of(access.listening.client_of(peer, ",".join(connection.headers.getall(_FORWARDED, []))))


def _check_quota(connection: Connection, access: Access, caller: Caller | None) -> None:
    now = access.now()
    if caller is None:
        wait_s = access.strangers.wait_s(client_of(connection), now)
    else:
        wait_s = access.known.wait_s(caller.name, now)
    if wait_s > 0:
        raise ApiError(429, "too many requests: wait a little", headers={"Retry-After": retry_after(wait_s)})


def count_failure(connection: Connection, access: Access) -> None:
    """A wrong token, code or key: allowed ten times, then once in five seconds; right ones pass at any time."""
    wait_s = access.failures.wait_s(client_of(connection), access.now())
    if wait_s > 0:
        raise ApiError(429, "too many wrong tokens: wait a little", headers={"Retry-After": retry_after(wait_s)})


def _unauthorized(connection: Connection, access: Access) -> ApiError:
    if "authorization" in connection.headers or COOKIE in connection.cookies:
        count_failure(connection, access)
        said = "the token is wrong or revoked"
    else:
        said = "a token is needed: Authorization: Bearer recrawl-…"
    return ApiError(401, said, headers={"WWW-Authenticate": 'Bearer realm="recrawl"'})


def _check_origin(connection: Connection) -> None:
    """Whatever a browser sends on behalf of another site is refused; programs send neither header."""
    site = connection.headers.get("sec-fetch-site", "same-origin")
    origin = connection.headers.get("origin")
    host = connection.headers.get("host", "")
    if site not in ("same-origin", "none") or (origin is not None and urlsplit(origin).netloc != host):
        raise ApiError(403, "requests that change something must come from this site itself")


def _check_csrf_header(connection: Connection, caller: Caller) -> None:
    """A session needs its CSRF token with every change; for forms `check_form` looks at the field."""
    if connection.scope.get("method", "GET") in _SAFE or _is_form(connection):
        return
    assert caller.session is not None
    if not same(connection.headers.get(_CSRF_HEADER, ""), caller.session.csrf):
        raise ApiError(403, "the CSRF token of the session is missing or wrong", "X-CSRF-Token")


async def check_form(request: Asked) -> None:
    """The CSRF token of a session as a field of a form."""
    caller = request.scope.get("auth")
    if not isinstance(caller, Caller) or caller.session is None or request.method in _SAFE or not _is_form(request):
        return
    if request.route_handler.opt.get("scope") in (PUBLIC, OWN):  # such as signing in as someone else
        return
    given = (await request.form()).get(_CSRF_FIELD, "")
    if not same(str(given), caller.session.csrf):
        raise ApiError(403, "the CSRF token of the session is missing or wrong", _CSRF_FIELD)


def _is_form(connection: Connection) -> bool:
    kind = connection.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind in _FORMS
