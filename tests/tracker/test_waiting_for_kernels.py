"""While kernels are compiled beside, a large page waits: interpreted it would stop the event loop for seconds."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from small_site import Site
from tracker_ground import running

from patience import ENVIRONMENT, PATIENCE_S

GROWING = """
import asyncio
from recrawl.jit.beside import start
from recrawl.tracker.pipeline.examine import kernels_for
from recrawl.web.url.address import read_address
from recrawl.web.fetch.protocol import FetchResult

HERE = read_address("https://example.com/")

async def waits(body, content_type):
    result = FetchResult(HERE, "ok", "", HERE, status=200, headers=((b"content-type", content_type),), body=body)
    task = asyncio.create_task(kernels_for(result))
    for _ in range(5):
        await asyncio.sleep(0)
    waiting = not task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return waiting

async def main():
    russian, english = "Привет, мир. " * 3_000, "Hello, world " * 3_000
    print(await waits(russian.encode("cp1251"), b"text/html; charset=windows-1251"))
    print(await waits(b"<meta charset=windows-1251>" + russian.encode("cp1251"), b"text/html"))
    print(await waits(english.encode("cp1251"), b"text/html; charset=windows-1251"))
    print(await waits(russian.encode()[:60_000], b"text/html; charset=utf-8"))
    print(await waits(russian.encode(), b"text/html; charset=utf-8"))

print(start(["web"]))
asyncio.run(main())
"""

MISSING = """
import asyncio, sys
from dataclasses import replace
from recrawl.jit import has_to_wait
from recrawl.jit.beside import start
from recrawl.store.store import open_store
from recrawl.tracker.tracker import open_tracker
from recrawl.web.url.address import read_address
from small_site import Site
from tracker_ground import FAST
from patience import ticks, until

class Everything(dict):
    def get(self, path, default=None):
        if not path.startswith("/"):
            return default
        return "<p>home</p>" * 20_000 if path == "/" else 404 if path == "/robots.txt" else "<p>Nothing is here</p>"

async def main():
    async with Site(Everything()) as site:
        store = await open_store(sys.argv[1], owner=True)
        settings = replace(FAST, store=sys.argv[1], egress=site.egress)
        tracker = await open_tracker(settings, store, lambda _: None)
        async with tracker.transport:
            asked = asyncio.create_task(tracker.fetcher._missing.of(read_address(site.url("/a"))))
            await until(lambda: bool(site.asked_for("/")))
            await ticks(100, 0.01)
            print(not asked.done() or not has_to_wait("web", 1 << 20))
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)
        await store.close()

print(start(["web"]))
asyncio.run(main())
"""


PUBLISHED = """
import asyncio, sys
from recrawl.jit import has_to_wait
from recrawl.jit.beside import start
from recrawl.store.store import open_store
from recrawl.tracker.pipeline.examine import published_text
from patience import ticks

async def main():
    store = await open_store(sys.argv[1], owner=True)
    (row,) = await store.list_pages()
    given = asyncio.create_task(published_text(store, row))
    await ticks(100, 0.01)
    print(not given.done() or not has_to_wait("web", 1 << 20))
    given.cancel()
    await asyncio.gather(given, return_exceptions=True)
    await store.close()

print(start(["web"]))
asyncio.run(main())
"""


def _ran(script: str, folder: Path, *arguments: str) -> list[str]:
    """The words that a program prints on a machine where nothing is compiled yet."""
    environment = {**ENVIRONMENT, "NUMBA_CACHE_DIR": str(folder / "kernels"), "RECRAWL_KERNELS": "auto"}
    here = os.pathsep.join([str(Path(__file__).parent), environment["PYTHONPATH"]])
    ran = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={**environment, "PYTHONPATH": here},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split()


def test_a_page_that_is_large_only_in_utf_8_waits(tmp_path: Path) -> None:
    """39 KB of windows-1251 are 66 KB of UTF-8, which is what kernels read."""
    assert _ran(GROWING, tmp_path) == ["True", "True", "True", "False", "False", "True"]


def test_the_home_page_that_is_compared_with_a_missing_page_waits(tmp_path: Path) -> None:
    assert _ran(MISSING, tmp_path, str(tmp_path / "store")) == ["True", "True"]


def test_a_small_page_waits_if_the_text_that_it_is_compared_with_is_large(tmp_path: Path) -> None:
    async def publish() -> None:
        lines = "".join(f"<p>line {number} of a long page</p>" for number in range(5_000))
        async with Site({"/1": lines}) as site, running(site, tmp_path / "store") as ground:
            await ground.add(["/1"])
            await ground.until_visited("/1")

    asyncio.run(publish())
    assert _ran(PUBLISHED, tmp_path, str(tmp_path / "store")) == ["True", "True"]
