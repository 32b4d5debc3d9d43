"""Figures show what they are given, for any legal numbers, and leave the caller's matplotlib alone."""

from __future__ import annotations

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from recrawl.plots.plan import SHOWN_PAGES, BudgetCurve, PageRates, plan_figure
from recrawl.plots.style import positive_range, rate_names

CURVE = BudgetCurve(np.array([1.0, 10.0, 100.0]), np.array([0.2, 0.5, 0.9]), 10.0, 0.5)


def pages(count: int) -> PageRates:
    """Pages whose rates spread over decades."""
    random = np.random.default_rng(5)
    change, crawl, importance = 10 ** random.uniform(-3, 2, (3, count))
    return PageRates(change, crawl, importance)


def drawn(figure: Figure) -> Figure:
    """Lay the figure out in full, so that anything that cannot be drawn fails here."""
    figure.canvas.draw()
    return figure


def test_plan_figure_has_a_curve_and_a_rate_panel_with_labelled_axes() -> None:
    """Both panels say what they show, with units."""
    curve, rates = drawn(plan_figure(pages(50), CURVE)).axes[:2]
    assert curve.get_xlabel() == "budget, crawls per day"
    assert curve.get_ylabel() == "freshness, % of importance"
    assert (rates.get_xlabel(), rates.get_ylabel()) == ("change rate", "crawl rate")
    assert rates.get_title(loc="left") == "Where it goes (50 pages)"


def test_the_chosen_budget_is_marked_on_the_curve() -> None:
    """A dot lies at the chosen budget and its freshness, and the label says both."""
    curve = plan_figure(pages(5), CURVE).axes[0]
    (dot,) = [line for line in curve.lines if line.get_marker() == "o"]
    assert np.asarray(dot.get_xydata()).tolist() == [[10.0, 50.0]]
    assert [text.get_text() for text in curve.texts] == ["10/day\n50.0 % fresh"]


def test_without_a_curve_only_the_rate_panel_is_drawn() -> None:
    """The figure of a plan for news has no freshness to show."""
    titles = [axis.get_title(loc="left") for axis in drawn(plan_figure(pages(3))).axes]
    assert titles == ["Where it goes (3 pages)", ""]  # the second is the colour bar


def test_many_pages_are_sampled_and_the_title_says_so() -> None:
    """A million points are neither quick nor readable."""
    axis = plan_figure(pages(SHOWN_PAGES + 1)).axes[0]
    assert axis.get_title(loc="left") == f"Where it goes (20,000 of {SHOWN_PAGES + 1:,} pages)"
    shown = np.vstack([np.asarray(points.get_offsets()) for points in axis.collections])
    assert len(shown) == SHOWN_PAGES


def test_pages_that_are_never_crawled_lie_on_the_floor() -> None:
    """A rate of 0 has no place on a logarithmic axis, yet the page must not vanish from the picture."""
    rates = PageRates(np.array([0.1, 1.0, 10.0]), np.array([0.0, 2.0, 3.0]), np.ones(3))
    axis = drawn(plan_figure(rates)).axes[0]
    assert "never crawled" in [text.get_text() for text in axis.texts]
    marks = np.vstack([np.asarray(points.get_offsets()) for points in axis.collections])
    assert [0.1, axis.get_ylim()[0]] in marks.tolist()


@pytest.mark.parametrize("count", [0, 1, 2, 7])
@pytest.mark.parametrize("low_and_high", [(0.0, 0.0), (1.0, 1.0), (1e-60, 1e60)])
def test_any_legal_numbers_can_be_drawn(count: int, low_and_high: tuple[float, float]) -> None:
    """No pages, equal pages, pages that never change, numbers 120 decades apart: no warning, no failure."""
    values = np.resize(np.array(low_and_high), count)
    curve = BudgetCurve(np.array([0.0, 1e-60, 1e60]), np.array([0.0, np.nan, 1.0]), low_and_high[1], 0.5)
    drawn(plan_figure(PageRates(values, values[::-1], values), curve))


def test_drawing_leaves_the_settings_of_the_caller_alone() -> None:
    """A library must not restyle the figures of the program that uses it."""
    before = dict(mpl.rcParams)
    plan_figure(pages(10), CURVE)
    assert dict(mpl.rcParams) == before


def test_drawing_does_not_load_pyplot() -> None:
    """Pyplot keeps figures alive and may look for a display."""
    code = "import sys, recrawl.plots.plan, recrawl.plots.save; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_axis_limits_hold_all_positive_values() -> None:
    """Zeros and infinities are not positions on a logarithmic axis."""
    low, high = positive_range(np.array([0.0, 0.5, 200.0, np.inf]))
    assert 0 < low < 0.5 < 200 < high < np.inf
    assert positive_range(np.zeros(2)) == (0.1, 10.0)


def test_named_rates_keep_their_distance() -> None:
    """Tick labels that touch cannot be read."""
    names = [name for _, name in rate_names((1e-4, 1e3))]
    assert names == ["1/10 y", "1/y", "1/mo", "1/day", "6/day", "6/h"]
    assert rate_names((1e-60, 1e60)) == []
