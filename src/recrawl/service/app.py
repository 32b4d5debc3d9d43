"""The application: routes of the API, of signing in, of the dashboard if it is there, behind one guard.

    shield.py    names of hosts, encodings, headers of every answer
    guard.py     who asks, and whether they may
    api/         a module for each kind of thing, under /api/v1
    incoming/    what others send: pings, signed hooks, WebSub
    dashboard/   pages for people

A handler asks for `tracker: InTracker` and `access: InAccess`, and says its scope in `opt`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

from litestar import Litestar, Response, Router
from litestar.config.app import AppConfig
from litestar.datastructures import State
from litestar.di import Provide
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme
from litestar.types import ASGIApp, ControllerRouterHandler

from recrawl.service import api_page
from recrawl.service.api import about, changes, hits, imports, leases, pages, signals, tokens
from recrawl.service.auth.access import Access
from recrawl.service.auth.guard import check_form, need_scope
from recrawl.service.auth.site_keys import SiteKeys
from recrawl.service.dashboard.login import SIGN_IN
from recrawl.service.errors import HANDLERS, Asked
from recrawl.service.idempotency import Remembered, answered_before, remember
from recrawl.service.incoming import hooks, pings, websub
from recrawl.service.middleware import shielded
from recrawl.service.monitor import health
from recrawl.service.monitor.change_feed import ChangeFeed
from recrawl.service.monitor.health import Pulse
from recrawl.service.monitor.monitor import Watch
from recrawl.service.openapi import list_refusals
from recrawl.tracker.commands.commands import CommandHandler
from recrawl.tracker.tracker import Tracker
from recrawl.version import __version__
from recrawl.web.push.webhook import ReplayMemory

MOST_BODY_BYTES = 1 << 20
"""Of a body, unless a route says otherwise."""


class ServiceApp(Litestar):
    """The application behind its outer wall, so that nobody serves it without."""

    def __init__(self, access: Access, **settings: Any) -> None:
        self._inner: ASGIApp = super().__call__
        self._outer = shielded(self._inner, access.listening)
        super().__init__(**settings)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        await self._outer(scope, receive, send)


def make_app(tracker: Tracker, access: Access, watch: Watch | None = None, pulse: Pulse | None = None) -> Litestar:
    """The application over a tracker that runs in this loop.

    Args:
        tracker: whose pages these are.
        access: who may do what.
        watch: measures the tracker; a new one if there is none yet.
        pulse: of the loop.
    """
    hand = CommandHandler(tracker.store, tracker.settings, tracker)
    given = {
        "tracker": tracker,
        "access": access,
        "watch": Watch(tracker) if watch is None else watch,
        "hand": hand,
        "feed": ChangeFeed(tracker),
    }
    site_keys = SiteKeys(tracker, lambda ping: pings.hear(hand, tracker, ping))
    kept = {"pulse": Pulse(time.monotonic()) if pulse is None else pulse}
    app = ServiceApp(
        access,
        route_handlers=_routes(),
        state=State({**given, **kept, "replays": ReplayMemory(), "site_keys": site_keys, "answers": Remembered()}),
        dependencies={name: Provide(_giver(value), sync_to_thread=False) for name, value in given.items()},
        guards=[need_scope],
        before_request=_before,
        before_send=[remember],
        exception_handlers=HANDLERS,
        request_max_body_size=MOST_BODY_BYTES,
        openapi_config=_openapi(),
        on_app_init=[_quiet],
        debug=False,
        pdb_on_exception=False,
        logging_config=None,
    )
    list_refusals(app)
    return app


def _giver(value: object) -> Callable[[], Any]:
    return lambda: value


async def _before(request: Asked) -> Response[Any] | None:
    """After the guard, before the route: forms prove that they were meant; what was answered is answered again."""
    await check_form(request)
    return await answered_before(request)


def _routes() -> Sequence[ControllerRouterHandler]:
    rooms = (pages, imports, leases, signals, hits, changes, about, tokens, health, pings, hooks, websub, api_page)
    routes: list[ControllerRouterHandler] = [*SIGN_IN, *(room.ROUTES for room in rooms)]
    if find_spec("recrawl.service.dashboard.routes") is not None:
        from recrawl.service.dashboard.routes import ROUTES

        routes.extend(ROUTES)  # type: ignore[arg-type]  # routers and handlers
    return routes


def _openapi() -> OpenAPIConfig:
    """The document at /api/v1/openapi; its pages would load scripts from elsewhere, so there are none."""
    return OpenAPIConfig(
        title="recrawl",
        version=__version__,
        description="The tracker over HTTP. Times are ISO 8601 in UTC, durations are seconds.",
        use_handler_docstrings=True,
        render_plugins=[JsonRenderPlugin(path="/openapi.json")],
        openapi_router=Router("/api/v1/openapi", route_handlers=[], include_in_schema=False, opt={"scope": "read"}),
        components=Components(security_schemes={"token": SecurityScheme(type="http", scheme="bearer")}),
        security=[{"token": []}],
    )


def _quiet(config: AppConfig) -> AppConfig:
    """What goes wrong is logged once, by `errors.on_bug`."""
    logging.getLogger("litestar").addHandler(logging.NullHandler())
    return config
