"""`recrawl bench GROUP --plot` draws the group's figure."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from recrawl.bench.groups import figure_of
from recrawl.cli.lab import bench
from recrawl.errors import InvalidInput


def test_the_figure_of_learning_shows_both_estimators(tmp_path: Path) -> None:
    """Likelihood lies on the diagonal, counting above it: the legend says by how much."""
    path = tmp_path / "trust.png"
    assert CliRunner().invoke(bench, ["learning", "--plot", str(path)]).exit_code == 0
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_group_without_a_figure_says_so() -> None:
    with pytest.raises(InvalidInput, match="plot is for the group learning; planning has no figure"):
        figure_of("planning")
