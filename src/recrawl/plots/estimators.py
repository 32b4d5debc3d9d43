"""Figure of estimators against the truth: precision and recall of signals, by likelihood and by counting.

Plain arrays in, a matplotlib `Figure` out. Nothing is read, computed or saved here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from recrawl.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimates:
    """One quantity of many pages, in [0, 1]: the truth, and two estimates of it."""

    truth: Floats
    likelihood: Floats
    counting: Floats


def trust_figure(precision: Estimates, recall: Estimates) -> Figure:
    """Draw estimates of precision and recall against the truth; the diagonal is where they should lie. O(pages).

    After figures 10 and 11 of NCIS, Busa-Fekete et al. 2025.
    """
    with style.drawing():
        figure, axes = style.new_figure(2, height=4.8)
        _draw_estimates(axes[0], precision, "precision")
        _draw_estimates(axes[1], recall, "recall")
    return figure


def _draw_estimates(axis: Axes, estimates: Estimates, name: str) -> None:
    axis.plot([0, 1], [0, 1], color=style.DARK, linewidth=1.1, linestyle=(0, (4, 3)), zorder=4)
    _draw_points(axis, estimates.truth, estimates.counting, "counting", style.ORANGE)
    _draw_points(axis, estimates.truth, estimates.likelihood, "likelihood", style.BLUE)
    axis.set_xlim(0, 1)
    axis.set_ylim(0, 1)
    axis.set_aspect("equal")
    axis.set_xlabel(f"true {name}")
    axis.set_ylabel(f"estimated {name}")
    axis.set_title(f"{name.capitalize()} ({len(estimates.truth):,} pages)")
    axis.legend(loc="lower right", fontsize=9, handletextpad=0.2)


def _draw_points(axis: Axes, truth: Floats, estimate: Floats, name: str, colour: str) -> None:
    """Points, and in the legend how far off they are on average."""
    bias = float(np.mean(estimate - truth)) if len(truth) else 0.0
    size = float(np.clip(6_000 / max(len(truth), 1), 3.0, 30.0))
    axis.scatter(
        truth,
        estimate,
        s=size,
        color=colour,
        alpha=0.8,
        linewidths=0,
        label=f"{name}, bias {bias:+.3f}",
        rasterized=len(truth) > 2000,
        zorder=3,
    )
