"""LambdaCrawl (Kolobov et al. 2019), experiments 1 and 2: policies that know the change rates, and their costs.

Costs are closed forms: nothing is simulated. Intervals are over populations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from recrawl.lab.papers.experiment import Experiment, Finding, Table, mean_finding
from recrawl.pages import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from recrawl.planning.plan import Plan
    from recrawl.planning.solve import Solver

Variant = Literal["share", "important"]
VARIANTS: tuple[Variant, Variant] = ("share", "important")
VARIANT_NAMES = {
    "share": "complete pages hold 4 % of importance",
    "important": "complete pages hold 26 % of importance",
}

CRAWLS_PER_PAGE = 0.2
MEDIAN_DAYS = 4.0
"""The typical page changes once in so many days."""

_COMPLETE_SHARE = 0.04
_COMPLETE_IMPORTANCE = 0.26
_IMPORTANCE_MEDIAN, _IMPORTANCE_SPREAD = 100.0, 1.5
_RATE_SPREAD = 1.0
_RATE_RANGE = (0.0005, 7.0)
_SEED = 2019


POLICIES: dict[str, Solver] = {
    "LC": "lambdacrawl",
    "LCA": "lambdacrawl-approx",
    "BLC-0.4": "blc-eps",
    "BLC": "azar",
    "UC": "uniform",
    "CC": "proportional",
}
_ORDER = {
    "lc_below_lca": ("LC", "LCA"),
    "lc_below_blc_eps": ("LC", "BLC-0.4"),
    "lca_below_uc": ("LCA", "UC"),
    "blc_eps_below_uc": ("BLC-0.4", "UC"),
    "uc_below_cc": ("UC", "CC"),
}
_IGNORED = "LC-IO"
_CHANGE_DAYS = (2.0, 3.0, MEDIAN_DAYS, 5.0, 7.0)
_COMPLETE_POLICIES = ("LC", _IGNORED, "BLC-0.4", "BLC", "UC", "CC")

Cells: TypeAlias = dict[str, list[tuple[float, float]]]
"""Harmonic and binary cost per page by policy, one for each population."""


def draw_pages(pages: int, variant: Variant, repetition: int) -> dict[str, Floats]:
    """Pages shaped like those of the LambdaCrawl paper (Kolobov et al. 2019), whose data are not public.

    What the paper says of its 18.5 million pages: importance is skewed, most of it below 1,000 (figure 5); most pages
    change once in a few days (figure 6); rates come from an estimator that clips them to [0.0005, 7] a day; 4 % have
    complete observations; the budget is 0.2 crawls per page and day. The laws chosen here: importance lognormal around
    100 (6 % are above 1,000), change rate lognormal around once in four days, independent of each other. Complete pages
    are drawn at random; where they are to hold more than their share of importance, it is scaled up.

    Draw a population; complete pages have recall and precision 1, the others 0. O(pages).

    >>> columns = draw_pages(1000, "important", 0)
    >>> complete = columns["recall"] == 1
    >>> share = columns["importance"][complete].sum() / columns["importance"].sum()
    >>> int(complete.sum()), round(float(share), 3)
    (40, 0.26)
    """
    random = np.random.Generator(np.random.PCG64([_SEED, pages, repetition]))
    importance = _IMPORTANCE_MEDIAN * np.exp(_IMPORTANCE_SPREAD * random.standard_normal(pages))
    change_rate = np.clip(np.exp(_RATE_SPREAD * random.standard_normal(pages)) / MEDIAN_DAYS, *_RATE_RANGE)
    complete = np.zeros(pages)
    complete[random.permutation(pages)[: round(_COMPLETE_SHARE * pages)]] = 1.0
    if variant == "important":
        held = float(importance @ complete)
        rest = float(importance.sum()) - held
        wanted = rest * _COMPLETE_IMPORTANCE / (1 - _COMPLETE_IMPORTANCE)
        importance = np.where(complete == 1.0, importance * (wanted / held), importance)
    return {"importance": importance, "change_rate": change_rate, "recall": complete, "precision": complete.copy()}


def complete_only(columns: dict[str, Floats]) -> dict[str, Floats]:
    """The pages with complete observations."""
    complete = columns["recall"] == 1.0
    return {name: values[complete] for name, values in columns.items()}


def as_incomplete(columns: dict[str, Floats]) -> dict[str, Floats]:
    """The same pages, of which nothing is known but what crawls show."""
    return {name: columns[name] for name in ("importance", "change_rate")}


@dataclass(frozen=True, slots=True)
class Setup:
    """How large the experiments are; the paper has one population of 18.5 million pages."""

    pages: int = 500_000
    repetitions: int = 6


QUICK = Setup(pages=100_000, repetitions=5)


def experiment_1(setup: Setup) -> Experiment:
    """All policies on all pages, in both variants of who is complete."""
    costs: dict[str, Cells] = {variant: {policy: [] for policy in POLICIES} for variant in VARIANTS}
    starved: list[float] = []
    for variant in VARIANTS:
        for repetition in range(setup.repetitions):
            columns = draw_pages(setup.pages, variant, repetition)
            for policy in POLICIES:
                plan = plan_policy(policy, columns)
                costs[variant][policy].append(_per_page(plan))
                if policy == "BLC":
                    starved.append(plan.starved)
    binary = _ratios(costs["important"], "LC", "BLC", 1)
    return Experiment(
        name="lambdacrawl.exp1",
        title="Costs of policies that know the change rates",
        table=_table(costs),
        findings=(
            *(_worst(f"lambdacrawl.exp1.{claim}", costs, *pair) for claim, pair in _ORDER.items()),
            mean_finding("lambdacrawl.exp1.blc_infinite", starved),
            mean_finding("lambdacrawl.exp1.binary_cost", binary),
        ),
        draw=partial(_draw_costs, {VARIANT_NAMES[variant]: costs[variant] for variant in VARIANTS}),
        notes=_notes(setup, costs),
    )


def experiment_2(setup: Setup) -> Experiment:
    """The complete pages alone, with a budget of their own."""
    costs: Cells = {policy: [] for policy in _COMPLETE_POLICIES}
    gains: dict[float, list[float]] = {days: [] for days in _CHANGE_DAYS}
    for repetition in range(setup.repetitions):
        columns = complete_only(draw_pages(setup.pages, "important", repetition))
        for policy in _COMPLETE_POLICIES:
            costs[policy].append(_complete_cost(policy, columns))
        for days in _CHANGE_DAYS:
            scaled = {**columns, "change_rate": columns["change_rate"] * (MEDIAN_DAYS / days)}
            ignored, used = (_complete_cost(policy, scaled)[0] for policy in (_IGNORED, "LC"))
            gains[days].append(ignored / used)
    found = {days: mean_finding("lambdacrawl.exp2.complete_gain", samples) for days, samples in gains.items()}
    shown = ", ".join(f"{finding.value:.2f} at {days:g} days" for days, finding in found.items())
    return Experiment(
        name="lambdacrawl.exp2",
        title="What announcements are worth on the pages that have them",
        table=_table({"complete pages alone": costs}),
        findings=(found[MEDIAN_DAYS],),
        draw=partial(_draw_costs, {"Complete pages alone": costs}),
        notes=(
            f"The complete pages of {setup.repetitions} populations of {setup.pages:,} have a budget of their own.",
            "LC-IO is LambdaCrawl that takes them as incomplete; the gain is its cost over LC's.",
            "The paper says 2 times in one place and nearly 5 in another; both are for pages that are not public.",
            f"The gain depends on how often the typical page changes: {shown}; 4 were chosen beforehand.",
        ),
    )


def _complete_cost(policy: str, columns: dict[str, Floats]) -> tuple[float, float]:
    if policy == _IGNORED:
        return _per_page(plan_policy("LC", as_incomplete(columns)))
    return _per_page(plan_policy(policy, columns))


def plan_policy(policy: str, columns: dict[str, Floats]) -> Plan:
    """The plan of a policy at the paper's budget; all but LC and LCA take every page as incomplete."""
    from recrawl.planning.solve import plan

    solver = POLICIES[policy]
    known = columns if policy in ("LC", "LCA") else as_incomplete(columns)
    return plan(known, CRAWLS_PER_PAGE * len(columns["importance"]), solver=solver).spaced("poisson")


def _per_page(plan: Plan) -> tuple[float, float]:
    costs = plan.costs.per_page()
    return costs.harmonic, costs.binary


def _ratios(cells: Cells, upper: str, lower: str, kind: int) -> list[float]:
    """The costs of one policy over those of another, population by population; kind 0 is harmonic, 1 binary."""
    return [above[kind] / below[kind] for above, below in zip(cells[upper], cells[lower], strict=True)]


def _worst(claim: str, costs: Mapping[str, Cells], upper: str, lower: str) -> Finding:
    """The larger ratio of harmonic costs of the two variants."""
    found = [mean_finding(claim, _ratios(cells, upper, lower, 0)) for cells in costs.values()]
    return max(found, key=lambda finding: finding.value)


def _table(costs: Mapping[str, Cells]) -> Table:
    rows: list[tuple[str, str, float, float]] = []
    for population, cells in costs.items():
        for policy, pairs in cells.items():
            harmonic, binary = np.mean(pairs, axis=0)
            rows.append((VARIANT_NAMES.get(population, population), policy, float(harmonic), float(binary)))
    return Table(("population", "policy", "harmonic cost", "binary cost"), rows)


def _notes(setup: Setup, costs: Mapping[str, Cells]) -> tuple[str, ...]:
    binary = {variant: float(np.mean(_ratios(costs[variant], "LC", "BLC", 1))) for variant in VARIANTS}
    return (
        "The paper's pages are not public; ours have the shape it describes.",
        "Importance is lognormal around 100 with sd 1.5, change rate lognormal around 0.25 a day with sd 1.",
        f"{setup.repetitions} populations of {setup.pages:,} pages; costs are closed forms, divided by the pages.",
        "Complete pages are drawn at random and hold 4 % of the importance, or are scaled up to hold 26 %.",
        "Of these two variants the one with the larger ratio counts.",
        f"Binary cost, LC over BLC: {binary['important']:.3f} where they hold 26 %, {binary['share']:.3f} with 4 %.",
    )


def _draw_costs(populations: dict[str, Cells]) -> Figure:
    from recrawl.plots.experiments import BarPanel, Series, bars_figure

    def series(name: str, cells: Cells, kind: int) -> Series:
        found = [_cost_finding([cost[kind] for cost in cells[policy]]) for policy in cells]
        return Series(name, [f.value for f in found], [f.low for f in found], [f.high for f in found])

    panels = [
        BarPanel(
            title=name[0].upper() + name[1:],
            y_label="cost per page",
            groups=list(cells),
            series=[series("harmonic", cells, 0), series("binary", cells, 1)],
        )
        for name, cells in populations.items()
    ]
    return bars_figure(panels)


def _cost_finding(samples: list[float]) -> Finding:
    if not np.isfinite(samples).all():
        return Finding("", np.inf, np.inf, np.inf)
    return mean_finding("", samples)
