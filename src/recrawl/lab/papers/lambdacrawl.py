"""LambdaCrawl (Kolobov et al. 2019): its experiments, and the one whose policies learn change rates.

LambdaCrawl (Kolobov et al. 2019), experiment 3: change rates are learned on the way, epoch by epoch.

Every day a learner plans with the rates it believes, crawls at random by that plan, and estimates all rates anew from
its whole history. Crawls and changes are Poisson, so a crawl sees a change with probability 1 − e^{−Δ·gap}, each gap
by itself. A plan is judged by its cost under the true rates, in closed form.

LambdaCrawl, Kolobov et al. 2019: experiments 1 and 2 with known change rates, experiment 3 with learned ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from recrawl.lab.papers import lambdacrawl_known
from recrawl.lab.papers.experiment import Experiment, Finding, Scale, Table, mean_finding
from recrawl.lab.papers.lambdacrawl_known import VARIANT_NAMES, Variant, draw_pages, plan_policy
from recrawl.pages import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from recrawl.planning.plan import Plan

LEARNERS = {"LLC": "LC", "LLCA": "LCA", "BLLC-0.4": "BLC-0.4"}
"""The policy that each learner plans by."""

FIRST_RATE = 1.0
_RATE_RANGE = (0.0005, 7.0)  # as in the paper's code
_VARIANT: Variant = "important"
_WITHIN = 1.05
_SEED = 21


@dataclass(frozen=True, slots=True)
class Setup:
    """How large the experiment is; these are the paper's numbers."""

    pages: int = 100_000
    runs: int = 20
    epochs: int = 21


QUICK = Setup(pages=20_000, runs=4)


@dataclass(frozen=True, slots=True)
class Course:
    """Costs per page of a learner's plans, the first with no data at all, and of the plan with the true rates."""

    harmonic: Floats
    limit: float

    def epochs_to_limit(self) -> int:
        """Days until the cost is within 5 % of its limit; one more than there are if that does not happen."""
        near = self.harmonic <= _WITHIN * self.limit
        return int(np.argmax(near)) if near.any() else len(near)


class History:
    """What a learner has seen: a gap and a flag for each crawl, and the announced changes of complete pages."""

    def __init__(self, columns: dict[str, Floats], listens: bool, random: np.random.Generator) -> None:
        self._change_rate = columns["change_rate"]
        self._complete = (columns["recall"] == 1.0) & listens
        self._random = random
        self._last = np.zeros(len(self._change_rate))
        self._announced = np.zeros(len(self._change_rate))
        self._page = np.empty(0, dtype=np.int64)
        self._gap = np.empty(0)
        self._changed = np.empty(0, dtype=np.bool_)
        self._days = 0

    def live_a_day(self, rates: Floats) -> None:
        """Crawl incomplete pages at random times by these rates, and hear what complete pages announce. O(crawls)."""
        random = self._random
        crawls = random.poisson(np.where(self._complete, 0.0, rates))
        page = np.repeat(np.arange(len(rates)), crawls)
        time = self._days + random.random(len(page))
        order = np.lexsort((time, page))
        time = time[order]
        before = np.concatenate([[0.0], time[:-1]])
        first = np.concatenate([[True], page[1:] != page[:-1]]) if len(page) else np.empty(0, dtype=np.bool_)
        gap = time - np.where(first, self._last[page], before[: len(page)])
        self._last[page] = time  # of several crawls of a page the last one is written last
        self._page = np.concatenate([self._page, page])
        self._gap = np.concatenate([self._gap, gap])
        seen = random.random(len(page)) < -np.expm1(-self._change_rate[page] * gap)
        self._changed = np.concatenate([self._changed, seen])
        self._announced += random.poisson(np.where(self._complete, self._change_rate, 0.0))
        self._days += 1

    def estimate(self) -> Floats:
        """The rates by the whole history; a page that was not crawled yet keeps the first rate. O(crawls)."""
        from recrawl.learning.histories import read_histories
        from recrawl.learning.rates import complete_rate, smoothed_mle

        order = np.argsort(self._page, kind="stable")
        counts = np.bincount(self._page, minlength=len(self._last))
        offsets = np.concatenate([[0], np.cumsum(counts)])
        histories = read_histories(self._gap[order], self._changed[order], offsets)
        rates = np.where(counts > 0, smoothed_mle(histories, 0.5, *_RATE_RANGE), FIRST_RATE)
        return np.where(self._complete, complete_rate(self._announced, float(self._days)), rates)


def run_learner(learner: str, columns: dict[str, Floats], setup: Setup, run: int) -> Course:
    """Let a learner live for some days; its costs by day."""
    policy = LEARNERS[learner]
    random = np.random.Generator(np.random.PCG64([_SEED, run, list(LEARNERS).index(learner)]))
    history = History(columns, listens=policy != "BLC-0.4", random=random)
    believed = np.full(setup.pages, FIRST_RATE)
    costs = []
    for epoch in range(setup.epochs + 1):
        plan = plan_policy(policy, {**columns, "change_rate": believed})
        costs.append(true_cost(plan, columns))
        if epoch < setup.epochs:
            history.live_a_day(plan.rates)
            believed = history.estimate()
    return Course(np.array(costs), true_cost(plan_policy(policy, columns), columns))


def true_cost(plan: Plan, columns: dict[str, Floats]) -> float:
    """Harmonic cost per page of a plan under the true rates: μ ln(1 + Δ/ρ), or −μ ln p at announced changes."""
    listening = ~np.isnan(plan.probabilities)
    missed = np.log1p(columns["change_rate"][~listening] / plan.rates[~listening])
    waiting = -np.log(plan.probabilities[listening])
    importance = columns["importance"]
    return float(importance[~listening] @ missed + importance[listening] @ waiting) / len(importance)


def experiment_3(setup: Setup) -> Experiment:
    """All learners in the same populations, each with its own crawls and changes."""
    courses: dict[str, list[Course]] = {learner: [] for learner in LEARNERS}
    for run in range(setup.runs):
        columns = draw_pages(setup.pages, _VARIANT, run)
        for learner in LEARNERS:
            courses[learner].append(run_learner(learner, columns, setup, run))
    return Experiment(
        name="lambdacrawl.exp3",
        title="Harmonic cost while change rates are learned",
        table=_table(courses),
        findings=_findings(courses),
        draw=partial(_draw, courses),
        notes=_notes(setup, courses),
    )


def _findings(courses: dict[str, list[Course]]) -> tuple[Finding, ...]:
    llc, llca, bllc = (courses[learner] for learner in LEARNERS)
    best_other = [min(a.harmonic[-1], b.harmonic[-1]) for a, b in zip(llca, bllc, strict=True)]
    waits = {learner: np.array([one.epochs_to_limit() for one in runs], float) for learner, runs in courses.items()}
    return (
        mean_finding("lambdacrawl.exp3.llc_converges", [float(one.harmonic[-1] / one.limit) for one in llc]),
        mean_finding(
            "lambdacrawl.exp3.llc_best",
            [float(one.harmonic[-1] / other) for one, other in zip(llc, best_other, strict=True)],
        ),
        mean_finding("lambdacrawl.exp3.llca_faster", (waits["LLCA"] - waits["LLC"]).tolist()),
        mean_finding("lambdacrawl.exp3.bllc_slowest", (waits["BLLC-0.4"] - waits["LLC"]).tolist()),
    )


def _by_epoch(runs: list[Course]) -> list[Finding]:
    costs: NDArray[np.float64] = np.stack([one.harmonic for one in runs])
    return [mean_finding("", column.tolist()) for column in costs.T]


def _table(courses: dict[str, list[Course]]) -> Table:
    rows = [
        (learner, epoch, found.value, found.low, found.high, float(np.mean([one.limit for one in runs])))
        for learner, runs in courses.items()
        for epoch, found in enumerate(_by_epoch(runs))
    ]
    return Table(("learner", "epoch", "harmonic cost", "low", "high", "with true rates"), rows)


def _draw(courses: dict[str, list[Course]]) -> Figure:
    from recrawl.plots.experiments import LinePanel, Series, lines_figure

    series, excess = [], []
    for learner, runs in courses.items():
        found = _by_epoch(runs)
        series.append(Series(learner, [f.value for f in found], [f.low for f in found], [f.high for f in found]))
        limit = float(np.mean([one.limit for one in runs]))
        excess.append(Series(learner, [f.value / limit for f in found]))
    epochs = np.arange(len(series[0].values), dtype=np.float64)
    return lines_figure(
        [
            LinePanel("Cost of the plan of each day", "day", "harmonic cost per page", epochs, series),
            LinePanel("The same over that with true rates", "day", "cost / limit", epochs, excess, reference=_WITHIN),
        ]
    )


def _notes(setup: Setup, courses: dict[str, list[Course]]) -> tuple[str, ...]:
    waits = {learner: np.mean([one.epochs_to_limit() for one in runs]) for learner, runs in courses.items()}
    shown = ", ".join(f"{learner} {wait:.1f}" for learner, wait in waits.items())
    return (
        f"{setup.runs} runs of {setup.pages:,} pages and {setup.epochs} days; {VARIANT_NAMES[_VARIANT]}.",
        "Pages have a copy at the start; a page that has not been crawled since keeps the first rate of 1 a day.",
        "Rates by the smoothed maximum likelihood, clipped to [0.0005, 7] a day as in the paper's code.",
        "The limit of a learner is the cost of its policy with the true rates.",
        f"Days until within 5 % of the limit ({setup.epochs + 1} if never): {shown}.",
    )


def experiments(scale: Scale) -> Iterator[Experiment]:
    """Experiments 1, 2 and 3."""
    known = lambdacrawl_known.QUICK if scale.quick else lambdacrawl_known.Setup()
    yield lambdacrawl_known.experiment_1(known)
    yield lambdacrawl_known.experiment_2(known)
    yield experiment_3(QUICK if scale.quick else Setup())
