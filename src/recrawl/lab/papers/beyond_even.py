"""Evenly spaced crawls against crawls at random times, each with the rates that are best for it: closed forms only.

LambdaCrawl (Kolobov et al. 2019) and Azar et al. 2018 find the best rates for crawls at random times. The same budget,
spent evenly, is better on their own objectives; with rates found for that it is better again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recrawl.lab.papers.experiment import Experiment, Scale, Table, exact_finding
from recrawl.pages import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from recrawl.planning.plan import Plan

PAGES, BUDGET = 2_000, 400.0
_SEED = 11


def even_against_random(scale: Scale) -> Experiment:  # noqa: ARG001 - it takes no time at any scale
    """Compare harmonic costs with LambdaCrawl's, and freshness with Azar's."""
    harmonic, freshness = harmonic_plans(), freshness_plans()
    cost = {name: plan.costs.harmonic for name, plan in harmonic.items()}
    fresh = {name: plan.freshness for name, plan in freshness.items()}
    random, same, best = cost.values()
    return Experiment(
        name="beyond.even",
        title="Evenly spaced crawls against crawls at random times",
        table=Table(
            ("objective", "policy", "harmonic cost", "freshness", "starved"),
            [
                *(("harmonic", name, cost[name], plan.freshness, plan.starved) for name, plan in harmonic.items()),
                *(
                    ("freshness", name, plan.costs.harmonic, fresh[name], plan.starved)
                    for name, plan in freshness.items()
                ),
            ],
        ),
        findings=(
            exact_finding("beyond.even.harmonic_saving", best / random),
            exact_finding("beyond.even.same_rates", same / random),
            exact_finding("beyond.even.freshness", fresh["even optimum"] / fresh["Azar"]),
        ),
        draw=lambda: _draw(cost, fresh),
        notes=(
            f"One population of {PAGES:,} pages, {BUDGET:g} crawls per unit time; all numbers are closed forms.",
            "Importance is Pareto(1.2) + 0.1, change rates are log-uniform from 0.003 to 6.3.",
            f"Harmonic cost: LambdaCrawl {random:.2f}, its rates evenly spaced {same:.2f}, the index {best:.2f}.",
            f"Azar's optimum starves {freshness['Azar'].starved:.0%} of the pages, the harmonic plan none.",
        ),
    )


def draw_pages() -> dict[str, Floats]:
    """The population: heavy-tailed importance, change rates over more than three decades."""
    random = np.random.default_rng(_SEED)
    importance = random.pareto(1.2, PAGES) + 0.1
    return {"importance": importance, "change_rate": 10 ** random.uniform(-2.5, 0.8, PAGES)}


def harmonic_plans() -> dict[str, Plan]:
    """LambdaCrawl's plan, the same rates evenly spaced, and the even-spaced optimum."""
    from recrawl.planning.solve import plan

    pages = draw_pages()
    theirs = plan(pages, BUDGET, "harmonic", "lambdacrawl")
    return {
        "LambdaCrawl": theirs,
        "its rates, even": theirs.spaced("even"),
        "even optimum": plan(pages, BUDGET, "harmonic", "even"),
    }


def freshness_plans() -> dict[str, Plan]:
    """Azar's plan, the same rates evenly spaced, the even-spaced optimum, and others, evenly spaced too."""
    from recrawl.planning.solve import plan

    pages = draw_pages()
    theirs = plan(pages, BUDGET, "freshness", "azar")
    return {
        "Azar": theirs,
        "its rates, even": theirs.spaced("even"),
        "even optimum": plan(pages, BUDGET, "freshness", "even"),
        "harmonic plan": plan(pages, BUDGET, "harmonic", "even"),
        "uniform": plan(pages, BUDGET, "freshness", "uniform").spaced("even"),
        "by change rate": plan(pages, BUDGET, "freshness", "proportional").spaced("even"),
    }


def _draw(cost: dict[str, float], fresh: dict[str, float]) -> Figure:
    from recrawl.plots.experiments import BarPanel, Series, bars_figure

    def panel(title: str, y_label: str, numbers: dict[str, float]) -> BarPanel:
        groups = [name.replace(" ", "\n") for name in numbers]
        return BarPanel(title, y_label, groups, [Series(y_label, list(numbers.values()))])

    return bars_figure(
        [panel("Harmonic cost (less is better)", "cost of all pages", cost), panel("Freshness", "share fresh", fresh)]
    )
