"""Figures of experiments, of competitors side by side, and of estimators against the truth.

Plain numbers and arrays in, a matplotlib `Figure` out. Nothing is read, computed or saved here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.plots import style

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Numbers = Sequence[float] | NDArray[np.float64]

# The Okabe–Ito set, in an order in which neighbours differ most, then its dark and grey.
_COLOURS = (style.BLUE, style.ORANGE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", style.DARK, style.GREY)
_MARKERS = "osD^vPX*"
_LEGEND_COLUMNS = 6


class Series(NamedTuple):
    """A name and its numbers, one for each place on the x-axis or group of bars; intervals if there are any.

    A number that is infinite or NaN leaves a gap in a line, and is written as ∞ or "none" in place of a bar.
    """

    name: str
    values: Numbers
    low: Numbers | None = None
    high: Numbers | None = None


@dataclass(frozen=True, slots=True)
class LinePanel:
    """One panel of lines: all series share the places `x`."""

    title: str
    x_label: str
    y_label: str
    x: Numbers
    series: Sequence[Series]
    log_x: bool = False
    log_y: bool = False
    reference: float | None = None


@dataclass(frozen=True, slots=True)
class BarPanel:
    """One panel of grouped bars: a group for each name in `groups`, in it a bar for each series."""

    title: str
    y_label: str
    groups: Sequence[str]
    series: Sequence[Series]
    log_y: bool = False
    bottom: float | None = None
    reference: float | None = None
    x_label: str = ""


def lines_figure(panels: Sequence[LinePanel], *, height: float = 4.6) -> Figure:
    """Draw panels of lines side by side, intervals as bands; `reference` is a dashed level. O(numbers)."""
    with style.drawing():
        figure, axes = style.new_figure(len(panels), height=height)
        for axis, panel in zip(axes, panels, strict=True):
            _draw_lines(axis, panel)
        _share_legend(figure, axes)
    return figure


def bars_figure(panels: Sequence[BarPanel], *, height: float = 4.6) -> Figure:
    """Draw panels of grouped bars side by side, intervals as whiskers; `bottom` is where bars start. O(numbers)."""
    with style.drawing():
        figure, axes = style.new_figure(len(panels), height=height)
        for axis, panel in zip(axes, panels, strict=True):
            _draw_bars(axis, panel)
        _share_legend(figure, axes)
    return figure


def _draw_lines(axis: Axes, panel: LinePanel) -> None:
    for place, series in enumerate(panel.series):
        colour, marker = _COLOURS[place % len(_COLOURS)], _MARKERS[place % len(_MARKERS)]
        values = _finite(series.values)
        crowded = len(values) > 40
        axis.plot(
            panel.x, values, color=colour, linewidth=1.6, markersize=4.5, marker=None if crowded else marker,
            label=series.name, zorder=3,
        )  # fmt: skip
        if series.low is not None and series.high is not None:
            axis.fill_between(panel.x, _finite(series.low), _finite(series.high), color=colour, alpha=0.18, linewidth=0)
    if panel.log_x:
        axis.set_xscale("log")
    axis.set_xlabel(panel.x_label)
    _finish(axis, panel)


def _draw_bars(axis: Axes, panel: BarPanel) -> None:
    width = 0.82 / max(len(panel.series), 1)
    places = np.arange(len(panel.groups), dtype=np.float64)
    bottom = panel.bottom or 0.0
    for place, series in enumerate(panel.series):
        at = places + (place - (len(panel.series) - 1) / 2) * width
        values = np.asarray(series.values, dtype=np.float64)
        shown = np.isfinite(values)
        axis.bar(
            at[shown], values[shown] - bottom, width * 0.92, bottom=bottom, color=_COLOURS[place % len(_COLOURS)],
            label=series.name, yerr=_whiskers(series, shown), error_kw={"ecolor": style.DARK, "elinewidth": 1.0},
            zorder=3,
        )  # fmt: skip
        for x, value in zip(at[~shown], values[~shown], strict=True):
            text = "none" if math.isnan(value) else "∞"
            axis.annotate(text, (x, 0.01), xycoords=("data", "axes fraction"), ha="center", va="bottom", fontsize=10)
    axis.set_xticks(places, list(panel.groups))
    axis.set_xlabel(panel.x_label)
    axis.grid(visible=False, axis="x")
    _finish(axis, panel)
    if panel.bottom is not None:
        axis.set_ylim(bottom=panel.bottom)


def _finish(axis: Axes, panel: LinePanel | BarPanel) -> None:
    if panel.log_y:
        axis.set_yscale("log")
    if panel.reference is not None:
        axis.axhline(panel.reference, color=style.DARK, linewidth=1.0, linestyle=(0, (4, 3)), zorder=2)
    axis.set_ylabel(panel.y_label)
    axis.set_title(panel.title)


def _share_legend(figure: Figure, axes: Sequence[Axes]) -> None:
    """One legend below for all panels, each name once; none where no panel has more than one series."""
    entries: dict[str, Artist] = {}
    most = 0
    for axis in axes:
        handles, labels = axis.get_legend_handles_labels()
        most = max(most, len(labels))
        for handle, label in zip(handles, labels, strict=True):
            entries.setdefault(label, handle)
    if most > 1:
        columns = min(len(entries), _LEGEND_COLUMNS if len(axes) > 1 else 3)
        figure.legend(list(entries.values()), list(entries), loc="outside lower center", ncols=columns, fontsize=9.5)


def _finite(values: Numbers) -> NDArray[np.float64]:
    numbers = np.asarray(values, dtype=np.float64)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _whiskers(series: Series, shown: NDArray[np.bool_]) -> list[list[float]] | None:
    """How far whiskers reach down and up; lists, because matplotlib takes an array of one for a number, and warns."""
    if series.low is None or series.high is None:
        return None
    values, low, high = (np.asarray(each, dtype=np.float64)[shown] for each in (series.values, series.low, series.high))
    return [np.maximum(each, 0.0).tolist() for each in (values - low, high - values)]


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
