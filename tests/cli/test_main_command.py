"""The group: quick help, one sentence and an exit code for every failure, quiet pipes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from recrawl.cli.main import COMMANDS, Commands, cli
from recrawl.errors import InvalidInput, Unreachable
from recrawl.version import __version__

EXAMPLE = Path(__file__).parents[2] / "examples" / "pages.csv"
HEAVY = ("numba", "pyarrow", "matplotlib", "scipy", "rich", "numpy")
COMPILED = ("numba", "pyarrow", "matplotlib", "scipy")


def loaded_after(arguments: list[str], modules: tuple[str, ...]) -> str:
    """Run a command in a fresh interpreter and say which of the modules it loaded."""
    code = (
        "import sys\n"
        "from recrawl.cli.main import cli\n"
        f"try: cli({arguments!r}, prog_name='recrawl')\n"
        "except SystemExit as end: assert end.code == 0, end.code\n"
        f"print(*(name for name in {modules!r} if name in sys.modules), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return done.stderr.strip()


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    """Help answers at once: no compiler, no Arrow, no matplotlib, not even NumPy."""
    assert loaded_after(arguments, HEAVY) == ""


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_each_command_loads_no_compiler(name: str) -> None:
    """A command's own help may load NumPy, and nothing that takes longer."""
    assert loaded_after([name, "--help"], COMPILED) == ""


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_the_summary_of_the_list_an_example_and_json(name: str) -> None:
    """The list of commands is kept without importing them, so it is held to them here."""
    context = click.Context(cli)
    command = cli.get_command(context, name)
    assert command is not None
    assert command.get_short_help_str(limit=200) == COMMANDS[name].summary
    assert command.help is not None
    assert f"recrawl {name}" in command.help
    assert any("--json" in parameter.opts for parameter in command.params)


def test_version() -> None:
    """The version is the package's."""
    assert CliRunner().invoke(cli, ["--version"]).output == f"recrawl {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "names", "place"),
    [
        (["plum"], "'plum'", "recrawl --help"),
        (["--plum"], "--plum", "recrawl --help"),
        (["plan"], "'PAGES'", "recrawl plan --help"),
        (["plan", "pages.csv", "--solver", "magic"], "'magic'", "recrawl plan --help"),
        (["demo", "--pages", "many"], "'many'", "recrawl demo --help"),
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_code_2(arguments: list[str], names: str, place: str) -> None:
    """No usage text of ten lines: what is wrong, and where help is."""
    result = CliRunner().invoke(cli, arguments, prog_name="recrawl")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("recrawl: ")
    assert names in result.stderr
    assert result.stderr.endswith(f"(see {place})\n")
    assert result.stderr.count("\n") == 1


def test_no_command_shows_the_help() -> None:
    """Whoever types the bare name wants to know what there is."""
    result = CliRunner().invoke(cli, [], prog_name="recrawl")
    assert result.exit_code == 2
    assert "Commands:" in result.stderr


def group_that(action: Callable[[], None]) -> Commands:
    """A group like ours that does one thing."""
    return Commands(name="recrawl", invoke_without_command=True, callback=action)


def fail_with(error: BaseException) -> Callable[[], None]:
    """A command that fails."""

    def action() -> None:
        raise error

    return action


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (InvalidInput("is -1.0, but must be 0 or more", field="importance", row=3), "importance[3] is -1.0"),
        (Unreachable("no budget reaches a freshness of 1"), "no budget reaches a freshness of 1"),
        (OSError(28, "No space left on device", "out.csv"), "out.csv: No space left on device"),
        (MemoryError(), "there is not enough memory"),
        (InvalidInput("has\nline breaks"), "has line breaks"),
    ],
)
def test_every_expected_failure_is_one_sentence_and_exit_code_2(error: Exception, sentence: str) -> None:
    """No traceback for what a user can repair."""
    result = CliRunner().invoke(group_that(fail_with(error)), [])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"recrawl: {sentence}")
    assert result.stderr.count("\n") == 1


def test_a_defect_of_ours_keeps_its_traceback() -> None:
    """What nobody foresaw must not be dressed up as bad input."""
    result = CliRunner().invoke(group_that(fail_with(ZeroDivisionError())), [])
    assert isinstance(result.exception, ZeroDivisionError)


def test_an_interrupt_ends_with_130() -> None:
    """As shells have it: 128 plus the number of the signal."""
    result = CliRunner().invoke(group_that(fail_with(KeyboardInterrupt())), [])
    assert result.exit_code == 128 + signal.SIGINT
    assert result.stderr.split() == ["recrawl:", "interrupted"]


def test_a_reader_that_leaves_early_is_met_with_silence() -> None:
    """`recrawl plan … | head -1` must not end in a traceback."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [sys.executable, "-c", "from recrawl.cli.main import main; main()"]
    plan = ["plan", str(EXAMPLE), "--budget", "40/day", "--solver", "uniform"]
    done = subprocess.run([*command, *plan], stdout=write_end, stderr=subprocess.PIPE, check=False)
    os.close(write_end)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_terminal_without_the_letters_gets_the_report_all_the_same(tmp_path: Path) -> None:
    """A page may be named in any script, and the terminal may know few."""
    pages = tmp_path / "pages.csv"
    pages.write_text("url,importance,change_rate\nhttps://example.org/größe/页,1,1\n", encoding="utf-8")
    command = [sys.executable, "-c", "from recrawl.cli.main import main; main()", "plan", str(pages), "--budget=1/day"]
    western = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(command, env=western, capture_output=True, check=True)
    assert "https://example.org/größe/?".encode("latin-1") in done.stdout


@pytest.mark.parametrize("closed", [">&-", "2>&-"])
def test_a_stream_that_was_closed_is_no_error(closed: str, tmp_path: Path) -> None:
    """Cron jobs and services may run without an output or an error stream."""
    pages = tmp_path / "pages.csv"
    pages.write_text("importance,change_rate\n1,1\n", encoding="utf-8")
    line = f"{sys.executable} -m recrawl.cli.main plan {pages} --budget 1/day --json {closed}"
    assert subprocess.run(line, shell=True, check=False, stderr=subprocess.DEVNULL).returncode == 0
