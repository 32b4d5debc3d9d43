"""Signed hooks: a program that shares a secret says which pages have changed (Standard Webhooks).

A hook is set up in the settings, `[[hooks]]`. A message with a wrong signature, an old time, or for a hook that does
not exist gets the same answer. One that comes again is answered as if it had been taken, for it has.
"""

from __future__ import annotations

from typing import Annotated

from litestar import Response, Router, post
from litestar.params import PathParameter

from recrawl.service.auth.guard import OWN, count_failure
from recrawl.service.auth.quota import retry_after
from recrawl.service.context import InAccess, InHand, InTracker
from recrawl.service.errors import Asked, Refusal
from recrawl.tracker.commands.commands import Signal
from recrawl.tracker.settings.settings import Settings
from recrawl.web.push.webhook import MOST_BYTES, ReplayMemory, read_secret, read_signed_ping
from recrawl.web.refused import Refused

KIND = "webhook"
_UNPROVEN = ("headers", "time", "signature")


def check_hooks(settings: Settings) -> None:
    """Refuse hooks whose secrets cannot be read, before anything listens."""
    for hook in settings.hooks:
        read_secret(hook.secret, f"hooks.{hook.name}.secret")


@post("/hooks/{name:str}", opt={"scope": OWN}, status_code=200, request_max_body_size=MOST_BYTES, tags=["signals"])
async def hook(
    request: Asked,
    access: InAccess,
    hand: InHand,
    tracker: InTracker,
    name: Annotated[str, PathParameter(max_length=200, description="of the hook")],
) -> Response[None]:
    """`{"urls": […]}`, signed: `webhook-id`, `webhook-timestamp`, `webhook-signature`."""
    secrets = [read_secret(each.secret, "secret") for each in tracker.settings.hooks if each.name == name]
    memory: ReplayMemory = request.app.state["replays"]
    body = await request.body()
    headers = {key.lower(): value for key, value in request.headers.items()}
    read = read_signed_ping(headers, body, secrets, access.now(), memory, rules=tracker.settings.address_rules)
    if isinstance(read, Refused):
        if read.rule == "replay":
            return Response(None, status_code=200)
        if read.rule in _UNPROVEN:
            count_failure(request, access)
            raise Refusal(401, "there is no such hook, or the message is not signed as it must be")
        raise Refusal(413 if read.rule == "too-long" else 422, read.reason)
    wait_s = access.known.wait_s(f"hook-{name}", access.now())
    if wait_s > 0:
        raise Refusal(429, "too many messages: wait a little", headers={"Retry-After": retry_after(wait_s)})
    if read.urls.urls:
        await hand.do(Signal(list(read.urls.urls), KIND), tracker.clock.now())
    return Response(None, status_code=200)


ROUTES = Router("/", route_handlers=[hook])
