"""What goes wrong, as answers: `{"error": {"code", "message", "field", "row"}}` with the status that fits.

`code` is for programs and does not change; `message` is one sentence for people; `field` points at what was wrong in
the request, `row` at the entry of a list, counted from 0. What is our own fault says nothing of our insides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from litestar import Request, Response
from litestar.datastructures import State
from litestar.exceptions import HTTPException, ValidationException

from recrawl.errors import InvalidInput, RecrawlError, StoreBusy, StoreError, StoreFull, UnknownPage, Unreachable
from recrawl.log import room_log

_LOG = room_log("service")
_PATH = re.compile(r"^(?P<said>.*?) - at `(?:key in )?\$\.?(?P<path>[^`]*)`$", re.DOTALL)
_ROW = re.compile(r"\[(\d+)\]")
_CODES = {
    400: "bad-request",
    401: "unauthorized",
    403: "forbidden",
    404: "not-found",
    405: "method-not-allowed",
    406: "not-acceptable",
    409: "conflict",
    411: "length-required",
    413: "too-large",
    415: "unsupported-media-type",
    421: "wrong-host",
    422: "invalid",
    429: "too-many-requests",
    503: "unavailable",
}
Asked = Request[Any, Any, State]


class ErrorBody(msgspec.Struct, frozen=True, omit_defaults=False):
    """What was wrong."""

    code: str
    message: str
    field: str | None = None
    row: int | None = None


class Failure(msgspec.Struct, frozen=True):
    """The answer to a request that was refused."""

    error: ErrorBody


class ApiError(Exception):
    """A request that is refused.

    Args:
        status: of HTTP.
        message: one sentence.
        field: what was wrong.
        row: of which entry.
        headers: of the answer.
    """

    def __init__(
        self,
        status: int,
        message: str,
        field: str | None = None,
        row: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.field = field
        self.row = row
        self.headers = dict(headers or {})


def answer(refusal: ApiError) -> Response[Failure]:
    """The answer to a refused request."""
    code = _CODES.get(refusal.status, "error")
    body = Failure(ErrorBody(code, refusal.message, refusal.field, refusal.row))
    return Response(body, status_code=refusal.status, headers=refusal.headers, media_type="application/json")


def pointed(message: str) -> tuple[str, str | None, int | None]:
    """What a decoder said, and the field and the row that it points at.

    >>> pointed("Expected `float`, got `str` - at `$.pages[2].importance`")
    ('Expected `float`, got `str`', 'pages[2].importance', 2)
    """
    found = _PATH.match(message)
    if found is None:
        return message, None, None
    row = _ROW.search(found["path"])
    return found["said"], found["path"] or None, int(row[1]) if row else None


def on_api_error(_request: Asked, error: ApiError) -> Response[Failure]:
    """Answer a request that a handler refused."""
    return answer(error)


def on_http(_request: Asked, error: HTTPException) -> Response[Failure]:
    """The framework's: no such route, a parameter that cannot be read, a body that is too long."""
    headers = {name: value for name, value in (error.headers or {}).items() if name.lower() in ("allow", "retry-after")}
    if isinstance(error, ValidationException) and isinstance(error.extra, list) and error.extra:
        first = error.extra[0] if isinstance(error.extra[0], dict) else {"message": str(error.extra[0])}
        if first.get("key") == "data":
            return answer(ApiError(400, "a body is needed"))
        said, path, row = pointed(str(first.get("message", error.detail)))
        return answer(ApiError(422, said, first.get("key") or path, row, headers))
    if error.status_code >= 500:
        return on_bug(_request, error)
    detail = error.detail if error.status_code != 404 else "there is nothing here"
    return answer(ApiError(error.status_code, detail or "the request cannot be answered", headers=headers))


def on_invalid(_request: Asked, error: InvalidInput) -> Response[Failure]:
    """A value that the tracker refuses, by the same rules as on the command line."""
    return answer(ApiError(422, str(error), error.field, error.row))


def on_recrawl(_request: Asked, error: RecrawlError) -> Response[Failure]:
    """Everything else that is raised on purpose."""
    if isinstance(error, UnknownPage):
        return answer(ApiError(404, str(error)))
    if isinstance(error, Unreachable):
        return answer(ApiError(422, str(error)))
    if isinstance(error, StoreError):
        wait = "5" if isinstance(error, (StoreBusy, StoreFull)) else "30"
        return answer(ApiError(503, "the store cannot do it now: try again", headers={"Retry-After": wait}))
    return answer(ApiError(400, str(error)))


def on_depth(_request: Asked, _error: RecursionError) -> Response[Failure]:
    """JSON that is nested deeper than anything we read."""
    return answer(ApiError(422, "the body is nested too deeply"))


def on_bug(request: Asked, error: Exception) -> Response[Failure]:
    """What should not be: told to whoever runs the service, not to whoever asks."""
    method, path = request.method, request.scope["path"]
    _LOG.error("%s %r ended in an error that should not be: %r", method, path, error, exc_info=error)
    return answer(ApiError(500, "something went wrong here; it was noted"))


HANDLERS: dict[int | type[Exception], Any] = {
    ApiError: on_api_error,
    HTTPException: on_http,
    InvalidInput: on_invalid,
    RecrawlError: on_recrawl,
    RecursionError: on_depth,
    Exception: on_bug,
}
