"""The look of every figure: size, colours, type.

Touch colours and fonts here and nowhere else. Colours are from the Okabe–Ito set and the viridis map, which
people with any common colour blindness can tell apart. Nothing here uses pyplot, so no figure outlives its
caller and no display is needed.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

BLUE = "#0072B2"
ORANGE = "#D55E00"
GREY = "#6B6B6B"
DARK = "#333333"
LIGHT = "#D9D9D9"
IMPORTANCE_MAP = "viridis"

# Inches and dots per inch: 1500 pixels across, sharp at the width of a README.
WIDTH = 10.0
DPI = 150

_SETTINGS: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10.5,
    "axes.titlesize": 11.5,
    "axes.titlelocation": "left",
    "axes.titlepad": 9.0,
    "axes.labelsize": 10.5,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LIGHT,
    "grid.linewidth": 0.6,
    "xtick.color": DARK,
    "ytick.color": DARK,
    "legend.frameon": False,
    # The same figure gives the same bytes, so a committed picture changes only when its data does.
    "svg.hashsalt": "recrawl",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
}


def drawing() -> AbstractContextManager[None]:
    """The settings as a context: draw and save inside it, and the caller's own settings stay as they are."""
    return rc_context(_SETTINGS)  # type: ignore[arg-type] # the stubs want each key spelled as a literal


def new_figure(panels: int, *, height: float = 4.3) -> tuple[Figure, list[Axes]]:
    """An empty figure with panels side by side; call it inside `drawing()`."""
    width = WIDTH if panels > 1 else WIDTH * 0.6
    figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.08, wspace=0.06)  # type: ignore[union-attr, call-arg]
    axes = figure.subplots(1, panels, squeeze=False)
    return figure, list(axes[0])
