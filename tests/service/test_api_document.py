"""docs/api.md lists the routes that there are, each with its scope, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from service_ground import Ground
from test_api_access import PROVEN, routes

from recrawl.service.auth.tokens import SCOPES

DOCUMENT = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
PREFIX = "/api/v1"


def plain(path: str) -> str:
    """A path as people write it: parameters without their types."""
    return re.sub(r"\{(\w+):\w+\}", r"{\1}", path)


def test_every_route_of_the_api_is_documented_with_its_scope(ground: Ground) -> None:
    real = {
        (f"{method} {plain(path).removeprefix(PREFIX)}", scope)
        for method, path, scope in routes(ground)
        if path.startswith(PREFIX) and not path.startswith(f"{PREFIX}/openapi") and method != "HEAD"
    }
    written = re.findall(r"^\| `((?:GET|POST|PATCH|DELETE) [^`]+)` \| (\w+) \|", DOCUMENT, re.MULTILINE)
    documented = {(route, scope) for route, scope in written if scope in SCOPES}
    assert documented == real


def test_every_route_that_others_call_is_documented() -> None:
    for method, path in PROVEN - {("GET", "/indexnow"), ("POST", "/indexnow")}:
        assert f"| `{method} {plain(path)}` |" in DOCUMENT


@pytest.mark.parametrize("scope", SCOPES)
def test_every_scope_is_explained(scope: str) -> None:
    assert f"\n| `{scope}` |" in DOCUMENT
