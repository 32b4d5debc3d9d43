"""Writes figures: the only part of the room that touches the disk.

The ending of the file name selects the format. A figure is written whole or not at all.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from recrawl._atomic import open_atomic
from recrawl.errors import InvalidInput

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")

# Without a date the same figure gives the same bytes.
_METADATA: dict[str, dict[str, Any]] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}


def figure_format(path: Path) -> str:
    """The format that a file name asks for.

    >>> figure_format(Path("plan.svg"))
    'svg'
    """
    ending = path.suffix.lower().removeprefix(".")
    if ending not in FORMATS:
        raise InvalidInput(
            f"is {str(path)!r}, but a figure is a PNG, SVG or PDF: end the name in .png, .svg or .pdf",
            field="plot",
        )
    return ending


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure to a file, whole or not at all."""
    from recrawl.plots.style import drawing

    kind = figure_format(path)
    with open_atomic(path) as file, drawing():
        figure.savefig(file, format=kind, metadata=_METADATA[kind])
