"""Draws the pictures of docs/concepts.md and docs/objectives.md from real numbers: `python tools/draw_concepts.py`.

Each picture is a function from the plan of examples/pages.csv, 40 crawls a day, to a figure; the numbers are those that
`recrawl plan` reports. Curves have few points, so that the files stay small.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import recrawl
from recrawl.pages import Floats
from recrawl.planning.plan import Plan
from recrawl.plots.save import save_figure
from recrawl.plots.style import BLUE, DARK, GREY, ORANGE, drawing, new_figure
from recrawl.values import freshness_due, harmonic_due, harmonic_value, noisy_harmonic_value

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
BUDGET = 40.0
HOURS = 24.0
SHOWN = ("https://news.example.org/", "https://shop.example.com/", "https://docs.example.com/")
GREEN = "#009E73"
_POINTS = 60


@dataclass(frozen=True, slots=True)
class Example:
    """The pages of the example and their plan."""

    urls: list[str]
    importance: Floats
    change_rate: Floats
    plan: Plan

    def page(self, url: str) -> tuple[float, float]:
        """Importance and changes per day of a page."""
        number = self.urls.index(url)
        return float(self.importance[number]), float(self.change_rate[number])


@cache
def example() -> Example:
    """Read and plan examples/pages.csv."""
    lines = (ROOT / "examples" / "pages.csv").read_text(encoding="utf-8").splitlines()
    rows = [dict(zip(lines[0].split(","), line.split(","), strict=True)) for line in lines[1:]]
    columns = {name: np.array([float(row[name]) for row in rows]) for name in ("importance", "change_rate")}
    plan = recrawl.plan(columns, budget=BUDGET)
    return Example([row["url"] for row in rows], columns["importance"], columns["change_rate"], plan)


def wanted(price: float) -> float:
    """Crawls per day that all pages of the example are worth at a price."""
    due = np.asarray(harmonic_due(example().importance, example().change_rate, price))
    return float((1 / due).sum())


def value_rises() -> Figure:
    """What a crawl of three pages is worth while they wait, and when each reaches the price."""
    with drawing():
        figure, (axis,) = new_figure(1, height=3.6)
        hours = np.linspace(0, 24, _POINTS)
        price = example().plan.price
        for url, colour in zip(SHOWN, (BLUE, ORANGE, GREEN), strict=True):
            importance, rate = example().page(url)
            name = url.removeprefix("https://").rstrip("/")
            axis.plot(hours, harmonic_value(importance, rate, hours / HOURS), color=colour, label=name)
            due = HOURS * float(harmonic_due(importance, rate, price))
            axis.plot([due], [price], "o", color=colour)
            axis.annotate(f"{due:.1f} h", (due, price), (6, -14), textcoords="offset points", color=colour)
        _price_line(axis, price)
        axis.set(
            xlim=(0, 24), ylim=(0, 2.4 * price), xlabel="hours since the last crawl", ylabel="value of a crawl now"
        )
        axis.legend(loc="upper left")
    return figure


def market() -> Figure:
    """How many crawls are worth a price, and the price at which that is the budget."""
    with drawing():
        figure, (axis,) = new_figure(1, height=3.6)
        price = example().plan.price
        prices = np.geomspace(price / 30, price * 30, _POINTS)
        axis.loglog(prices, [wanted(each) for each in prices], color=BLUE)
        axis.axhline(BUDGET, color=GREY, linestyle="--", linewidth=1)
        axis.plot([price], [BUDGET], "o", color=ORANGE)
        axis.annotate(f"price {price:.2f}", (price, BUDGET), (8, 8), textcoords="offset points", color=ORANGE)
        axis.annotate("budget: 40 crawls a day", (prices[0], BUDGET), (2, -14), textcoords="offset points", color=DARK)
        axis.set(xlabel="price of a crawl", ylabel="crawls a day that are worth it")
    return figure


def what_budgets_buy() -> Figure:
    """Freshness against budget: by price, and by two rules of thumb."""
    with drawing():
        figure, (axis,) = new_figure(1, height=3.6)
        budgets = np.geomspace(4, 400, 25)
        kinds = {"even": ("by price", BLUE), "uniform": ("all alike", GREY), "proportional": ("by change rate", ORANGE)}
        for solver, (name, colour) in kinds.items():
            fresh = [100 * freshness(solver, budget) for budget in budgets]
            axis.semilogx(budgets, fresh, color=colour, label=name)
        axis.plot([BUDGET], [100 * example().plan.freshness], "o", color=BLUE)
        axis.set(xlabel="budget, crawls a day", ylabel="freshness, % of importance", ylim=(0, 100))
        axis.legend()
    return figure


def freshness(solver: str, budget: float) -> float:
    """What a solver makes of a budget, with evenly spaced crawls."""
    pages = {"importance": example().importance, "change_rate": example().change_rate}
    return recrawl.plan(pages, budget=budget, solver=solver).spaced("even").freshness  # type: ignore[arg-type]


def signal_jumps() -> Figure:
    """What a signal does to the value of a page, by how far it can be trusted."""
    with drawing():
        figure, (axis,) = new_figure(1, height=3.6)
        importance, rate = example().page(SHOWN[0])
        price, heard_at = example().plan.price, 2.0
        hours = np.unique(np.concatenate([np.linspace(0, 8, _POINTS), [heard_at - 1e-9, heard_at]]))
        axis.plot(hours, harmonic_value(importance, rate, hours / HOURS), color=GREY, label="nothing is ever heard")
        for recall, precision, colour in ((0.9, 0.95, BLUE), (0.5, 0.5, ORANGE)):
            false_rate = recall * rate * (1 - precision) / precision
            heard = (hours >= heard_at).astype(float)
            worth = noisy_harmonic_value(importance, rate, recall, false_rate, hours / HOURS, heard)
            axis.plot(hours, worth, color=colour, label=f"recall {recall:g}, precision {precision:g}")
        _price_line(axis, price)
        axis.set(xlim=(0, 8), ylim=(0, 2 * price), xlabel="hours since the last crawl", ylabel="value of a crawl now")
        axis.legend(loc="upper left")
    return figure


def intervals() -> Figure:
    """How often a page of importance 1 is crawled, by how often it changes, for two objectives at one price."""
    with drawing():
        figure, (axis,) = new_figure(1, height=3.6)
        rates = np.geomspace(0.01, 100, _POINTS)
        for due, name, colour in ((harmonic_due, "harmonic", BLUE), (freshness_due, "freshness", ORANGE)):
            axis.loglog(rates, 1 / np.asarray(due(1.0, rates, 1.0)), color=colour, label=name)
        axis.set(xlabel="changes a day", ylabel="crawls a day", ylim=(0.03, 12))
        axis.legend()
    return figure


def _price_line(axis: Axes, price: float) -> None:
    axis.axhline(price, color=GREY, linestyle="--", linewidth=1)
    axis.annotate(f"price {price:.2f}", (1, price), (-4, 5), ("axes fraction", "data"), "offset points", ha="right")


PICTURES: dict[str, Callable[[], Figure]] = {
    "price-value.svg": value_rises,
    "price-market.svg": market,
    "price-budgets.svg": what_budgets_buy,
    "price-signal.svg": signal_jumps,
    "objectives.svg": intervals,
}


def main() -> None:
    """Draw all of them."""
    for name, draw in PICTURES.items():
        save_figure(draw(), IMAGES / name)


if __name__ == "__main__":
    main()
