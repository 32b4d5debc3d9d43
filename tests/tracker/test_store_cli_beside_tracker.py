"""Every command answers beside a `recrawl track` that runs, as processes of their own on a real site."""

from __future__ import annotations

import asyncio
import csv
import json
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from small_site import Site

from patience import patience
from recrawl.errors import StoreError
from recrawl.files.crawl_log_file import read_crawl_log
from recrawl.store.store import open_store
from recrawl.tracker.commands.export import csv_line, guarded


async def start(folder: Path, *arguments: str) -> Process:
    command = "from recrawl.cli.main import main; main()"
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", command, *arguments, cwd=folder, stdout=PIPE, stderr=PIPE
    )


async def answer(folder: Path, *arguments: str) -> Any:
    """What a command says as JSON, if it says that all is well."""
    async with patience(f"the answer of {' '.join(arguments)}"):
        process = await start(folder, *arguments, "--json")
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return json.loads(out.splitlines()[-1])


@asynccontextmanager
async def tracking(site: Site, folder: Path, *urls: str) -> AsyncIterator[Process]:
    """A tracker in a process of its own; drained by SIGTERM at the end, with exit code 0."""
    settings = f"""
contact = "https://example.com/bot"
budget = "200/s"
min-gap = 0
min-interval = 0
max-in-flight = 4
again-after = 0
[network]
allow = {{site = "127.0.0.1/32:{site.port}"}}
resolve = {{"*.site.test" = "127.0.0.1"}}
[[groups]]
name = "b"
patterns = ["http://b.site.test:*"]
"""
    (folder / "recrawl.toml").write_text(settings)
    tracker = await start(folder, "track", "--listen", "off", *urls)
    try:
        yield tracker
        tracker.send_signal(signal.SIGTERM)
        async with patience("the tracker to drain"):
            _, err = await tracker.communicate()
        assert tracker.returncode == 0, err.decode()
    finally:
        if tracker.returncode is None:
            tracker.kill()
            await tracker.communicate()


async def until_asked(site: Site, path: str, times: int) -> None:
    async with patience(f"request {times} for {path}"):
        while len(site.asked_for(path)) < times:
            await asyncio.sleep(0.02)


async def until_running(folder: Path) -> Any:
    """The status, as soon as a tracker has noted that it runs."""
    async with patience("the tracker to note that it runs"):
        while True:
            status = await answer(folder, "status")
            if status["tracker_runs"]:
                return status


def test_commands_are_done_by_the_tracker_that_runs(tmp_path: Path) -> None:
    async def story() -> None:
        async with Site({f"/{n}": f"<p>page {n} of the site</p>" for n in range(9)}) as site:
            first, second = site.url("/1"), site.url("/2", "b")
            async with tracking(site, tmp_path, first) as tracker:
                await until_asked(site, "/1", 1)
                status = await until_running(tmp_path)
                assert status["tracker"]["process"] == tracker.pid
                assert status["tracker"]["budget_per_day"] == 200 * 86_400
                await followed(tmp_path, site, first, second)
                await held_back(tmp_path, site, first, second)
                (tmp_path / "more.txt").write_text("\n".join(site.url(f"/{n}") for n in range(1, 6)))
                more = await answer(tmp_path, "import", "more.txt")
                assert (more["added"], more["known"]) == (4, 1)
                await until_asked(site, "/5", 1)
                assert (await answer(tmp_path, "signal", first))["heard"] == 1
                assert (await answer(tmp_path, "remove", second))["removed"] == 1
                assert (await answer(tmp_path, "backup", "copy"))["bytes"] > 0
                assert (await answer(tmp_path, "doctor", "--check"))["problems"] == []
            status = await answer(tmp_path, "status")
            assert not status["tracker_runs"]
            assert status["pages"]["active"] == 5
            assert status["pages"]["retired"] == 1
            ended = sum(status["crawls"][end]["total"] for end in ("fetched", "deferred", "retired"))
            assert status["crawls"]["taken"] == ended
            # A fetch that was under way when its page was paused or removed is in vain.
            assert 0 <= len(site.log) - status["crawls"]["requests"] <= 2
            doctor = await answer(tmp_path, "doctor", "--check", "--replay")
            assert doctor["problems"] == []
            assert doctor["replay"]["differ"] == 0
            assert doctor["replay"]["agree"] >= 5
            assert (await answer(tmp_path, "restore", "copy", "--store", "restored"))["pages"] == 6
            await exported(tmp_path, first)

    asyncio.run(story())


async def followed(folder: Path, site: Site, first: str, second: str) -> None:
    """What changes is told to whoever follows, from the beginning on; Ctrl-C ends that."""
    follower = await start(folder, "changes", "--follow", "--json")
    assert follower.stdout is not None
    assert (await answer(folder, "add", second))["added"] == 1
    await until_asked(site, "/2", 1)
    async with patience("two events"):
        seen = [json.loads(await follower.stdout.readline()) for _ in range(2)]
    assert [(each["kind"], each["url"], each["cursor"]) for each in seen] == [
        ("discovered", first, 1),
        ("discovered", second, 2),
    ]
    follower.send_signal(signal.SIGINT)
    await follower.communicate()
    assert follower.returncode == 130


async def held_back(folder: Path, site: Site, first: str, second: str) -> None:
    """A group is paused and resumed, and pages explain themselves meanwhile."""
    assert (await answer(folder, "pause", "--group", "b"))["paused"] == 1
    held = len(site.asked_for("/2"))
    facts = await answer(folder, "explain", second)
    assert facts["tracker_runs"]
    assert facts["schedule"] is None
    facts = await answer(folder, "explain", first)
    assert facts["schedule"]["price"] >= 0
    assert facts["last_visits"][0]["outcome"] == "ok"
    await until_asked(site, "/1", len(site.asked_for("/1")) + 3)
    assert len(site.asked_for("/2")) <= held + 1
    assert (await answer(folder, "resume", "--group", "b"))["resumed"] == 1
    await until_asked(site, "/2", held + 2)


async def exported(folder: Path, url: str) -> None:
    """Fetches leave as a crawl log that a backtest reads."""
    pages = await answer(folder, "export", "--out", "pages.csv")
    assert pages["rows"] == 6
    with (folder / "pages.csv").open(newline="") as file:
        assert [row["state"] for row in csv.DictReader(file) if row["url"] == url] == ["active"]
    crawls = await answer(folder, "export", "--crawls", "--out", "crawls.csv")
    history = read_crawl_log(folder / "crawls.csv")
    assert len(history.page_names) == 6
    assert history.crawls is not None
    assert len(history.crawls.time) == crawls["rows"]


def test_no_cell_is_run_by_a_spreadsheet() -> None:
    """And raw cells come back as they were."""
    for start_ in ("=", "+", "-", "@", "\t", "\r", "\n", " ", "\N{NO-BREAK SPACE}"):
        text = f"{start_}cmd|' /C calc'!A0"
        (cell,) = next(csv.reader([csv_line({"a": text}, raw=False)]), [""])
        assert cell.startswith("'")
        assert guarded(text)[1:] == text
    assert next(csv.reader([csv_line({"a": "=1+1", "b": -5}, raw=True)])) == ["=1+1", "-5"]
    assert guarded(-5) == -5


def test_an_import_that_is_killed_and_done_again_has_every_page_once(tmp_path: Path) -> None:
    count = 20_000
    (tmp_path / "list.txt").write_text("".join(f"https://h{n % 50}.example.com/{n}\n" for n in range(count)))

    async def pages() -> int:
        try:
            store = await open_store(str(tmp_path / "recrawl-data"), owner=False, create=False)
        except StoreError:  # not there yet
            return 0
        try:
            return sum((await store.counts()).pages.values())
        finally:
            await store.close()

    async def story() -> None:
        first = await start(tmp_path, "import", "list.txt")
        async with patience("2000 pages to be imported"):
            while await pages() < 2000:
                await asyncio.sleep(0.01)
        first.kill()
        await first.communicate()
        before = await pages()
        assert before % 1000 == 0
        again = await answer(tmp_path, "import", "list.txt")
        assert (again["rows"], again["added"], again["known"]) == (count, count - before, before)
        assert await pages() == count

    asyncio.run(story())
