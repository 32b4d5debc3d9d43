"""The example that keeps a search index, called as people call it, against a service on a socket."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from service_ground import SETTINGS
from tracker_harness import TrackerHarness

from patience import patience
from recrawl.lab.demo.index_run import example_program
from recrawl.service.listening import Listening
from recrawl.service.server import service
from recrawl.tracker.process import serving
from recrawl.tracker.remote_workers import WorkResult
from recrawl.tracker.settings.settings import Retention

PAGE = b"""<!doctype html><title>Bread</title><nav><a href=/>Home</a></nav><article><h1>Bread in the morning</h1>
<p>Bread is sold every morning at the corner of the square, whatever the weather may be on that day.</p>
<h2>Prices</h2><p>A loaf costs two coins on workdays, and three on the day before a feast, says the baker.</p>
</article>"""


@asynccontextmanager
async def served(folder: Path, *, bodies: bool) -> AsyncIterator[tuple[str, str]]:
    """A service with one page that came: its address, and a token."""
    said: list[str] = []
    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    settings = replace(SETTINGS, store=str(folder / "data"), retention=Retention(bodies=bodies))
    async with serving(settings, said.append) as tracker:
        harness = TrackerHarness(tracker)
        await harness.add_urls(["https://bread.example/"])
        (offer,) = await harness.lease(1)
        await harness.complete([WorkResult(offer.token, "ok", PAGE, "text/html; charset=utf-8")])
        beside = service(Listening(port=0, fixed=True), told=lambda where, _: address.set_result(where), fetches=False)
        running = asyncio.ensure_future(beside(tracker))
        try:
            where = await address
            yield where, said[0].rpartition(" ")[2]
        finally:
            tracker.stop()
            await running


async def called(folder: Path, token: str, *arguments: str) -> tuple[int, str, str]:
    """Call the example: how it ended, and what it said."""
    command = (sys.executable, str(example_program()), str(folder / "index.db"), *arguments)
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env={"RECRAWL_TOKEN": token}
    )
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


@pytest.mark.parametrize(("bodies", "heading"), [(True, "## Prices"), (False, "Prices")])
def test_texts_come_as_markdown_or_plain_where_bodies_are_not_kept(tmp_path: Path, bodies: bool, heading: str) -> None:
    async def main() -> None:
        async with patience(), served(tmp_path, bodies=bodies) as (address, token):
            asked = await called(tmp_path, token, "--address", address, "--once", "--form", "markdown")
            assert asked == (0, "", "")
            with closing(sqlite3.connect(tmp_path / "index.db")) as index:
                ((url, body),) = index.execute("SELECT url, body FROM entries").fetchall()
            assert url == "https://bread.example/"
            assert heading in body.splitlines()
            status, out, _ = await called(tmp_path, "", "--search", "loaf coins")
            assert (status, out.splitlines()[0]) == (0, url)
            assert "[loaf]" in out

    asyncio.run(main())


def test_a_wrong_token_and_a_tracker_that_is_not_there_are_sentences(tmp_path: Path) -> None:
    async def main() -> None:
        async with patience(), served(tmp_path, bodies=False) as (address, _):
            for more in ((), ("--once",)):
                status, _out, said = await called(tmp_path, "recrawl-wrong", "--address", address, *more)
                assert (status, said.count("\n")) == (1, 1)
                assert "401" in said
        status, _out, said = await called(tmp_path, "x", "--address", address, "--once")
        assert status == 1
        assert said.startswith("search_index: ")

    asyncio.run(main())


def test_pages_may_change_places_and_come_back(tmp_path: Path) -> None:
    """Two go round: the one that comes back finds another at its address, and takes its place."""
    found = spec_from_file_location("search_index", example_program())
    assert found is not None
    assert found.loader is not None
    program = module_from_spec(found)
    found.loader.exec_module(program)
    with closing(program.open_index(str(tmp_path / "index.db"))) as index:
        for kind, page, url, to in (
            ("discovered", 1, "a", ""), ("discovered", 2, "b", ""), ("moved", 2, "b", "c"), ("moved", 1, "a", "b"),
            ("restored", 2, "b", ""),
        ):  # fmt: skip
            program.write(index, {"kind": kind, "page": page, "url": url, "detail": {"to": to}}, "words")
        assert index.execute("SELECT page, url FROM entries").fetchall() == [(2, "b")]
