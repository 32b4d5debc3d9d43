"""The API for people: one page made from the OpenAPI document, without a script and without the internet."""

from __future__ import annotations

from html import escape
from typing import Any

from litestar import Router, get
from litestar.enums import MediaType

from recrawl.service.errors import Asked

_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>API - recrawl</title>
<link rel="stylesheet" href="/api.css">
</head>
<body>
<main>
<h1>recrawl API</h1>
<p>Every request carries <code>Authorization: Bearer TOKEN</code>. The same as an
<a href="/api/v1/openapi">OpenAPI document</a>.</p>
"""
_STYLE = """\
body { font: 16px/1.5 system-ui, sans-serif; margin: 1rem auto; max-width: 60rem; padding: 0 1rem; }
code { font: 14px/1.5 ui-monospace, monospace; }
table { border-collapse: collapse; width: 100%; }
td { border-top: 1px solid #8886; padding: .4rem .6rem .4rem 0; vertical-align: top; }
td:first-child { white-space: nowrap; }
"""
_METHODS = ("get", "post", "put", "patch", "delete")


def page_of(document: dict[str, Any]) -> str:
    """The page of an OpenAPI document."""
    by_tag: dict[str, list[str]] = {}
    for path, operations in document.get("paths", {}).items():
        for method in _METHODS:
            operation = operations.get(method)
            if operation is not None:
                row = _row(method.upper(), path, operation)
                by_tag.setdefault((operation.get("tags") or ["other"])[0], []).append(row)
    parts = [f"<h2>{escape(tag)}</h2>\n<table>\n{''.join(rows)}</table>\n" for tag, rows in by_tag.items()]
    return f"{_HEAD}{''.join(parts)}</main>\n</body>\n</html>\n"


def _row(method: str, path: str, operation: dict[str, Any]) -> str:
    given = [
        f"<code>{escape(each['name'])}</code>" for each in operation.get("parameters", ()) if each["in"] == "query"
    ]
    said = escape(str(operation.get("description", "")))
    query = f"<br>Query: {', '.join(given)}" if given else ""
    body = "<br>Body: " + ", ".join(_fields(operation)) if _fields(operation) else ""
    return f"<tr><td><code>{method} {escape(path)}</code></td><td>{said}{query}{body}</td></tr>\n"


def _fields(operation: dict[str, Any]) -> list[str]:
    """The name of the type of a body."""
    content = operation.get("requestBody", {}).get("content", {})
    schemas = [each.get("schema", {}) for each in content.values()]
    return [f"<code>{escape(each['$ref'].rpartition('/')[2])}</code>" for each in schemas if "$ref" in each]


@get("/api", opt={"scope": "read"}, include_in_schema=False, media_type=MediaType.HTML, sync_to_thread=False)
def api_page(request: Asked) -> str:
    """The page."""
    state = request.app.state
    if "api_page" not in state:
        state["api_page"] = page_of(request.app.openapi_schema.to_schema())
    page: str = state["api_page"]
    return page


@get("/api.css", opt={"scope": "public"}, include_in_schema=False, media_type="text/css", sync_to_thread=False)
def api_style() -> str:
    """How it looks."""
    return _STYLE


ROUTES = Router("/", route_handlers=[api_page, api_style])
