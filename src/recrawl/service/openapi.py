"""The refusals of each route in the OpenAPI document: which statuses it may answer with, all with the same typed error.

What follows from a route is derived from it: its scope, whether it has parameters, a body, a name in its path. What
only its handler knows is in the table.
"""

from __future__ import annotations

from collections.abc import Iterator

from litestar import Litestar
from litestar.handlers import HTTPRouteHandler
from litestar.openapi.datastructures import ResponseSpec
from litestar.routes import HTTPRoute

from recrawl.service.auth.guard import OWN, PUBLIC
from recrawl.service.errors import Failure

SAID = {
    400: "The request cannot be read.",
    401: "There is no token, or it is wrong or revoked.",
    403: "The token does not allow it, or a session did not prove that it was meant.",
    404: "There is no such thing.",
    409: "Not as things are now.",
    413: "The body is too long, or a list in it.",
    415: "The body is compressed, or not of a kind that is read.",
    421: "The service does not go by the name in Host.",
    422: "A value cannot be used: `field` says which, `row` of which entry.",
    429: "Too often: Retry-After says how long to wait.",
    503: "It cannot be done now: Retry-After says how long to wait.",
}
"""What statuses mean; the same for every route."""

_EVERY = (421, 429, 503)
_OF_BODIES = (400, 413, 415, 422)
_WITH_BODY = ("POST", "PATCH", "PUT")
_ALSO: dict[str, tuple[int, ...]] = {
    "change_page": (409,),  # a page that is no longer tracked
    "text": (409,),  # Markdown cannot be made here
    "explain_url": (404,),
    "ping": (403,),
    "ping_one": (400, 403, 422),
    "hook": (401,),
}
_TAKEN = {
    name: {202: ResponseSpec(None, description="It is heard once the key is found.")} for name in ("ping", "ping_one")
}


def list_refusals(app: Litestar) -> None:
    """Note the refusals of all routes of an application, before its document is made."""
    for route in app.routes:
        if isinstance(route, HTTPRoute):
            for handler in route.route_handlers:
                if handler.resolve_include_in_schema():
                    listed = {status: _spec(status) for status in sorted(set(_statuses(route, handler)))}
                    handler.responses = {**listed, **_TAKEN.get(handler.handler_name, {})}


def _spec(status: int) -> ResponseSpec:
    return ResponseSpec(Failure, generate_examples=False, description=SAID[status])


def _statuses(route: HTTPRoute, handler: HTTPRouteHandler) -> Iterator[int]:
    yield from _EVERY
    yield from _ALSO.get(handler.handler_name, ())
    if handler.opt.get("scope") not in (PUBLIC, OWN):
        yield from (401, 403)
    if route.path_parameters:
        yield 404
    if handler.http_methods & set(_WITH_BODY):
        yield from _OF_BODIES
        yield 403  # what a browser sends on behalf of another site
        if handler.opt.get("scope") != OWN:
            yield 409  # the same request is under way, by its Idempotency-Key
    if set(handler.parsed_fn_signature.parameters) - _GIVEN:
        yield from (400, 422)


_GIVEN = {"service", "request"}  # what handlers are given that is no part of a request
