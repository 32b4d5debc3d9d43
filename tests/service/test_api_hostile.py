"""Hostile requests: each is refused with the status that fits, and a pointer to what was wrong."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import AsyncIterator
from typing import Any

import pytest
from service_ground import NAME, Ground

from recrawl.service.api.about import shown_settings
from recrawl.tracker.settings.settings import Settings, SinkRule

DEEP = b"[" * 100_000 + b"]" * 100_000
JSON = {"Content-Type": "application/json"}
PAGE = b'{"pages": [{"url": "https://hostile.example/", "importance": %s}]}'


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        (b"", 400, None),
        (b"{", 400, None),
        (b"\xff\xfe", 400, None),
        (b"null", 422, None),
        (b"[]", 422, None),
        (DEEP, 422, None),
        (PAGE % DEEP, 422, "pages[0].importance"),
        (b'{"pages": [], "x": ' + DEEP + b"}", 422, "pages"),
        (PAGE % b"NaN", 400, None),
        (PAGE % b"Infinity", 400, None),
        (PAGE % b"-Infinity", 400, None),
        (PAGE % b"1e999", 422, "pages[0].importance"),
        (PAGE % (b"9" * 5000), 422, "pages[0].importance"),
        (PAGE % b'"5"', 422, "pages[0].importance"),
        (PAGE % b"true", 422, "pages[0].importance"),
        (b'{"pages": [{"url": 5}]}', 422, "pages[0].url"),
        (b'{"pages": [{"url": "https://a.example/"}, {"link": "x"}]}', 422, "pages[1]"),
        (b'{"pages": [{"url": "https://a.example/", "role": "source"}]}', 422, "pages[0]"),
        (b'{"pages": [{"url": ""}]}', 422, "pages[0].url"),
        (b'{"pages": [{"url": "' + b"x" * 9000 + b'"}]}', 422, "pages[0].url"),
        (b'{"pages": []}', 422, "pages"),
        (b'{"pages": [' + b",".join([b'{"url": "a"}'] * 1001) + b"]}", 422, "pages"),
    ],
)
def test_bodies_that_cannot_be_used(ground: Ground, body: bytes, status: int, field: str | None) -> None:
    answer = ground.ask("POST", "/api/v1/pages", content=body, headers=JSON)
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert error["field"] == field
    assert set(error) == {"code", "message", "field", "row"}
    if field is not None and "[" in field:
        assert error["row"] == int(field.partition("[")[2].partition("]")[0])


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "file:///etc/passwd", "http://169.254.169.254/", "http://a:b@c/"]
)
def test_addresses_are_refused_by_the_rules_of_the_tracker(ground: Ground, url: str) -> None:
    """The same as on the command line: the request is fine, the page is not taken."""
    done = ground.ask("POST", "/api/v1/pages", json={"pages": [{"url": url}]}).json()
    assert done["done"]["added"] == 0
    assert len(done["refused"]) == 1


@pytest.mark.parametrize(
    ("path", "most"), [("/api/v1/pages", 16 << 20), ("/api/v1/pause", 1 << 20), ("/api/v1/leases/complete", 48 << 20)]
)
def test_a_body_that_is_too_long_is_refused_before_it_is_read(ground: Ground, path: str, most: int) -> None:
    """By its length if that is said, else while it comes; memory stays flat."""

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(10_000):
            yield b" " * 1_000_000

    said = ground.ask("POST", path, headers=JSON | {"Content-Length": str(10**9)}, content=b"{}")
    assert said.status_code == 413
    tracemalloc.start()
    try:
        streamed = ground.ask("POST", path, headers=JSON, content=endless())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert streamed.status_code == 413
    assert peak < 3 * most + 20_000_000


def test_compressed_bodies_are_refused(ground: Ground) -> None:
    """A bomb is not even looked at."""
    bomb = gzip.compress(b" " * 10_000_000)
    answer = ground.ask("POST", "/api/v1/pages", content=bomb, headers=JSON | {"Content-Encoding": "gzip"})
    assert answer.status_code == 415


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""]
)
def test_bodies_must_say_that_they_are_json(ground: Ground, kind: str) -> None:
    """Forms of other sites could be sent by any browser."""
    body = json.dumps({"pages": [{"url": "https://hostile.example/form"}]}).encode()
    answer = ground.ask("POST", "/api/v1/pages", content=body, headers={"Content-Type": kind})
    assert answer.status_code in (400, 415)


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/api/v1/pages?limit=1000000000", "limit"),
        ("/api/v1/pages?limit=0", "limit"),
        ("/api/v1/pages?limit=x", "limit"),
        ("/api/v1/pages?after=-1", "after"),
        ("/api/v1/pages?after=99999999999999999999999", "after"),
        ("/api/v1/changes?limit=1001", "limit"),
        ("/api/v1/changes?kinds=nonsense", "kinds"),
        ("/api/v1/pages/99999999999999999999999", "page_id"),
        ("/api/v1/plan?budget=lots", "budget"),
        ("/api/v1/pages?url=ftp://x", "url"),
    ],
)
def test_parameters_out_of_bounds_name_themselves(ground: Ground, path: str, field: str) -> None:
    answer = ground.ask("GET", path)
    assert answer.status_code == 422, answer.text
    assert answer.json()["error"]["field"] == field


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/pages/..%2f..%2fetc",
        "/api/v1/tokens/%00",
        "/api/v1/pages/1%00",
        "/hooks/" + "x" * 300,
        "/api/v1/pages/'or'1",
    ],
)
def test_odd_paths_find_nothing(ground: Ground, path: str) -> None:
    for method in ("GET", "DELETE", "POST"):
        assert ground.ask(method, path).status_code in (401, 404, 405, 422), (method, path)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        (NAME, 200), ("localhost:8472", 200), ("[::1]:8472", 200), ("evil.example", 421), ("", 421),
        ("127.0.0.1.evil.example", 421), ("localhost.evil.example:8472", 421), ("0.0.0.0", 421),
    ],
)  # fmt: skip
def test_only_names_of_this_service_are_answered(ground: Ground, host: str, status: int) -> None:
    """A name that was bent to this machine gets nothing, not even what is public."""
    answer = ground.ask("GET", "/login", None, headers={"Host": host})
    assert answer.status_code == status
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")


def test_proxy_headers_are_not_believed(ground: Ground) -> None:
    """Neither for the name of the host nor for whoever asks."""
    lies = {"X-Forwarded-Host": "evil.example", "X-Forwarded-For": "127.0.0.1", "Forwarded": "for=127.0.0.1"}
    assert ground.ask("GET", "/api/v1/status", None, headers=lies).status_code == 401
    assert ground.ask("GET", "/healthz", None, headers=lies | {"Host": "evil.example"}).status_code == 421


@pytest.mark.parametrize("path", ["/healthz", "/login", "/nothing-here", "/api/v1/status", "/api/v1/openapi", "/api"])
def test_every_answer_has_the_headers_that_protect_it(ground: Ground, path: str) -> None:
    """Found or not, allowed or not; and no answer speaks of CORS."""
    for scope in (None, "admin"):
        headers = ground.ask("GET", path, scope, headers={"Origin": "https://evil.example"}).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "same-origin"  # with less, browsers send our own forms without an origin
        assert not [name for name in headers if name.startswith("access-control")]
        assert "server" not in headers


def test_an_error_here_says_nothing_of_our_insides(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged for those who run the service, once, and not by the framework beside us."""

    async def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("the secret recipe")

    monkeypatch.setattr(ground.tracker.store, "last_cursor", broken)
    answer = ground.ask("GET", "/api/v1/changes")
    assert answer.status_code == 500
    assert "recipe" not in answer.text
    (logged,) = caplog.records
    assert "recipe" in logged.getMessage()
    assert logged.name == "recrawl.service"


def test_settings_are_told_without_secrets(ground: Ground) -> None:
    """Of hooks, sinks and stores."""
    text = ground.ask("GET", "/api/v1/settings", "read").text
    assert "whsec_" not in text
    assert '"name":"cms"' in text
    sinks = (
        SinkRule("a", "webhook", "https://hooks.example/services/T0P/S3CRET?key=S3CRET", "whsec_S3CRET"),
        SinkRule("b", "webhook", "https://me:S3CRET@hooks.example/x"),
        SinkRule("c", "jsonl", "changes.jsonl"),
    )
    for store in ("postgresql://me:S3CRET@db/x", "postgresql://db/x?user=me&password=S3CRET&sslmode=on"):
        shown = shown_settings(Settings(store=store, sinks=sinks))
        assert "S3CRET" not in str(shown)
        assert [each["target"] for each in shown["sinks"]] == ["https://hooks.example/…"] * 2 + ["changes.jsonl"]


def test_an_address_is_refused_alike_wherever_it_comes_in(ground: Ground) -> None:
    """Added one by one or imported: the same rule, in the same words."""
    urls = [
        "http://169.254.169.254:8888\\@example.com/", "http://a:b@c:d@e/", "http://127.1/", "http://0x7f000001/",
        "http://2130706433/", "http://localhost./", "http://x.example:99999/", "http:///", "gopher://x.example/",
        "http://[fe80::1%25eth0]/", "http://x.example/" + "a" * 5000,
    ]  # fmt: skip
    added = ground.ask("POST", "/api/v1/pages", json={"pages": [{"url": url} for url in urls]}).json()
    imported = ground.ask("POST", "/api/v1/import?format=list", content="\n".join(urls).encode()).json()
    assert added["done"]["rejected"] == imported["refused"] == len(urls)
    assert [each["reason"] for each in added["refused"]] == [each["reason"] for each in imported["refusals"]]
