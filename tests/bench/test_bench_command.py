"""`recrawl bench` prints one JSON line or a table, tells of progress on stderr, and loads little."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from recrawl.bench.groups import GROUPS
from recrawl.bench.measure import Bound, CannotRun, Measure, Reading
from recrawl.cli.lab import bench, print_group


def _good() -> Reading:
    return Reading(0.5, 20.0, "10 s")


def _bad() -> Reading:
    return Reading(4.0, 2.5, "10 s")


def _asleep() -> Reading:
    raise CannotRun("the snail is asleep: wake it")


_MEASURES = tuple(
    Measure(name, "s", "a snail", Bound("ratio", floor=10), read)
    for name, read in (("quick", _good), ("slow", _bad), ("stuck", _asleep))
)


def test_json_is_one_line_with_every_measure(capsys: pytest.CaptureFixture[str]) -> None:
    """Measures that fall short or cannot run are listed like the others."""
    print_group("race", _MEASURES, as_json=True)
    printed = capsys.readouterr()
    assert printed.out.count("\n") == 1
    document = json.loads(printed.out)
    assert document["group"] == "race"
    assert [(item["name"], item["holds"]) for item in document["measures"]] == [
        ("quick", True),
        ("slow", False),
        ("stuck", False),
    ]
    assert document["measures"][2]["reason"] == "the snail is asleep: wake it"


def test_progress_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    """One line per measure, with its verdict."""
    print_group("race", _MEASURES, as_json=True)
    assert capsys.readouterr().err.splitlines() == [
        "race 1/3 quick: holds",
        "race 2/3 slow: falls short",
        "race 3/3 stuck: cannot run: the snail is asleep: wake it",
    ]


def test_table_shows_value_ratio_and_bound(capsys: pytest.CaptureFixture[str]) -> None:
    """The table for people has a row per measure and a summary."""
    print_group("race", _MEASURES, as_json=False)
    table = capsys.readouterr().out
    for text in ("quick", "0.5 s", "20", "ratio ≥ 10", "falls short", "1 of 3 hold"):
        assert text in table


def test_unknown_group_is_refused() -> None:
    """A group that does not exist is bad input, and the known ones are named."""
    result = CliRunner().invoke(bench, ["nosuch"])
    assert result.exit_code == 2
    assert "planning" in result.output


def test_help_names_every_group_in_their_order() -> None:
    text = " ".join(CliRunner().invoke(bench, ["--help"]).stdout.split())
    assert f"group of measures ({', '.join(GROUPS)});" in text


def test_help_has_an_example_and_loads_no_compiler() -> None:
    """`--help` answers without numba, SciPy or NumPy's friends."""
    code = (
        "import sys\n"
        "from recrawl.cli.lab import bench\n"
        "bench(['--help'], standalone_mode=False)\n"
        "heavy = {'numba', 'scipy', 'pyarrow', 'matplotlib'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)\n"
    )
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr
    assert "Example" in child.stdout
