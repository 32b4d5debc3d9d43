"""`recrawl demo`: one line of JSON with all that it came to, one sentence for bad input, a clean end on Ctrl-C."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
from click.testing import CliRunner

from patience import PATIENCE_S
from recrawl.cli.main import cli
from recrawl.lab.demo.running import DemoResult

COMMANDS_PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
RECRAWL = [sys.executable, "-c", "from recrawl.cli.main import main; main()"]
SMALL = ["demo", "--pages", "60", "--budget", "100/s"]
A_LINE = re.compile(r" *\d+ s  fresh [\d.]+%  round robin [\d.]+%  optimum [\d.]+%  crawls [\d,]+  changes [\d,]+")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--pages", "0"], "pages is 0, but must lie between 1 and 100000"),
        (["--pages", "100001"], "pages is 100001, but must lie between"),
        (["--pages", "many"], "'many' is not a valid integer"),
        (["--budget", "much"], "budget is 'much': write a number and a unit"),
        (["--budget", "0/s"], "budget is 0 crawls a second"),
        (["--budget", "5000/s"], "budget is 5000 crawls a second, but must be above 0 and at most 2000"),
        (["--pages", "1"], "which is too much for 1 page"),
        (["--importance", "odd"], "'odd' is not one of 'pareto', 'uniform'"),
        (["--seconds", "0"], "--seconds is 0, but must be at least 1"),
        (["--seconds", "nan"], "--seconds is nan"),
        (["--seed", "-1"], "seed is -1"),
    ],
    ids=" ".join,
)
def test_bad_options_are_told_in_one_sentence(options: list[str], told: str) -> None:
    """Exit code 2, before anything is started."""
    result = CliRunner().invoke(cli, ["demo", *options, "--json"], prog_name="recrawl")
    assert (result.exit_code, result.stdout) == (2, "")
    assert told in result.stderr
    assert result.stderr.count("\n") == 1


def test_the_result_is_one_line_of_json_with_all_fields() -> None:
    """A real run of three seconds: a web, a tracker on it, and the truth."""
    done = subprocess.run(
        [*RECRAWL, *SMALL, "--seconds", "3", "--json"], capture_output=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    read = json.loads(line)
    assert list(read) == [field.name for field in fields(DemoResult)]
    assert (read["pages"], read["hosts"], read["budget_per_s"]) == (60, 6, 100.0)
    # 0.2 crawls a change: 8.3 changes of each page a second, of which there are 24 in a day of the web.
    assert read["speedup"] == pytest.approx(100 / 60 / 0.2 * 86_400 / 24)
    assert 3 <= read["seconds"] < PATIENCE_S
    assert 0 < read["crawls"] <= 100 * read["seconds"] + 10
    assert 0 <= read["changes"] < read["crawls"]  # the first look at a page finds none
    assert 0 <= read["errors"] < read["crawls"] / 5  # a few pages may have vanished
    assert read["price"] >= 0  # 0 until the tracker has seen more pages than it can crawl
    assert all(0 <= read[name] <= 1 for name in ("freshness", "round_robin", "optimum"))
    gap = read["optimum"] - read["round_robin"]
    if gap > 0.01:  # in three seconds chance may have it otherwise
        assert read["gap_closed"] == pytest.approx((read["freshness"] - read["round_robin"]) / gap, abs=0.01)


@pytest.fixture
def running() -> Iterator[subprocess.Popen[str]]:
    """A demo that ends only when it is told to."""
    with subprocess.Popen([*RECRAWL, *SMALL], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def test_ctrl_c_ends_it_with_what_it_came_to(running: subprocess.Popen[str]) -> None:
    """Without a terminal there is a line now and then; after the signal a sentence, and exit code 0."""
    assert running.stdout is not None
    assert A_LINE.fullmatch(running.stdout.readline().rstrip("\n"))
    running.send_signal(signal.SIGINT)
    rest, told = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 0, told
    assert re.search(r"crawls saw .* changes .* of the gap closed\.", rest.splitlines()[-1])


def test_every_field_is_documented() -> None:
    """In order, in the section of the command."""
    _, _, part = COMMANDS_PAGE.read_text(encoding="utf-8").partition("\n## recrawl demo\n")
    part = part.partition("\n## ")[0]
    rows = re.findall(r"^\| (`[a-z][^|]*) \|", part, re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert named == [field.name for field in fields(DemoResult)]
