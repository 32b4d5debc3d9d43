"""Policies that follow a plan: optimal rates first, then crawl times at those rates.

    edf      Azar's exact rates (Azar et al. 2018), earliest deadline first
    lds      the evenly spaced optimum, with low discrepancy (the LDS of the NCIS paper, Busa-Fekete et al. 2025)
    poisson  the optimum for random times, in random order: LambdaCrawl's rates (Kolobov et al. 2019) if a page has
             the harmonic objective, Azar's if none has

The plan is made at the first choice, and again when pages or the budget have changed. A new plan
starts its schedule from the beginning: these are policies for a steady set of pages. A learned change rate counts as
it was when the plan was made. The budget comes at a constant rate, so random crawls do too: which page is next is
drawn by the rates, and the times between two crawls of a page are as good as exponential.

A page whose time comes while it is in flight, or while its host or the budget allows no crawl, stays due until it can
be crawled; further times that pass meanwhile fall together with it. A page that was taken and comes back without
having been crawled is due again. Pages that the plan never crawls stay uncrawled. A new page (law ONCE) has no rate
and is due when it is placed. Signals are ignored.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from recrawl.pages import Pages
from recrawl.planning.schedules import schedule
from recrawl.planning.solve import plan
from recrawl.scheduling.policies.argmax import NOTHING, WaitingPages, admit, limit
from recrawl.scheduling.policies.contract import Chosen
from recrawl.scheduling.table.records import HARMONIC, IN_FLIGHT, LEARNED_HARMONIC, NOISY_HARMONIC, ONCE, QUEUED, WINDOW

if TYPE_CHECKING:
    from recrawl.pages import Objective
    from recrawl.planning.solve import Solver
    from recrawl.scheduling.table.pages import PageTable
    from recrawl.scheduling.table.records import Slots

_UNKNOWN = -1
_SLACK = 1e-6  # of the time between two crawls: rounding of times must not make one late
_ROUNDS_BEHIND = 4  # crawls per page to catch up with; after a longer pause the schedule starts again


class Planned(WaitingPages):
    """Takes pages when their time has come, in the order of the schedule."""

    kind: ClassVar[Literal["edf", "low-discrepancy", "poisson"]]

    def __init__(self, table: PageTable, budget: float, seed: int) -> None:
        super().__init__(table, budget, seed)
        self._known = np.full(0, _UNKNOWN, dtype=np.int64)  # who is in the plan, by slot
        self._outdated = True
        self._planned_budget = math.nan
        self._planned = np.empty(0, dtype=np.int64)  # slots, in the order of the plan
        self._rates = np.empty(0)
        self._starts = 0
        self._origin = 0.0
        self._step = 0.0  # between two crawls
        self._schedule: Iterator[tuple[float, int]] = iter(())
        self._next: tuple[float, int] = (math.inf, -1)
        self._due: dict[int, None] = {}  # slots whose time has come, in order
        self._taken: dict[int, float] = {}  # slots in flight, and when they had been crawled before

    def solver(self, harmonic: bool) -> tuple[Solver, Objective]:
        """How to plan: for pages of which some are harmonic, or none."""
        raise NotImplementedError

    def place(self, slots: Slots, now: float) -> None:
        """Let these pages compete; a page that the plan does not know makes it outdated."""
        super().place(slots, now)
        self._grow()
        identity = self._identity(slots)
        fresh = slots[self._known[slots] != identity]
        if len(fresh):
            self._known[slots] = identity
            self._outdated = True
            self._forget(fresh)
            once = fresh[self.table.pages["law"][fresh] == ONCE]
            self._due.update(dict.fromkeys(once.tolist()))
        self._take_back(slots)

    def withdraw(self, slots: Slots, now: float) -> None:
        """Let these pages compete no more."""
        super().withdraw(slots, now)
        self._grow()
        self._known[slots] = _UNKNOWN
        self._outdated = True
        self._forget(slots)

    def choose(self, now: float, most: int, tokens: float) -> Chosen:
        """Choose pages whose time has come, in the order of the schedule. O(pages due)."""
        if self._outdated or self.budget != self._planned_budget:
            self._plan(now)
        self._collect(now)
        order = np.fromiter(self._due, np.int64, len(self._due))
        order = order[self.table.pages["state"][order] == QUEUED]
        if most <= 0 or not len(order):
            return NOTHING
        taken = admit(self.table, order, now, most, tokens)
        for slot, last in zip(taken.tolist(), self.table.pages["last"][taken].tolist(), strict=True):
            del self._due[slot]
            self._taken[slot] = last
        return Chosen(taken, self.table.values(taken, now, self._price))

    def price(self) -> float:
        """The price of the plan: what one more crawl per unit time would be worth."""
        return self._price

    def _identity(self, slots: Slots) -> Slots:
        """What tells a page from another in the same slot, and from what it was under another law."""
        pages = self.table.pages
        identity: Slots = pages["generation"][slots].astype(np.int64) << 8 | pages["law"][slots]
        return identity

    def _take_back(self, slots: Slots) -> None:
        """Make pages due again that were taken and not crawled."""
        if not self._taken:
            return
        for slot, last in zip(slots.tolist(), self.table.pages["last"][slots].tolist(), strict=True):
            if self._taken.pop(slot, None) == last:
                self._due.setdefault(slot)

    def _forget(self, slots: Slots) -> None:
        for slot in slots.tolist():
            self._due.pop(slot, None)
            self._taken.pop(slot, None)

    def _grow(self) -> None:
        more = len(self.table.pages) - len(self._known)
        if more > 0:
            self._known = np.append(self._known, np.full(more, _UNKNOWN, dtype=np.int64))

    def _plan(self, now: float) -> None:
        self._grow()
        pages = self.table.pages[: self.table.used]
        here = (pages["state"] == QUEUED) | (pages["state"] == IN_FLIGHT)
        slots = np.flatnonzero(here & (pages["law"] != ONCE))
        solver, objective = self.solver(harmonic=_any_harmonic(self.table, slots))
        made = plan(_pages(self.table, slots), self.budget, objective, solver)
        self._outdated, self._planned_budget = False, self.budget
        self._known[slots] = self._identity(slots)
        self._planned, self._rates = slots, made.rates
        self._price = made.price if math.isfinite(made.price) else 0.0
        self._start(now)

    def _start(self, now: float) -> None:
        total = float(self._rates.sum())
        self._step = 1 / total if total > 0 else 0.0
        crawls = schedule(self._rates, self.kind, self.seed + self._starts)
        self._starts += 1
        self._origin = now
        self._schedule = self._evenly_timed(crawls) if self.kind == "poisson" else crawls
        self._advance()

    def _evenly_timed(self, crawls: Iterator[tuple[float, int]]) -> Iterator[tuple[float, int]]:
        return ((number * self._step, page) for number, (_, page) in enumerate(crawls, start=1))

    def _advance(self) -> None:
        self._next = next(self._schedule, (math.inf, -1))

    def _collect(self, now: float) -> None:
        """Make pages due whose time has come."""
        for _ in range(_ROUNDS_BEHIND * len(self._planned) + 64):
            if self._origin + self._next[0] - _SLACK * self._step > now:
                return
            self._make_due(int(self._planned[self._next[1]]))
            self._advance()
        if self._next[1] >= 0:
            self._start(now)

    def _make_due(self, slot: int) -> None:
        if self._identity(np.array([slot]))[0] == self._known[slot]:
            self._due.setdefault(slot)
        else:  # it was removed while in flight
            self._outdated = True


class EarliestDeadline(Planned):
    """`edf`: Azar's rates, earliest deadline first."""

    kind = "edf"

    def solver(self, harmonic: bool) -> tuple[Solver, Objective]:  # noqa: ARG002 - the same for all
        """Freshness with crawls at random times, whatever the objective."""
        return "azar", "freshness"


class LowDiscrepancy(Planned):
    """`lds`: evenly spaced rates, with low discrepancy."""

    kind = "low-discrepancy"

    def solver(self, harmonic: bool) -> tuple[Solver, Objective]:
        """The evenly spaced optimum of the objective."""
        return "even", "harmonic" if harmonic else "freshness"


class PoissonSchedule(Planned):
    """`poisson`: crawls at random times, at the rates that are best for that."""

    kind = "poisson"

    def solver(self, harmonic: bool) -> tuple[Solver, Objective]:
        """LambdaCrawl's rates or Azar's."""
        return ("lambdacrawl", "harmonic") if harmonic else ("azar", "freshness")


def _any_harmonic(table: PageTable, slots: Slots) -> bool:
    return bool(np.isin(table.pages["law"][slots], (HARMONIC, LEARNED_HARMONIC, NOISY_HARMONIC)).any())


def _pages(table: PageTable, slots: Slots) -> Pages:
    """The pages as `plan` reads them; a change that stays for a window counts as one change per window."""
    pages = table.pages[slots]
    change_rate = pages["decay"].copy()
    windowed = pages["law"] == WINDOW
    change_rate[windowed] = 1.0 / change_rate[windowed]
    if not len(table.limits):
        return Pages(pages["gain"].copy(), change_rate)
    cost = table.costs(slots)
    with np.errstate(divide="ignore"):
        return Pages(
            importance=pages["gain"] * cost,
            change_rate=change_rate,
            cost=cost,
            min_rate=1.0 / limit(table, slots, "max_interval", default=np.inf),
            max_rate=1.0 / limit(table, slots, "min_interval", default=0.0),
        )
