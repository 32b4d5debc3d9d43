"""Callbacks of WebSub: hubs ask whether a subscription was meant, and tell when a source has changed.

The address of a callback cannot be guessed; a push counts only with the HMAC of the secret that its hub was given.
Everything else is answered as the recommendation says, and ignored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from litestar import Response, Router, get, post
from litestar.params import PathParameter

from recrawl.service.context import InTracker
from recrawl.service.failures import Asked, Refusal
from recrawl.service.guard import OWN
from recrawl.tracker.tracker import Tracker
from recrawl.web.websub import LONGEST_QUERY

if TYPE_CHECKING:
    from recrawl.tracker.discovery.discovery import Sources

_MOST_BYTES = 10 << 20
CallbackToken = Annotated[str, PathParameter(max_length=200, description="of the callback")]


@get("/websub/{token:str}", opt={"scope": OWN}, include_in_schema=False)
async def verify(request: Asked, tracker: InTracker, token: CallbackToken) -> Response[bytes]:
    """A hub asks whether a subscription is meant; its challenge is given back if so."""
    sources = _sources(tracker)
    query = request.scope["query_string"][: LONGEST_QUERY + 1].decode("latin-1")
    if sources is None:
        raise Refusal(404, "there is nothing here")
    answer = sources.subscriptions.verify(token, query)
    headers = {"Content-Security-Policy": "default-src 'none'; sandbox"}
    return Response(answer.body, status_code=answer.status, media_type=answer.content_type, headers=headers)


@post("/websub/{token:str}", opt={"scope": OWN}, include_in_schema=False, request_max_body_size=_MOST_BYTES)
async def push(request: Asked, tracker: InTracker, token: CallbackToken) -> Response[None]:
    """A hub says that a source has changed: 202 whether it is believed or not."""
    sources = _sources(tracker)
    body = await request.body()
    source = None
    if sources is not None:
        source = sources.subscriptions.pushed(token, request.headers.get("x-hub-signature", ""), body)
    if sources is not None and source is not None:
        sources.market.appraise(source)
    return Response(None, status_code=202)


def _sources(tracker: Tracker) -> Sources | None:
    from recrawl.tracker.discovery.discovery import Sources  # which a tracker without sources does not load

    sources = tracker.desk.sources
    return sources if isinstance(sources, Sources) else None


ROUTES = Router("/", route_handlers=[verify, push])
