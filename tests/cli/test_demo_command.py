"""`recrawl demo`: shows what the budget buys, ends by itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import recrawl
from recrawl.cli.main import cli
from recrawl.populations import web_population


def run(*arguments: object) -> Result:
    """Call `recrawl demo`."""
    return CliRunner().invoke(cli, ["demo", *map(str, arguments)], prog_name="recrawl")


def facts(*arguments: object) -> dict[str, Any]:
    """Call `recrawl demo … --json` and read its one line."""
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.count("\n") == 1
    read = json.loads(result.stdout)
    assert isinstance(read, dict)
    return read


def test_the_demo_plans_a_synthetic_web_and_compares(tmp_path: Path) -> None:
    """The fields are those of a plan, and each rival is what the library says."""
    read = facts("--pages", 3000, "--seed", 4, "--out", tmp_path)
    pages = web_population(3000, seed=4)
    plan = recrawl.plan(pages, budget=600.0)
    assert (read["pages"], read["budget_per_day"], read["solver"]) == (3000, 600.0, "even")
    assert read["freshness"] == pytest.approx(plan.freshness)
    uniform = recrawl.plan(pages, budget=600.0, solver="uniform").spaced("even")
    compared = {rival["name"]: rival for rival in read["comparison"]}
    assert compared["uniform"]["harmonic"] == pytest.approx(uniform.costs.per_page().harmonic)
    best = min(rival["harmonic"] for rival in read["comparison"] if rival["harmonic"] is not None)
    assert compared["even, harmonic (default)"]["harmonic"] == best
    most_fresh = max(read["comparison"], key=lambda rival: rival["freshness"])
    assert most_fresh["name"] == "even, freshness"
    assert compared["even, freshness"]["starved"] > 0


def test_the_demo_writes_its_figures_into_a_new_folder(tmp_path: Path) -> None:
    """And says where they are, on stderr."""
    result = run("--pages", 500, "--out", tmp_path / "new" / "folder")
    assert result.exit_code == 0, result.stderr
    figures = sorted((tmp_path / "new" / "folder").iterdir())
    assert [path.name for path in figures] == ["comparison.png", "plan.png"]
    assert {str(path) for path in figures} == {line.removeprefix("wrote ") for line in result.stderr.splitlines()}
    assert "the same budget spent by" in result.stdout


def test_when_time_is_short_the_plan_is_still_made(tmp_path: Path) -> None:
    """Extras are left out; the line of JSON is not."""
    read = facts("--pages", 500, "--seconds", 1e-6, "--out", tmp_path)
    assert [rival["name"] for rival in read["comparison"]] == ["even, harmonic (default)"]
    assert [Path(path).name for path in read["figures"]] == ["plan.png"]
    assert read["freshness"] > 0


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--pages", 0), "pages is 0, but must be between 1 and"),
        (("--pages", 10**12), "pages is 1000000000000"),
        (("--seed", -1), "seed is -1"),
        (("--seconds", 0), "seconds is 0, but must be more than 0"),
        (("--seconds", "nan"), "seconds is nan"),
        (("--budget", "much"), "budget is 'much'"),
    ],
)
def test_bad_options_are_told_in_one_sentence(tmp_path: Path, options: tuple[object, ...], told: str) -> None:
    """Exit code 2, and no folder is made."""
    result = run(*options, "--out", tmp_path / "out")
    assert (result.exit_code, result.stdout) == (2, "")
    assert told in result.stderr
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_place_of_the_folder_is_told(tmp_path: Path) -> None:
    """The sentence names the path."""
    (tmp_path / "out").touch()
    result = run("--pages", 10, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert str(tmp_path / "out") in result.stderr
    assert result.stderr.count("\n") == 1
