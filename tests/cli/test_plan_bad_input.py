"""Bad input at the command line: exit code 2, one sentence, nothing written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from recrawl.cli.main import cli

GOOD = "host,importance,change_rate\na.example,1,0.5\nb.example,2,0.1\n"
BUDGET = ("--budget", "1/day")


def sentence(folder: Path, *arguments: object) -> str:
    """Run a plan that must fail; check the form of its failure and that no file has appeared."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    result = CliRunner().invoke(cli, ["plan", *map(str, arguments)], prog_name="recrawl")
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("recrawl: ")
    assert result.stderr.count("\n") == 1
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    return result.stderr.removeprefix("recrawl: ").strip()


def write(folder: Path, text: str | bytes, name: str = "pages.csv") -> Path:
    """A file of pages."""
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("importance,change_rate\n1,1\n-3,1\n", "row 2: importance is -3.0, but must be 0 or more"),
        ("importance,change_rate\n1,nan\n", "row 1: change_rate is"),
        ("importance,change_rate\n1,inf\n", "row 1: change_rate is"),
        ("importance,change_rate\n1e308,1\n", "row 1: importance is 1e+308, but must be at most 1e+60"),
        ("importance,change_rate\n1,5e-324\n", "row 1: change_rate is 5e-324, but must be 0 or at least 1e-60"),
        ("importance,change_rate\n1,many\n", "row 1: change_rate is 'many'"),
        ('importance,change_rate\n1,"1,5"\n', "row 1: change_rate is '1,5'"),
        ("importance,change_rate\n1\n", "row 1"),
        ("importance,change_rate\n1,\n", "row 1: change_rate is"),
        ("importance\n1\n", "change_rate"),
        ("Importance,rate\n1,1\n", "importance"),
        ("", "pages.csv"),
        ("importance,change_rate\n1,1\n".encode("utf-16"), "UTF-16"),
        ("importance,change_rate,recall,precision\n1,1,2,1\n", "row 1: recall is 2.0, but must be between 0 and 1"),
        ("importance,change_rate,recall,precision\n1,1,0.5,0\n", "row 1: precision is 0"),
        ("importance,change_rate,min_rate,max_rate\n1,1,2,1\n", "row 1: min_rate is 2.0, above max_rate 1.0"),
        ("importance,change_rate,cost\n1,1,0\n", "row 1: cost is 0"),
    ],
)
def test_a_bad_file_is_named_with_field_and_row(tmp_path: Path, text: str | bytes, told: str) -> None:
    """Rows count from 1, as in a spreadsheet without its header."""
    pages = write(tmp_path, text)
    said = sentence(tmp_path, pages, *BUDGET, "--out", tmp_path / "out.csv", "--plot", tmp_path / "plan.png")
    assert said.startswith(str(pages))
    assert told in said


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "a plan needs --budget"),
        (("--budget", "2000"), "budget is '2000': write a number and a unit"),
        (("--budget", "-1/day"), "budget is '-1/day'"),
        (("--budget", "1/fortnight"), "'fortnight' is no unit of time"),
        (("--budget", "1e999/day"), "too large"),
        (("--budget", "1e80/day"), "budget is 1e+80, but must be at most 1e+60"),
        (("--budget", "nan%"), "budget is 'nan%'"),
        (("--target-freshness", "1.5"), "target-freshness is '1.5': write a share between 0 and 1"),
        (("--target-freshness", "0"), "target-freshness is '0'"),
        (("--target-freshness", "much"), "target-freshness is 'much'"),
        (("--target-freshness", "0.9", "--solver", "echo"), "target-freshness has no meaning for news"),
        ((*BUDGET, "--host-cap", "a.example"), "host-cap is 'a.example': write HOST=RATE"),
        ((*BUDGET, "--host-cap", "=1/day"), "host-cap is '=1/day': write HOST=RATE"),
        ((*BUDGET, "--host-cap", "a.example=5"), "host-cap is 'a.example=5': write the rate as a number and a unit"),
        ((*BUDGET, "--host-cap", "a.example=5%"), "host-cap is 'a.example=5%'"),
        ((*BUDGET, "--host-cap", "c.example=1/day"), "host-cap names 'c.example', but no page is on that host"),
        ((*BUDGET, "--host-cap", "a.example=1/h", "--host-cap", "a.example=2/h"), "names 'a.example' twice"),
        ((*BUDGET, "--objective", "news"), "profit"),
        ((*BUDGET, "--objective", "news", "--solver", "azar"), "objective is 'news', but the solver azar optimises"),
        (("--target-freshness", "0.9", "--host-cap", "a.example=1e-6/y", "--host-cap", "b.example=0/day"), "no budget"),
    ],
)
def test_bad_options_are_told_in_one_sentence(tmp_path: Path, options: tuple[str, ...], told: str) -> None:
    """The sentence names the option and says how to write it."""
    assert told in sentence(tmp_path, write(tmp_path, GOOD), *options)


@pytest.mark.parametrize(
    ("option", "path", "told"),
    [
        ("--out", "missing/out.csv", "no folder"),
        ("--out", "out.xlsx", "ending"),
        ("--out", "folder", "folder"),
        ("--out", "pages.csv", "pages.csv"),
        ("--plot", "missing/plan.png", "no folder"),
        ("--plot", "plan.gif", ".png, .svg or .pdf"),
        ("--plot", "folder.png", "a folder"),
    ],
)
def test_an_output_that_cannot_be_written_is_refused_before_the_work(
    tmp_path: Path, option: str, path: str, told: str
) -> None:
    """The file of pages is bad too, in its last row: the output is what is complained about."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder.png").mkdir()
    pages = write(tmp_path, GOOD + "a.example,-1,1\n")
    assert told in sentence(tmp_path, pages, *BUDGET, option, tmp_path / path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_refused(tmp_path: Path) -> None:
    """Permission is looked at before the work."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    assert "cannot be written" in sentence(tmp_path, write(tmp_path, GOOD), *BUDGET, "--plot", closed / "plan.png")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """No traceback for a slip of the finger."""
    assert sentence(tmp_path, tmp_path / "pagse.csv", *BUDGET).startswith(str(tmp_path / "pagse.csv"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("host,max_rate\na.example,-1\n", "caps.csv row 1: max_rate is -1.0"),
        ("host,max_rate\na.example,1\na.example,2\n", "caps.csv row 2: host names 'a.example' twice"),
        ("host,cap\na.example,1\n", "there is no column 'max_rate'"),
    ],
)
def test_a_bad_file_of_caps_is_named_with_field_and_row(tmp_path: Path, text: str, told: str) -> None:
    """The file of caps is held to the same as the file of pages."""
    caps = write(tmp_path, text, "caps.csv")
    assert told in sentence(tmp_path, write(tmp_path, GOOD), *BUDGET, "--host-caps", caps)


def test_caps_need_hosts(tmp_path: Path) -> None:
    """A cap on a host means nothing if no page has one."""
    pages = write(tmp_path, "importance,change_rate\n1,1\n")
    assert "there is no column 'host'" in sentence(tmp_path, pages, *BUDGET, "--host-cap", "a.example=1/day")


def test_the_output_may_not_replace_the_host_caps(tmp_path: Path) -> None:
    """A file that was read is not overwritten by what comes of it."""
    caps = write(tmp_path, "host,max_rate\na.example,1\n", "caps.csv")
    told = sentence(tmp_path, write(tmp_path, GOOD), *BUDGET, "--host-caps", caps, "--out", caps)
    assert "is the file of host caps, which would be lost" in told
