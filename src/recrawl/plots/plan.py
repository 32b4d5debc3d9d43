"""Figures of plans: what a budget buys, and where it goes.

Plain arrays in, a matplotlib `Figure` out. Nothing is read, computed or saved here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from recrawl.plots import style
from recrawl.plots.style import name_budgets, name_rates, positive_range, short_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

# More points would cover each other and make SVG files of many megabytes.
SHOWN_PAGES = 20_000


@dataclass(frozen=True, slots=True)
class BudgetCurve:
    """What budgets (crawls per day, rising) would buy, and the chosen point; freshness is in [0, 1]."""

    budgets: Floats
    freshness: Floats
    budget: float
    freshness_now: float


@dataclass(frozen=True, slots=True)
class PageRates:
    """Pages as points: changes per day, crawls per day, importance."""

    change_rate: Floats
    crawl_rate: Floats
    importance: Floats


def plan_figure(rates: PageRates, curve: BudgetCurve | None = None) -> Figure:
    """Draw a plan: the budget–freshness curve with the chosen point, and crawl rate against change rate.

    O(pages); of more than `SHOWN_PAGES` pages a random sample is drawn. Without a curve only the right panel.
    """
    with style.drawing():
        figure, axes = style.new_figure(1 if curve is None else 2)
        if curve is not None:
            _draw_curve(axes[0], curve)
        _draw_rates(axes[-1], rates)
    return figure


def _draw_curve(axis: Axes, curve: BudgetCurve) -> None:
    shown = (curve.budgets > 0) & np.isfinite(curve.freshness)
    axis.plot(curve.budgets[shown], 100 * curve.freshness[shown], color=style.BLUE, linewidth=2.2)
    if curve.budget > 0:
        _mark_choice(axis, curve.budget, 100 * curve.freshness_now)
    axis.set_xscale("log")
    name_budgets(axis.xaxis)
    axis.set_ylim(0, 100)
    axis.set_xlabel("budget, crawls per day")
    axis.set_ylabel("freshness, % of importance")
    axis.set_title("What a budget buys")


def _mark_choice(axis: Axes, budget: float, freshness: float) -> None:
    """Mark the chosen budget, with its label on the side of the curve that is free."""
    axis.plot([budget, budget], [0, freshness], color=style.ORANGE, linewidth=1, linestyle=(0, (4, 3)))
    axis.plot([budget], [freshness], "o", color=style.ORANGE, markersize=8, zorder=5)
    axis.annotate(
        f"{short_number(budget)}/day\n{freshness:.1f} % fresh",
        (budget, freshness),
        xytext=(10, -6),
        textcoords="offset points",
        va="top",
        color=style.ORANGE,
        fontweight="bold",
    )


def _draw_rates(axis: Axes, pages: PageRates) -> None:
    chosen = _sample(len(pages.importance))
    change, crawl, importance = pages.change_rate[chosen], pages.crawl_rate[chosen], pages.importance[chosen]
    changing = change > 0
    change, crawl, importance = change[changing], crawl[changing], importance[changing]
    x_limits, y_limits = positive_range(change), positive_range(crawl)
    never = crawl <= 0
    if never.any():
        y_limits = (y_limits[0] * (y_limits[0] / y_limits[1]) ** 0.08, y_limits[1])
        _draw_never(axis, change[never], y_limits)
    order = np.argsort(importance[~never], kind="stable")
    _draw_points(axis, change[~never][order], crawl[~never][order], importance[~never][order])
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlim(x_limits)
    axis.set_ylim(y_limits)
    _draw_diagonal(axis, x_limits, y_limits)
    name_rates(axis.xaxis, x_limits)
    name_rates(axis.yaxis, y_limits)
    axis.set_xlabel("change rate")
    axis.set_ylabel("crawl rate")
    total = len(pages.importance)
    shown = f"{SHOWN_PAGES:,} of {total:,} pages" if total > SHOWN_PAGES else f"{total:,} pages"
    axis.set_title(f"Where it goes ({shown})")


def _draw_points(axis: Axes, change: Floats, crawl: Floats, importance: Floats) -> None:
    from matplotlib.colors import LogNorm

    if not len(importance):
        return
    low, high = _colour_range(importance)
    size = float(np.clip(30_000 / len(importance), 3.0, 42.0))
    points = axis.scatter(
        change,
        crawl,
        c=np.clip(importance, low, high),
        norm=LogNorm(low, high),
        cmap=style.IMPORTANCE_MAP,
        s=size,
        linewidths=0,
        alpha=0.9,
        rasterized=len(importance) > 2000,
        zorder=3,
    )
    figure = axis.figure
    bar = figure.colorbar(points, ax=axis, pad=0.02, aspect=28)
    bar.outline.set_visible(False)
    bar.set_label("importance")


def _draw_never(axis: Axes, change: Floats, y_limits: tuple[float, float]) -> None:
    """Pages at rate 0 have no place on a logarithmic axis: they lie on its floor, and the floor says so."""
    axis.scatter(
        change,
        np.full(len(change), y_limits[0]),
        marker="|",
        s=60,
        color=style.ORANGE,
        linewidths=0.8,
        clip_on=False,
        rasterized=len(change) > 2000,
        zorder=4,
    )
    axis.annotate(
        "never crawled",
        (0.02, 0.02),
        xycoords="axes fraction",
        va="bottom",
        color=style.ORANGE,
        fontweight="bold",
        fontsize=9,
        zorder=6,
    )


def _draw_diagonal(axis: Axes, x_limits: tuple[float, float], y_limits: tuple[float, float]) -> None:
    """The line of one crawl per change, for the eye to measure against."""
    low, high = max(x_limits[0], y_limits[0]), min(x_limits[1], y_limits[1])
    if low < high:
        (line,) = axis.plot([low, high], [low, high], color=style.DARK, linewidth=1.1, linestyle=(0, (4, 3)), zorder=5)
        line.set_label("one crawl per change")
        axis.legend(loc="upper left", fontsize=9, handlelength=1.8)


def _sample(total: int) -> NDArray[np.int64]:
    """Rows to draw: all, or a random sample that is the same every time."""
    if total <= SHOWN_PAGES:
        return np.arange(total)
    return np.random.default_rng(0).choice(total, SHOWN_PAGES, replace=False, shuffle=False)


def _colour_range(importance: Floats) -> tuple[float, float]:
    """Limits of the colours: all but the rarest importances, so that a few giants leave room."""
    positive = importance[importance > 0]
    if not len(positive):
        return 0.1, 1.0
    low, high = np.quantile(positive, (0.01, 0.99)) if len(positive) > 200 else (positive.min(), positive.max())
    return (float(low), float(high)) if high > 1.01 * low else (float(low) / 2, float(high) * 2)
