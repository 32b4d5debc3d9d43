"""Writes figures: the only part of the room that touches the disk.

The ending of the file name picks the format. A figure is written beside its place and moved there when it is
whole, so a reader never meets half a picture.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with drawing(), os.fdopen(handle, "wb") as file:
            figure.savefig(file, format=kind, metadata=_METADATA[kind])
        _give_usual_permissions(partial)
        Path(partial).replace(path)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise


def _give_usual_permissions(partial: str) -> None:
    """Give the file the permissions of any new file; temporary files start readable by their owner alone."""
    mask = os.umask(0)
    os.umask(mask)
    Path(partial).chmod(0o666 & ~mask)
