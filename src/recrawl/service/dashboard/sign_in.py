"""Signing in and out, for people: a code or a token becomes the cookie of a session.

The link that is printed at the start carries its code behind `#`, which browsers send to nobody: it is in no log and
no `Referer`. A script of this page reads it and posts the form.
"""

from __future__ import annotations

from typing import Any

from litestar import Response, get, post
from litestar.datastructures import Cookie
from litestar.enums import MediaType
from litestar.response import Redirect

from recrawl.service.auth.access import COOKIE, SESSION_S
from recrawl.service.auth.guard import PUBLIC, count_failure
from recrawl.service.context import InService
from recrawl.service.dashboard.rendering import render
from recrawl.service.errors import ApiError, Asked, answer


@get("/login", opt={"scope": PUBLIC}, include_in_schema=False, media_type=MediaType.HTML, sync_to_thread=False)
def sign_in_page() -> str:
    """The form."""
    return render("login.html")


@post("/login", opt={"scope": PUBLIC}, include_in_schema=False)
async def sign_in(request: Asked, service: InService) -> Response[Any]:
    """Begin a session; the cookie cannot be read by scripts nor sent by other sites."""
    form = await request.form()
    begun = await service.access.sign_in(str(form.get("key", "")).strip())
    if begun is None:
        count_failure(request, service.access)
        raise ApiError(401, "the token is wrong, used or revoked", "key")
    secret, _ = begun
    cookie = Cookie(
        COOKIE,
        value=secret,
        path="/",
        max_age=int(SESSION_S),
        httponly=True,
        samesite="strict",
        secure=service.access.listening.behind_tls,
    )
    return Redirect("/", status_code=303, cookies=[cookie])


@post("/logout", opt={"scope": "read"}, include_in_schema=False)
async def sign_out(request: Asked, service: InService) -> Response[Any]:
    """End a session."""
    service.access.sessions.end(request.cookies.get(COOKIE, ""))
    gone = Redirect("/login", status_code=303)
    gone.delete_cookie(COOKIE)
    return gone


def refused(request: Asked, error: ApiError) -> Response[Any]:
    """Answer a refused request; a browser that asks for a page without a session gets the form to sign in."""
    html = "text/html" in request.headers.get("accept", "") and not request.scope["path"].startswith("/api/")
    if html and error.status == 401:
        return Response(render("login.html"), status_code=401, headers=error.headers, media_type=MediaType.HTML)
    return answer(error)


SIGN_IN = [sign_in_page, sign_in, sign_out]
