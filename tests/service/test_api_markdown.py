"""The main text of a page as Markdown, on request, where bodies are kept."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from service_ground import SETTINGS, Ground, Service

from recrawl.service.api import pages
from recrawl.tracker.settings.settings import Retention

URL = "https://bodies.example/article"
PAGE = """<!doctype html><html><head><title>Bread</title></head><body><nav><a href="/">Home</a></nav><article>
<h1>Bread in the morning</h1><p>Bread is sold every morning at the corner of the square, whatever the weather.</p>
<h2>Prices</h2><p>A loaf costs two coins on workdays, and three on the day before a feast, says the baker.</p>
<ul><li>white bread for breakfast</li><li>dark bread for supper</li></ul></article></body></html>"""


@pytest.fixture(scope="module")
def keeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """A service that keeps bodies."""
    folder: Path = tmp_path_factory.mktemp("bodies")
    service = Service(folder, replace(SETTINGS, retention=Retention(versions=5, bodies=True)))
    try:
        ground = service.begin()
        fetched(ground, URL, PAGE)
        yield ground
    finally:
        service.end()


def fetched(ground: Ground, url: str, page: str) -> int:
    """Track a page, and hand in what came."""
    (number,) = ground.add(url)
    (lease,) = ground.ask("POST", "/api/v1/leases", "fetch", json={"n": 1, "worker": "w"}).json()["leases"]
    result = {"token": lease["token"], "outcome": "ok", "text": page}
    assert ground.ask("POST", "/api/v1/leases/complete", "fetch", json={"results": [result]}).status_code == 200
    return number


def test_the_main_text_comes_as_markdown(keeper: Ground) -> None:
    """Without the navigation; as plain text, as all that was fetched."""
    answer = keeper.ask("GET", "/api/v1/pages/1/text?form=markdown", "read")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/plain")
    assert "## Prices" in answer.text
    assert "- white bread for breakfast" in answer.text
    assert "Home" not in answer.text
    assert "##" not in keeper.ask("GET", "/api/v1/pages/1/text", "read").text
    assert keeper.ask("GET", "/api/v1/pages/1/text?form=markdown&version=1", "read").text == answer.text


def test_what_is_not_there_is_not_found(keeper: Ground, ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """No such version; no body kept; a body without a main text; and a form that does not exist."""
    assert keeper.ask("GET", "/api/v1/pages/1/text?form=markdown&version=7").status_code == 404
    empty = fetched(keeper, "https://bodies.example/empty", "<html><body></body></html>")
    assert keeper.ask("GET", f"/api/v1/pages/{empty}/text?form=markdown").status_code == 404
    (number,) = ground.add("https://no-body.example/")
    assert ground.ask("GET", f"/api/v1/pages/{number}/text?form=markdown").status_code == 404
    assert keeper.ask("GET", "/api/v1/pages/1/text?form=html").json()["error"]["field"] == "form"
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    assert keeper.ask("GET", "/api/v1/pages/1/text?form=markdown").status_code == 409


def test_few_are_made_at_once(keeper: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks for more is told to wait: each costs a process."""
    monkeypatch.setattr(pages, "MOST_WAITING", 1)

    async def asking() -> list[int]:
        async with keeper.client(headers=headers) as client:
            path = "/api/v1/pages/1/text?form=markdown"
            answers = await asyncio.gather(*(client.get(path) for _ in range(3)))
            return sorted(answer.status_code for answer in answers)

    headers = keeper.headers("read")
    assert keeper.run(asking()) == [200, 429, 429]
