"""`recrawl hits` and `recrawl sources` as a user gives them, with no tracker running."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from recrawl.cli.main import cli
from recrawl.store.rows import DeadLetter, NewPage, SinkRow, SourceRow
from recrawl.store.store import open_store
from recrawl.tracker.discovery.memory import Memory, to_bytes

HOST = "news.example.com"
FEED = f"https://{HOST}/feed"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RECRAWL_STORE", raising=False)


def recrawl(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments), prog_name="recrawl")


def said(*arguments: str) -> Any:
    result = recrawl(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def make_store(found_at: float) -> None:
    """A feed that found two pages, and a page that the user named."""

    async def story() -> None:
        store = await open_store("recrawl-data", owner=True)
        (feed, *_) = await store.add_pages([
            NewPage(FEED, HOST, importance=0.0, source="robots", role="source"),
            NewPage(f"https://{HOST}/1", HOST, source=FEED, added_at=found_at),
            NewPage(f"https://{HOST}/2", HOST, source=FEED, added_at=found_at),
            NewPage(f"https://{HOST}/mine", HOST, added_at=found_at),
        ])  # fmt: skip
        remembered = Memory(root=HOST, polls=[(found_at, 0), (found_at + 60.0, 2)], told=[(found_at, 0)] * 2)
        remembered.problem, remembered.problem_at = "the feed holds more than 5 entries", found_at
        remembered.refused = {"out-of-scope": 1200, "robots": 3}
        memory = to_bytes(remembered)
        await store.save_sources([SourceRow(feed[0], "feed", "robots", polls=2, found=2, memory=memory)])
        await store.save_sink(SinkRow("hook", 2), [DeadLetter("hook", 2, found_at, "its target answered 422")])
        await store.close()

    asyncio.run(story())


def log_line(path: str, at: float, agent: str = "Mozilla/5.0") -> str:
    when = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(at))
    return f'192.0.2.1 - - [{when}] "GET {path} HTTP/1.1" 200 100 "-" "{agent}"\n'


def test_a_log_teaches_what_new_pages_are_worth_and_twice_is_once(tmp_path: Path) -> None:
    found_at = time.time() - 86_400.0
    make_store(found_at)
    before = said("sources")["sources"][0]
    lines = [log_line("/1", found_at + 60.0 * number) for number in range(200)]
    lines += [log_line("/mine", found_at + 90.0), log_line("/nobody", found_at + 100.0), "garbage\n"]
    lines += [log_line("/1", found_at + 100.0, "Googlebot/2.1")]
    (tmp_path / "access.log.gz").write_bytes(gzip.compress("".join(lines).encode()))
    counted = said("hits", "access.log.gz", "--host", HOST)
    assert (counted["counted"], counted["named"], counted["unknown"], counted["sources"]) == (200, 1, 1, 1)
    assert counted["refused"] == {"malformed": 1}
    assert counted["skipped"] == 1
    again = said("hits", "access.log.gz", "--host", HOST)
    assert (again["counted"], again["earlier"], again["sources"]) == (0, 200, 0)
    after = said("sources")["sources"][0]
    assert after["profit"] > 10 * before["profit"]
    assert after["url"] == FEED
    assert (after["kind"], after["polls"], after["found"], after["due_at"]) == ("feed", 2, 2, None)


def test_a_log_of_paths_needs_a_host_and_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    make_store(time.time() - 3600.0)
    (tmp_path / "access.log").write_text(log_line("/1", time.time() - 60.0), encoding="utf-8")
    result = recrawl("hits", "access.log")
    assert result.exit_code == 2
    assert "--host is missing" in result.stderr
    result = recrawl("hits", "none.log", "--host", HOST)
    assert result.exit_code == 2
    assert "none.log" in result.stderr


def test_sources_are_shown_as_a_table(tmp_path: Path) -> None:
    make_store(time.time() - 3600.0)
    result = recrawl("sources")
    assert result.exit_code == 0
    assert FEED in result.stdout
    assert "recrawl-data" in recrawl("sources", "--store", str(tmp_path / "recrawl-data-2")).stderr
    recrawl("add", "https://example.com/", "--store", "empty")
    assert "there are no sources" in recrawl("sources", "--store", "empty").stdout


def test_sources_say_what_is_wrong_with_them_and_how_many_addresses_were_not_taken() -> None:
    make_store(time.time() - 3600.0)
    told = said("sources")
    assert told["refused"] == told["sources"][0]["refused"] == {"out-of-scope": 1200, "robots": 3}
    assert told["sources"][0]["problem"] == "the feed holds more than 5 entries"
    text = recrawl("sources").stdout
    assert f"{FEED}: the feed holds more than 5 entries, read {told['sources'][0]['problem_at']}" in text
    assert "addresses that were not taken, by rule: 1,200 out-of-scope, 3 robots" in text
    assert "1203" in text


def test_status_says_which_events_a_sink_could_not_take() -> None:
    make_store(time.time() - 3600.0)
    (hook,) = said("status")["sinks"]
    assert (hook["sink"], hook["dead_letters"]) == ("hook", 1)
    text = recrawl("status").stdout
    assert "hook: 0 events behind, 1 dead letter" in text
    assert f"event 2 at {hook['newest_dead_letters'][0]['at']}: its target answered 422" in text
