"""Signed hooks and callbacks of WebSub: others say which pages have changed, and prove who they are.

A hook is set up in the settings, `[[hooks]]`, and signed with a shared secret (Standard Webhooks). A message with a
wrong signature, an old time, or for a hook that does not exist gets the same answer. One that comes again is answered
as if it had been taken.

The address of a WebSub callback cannot be guessed; a push counts only with the HMAC of the secret that its hub got.
Everything else is answered as the recommendation says, and ignored.
"""

from __future__ import annotations

from typing import Annotated

from litestar import Response, Router, get, post
from litestar.params import PathParameter

from recrawl.service.auth.access import retry_after
from recrawl.service.auth.guard import OWN, count_failure
from recrawl.service.context import InService
from recrawl.service.errors import ApiError, Asked
from recrawl.tracker.commands.commands import Signal
from recrawl.tracker.settings.settings import Settings
from recrawl.web.push.webhook import MOST_BYTES, ReplayMemory, read_secret, read_signed_ping
from recrawl.web.push.websub import LONGEST_QUERY
from recrawl.web.refused import Refused

KIND = "webhook"
_MOST_PUSHED_BYTES = 10 << 20
CallbackToken = Annotated[str, PathParameter(max_length=200, description="of the callback")]
_UNPROVEN = ("headers", "time", "signature")


def check_hooks(settings: Settings) -> None:
    """Refuse hooks whose secrets cannot be read, before anything listens."""
    for hook in settings.hooks:
        read_secret(hook.secret, f"hooks.{hook.name}.secret")


@post("/hooks/{name:str}", opt={"scope": OWN}, status_code=200, request_max_body_size=MOST_BYTES, tags=["signals"])
async def hook(
    request: Asked,
    service: InService,
    name: Annotated[str, PathParameter(max_length=200, description="of the hook")],
) -> Response[None]:
    """`{"urls": […]}`, signed: `webhook-id`, `webhook-timestamp`, `webhook-signature`."""
    secrets = [read_secret(each.secret, "secret") for each in service.settings.hooks if each.name == name]
    memory: ReplayMemory = request.app.state["replays"]
    body = await request.body()
    headers = {key.lower(): value for key, value in request.headers.items()}
    read = read_signed_ping(headers, body, secrets, service.access.now(), memory, rules=service.settings.address_rules)
    if isinstance(read, Refused):
        if read.rule == "replay":
            return Response(None, status_code=200)
        if read.rule in _UNPROVEN:
            count_failure(request, service.access)
            raise ApiError(401, "there is no such hook, or the message is not signed as it must be")
        raise ApiError(413 if read.rule == "too-long" else 422, read.reason)
    wait_s = service.access.known.wait_s(f"hook-{name}", service.access.now())
    if wait_s > 0:
        raise ApiError(429, "too many messages: wait a little", headers={"Retry-After": retry_after(wait_s)})
    if read.urls.urls:
        await service.run(Signal(list(read.urls.urls), KIND))
    return Response(None, status_code=200)


@get("/websub/{token:str}", opt={"scope": OWN}, include_in_schema=False)
async def verify(request: Asked, service: InService, token: CallbackToken) -> Response[bytes]:
    """A hub asks whether a subscription is meant; its challenge is given back if so."""
    query = request.scope["query_string"][: LONGEST_QUERY + 1].decode("latin-1")
    if not service.tracker.discovery.enabled:
        raise ApiError(404, "there is nothing here")
    answer = service.tracker.discovery.subscriptions.verify(token, query)
    headers = {"Content-Security-Policy": "default-src 'none'; sandbox"}
    return Response(answer.body, status_code=answer.status, media_type=answer.content_type, headers=headers)


@post("/websub/{token:str}", opt={"scope": OWN}, include_in_schema=False, request_max_body_size=_MOST_PUSHED_BYTES)
async def push(request: Asked, service: InService, token: CallbackToken) -> Response[None]:
    """A hub says that a source has changed: 202 whether it is believed or not."""
    discovery, body = service.tracker.discovery, await request.body()
    source = discovery.subscriptions.pushed(token, request.headers.get("x-hub-signature", ""), body)
    if source is not None:
        discovery.market.appraise(source)
    return Response(None, status_code=202)


ROUTES = Router("/", route_handlers=[hook, verify, push])
