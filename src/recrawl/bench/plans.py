"""The plans that the group `planning` measures, and the pages it measures them on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

import recrawl
from recrawl.bench import yardsticks
from recrawl.bench.yardsticks import Solution
from recrawl.lab.worlds.laws import web_population
from recrawl.pages import Floats, Objective

if TYPE_CHECKING:
    from recrawl.planning.plan import Plan
    from recrawl.planning.solve import Solver

MILLION = 1_000_000
BUDGET_SHARE = 0.2
"""Crawls per page and day that the budget allows."""

_TWO = ("importance", "change_rate")


@dataclass(frozen=True, slots=True)
class PlanCase:
    """A plan to measure, and the yardstick that gives the same answer; both get the same columns."""

    name: str
    solver: Solver
    objective: Objective
    columns: tuple[str, ...]
    yardstick: Callable[[Mapping[str, Floats], float], Solution]

    def plan(self, population: Mapping[str, Floats]) -> Plan:
        """Plan the columns of this case, reading and checking them included."""
        columns = self.pick(population)
        return recrawl.plan(columns, budget=budget_of(columns), objective=self.objective, solver=self.solver)

    def solve_plainly(self, population: Mapping[str, Floats]) -> Solution:
        """The same by the yardstick."""
        columns = self.pick(population)
        return self.yardstick(columns, budget_of(columns))

    def pick(self, population: Mapping[str, Floats]) -> dict[str, Floats]:
        """The columns that this case reads."""
        return {name: population[name] for name in self.columns}


MIXED = PlanCase("lambdacrawl", "lambdacrawl", "harmonic", (*_TWO, "recall", "precision"), yardsticks.mixed_harmonic)
RANDOM = PlanCase("azar", "azar", "freshness", _TWO, yardsticks.random_freshness)
EVEN_HARMONIC = PlanCase("even_harmonic", "even", "harmonic", _TWO, yardsticks.even_harmonic)
EVEN_FRESHNESS = PlanCase("even_freshness", "even", "freshness", _TWO, yardsticks.even_freshness)
PLANS = (MIXED, RANDOM, EVEN_HARMONIC, EVEN_FRESHNESS)


def budget_of(columns: Mapping[str, Floats]) -> float:
    """Crawls per day for these pages."""
    return BUDGET_SHARE * len(columns["importance"])


def draw_millions(millions: int, names: Sequence[str]) -> dict[str, Floats]:
    """Draw so many million pages of the web population, a million at a time, which needs little extra memory."""
    columns = {name: np.empty(millions * MILLION) for name in names}
    for part in range(millions):
        drawn = web_population(MILLION, seed=part)
        for name, column in columns.items():
            column[part * MILLION : (part + 1) * MILLION] = drawn[name]
    return columns
