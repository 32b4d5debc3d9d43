"""The application: routes of the API, of what others send, and of the dashboard, behind one guard.

    middleware.py   names of hosts, encodings, headers of every answer
    auth/           who asks, and whether they may
    api/            a module for each kind of thing, under /api/v1
    incoming/       what others send: pings, signed hooks, WebSub
    dashboard/      pages for people
    monitor/        measures the tracker, and gives events to streams

A handler asks for `service: InService`, and says its scope in `opt`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

from litestar import Litestar, Response, Router
from litestar.config.app import AppConfig
from litestar.datastructures import State
from litestar.di import Provide
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme
from litestar.types import ASGIApp, ControllerRouterHandler

from recrawl.service.api import about, changes, leases, pages, signals, tokens
from recrawl.service.auth.access import Access
from recrawl.service.auth.guard import check_form, need_scope
from recrawl.service.context import Service
from recrawl.service.dashboard import routes, sign_in
from recrawl.service.errors import HANDLERS, ApiError, Asked
from recrawl.service.incoming import hooks, pings
from recrawl.service.incoming.pings import SiteKeys
from recrawl.service.middleware import Remembered, answered_before, remember, shielded
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
    service = Service(
        tracker,
        access,
        Watch(tracker) if watch is None else watch,
        Pulse(time.monotonic()) if pulse is None else pulse,
        ChangeFeed(tracker),
        CommandHandler(tracker.store, tracker.settings, tracker),
    )
    app = ServiceApp(
        access,
        route_handlers=_routes(),
        state=State(
            {
                "service": service,
                "access": access,
                "replays": ReplayMemory(),
                "site_keys": SiteKeys(tracker, lambda ping: pings.hear(service, ping)),
                "answers": Remembered(),
            }
        ),
        dependencies={"service": Provide(lambda: service, sync_to_thread=False)},
        guards=[need_scope],
        before_request=_before,
        before_send=[remember],
        exception_handlers={**HANDLERS, ApiError: sign_in.refused},
        request_max_body_size=MOST_BODY_BYTES,
        openapi_config=_openapi(),
        on_app_init=[_quiet],
        debug=False,
        pdb_on_exception=False,
        logging_config=None,
    )
    list_refusals(app)
    return app


async def _before(request: Asked) -> Response[Any] | None:
    """After the guard, before the route: forms prove that they were meant; what was answered is answered again."""
    await check_form(request)
    return await answered_before(request)


def _routes() -> Sequence[ControllerRouterHandler]:
    rooms = (pages, leases, signals, changes, about, tokens, pings, hooks)
    return [*sign_in.SIGN_IN, signals.IMPORTS, about.healthz, *(room.ROUTES for room in rooms), *routes.ROUTES]


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
