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

from recrawl.service.auth.access import COOKIE
from recrawl.service.auth.guard import PUBLIC, count_failure
from recrawl.service.auth.sessions import SESSION_S
from recrawl.service.context import InAccess
from recrawl.service.dashboard.sign_in_page import PAGE, SCRIPT, STYLE
from recrawl.service.errors import Asked, Refusal


@get("/login", opt={"scope": PUBLIC}, include_in_schema=False, media_type=MediaType.HTML, sync_to_thread=False)
def sign_in_page() -> bytes:
    """The form."""
    return PAGE


@get("/login.js", opt={"scope": PUBLIC}, include_in_schema=False, media_type="text/javascript", sync_to_thread=False)
def sign_in_script() -> str:
    """Posts the code of a link."""
    return SCRIPT


@get("/login.css", opt={"scope": PUBLIC}, include_in_schema=False, media_type="text/css", sync_to_thread=False)
def sign_in_style() -> str:
    """How the form looks."""
    return STYLE


@post("/login", opt={"scope": PUBLIC}, include_in_schema=False)
async def sign_in(request: Asked, access: InAccess) -> Response[Any]:
    """Begin a session; the cookie cannot be read by scripts nor sent by other sites."""
    form = await request.form()
    begun = await access.sign_in(str(form.get("key", "")).strip())
    if begun is None:
        count_failure(request, access)
        raise Refusal(401, "the token is wrong, used or revoked", "key")
    secret, _ = begun
    cookie = Cookie(
        COOKIE,
        value=secret,
        path="/",
        max_age=int(SESSION_S),
        httponly=True,
        samesite="strict",
        secure=access.listening.behind_tls,
    )
    return Redirect("/", status_code=303, cookies=[cookie])


@post("/logout", opt={"scope": "read"}, include_in_schema=False)
async def sign_out(request: Asked, access: InAccess) -> Response[Any]:
    """End a session."""
    access.sessions.end(request.cookies.get(COOKIE, ""))
    answer = Redirect("/login", status_code=303)
    answer.delete_cookie(COOKIE)
    return answer


SIGN_IN = [sign_in_page, sign_in_script, sign_in_style, sign_in, sign_out]
