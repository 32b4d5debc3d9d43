"""How a store and its tracker are, as `recrawl status` has it."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

from msgspec.structs import replace
from small_site import Site
from tracker_ground import running

from recrawl.store.rows import DeadLetter, HostRow, NewChange, SinkRow
from recrawl.store.store import open_store
from recrawl.tracker.commands.status import (
    STALE_AFTER_S,
    SourceProblem,
    StatusNote,
    from_facts,
    note_of,
    runs,
    status_lines,
    status_of,
    to_fact,
)

NOTE = StatusNote(1000.0, 900.0, os.getpid(), socket.gethostname(), 0.5, 86_400.0, 10, 2)


def test_a_tracker_runs_while_its_notes_are_fresh_and_its_process_lives() -> None:
    assert runs(NOTE, 1001.0)
    assert runs(replace(NOTE, machine="elsewhere", pid=1), 1001.0)
    assert not runs(None, 1001.0)
    assert not runs(NOTE, 1001.0 + STALE_AFTER_S)
    assert not runs(replace(NOTE, running=False), 1001.0)
    assert not runs(replace(NOTE, pid=2**22 + 1), 1001.0)  # above what the system gives out


def test_a_note_reads_back_and_a_broken_one_is_none() -> None:
    assert from_facts(to_fact(NOTE)) == NOTE
    assert from_facts({}) is from_facts({"status": "{"}) is from_facts({"status": '{"at": "x"}'}) is None


def test_a_running_tracker_notes_how_it_is(tmp_path: Path) -> None:
    async def story() -> None:
        async with Site({"/1": "<p>one</p>", "/2": 500}) as site:
            async with running(site, tmp_path) as ground:
                await ground.add(["/1", "/2"])
                await ground.until_visited("/2", 2)
                await ground.until_visited("/1", 2)
                now = ground.now()
                note = note_of(ground.tracker, now - 5)
                assert (note.pid, note.scheduled, note.running) == (os.getpid(), 2, True)
                status = await status_of(ground.store, now)
                assert status["tracker_runs"]
                assert status["hosts_in_trouble"] <= 1
            store = await open_store(str(tmp_path), owner=True)
            await store.save_hosts([HostRow("ill.example.com", failures=3, degraded_since=now, blocked_until=now + 60)])
            status = await status_of(store, now)
            assert not status["tracker_runs"]
            assert status["troubled"][0]["host"] == "ill.example.com"
            assert status["crawls"]["fetched"]["reasons"]["ok"] >= 2
            assert status["crawls"]["fetched"]["reasons"]["server-error"] >= 2
            text = "\n".join(status_lines(status))
            assert "does not run; last seen" in text
            assert "ill.example.com: 3 failures in a row, degraded since" in text
            running_ = {**status, "tracker_runs": True}
            assert f"(process {os.getpid()})" in "\n".join(status_lines(running_))
            await store.close()

    asyncio.run(story())


def test_requests_for_robots_txt_are_counted(tmp_path: Path) -> None:
    async def story() -> None:
        async with Site({"/1": "<p>one</p>"}) as site:
            async with running(site, tmp_path) as ground:
                for host in "ab":
                    await ground.add(["/1"], host)
                    await ground.until_visited("/1", host=host)
            store = await open_store(str(tmp_path), owner=False)
            crawls = (await status_of(store, 0.0))["crawls"]
            assert crawls["robots_requests"] == len(site.asked_for("/robots.txt")) == 2
            await store.close()

    asyncio.run(story())


def test_dead_letters_are_told_by_sink_with_their_number_and_the_newest_of_them(tmp_path: Path) -> None:
    async def story() -> None:
        store = await open_store(str(tmp_path), owner=True)
        await store.append_changes([NewChange("changed", 1.0, "https://a.example/") for _ in range(40)])
        letters = [DeadLetter("hook", cursor, 1000.0 + cursor, f"answered {400 + cursor}") for cursor in range(1, 31)]
        await store.save_sink(SinkRow("hook", 30), letters)
        await store.save_sink(SinkRow("file", 40))
        status = await status_of(store, 2000.0)
        await store.close()
        fed, hook = status["sinks"]
        assert (fed["sink"], fed["behind"], fed["dead_letters"], fed["newest_dead_letters"]) == ("file", 0, 0, [])
        assert (hook["sink"], hook["behind"], hook["dead_letters"]) == ("hook", 10, 30)
        assert [each["event"] for each in hook["newest_dead_letters"]] == list(range(30, 20, -1))
        assert hook["newest_dead_letters"][0] == {
            "event": 30, "at": "1970-01-01T00:17:10.000Z", "error": "answered 430"
        }  # fmt: skip
        text = "\n".join(status_lines(status))
        assert "hook: 10 events behind, 30 dead letters" in text
        assert "event 30 at 1970-01-01T00:17:10.000Z: answered 430" in text
        assert "event 20 " not in text

    asyncio.run(story())


def test_what_a_tracker_noted_of_sources_is_told(tmp_path: Path) -> None:
    async def story() -> None:
        store = await open_store(str(tmp_path), owner=True)
        before = await status_of(store, 2000.0)
        assert before["sources"] == {"active": 0, "refused": {}, "problems": 0, "newest_problems": []}
        assert "sources" not in "\n".join(status_lines(before))
        problem = SourceProblem("https://a.example/map.xml", "sitemap", "the sitemap is empty", 1000.0)
        noted = replace(NOTE, refused={"robots": 1200}, source_problems=3, newest_problems=[problem])
        await store.save_facts(to_fact(noted))
        status = await status_of(store, 2000.0)
        await store.close()
        text = "\n".join(status_lines(status))
        assert "sources  0, 3 with a problem" in text
        assert "https://a.example/map.xml: the sitemap is empty, read 1970-01-01T00:16:40.000Z" in text
        assert "by rule: 1,200 robots" in text

    asyncio.run(story())
