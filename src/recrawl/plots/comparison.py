"""Figure of competitors side by side: one row each, a dot with its 95 % interval for each measure.

Plain numbers in, a matplotlib `Figure` out. Nothing is read, computed or saved here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from recrawl.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Dots(NamedTuple):
    """A measure of every competitor: value, low and high of each, and whether a larger value is better."""

    title: str
    values: Sequence[tuple[float, float, float]]
    larger_is_better: bool = True


def comparison_figure(title: str, names: Sequence[str], measures: Sequence[Dots]) -> Figure:
    """Draw competitors as rows, the first on top, and a panel for each measure; the best of each is orange."""
    with style.drawing():
        figure, axes = style.new_figure(len(measures), height=1.6 + 0.34 * len(names))
        for place, (axis, measure) in enumerate(zip(axes, measures, strict=True)):
            _draw(axis, names, measure)
            if place:
                axis.set_yticklabels([])
        figure.suptitle(title, x=0.01, ha="left", fontsize=12)
    return figure


def _draw(axis: Axes, names: Sequence[str], measure: Dots) -> None:
    values = [value for value, _, _ in measure.values]
    best = max(values) if measure.larger_is_better else min(values)
    for row, (value, low, high) in enumerate(measure.values):
        colour = style.ORANGE if value == best else style.BLUE
        axis.plot([low, high], [row, row], color=colour, linewidth=2.2, alpha=0.55, solid_capstyle="butt")
        axis.plot([value], [row], "o", color=colour, markersize=6)
    axis.set_yticks(range(len(names)), labels=list(names))
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.margins(x=0.12)
    axis.set_title(f"{measure.title} ({'more' if measure.larger_is_better else 'less'} is better)")
