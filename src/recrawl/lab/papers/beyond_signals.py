"""Harmonic cost with noisy signals: the index that weighs them, NCIS, and LambdaCrawl that believes every one of them.

All costs are closed forms. The harmonic index and NCIS (Busa-Fekete et al. 2025) are the thresholds that spend the
budget; GREEDY-NCIS is the same rule with the price left implicit. NCIS never crawls many pages, which makes its
harmonic cost infinite; in its favour no page is counted as worse than if it were crawled once in the horizon of the
paper's experiments, for free. LambdaCrawl (Kolobov et al. 2019) takes signals for changes and crawls at a signal with
probability p. Missed changes are then geometric: they grow at rate a = α + (1 − p)πγ and are cleared at rate pγ, which
costs ln(1 + a/(pγ)). This module holds kernels: import it where it computes.
"""

from __future__ import annotations

import math
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from recrawl.jit import kernel
from recrawl.lab.papers.experiment import Experiment, Finding, Scale, Table, mean_finding
from recrawl.lab.worlds.laws import Population, draw_population
from recrawl.pages import Floats
from recrawl.planning.costs import even_costs
from recrawl.planning.solve import plan
from recrawl.values.signals.page import signal_page
from recrawl.values.signals.planning import freshness_costs_at_rate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RECALLS = (0.9, 0.7, 0.5, 0.3)
PRECISIONS = (0.95, 0.64, 0.45, 0.13)
SHOWN = (0.7, 0.64)
HORIZON = 1_000.0
"""How long NCIS is simulated in its paper."""

_SETTINGS = ("crawls per page", "recall", "precision")
POLICIES = ("harmonic index", "GREEDY-NCIS", "LambdaCrawl", "signals ignored")

Cell: TypeAlias = tuple[float, float, float]
"""Crawls per page, recall, precision."""


class Setup(NamedTuple):
    """How large the experiment is: the paper's population, at 0.2 crawls per change and at one."""

    pages: int = 1_000
    repetitions: int = 10
    crawls_per_page: tuple[float, ...] = (0.1, 0.5)


def harmonic_with_signals(scale: Scale) -> Experiment:
    """Harmonic cost of all policies by quality of signals."""
    return compare(Setup(pages=500, repetitions=3) if scale.quick else Setup())


def compare(setup: Setup) -> Experiment:
    """All policies on all qualities, budgets and populations; ratios are taken population by population."""
    cells = list(product(setup.crawls_per_page, RECALLS, PRECISIONS))
    costs: dict[Cell, list[dict[str, float]]] = {cell: [] for cell in cells}
    for repetition in range(setup.repetitions):
        population = draw_population("uniform", setup.pages, repetition)
        for cell in cells:
            costs[cell].append(costs_of(population, cell))
    ncis = {cell: _ratio("beyond.signals.against_ncis", costs[cell], "GREEDY-NCIS") for cell in cells}
    perfect = {cell: _ratio("beyond.signals.against_perfect", costs[cell], "LambdaCrawl") for cell in cells}
    gain = {cell: _ratio("beyond.signals.gain", costs[cell], "signals ignored") for cell in cells}
    rows = [
        (*cell, *(float(np.mean([one[policy] for one in costs[cell]])) for policy in POLICIES),
         ncis[cell].value, perfect[cell].value, gain[cell].value)
        for cell in cells
    ]  # fmt: skip
    shown = {"over GREEDY-NCIS": ncis, "over LambdaCrawl": perfect, "over ignoring signals": gain}
    few, many = ((rate, *SHOWN) for rate in (setup.crawls_per_page[0], setup.crawls_per_page[-1]))
    return Experiment(
        name="beyond.signals",
        title="Harmonic cost with noisy signals",
        table=Table((*_SETTINGS, *POLICIES, "over NCIS", "over LambdaCrawl", "over ignoring"), rows),
        findings=(_largest(ncis), _largest(perfect), gain[many]),
        draw=partial(_draw, setup.crawls_per_page, shown),
        notes=(
            f"{setup.repetitions} populations of {setup.pages:,} pages, importance and change rate uniform in (0, 1).",
            "0.1 and 0.5 crawls per page and unit time are 0.2 and 1 crawls per change; costs are closed forms.",
            f"No page is counted as worse under NCIS than crawled once in {HORIZON:g} time units for free.",
            "LambdaCrawl takes signals for changes and crawls at each with the probability that is best if they were.",
            "LambdaCrawl leaves budget over where it hears fewer signals than it may crawl, and tosses coins.",
            f"Recall 0.7, precision 0.64: signals leave {gain[many].value:.3f} of the cost at 1 crawl per change.",
            f"That is the finding; at 0.2 crawls per change they leave {gain[few].value:.3f}.",
        ),
    )


def costs_of(population: Population, cell: Cell) -> dict[str, float]:
    """Harmonic cost per unit importance of every policy."""
    rate, recall, precision = cell
    pages = len(population.importance)
    plain = {"importance": population.importance, "change_rate": population.change_rate}
    noisy = {**plain, "recall": np.full(pages, recall), "precision": np.full(pages, precision)}
    budget = rate * pages
    false_signals = recall * population.change_rate * (1 - precision) / precision
    rates = plan(noisy, budget, "freshness", "signals").rates
    costs = {
        "harmonic index": plan(noisy, budget, "harmonic", "signals").costs.harmonic,
        "GREEDY-NCIS": _ncis_cost(population.importance, population.change_rate, recall, false_signals, rates),
        "LambdaCrawl": believing_cost(population, cell),
        "signals ignored": plan(plain, budget, "harmonic", "even").costs.harmonic,
    }
    whole = float(population.importance.sum())
    return {policy: cost / whole for policy, cost in costs.items()}


def believing_cost(population: Population, cell: Cell) -> float:
    """Harmonic cost of LambdaCrawl that takes every signal for a change and knows of no others, summed over pages."""
    rate, recall, precision = cell
    pages = len(population.importance)
    signal_rate = recall * population.change_rate / precision
    told = np.ones(pages)
    believed = {"importance": population.importance, "change_rate": signal_rate, "recall": told, "precision": told}
    crawls = plan(believed, rate * pages, "harmonic", "lambdacrawl").rates
    growth = (1 - recall) * population.change_rate + precision * (signal_rate - crawls)
    return float(population.importance @ np.log1p(growth / crawls))


@kernel
def _ncis_cost(
    importance: Floats, change_rate: Floats, recall: float, false_signal_rate: Floats, rates: Floats
) -> float:
    total = 0.0
    for i in range(importance.size):
        page = signal_page(change_rate[i], recall, false_signal_rate[i])
        cost = freshness_costs_at_rate(page, rates[i])[1] if rates[i] > 0.0 else math.inf
        total += importance[i] * min(cost, even_costs(change_rate[i], 1.0 / HORIZON)[0])
    return total


def _ratio(claim: str, costs: list[dict[str, float]], other: str) -> Finding:
    return mean_finding(claim, [one["harmonic index"] / one[other] for one in costs])


def _largest(found: dict[Cell, Finding]) -> Finding:
    return max(found.values(), key=lambda finding: finding.value)


def _draw(crawls_per_page: tuple[float, ...], ratios: dict[str, dict[Cell, Finding]]) -> Figure:
    from recrawl.plots.experiments import BarPanel, Series, bars_figure

    diagonal = list(zip(RECALLS, PRECISIONS, strict=True))

    def series(name: str, found: dict[Cell, Finding], rate: float) -> Series:
        cells = [found[rate, recall, precision] for recall, precision in diagonal]
        return Series(name, [c.value for c in cells], [c.low for c in cells], [c.high for c in cells])

    panels = [
        BarPanel(
            title=f"{rate:g} crawls per page and unit time",
            y_label="ratio of harmonic costs",
            groups=[f"{recall:g} / {precision:g}" for recall, precision in diagonal],
            series=[series(name, found, rate) for name, found in ratios.items()],
            reference=1.0,
            x_label="recall / precision",
        )
        for rate in crawls_per_page
    ]
    return bars_figure(panels)
