"""The look of every figure: size, colours, type, and axes that read in people's units.

Touch colours and fonts here and nowhere else. Colours are from the Okabe–Ito set and the viridis map, which people with
any common colour blindness can tell apart. Nothing here uses pyplot, so no figure outlives its caller and no display is
needed.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axis import Axis

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


Floats = NDArray[np.float64]

# Rates with a name, per day.
_NAMED_RATES = (
    (1 / 36500, "1/100 y"), (1 / 3650, "1/10 y"), (1 / 365, "1/y"), (12 / 365, "1/mo"), (1 / 7, "1/wk"),
    (1.0, "1/day"), (6.0, "6/day"), (24.0, "1/h"), (144.0, "6/h"), (1440.0, "1/min"), (8640.0, "6/min"),
    (86400.0, "1/s"), (864000.0, "10/s"),
)  # fmt: skip


def positive_range(values: Floats, *, margin: float = 1.25) -> tuple[float, float]:
    """Limits for a logarithmic axis: the positive finite values and a little air.

    >>> positive_range(np.array([0.0, 1.0, 4.0]), margin=2.0)
    (0.5, 8.0)
    """
    shown = values[(values > 0) & np.isfinite(values)]
    if not len(shown):
        return 0.1, 10.0
    low, high = float(shown.min()) / margin, float(shown.max()) * margin
    return (low, high) if high / low > 10 else (low / 3, high * 3)


def name_rates(axis: Axis, limits: tuple[float, float]) -> None:
    """Tick a logarithmic axis of rates per day at a week, a day, an hour; at decades if few fit."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, FuncFormatter, NullFormatter, NullLocator

    named = rate_names(limits)
    if len(named) < 2:
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{short_number(value)}/day"))
        axis.set_minor_formatter(NullFormatter())
        return
    axis.set_major_locator(FixedLocator([rate for rate, _ in named]))
    axis.set_major_formatter(FixedFormatter([name for _, name in named]))
    axis.set_minor_locator(NullLocator())


def rate_names(limits: tuple[float, float], *, gap: float = 0.1) -> list[tuple[float, str]]:
    """Rates with a name between the limits, at least a tenth of the axis apart; none on an axis far too long.

    >>> rate_names((0.02, 2.0))
    [(0.03287671232876712, '1/mo'), (0.14285714285714285, '1/wk'), (1.0, '1/day')]
    """
    length = math.log(limits[1] / limits[0])
    if length > math.log(1e12):
        return []
    kept: list[tuple[float, str]] = []
    for rate, name in _NAMED_RATES:
        apart = not kept or math.log(rate / kept[-1][0]) >= gap * length
        if limits[0] <= rate <= limits[1] and apart:
            kept.append((rate, name))
    return kept


def name_budgets(axis: Axis) -> None:
    """Write budgets on a logarithmic axis as 200, 5k, 2M."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 3.0), numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: short_number(value)))
    axis.set_minor_formatter(NullFormatter())


def short_number(value: float) -> str:
    """Write a number in at most five characters.

    >>> short_number(200000.0), short_number(30.0), short_number(0.25)
    ('200k', '30', '0.25')
    """
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if 1e15 > abs(value) >= 0.9995 * size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"
