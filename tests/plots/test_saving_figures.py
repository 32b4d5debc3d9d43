"""Figures are written whole or not at all, in the format their name asks for."""

from __future__ import annotations

import stat
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from recrawl.errors import InvalidInput
from recrawl.plots.plan import PageRates, plan_figure
from recrawl.plots.save import save_figure

FIRST_BYTES = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.fixture
def figure() -> Figure:
    """A small figure."""
    return plan_figure(PageRates(np.array([1.0, 2.0]), np.array([1.0, 0.0]), np.array([1.0, 3.0])))


@pytest.mark.parametrize("ending", FIRST_BYTES)
def test_the_ending_picks_the_format(figure: Figure, tmp_path: Path, ending: str) -> None:
    """Each format is recognisable by its first bytes."""
    path = tmp_path / f"plan.{ending}"
    save_figure(figure, path)
    assert path.read_bytes().startswith(FIRST_BYTES[ending])


@pytest.mark.parametrize("name", ["plan.gif", "plan", "plan.png.zip"])
def test_an_unknown_ending_is_refused_in_one_sentence(figure: Figure, tmp_path: Path, name: str) -> None:
    """The sentence names the endings that work, and nothing is written."""
    with pytest.raises(InvalidInput, match=r"plot is .*end the name in \.png, \.svg or \.pdf"):
        save_figure(figure, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_the_old_picture_and_no_rest(tmp_path: Path) -> None:
    """A figure that cannot be drawn must not destroy the one that is there."""
    path = tmp_path / "plan.png"
    path.write_bytes(b"old")
    broken = Figure()
    broken.text(0.5, 0.5, r"$\nosuchcommand$")
    with pytest.raises(ValueError, match="nosuchcommand"):
        save_figure(broken, path)
    assert [file.name for file in tmp_path.iterdir()] == ["plan.png"]
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("ending", FIRST_BYTES)
def test_the_same_figure_gives_the_same_bytes(tmp_path: Path, ending: str) -> None:
    """A committed picture must not change because a day has passed."""
    written = []
    for name in ("first", "second"):
        again = plan_figure(PageRates(np.array([1.0, 2.0]), np.array([1.0, 0.5]), np.array([1.0, 3.0])))
        save_figure(again, tmp_path / f"{name}.{ending}")
        written.append((tmp_path / f"{name}.{ending}").read_bytes())
    assert written[0] == written[1]


def test_a_figure_has_the_permissions_of_any_new_file(figure: Figure, tmp_path: Path) -> None:
    """Others may look at it as at any file the user makes."""
    ordinary = tmp_path / "ordinary"
    ordinary.touch()
    save_figure(figure, tmp_path / "plan.png")
    assert stat.S_IMODE((tmp_path / "plan.png").stat().st_mode) == stat.S_IMODE(ordinary.stat().st_mode)
