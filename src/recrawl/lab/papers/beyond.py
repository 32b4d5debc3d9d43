"""What no paper has: the experiments that set recrawl's own rules beside the papers' (claims `beyond.*`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from recrawl.lab.papers.beyond_learned import learned_against_known
from recrawl.lab.papers.beyond_scheduler import index_against_greedy, scheduler_against_plans
from recrawl.lab.papers.beyond_signals import harmonic_with_signals
from recrawl.lab.papers.echo import CONFIRMING, GRAPH_NOTES, Size, quality_panel, quality_table, run_graphs, size_note
from recrawl.lab.papers.experiment import Experiment, Scale, Table, exact_finding, mean_finding
from recrawl.lab.worlds.news import PAPER_SITES
from recrawl.pages import Floats
from recrawl.plots.experiments import BarPanel, Series, bars_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from recrawl.planning.plan import Plan

PAGES, BUDGET = 2_000, 400.0
_SEED = 11


POLICIES = ("fixed-quota", "echo-newpages", "market")
RATES = (0.025, 0.05, 0.1, 0.2)
_RIVAL_NAMES = {"against_newpages": "ECHO-newpages", "against_quota": "the quota"}
_RIVALS = {"against_newpages": "echo-newpages", "against_quota": "fixed-quota"}
_MARKET = (
    "Each crawl goes to the largest value, of a page P·exp(−κ·age) or of a source, which counts only pages worth the "
    "price, and only pages that no source had shown before. The price moves so that in one slot of ten nothing is "
    "worth it; that slot goes to the source not crawled for longest. This last rule was added after a first run on "
    "small graphs, in which sources of which nothing was known were never looked at again."
)


def even_against_random(scale: Scale) -> Experiment:  # noqa: ARG001 - it takes no time at any scale
    """Evenly spaced crawls against crawls at random times, each with the rates that are best for it: closed forms only.

    LambdaCrawl (Kolobov et al. 2019) and Azar et al. 2018 find the best rates for crawls at random times. The same
    budget, spent evenly, is better on their own objectives; with rates found for that it is better again.

    Compare harmonic costs with LambdaCrawl's, and freshness with Azar's.
    """
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


def market_against_quotas(scale: Scale) -> Experiment:
    """One price for sources and new pages against ECHO, which pays for every new page, and against a fixed quota.

    The market, ECHO-newpages and the quota crawl the same graphs and learn in the same way (`lab/simulation/news.py`).

    Hits captured by one price, by ECHO-newpages and by ECHO's sources with half of the crawls, over budgets.
    """
    return compare(Size(20, 4) if scale.quick else Size(PAPER_SITES, 4, CONFIRMING), scale.workers)


def compare(size: Size, processes: int = 1) -> Experiment:
    """Run the three on graphs of a size."""
    outcomes = run_graphs(size, POLICIES, RATES, processes)
    quality = np.array([outcome.quality for outcome in outcomes])
    market = quality[:, POLICIES.index("market")]
    ratios = {claim: market / quality[:, POLICIES.index(rival)] for claim, rival in _RIVALS.items()}
    found = {
        claim: [mean_finding(f"beyond.market.{claim}", ratio[:, r].tolist()) for r in range(len(RATES))]
        for claim, ratio in ratios.items()
    }
    gains = BarPanel(
        "One price over its rivals", "ratio of hits captured", [f"{rate:g} crawls/s" for rate in RATES],
        [
            Series(f"over {_RIVAL_NAMES[claim]}", *np.array([each[1:] for each in findings]).T)
            for claim, findings in found.items()
        ],
        reference=1.0,
    )  # fmt: skip
    seen = "; ".join(
        f"{rate:g} crawls a second: {found['against_newpages'][r].value:.3f} of ECHO-newpages, "
        f"{found['against_quota'][r].value:.3f} of the quota"
        for r, rate in enumerate(RATES)
    )
    return Experiment(
        "beyond.market",
        "One price against ECHO and against quotas",
        quality_table(outcomes, POLICIES, RATES),
        tuple(min(findings, key=lambda each: each.value) for findings in found.values()),
        lambda: bars_figure([quality_panel(outcomes, POLICIES, RATES), gains]),
        (*GRAPH_NOTES, _MARKET, f"Hits captured by one price, at {seen}.", *size_note(size)),
    )


def experiments(scale: Scale) -> Iterator[Experiment]:
    """Run them one after the other."""
    yield even_against_random(scale)
    yield harmonic_with_signals(scale)
    yield market_against_quotas(scale)
    yield index_against_greedy(scale)
    yield scheduler_against_plans(scale)
    yield learned_against_known(scale)
