"""From a plan to its figure: chooses the budgets to show and how many, so that big files stay quick."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recrawl.pages import LARGEST, SMALLEST, Floats
from recrawl.planning.curve import trace
from recrawl.plots.plan import BudgetCurve, PageRates, plan_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from recrawl.cli.terminal import Report
    from recrawl.planning.plan import Plan

# Each point is a plan of its own; above this many pages fewer points keep the wait short.
_MANY_PAGES = 2_000_000
_POINTS, _POINTS_OF_MANY, _FEWEST_POINTS = 25, 9, 5


def draw_plan(
    plan: Plan, weights: tuple[Floats, Floats], report: Report | None = None, points: int | None = None
) -> Figure:
    """Draw a plan with its budget–freshness curve; `weights` are importance and change rate of the pages.

    A plan for news has no freshness and so no curve; neither has one for which there is time for few `points`.
    """
    importance, change_rate = weights
    rates = PageRates(change_rate, plan.rates, importance)
    if points is None:
        points = _POINTS if len(plan.rates) <= _MANY_PAGES else _POINTS_OF_MANY
    if plan.objective == "news" or not len(plan.rates) or points < _FEWEST_POINTS:
        return plan_figure(rates)
    curve = trace(plan, curve_budgets(plan, points), report)
    return plan_figure(rates, BudgetCurve(curve.budgets, curve.freshness, plan.budget, plan.freshness))


def curve_budgets(plan: Plan, points: int) -> Floats:
    """Budgets from a thirtieth to thirty times the plan's own; around one crawl per page if it is 0."""
    middle = plan.budget if plan.budget > 0 else float(max(len(plan.rates), 1))
    return np.geomspace(max(middle / 30, SMALLEST), min(middle * 30, LARGEST), points).clip(SMALLEST, LARGEST)
