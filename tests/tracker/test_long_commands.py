"""What commands that run for long write to standard error: words for people, and a log for them or for programs."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from small_site import Site
from tracker_ground import FAST, SHORT, running

from patience import patience
from recrawl.cli.main import cli
from recrawl.tracker.process import tell_progress

SECRET = "hunter2pw"
TROUBLE = "sink hook is tried again: "
_MAIN = "from recrawl.cli.main import main; main()"
_SETTINGS = """
store = "{store}"
contact = "tests@example.com"
budget = "20/s"
min-gap = 0
min-interval = 0
drain = "1s"
[network]
allow = {{site = "127.0.0.1/32:{port}"}}
resolve = {{"*.site.test" = "127.0.0.1"}}
[[sinks]]
name = "hook"
kind = "webhook"
target = "http://hook.site.test:1/services/{secret}?token={secret}"
plain-http = true
"""


async def run(folder: Path, needles: Sequence[str], *options: str, command: str = "track") -> tuple[str, str]:
    """Run a command on a page with a secret in its address, with a sink that is not there, until it wrote all needles.

    Returns what it wrote to standard output and standard error.
    """
    async with Site(answers={f"/page?token={SECRET}": "<p>hello</p>", "/": "<p>home</p>"}) as site:
        settings = folder / "recrawl.toml"
        settings.write_text(_SETTINGS.format(store=folder / "data", port=site.port, secret=SECRET), encoding="utf-8")
        urls = [site.url(f"/page?token={SECRET}"), site.url("/")] if command == "track" else []
        done = await asyncio.create_subprocess_exec(
            sys.executable, "-c", _MAIN, command, *urls, "--settings", str(settings), "--listen", "127.0.0.1:0",
            *options, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert done.stderr is not None
        said, missing = "", set(needles)
        try:
            async with patience(f"{needles} in what the command writes"):
                while missing and (line := await done.stderr.readline()):
                    said += line.decode()
                    missing = {each for each in missing if each not in said}
                if done.returncode is None:
                    done.terminate()
                out, rest = await done.communicate()
        finally:
            if done.returncode is None:
                done.kill()
        assert done.returncode == 0, said + rest.decode()
    return out.decode(), said + rest.decode()


def objects(said: str) -> list[dict[str, Any]]:
    """The lines of a log for programs."""
    return [json.loads(line) for line in said.splitlines()]


def test_a_log_for_programs_has_one_object_a_line_once_and_no_secret(tmp_path: Path) -> None:
    out, said = asyncio.run(run(tmp_path, ["visited ", TROUBLE], "--log-format", "json", "--verbose", "--json"))
    lines = objects(said)
    assert SECRET not in said
    assert "login#" not in said
    assert {"recrawl.tracker", "recrawl.web", "recrawl.store", "recrawl.cli", "recrawl.service"} <= {
        each["logger"] for each in lines
    }
    assert all(set(each) - {"error"} == {"time", "level", "logger", "message", "fields"} for each in lines)
    assert {"debug", "info", "warning"} <= {each["level"] for each in lines}
    visits = [each for each in lines if each["message"].startswith("visited ")]
    assert {each["fields"]["outcome"] for each in visits} == {"ok"}
    assert any("/page?token=***" in each["message"] for each in lines)
    assert max(Counter((each["time"], each["logger"], each["message"]) for each in lines).values()) == 1
    assert sum(each["message"].startswith("listening on ") for each in lines) == 1
    assert any("make one with `recrawl token new`" in each["message"] for each in lines)
    assert json.loads(out)["fetched"] >= 1


def test_people_read_lines_and_are_shown_the_token_once(tmp_path: Path) -> None:
    _, said = asyncio.run(run(tmp_path, [TROUBLE]))
    lines = said.splitlines()
    assert SECRET not in said
    assert sum("the token of the API, shown this once: " in line for line in lines) == 1
    assert any(line.startswith("listening on http://127.0.0.1:") for line in lines)
    assert any(re.match(r"\S+Z INFO recrawl.tracker: started on ", line) for line in lines)
    assert any(re.match(r"\S+Z WARNING recrawl.tracker: sink hook is tried again: ", line) for line in lines)
    assert not any(" DEBUG " in line for line in lines)


def test_a_quiet_tracker_says_where_it_listens_and_what_went_wrong(tmp_path: Path) -> None:
    _, said = asyncio.run(run(tmp_path, [TROUBLE], "--quiet"))
    rest = [line for line in said.splitlines() if " WARNING " not in line]
    for_people = ("the token of the API", "listening on ", "compil", "stopping: ")
    assert all(line.startswith(for_people) for line in rest), rest


def test_serve_logs_alike(tmp_path: Path) -> None:
    _, said = asyncio.run(run(tmp_path, ["listening on "], "--log-format", "json", command="serve"))
    messages = [each["message"] for each in objects(said)]
    assert any(each.startswith("listening on ") for each in messages)
    assert messages[-1] == "stopped"


@pytest.mark.parametrize("command", ["track", "serve", "demo"])
def test_loud_and_quiet_contradict_each_other(command: str) -> None:
    refused = CliRunner().invoke(cli, [command, "--verbose", "--quiet"])
    assert refused.exit_code == 2
    assert "--quiet" in refused.output


def test_once_a_minute_people_hear_what_was_done(tmp_path: Path) -> None:
    async def story() -> None:
        said: list[str] = []
        timing = replace(SHORT, tell_s=0.01)
        async with Site(answers={"/": "<p>home</p>"}) as site, running(site, tmp_path, FAST, timing) as ground:
            telling = asyncio.ensure_future(tell_progress(said.append)(ground.tracker))
            await ground.add(["/"])
            await ground.until_visited("/", 2)
            await ground.until(lambda: sum(int(re.findall(r"fetched ([\d,]+)", line)[0]) for line in said) >= 2)
        await telling
        line = r"in the last [\d.]+ \w+: fetched [\d,]+ pages with [\d,]+ requests(, put off \d+)?; "
        assert re.fullmatch(line + r"\d+ under way, \d+ scheduled", said[-1])

    asyncio.run(story())
