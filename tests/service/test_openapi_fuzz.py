"""The OpenAPI document, taken at its word: generated requests for every operation, and never an error of ours."""

from __future__ import annotations

from typing import Any

import httpx
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import openapi
from service_ground import Ground

EXAMPLES = 5
_SKIPPED = ("/api/v1/changes/stream",)  # never ends; see test_served.py


def test_no_generated_request_is_an_error_of_ours(ground: Ground) -> None:
    """Nor does any refusal lack its typed error, or its place in the document."""
    ground.add("https://fuzz.example/")
    document = ground.ask("GET", "/api/v1/openapi").json()
    schema = openapi.from_dict(document)
    asked: dict[str, int] = {}
    for result in schema.get_all_operations():
        operation: Any = result.ok()  # type: ignore[union-attr]  # our own document is good
        if operation.path in _SKIPPED or operation.path.startswith("/api/v1/tokens"):
            continue

        @settings(
            max_examples=EXAMPLES, deadline=None, database=None, derandomize=True,
            phases=[Phase.generate], suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        def check(case: Any) -> None:
            arguments = case.as_transport_kwargs(base_url="http://127.0.0.1")
            answer = send(ground, arguments)
            name = f"{operation.method} {operation.path}"  # noqa: B023 - called at once
            asked[name] = asked.get(name, 0) + 1
            assert answer.status_code < 500, (name, arguments, answer.text)
            listed = document["paths"][operation.path][operation.method]["responses"]  # noqa: B023 - called at once
            assert str(answer.status_code) in listed, (name, arguments, answer.text)
            if answer.status_code >= 400:
                assert set(answer.json()["error"]) == {"code", "message", "field", "row"}

        given(case=operation.as_strategy())(check)()
    assert len(asked) >= 25


def send(ground: Ground, arguments: dict[str, Any]) -> httpx.Response:
    """A generated request, with a token that may do everything but make tokens."""
    headers = dict(arguments.get("headers") or {}) | ground.headers("admin") | {"Host": "127.0.0.1"}
    options = {name: arguments[name] for name in ("params", "json", "data", "cookies") if arguments.get(name)}
    if "data" in options and isinstance(options["data"], (bytes, str)):
        options["content"] = options.pop("data")

    async def sending() -> httpx.Response:
        async with ground.client() as client:
            return await client.request(arguments["method"], arguments["url"], headers=headers, **options)

    return ground.run(sending())
