"""Callbacks of WebSub: hubs ask whether a subscription was meant, and tell when a source has changed.

The address of a callback cannot be guessed; a push counts only with the HMAC of the secret that its hub was given.
Everything else is answered as the recommendation says, and ignored.
"""

from __future__ import annotations

from typing import Annotated

from litestar import Response, Router, get, post
from litestar.params import PathParameter

from recrawl.service.auth.guard import OWN
from recrawl.service.context import InTracker
from recrawl.service.errors import Asked, Refusal
from recrawl.web.push.websub import LONGEST_QUERY

_MOST_BYTES = 10 << 20
CallbackToken = Annotated[str, PathParameter(max_length=200, description="of the callback")]


@get("/websub/{token:str}", opt={"scope": OWN}, include_in_schema=False)
async def verify(request: Asked, tracker: InTracker, token: CallbackToken) -> Response[bytes]:
    """A hub asks whether a subscription is meant; its challenge is given back if so."""
    query = request.scope["query_string"][: LONGEST_QUERY + 1].decode("latin-1")
    if not tracker.discovery.enabled:
        raise Refusal(404, "there is nothing here")
    answer = tracker.discovery.subscriptions.verify(token, query)
    headers = {"Content-Security-Policy": "default-src 'none'; sandbox"}
    return Response(answer.body, status_code=answer.status, media_type=answer.content_type, headers=headers)


@post("/websub/{token:str}", opt={"scope": OWN}, include_in_schema=False, request_max_body_size=_MOST_BYTES)
async def push(request: Asked, tracker: InTracker, token: CallbackToken) -> Response[None]:
    """A hub says that a source has changed: 202 whether it is believed or not."""
    discovery, body = tracker.discovery, await request.body()
    source = discovery.subscriptions.pushed(token, request.headers.get("x-hub-signature", ""), body)
    if source is not None:
        discovery.market.appraise(source)
    return Response(None, status_code=202)


ROUTES = Router("/", route_handlers=[verify, push])
