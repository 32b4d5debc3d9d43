"""The log: no secret leaves a room, whatever it logs; lines are one for each record; JSON parses."""

from __future__ import annotations

import ast
import io
import json
import logging
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import recrawl
from recrawl.log import LogFormat, room_log, start_log, without_secrets

SOURCE = Path(recrawl.__file__).parent
SECRETS = {
    "login": "https://me:hunter2pw@a.example/x",
    "password-with-a-slash": "postgresql://me:hun/ter2pw@db.example/crawl",
    "user-alone": "https://hunter2pw@a.example/",
    "token": "https://a.example/feed?page=2&access_token=hunter2pw",
    "key": "https://a.example/v1?apiKey=hunter2pw",
    "s3": "https://b.s3.example/k?X-Amz-Credential=hunter2pw%2F20260101&X-Amz-Signature=hunter2pw",
    "azure": "https://b.blob.example/k?sv=2022-11-02&sp=r&sig=hunter2pw%3D",
    "cloudfront": "https://d1.example/k?Expires=1700000000&Signature=hunter2pw&Key-Pair-Id=hunter2pw",
    "random-value": "https://a.example/?u=x9Qk2LmZ7aT4vB1nY8",
    "slack": "https://hooks.example/services/T02AB3CD4/B05EF6GH7/x9Qk2LmZ7aT4vB1nY8cW3d",
    "telegram": "https://api.example/bot110201543:AAHdqTcv5x9Qk2LmZ7aT4vB1nY8/send",
    "hex": "https://a.example/unsubscribe/9f86d081884c7d659a2feaa0c55ad015",
    "guid": "https://a.example/webhook/1b4e28ba-2fa1-11d2-883f-0016d3cca427",
    "websub": "http://crawler.example/websub/x9Qk2LmZ7aT4vB1nY8cW3dE6fG0h",
    "fragment": "http://127.0.0.1:8472/login#hunter2pw",
    "in-a-value": "https://a.example/go?to=https://me:hunter2pw@b.example/",
    "coded-in-a-value": "https://a.example/go?to=https%3A%2F%2Fme%3Ahunter2pw%40b.example%2F",
    "bearer": "Authorization: Bearer hunter2pw-5x9Qk2Lm",
    "of-our-api": "the token is recrawl-0acda55bf59c-9f86d081884c7d659a2feaa0c55ad015",
    "conninfo": "host=db.example password=hunter2pw dbname=crawl",
}
SECRET = re.compile(r"hunter2pw|hun/ter2pw|ter2pw|x9Qk2LmZ7aT4|9f86d081884c|1b4e28ba-2fa1")
PLAIN = (
    "https://www.example.com/2024/05/01/the-10-best-ways-to-say-less",
    "https://en.wikipedia.example/wiki/COVID-19_pandemic_in_Germany?action=raw&page=2#",
    "https://shop.example/dp/B08N5WRWNW?keywords=iphone+15",
    "https://[2001:db8::1]:8443/a%20b?id=1234567890123456",
    "http://127.0.0.1:8472/",
    "/var/lib/recrawl/recrawl-data: no space is left",
    "the basic idea, a token of the API, mail you@example.com",
)


@pytest.mark.parametrize("name", SECRETS)
def test_no_secret_stays_in_a_text(name: str) -> None:
    said = without_secrets(f"cannot fetch '{SECRETS[name]}' (refused), twice: {SECRETS[name]}")
    assert not SECRET.search(said), said
    assert without_secrets(said) == said
    assert said.startswith("cannot fetch '")


@pytest.mark.parametrize("text", PLAIN)
def test_what_is_no_secret_stays(text: str) -> None:
    assert without_secrets(text) == text.removesuffix("#") + ("#***" if text.endswith("#") else "")


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """Give the stream of a log that `start_log` begins in a test, and end that log."""
    root, ours = logging.getLogger(), logging.getLogger("recrawl")
    before = list(root.handlers), root.level, ours.level
    yield io.StringIO()
    root.handlers, (root.level, ours.level) = before[0], before[1:]
    logging.captureWarnings(capture=False)


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_record_is_one_line_whatever_it_says(form: LogFormat, stream: io.StringIO) -> None:
    start_log(form, logging.INFO, stream)
    room_log("tracker").info("a\nb \x1b[2J %s", "\ud800é", extra={"url": "https://a.example/\r\n", "pages": 3})
    room_log("tracker").debug("below the level")
    (line,) = stream.getvalue().splitlines()
    assert "recrawl.tracker" in line
    assert "\x1b" not in line
    if form == "json":
        said = json.loads(line)
        assert said["message"] == "a\nb \x1b[2J \\ud800é", "half a pair of surrogates could not be written as UTF-8"
        assert said["fields"] == {"url": "https://a.example/\r\n", "pages": 3}
        assert said["level"] == "info"
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", said["time"])
    else:
        assert "INFO" in line
        assert "pages=3" in line


@pytest.mark.parametrize("form", ["text", "json"])
def test_errors_have_their_traceback_without_secrets(form: LogFormat, stream: io.StringIO) -> None:
    start_log(form, logging.INFO, stream)
    try:
        int(SECRETS["token"])
    except ValueError:
        room_log("web").exception("odd: %s", SECRETS["slack"], extra={"at": SECRETS["login"]})
    said = stream.getvalue()
    assert "test_errors_have_their_traceback" in said
    assert "ValueError" in said
    assert not SECRET.search(said), said


def test_other_libraries_and_warnings_are_in_the_same_log(stream: io.StringIO) -> None:
    start_log("json", logging.INFO, stream)
    start_log("json", logging.INFO, stream)  # once more is no second line
    logging.getLogger("asyncio").error("never retrieved: %s", SECRETS["login"])
    logging.getLogger("asyncio").info("not told")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("old", stacklevel=1)
    first, second = (json.loads(line) for line in stream.getvalue().splitlines())
    assert first["logger"] == "asyncio"
    assert not SECRET.search(first["message"])
    assert second["logger"] == "py.warnings"


def test_a_log_that_nobody_reads_stops_nothing(stream: io.StringIO) -> None:
    start_log("text", logging.INFO, stream)
    stream.close()
    room_log("tracker").warning("heard by nobody")


class Place:
    """A call that logs.

    Args:
        file: below the package.
        call: in its source.
    """

    def __init__(self, file: Path, call: ast.Call) -> None:
        self.room = file.relative_to(SOURCE).parts[0].removesuffix(".py")
        self.name = f"{file.relative_to(SOURCE)}:{call.lineno}"
        assert isinstance(call.func, ast.Attribute)
        self.level = call.func.attr
        self.text, self.arguments = call.args[0], len(call.args) - 1
        self.extra = next((each.value for each in call.keywords if each.arg == "extra"), None)


def _places() -> list[Place]:
    found = []
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                on = ast.unparse(node.func.value)
                if on == "_LOG" and node.func.attr not in ("isEnabledFor",):
                    found.append(Place(file, node))
    return found


PLACES = _places()


def test_rooms_log_by_their_own_logger_and_no_other() -> None:
    """A logger that is not made by `room_log` would not take secrets out of its records."""
    made = {}
    for file in SOURCE.rglob("*.py"):
        text, name = file.read_text(), str(file.relative_to(SOURCE))
        made[name] = re.findall(r"room_log\(\"(\w+)\"\)", text)
        if name != "log.py":
            uses = re.findall(r"logging\.getLogger\([^)]*\)\.?\w*", text)
            assert set(uses) <= {'logging.getLogger("litestar").addHandler'}, name
        if "_LOG." in text and name != "log.py":
            assert made[name] == [name.partition("/")[0]], name
    assert {place.room for place in PLACES} == {"tracker", "web", "store", "service"}
    assert len(PLACES) >= 20


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_no_place_that_logs_lets_a_secret_out(place: Place, stream: io.StringIO) -> None:
    """Every value that is logged there is an address with a secret, of each kind in turn."""
    start_log("json", logging.DEBUG, stream)
    text = place.text.value if isinstance(place.text, ast.Constant) else "%s"
    arguments = place.arguments + (not isinstance(place.text, ast.Constant))
    text = re.sub(r"%[-0-9.]*[dfr]", "%s", str(text))
    for secret in SECRETS.values():
        getattr(room_log(place.room), place.level)(text, *[secret] * arguments, extra={"field": secret})
    lines = stream.getvalue().splitlines()
    assert len(lines) == len(SECRETS)
    for line in lines:
        assert not SECRET.search(line), line
