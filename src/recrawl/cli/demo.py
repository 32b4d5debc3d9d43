"""`recrawl demo`: plans a synthetic web and shows what the budget buys, next to rules of thumb.

Needs no input and ends by itself: the plan comes first, and what there is no time for is left out.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from recrawl.cli.plan_table import count, number, percent, print_plan
from recrawl.cli.terminal import check_figure, print_json, progress, show
from recrawl.errors import InvalidInput
from recrawl.populations import web_population
from recrawl.units import parse_budget

if TYPE_CHECKING:
    from recrawl.cli.plan_facts import PlanFacts
    from recrawl.pages import Floats, Objective
    from recrawl.planning.plan import Plan
    from recrawl.planning.solve import Solver


class Entry(NamedTuple):
    """A way to spend the budget: what to call it, and whether it is the optimum of its objective."""

    name: str
    solver: Solver
    objective: Objective | None
    optimal: bool


_RIVALS = (
    Entry("even, harmonic (default)", "even", "harmonic", optimal=True),
    Entry("even, freshness", "even", "freshness", optimal=True),
    Entry("lambdacrawl, random times", "lambdacrawl", None, optimal=False),
    Entry("uniform", "uniform", None, optimal=False),
    Entry("proportional to change", "proportional", None, optimal=False),
)
# Rules of thumb get the benefit of even spacing too, as a crawler that goes round its list has it.
_ROUND_ROBINS = ("uniform", "proportional")
_MOST_PAGES = 100_000_000
_MOST_POINTS = 25
_SECONDS_FOR_FIGURES = 3.0


@dataclass(frozen=True, slots=True)
class Rival:
    """One way to spend the same budget; `harmonic` and `binary` are staleness per page."""

    name: str
    solver: str
    objective: str
    freshness: float
    harmonic: float
    binary: float
    starved: float
    optimal: bool


@click.command("demo", short_help="Plan a synthetic web and show what the budget buys.")
@click.option("--pages", default=1_000_000, show_default=True, metavar="N", help="Pages of the synthetic web.")
@click.option("--budget", default="20%", show_default=True, metavar="B", help="2000/day, 2/s, or 20% of the pages.")
@click.option("--seed", default=20260823, show_default=True, metavar="N", help="Another seed, another web.")
@click.option("--seconds", type=float, metavar="S", help="Most time to spend; extras are left out when it is short.")
@click.option("--out", type=click.Path(path_type=Path), default="recrawl-out", show_default=True, metavar="DIR",
              help="Folder for the figures.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line instead of tables.")
def command(**options: Any) -> None:
    """Plan a synthetic web and show what the budget buys.

    Draws pages shaped like a large web index (a few hold most of the importance; change rates from once in three
    years to seven times a day), plans the budget, and compares the plan with uniform crawling and with crawling
    in proportion to change rates. Figures go to the folder of --out.

    \b
    Examples:
      recrawl demo
      recrawl demo --pages 100000 --seconds 20 --json
    """
    run(DemoRequest(**options))


@dataclass(frozen=True, slots=True)
class DemoRequest:
    """The command line of `recrawl demo`, as typed."""

    pages: int
    budget: str
    seed: int
    seconds: float | None
    out: Path
    as_json: bool


class Clock:
    """How much time is left of what was given; without a limit there is always enough."""

    def __init__(self, seconds: float | None) -> None:
        self._started = time.monotonic()
        self._seconds = math.inf if seconds is None else seconds

    def spent(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started

    def left(self) -> float:
        """Seconds left."""
        return max(self._seconds - self.spent(), 0.0)


def run(request: DemoRequest) -> None:
    """Draw the pages, plan, compare, draw the figures, tell."""
    clock = Clock(request.seconds)
    budget = _check(request)
    with progress(f"planning {count(request.pages, 'page')}"):
        columns = web_population(request.pages, request.seed)
        plan, rivals, seconds_per_plan = _compare(columns, budget, clock)
        facts = _facts(columns, plan)
    figures = _draw(request, columns, plan, rivals, points=_points(clock, seconds_per_plan))
    if request.as_json:
        comparison = [asdict(rival) for rival in rivals]
        print_json(facts.as_json() | {"comparison": comparison, "figures": figures, "seconds": clock.spent()})
        return
    print_plan(facts, f"A synthetic web of {count(request.pages, 'page')}, seed {request.seed}")
    _print_rivals(rivals)
    for figure in figures:
        click.echo(f"wrote {figure}", err=True)


def _check(request: DemoRequest) -> float:
    """Check the request, make the folder for the figures, and return the budget per day."""
    budget = parse_budget(request.budget).per_day(request.pages)
    if not 1 <= request.pages <= _MOST_PAGES:
        raise InvalidInput(f"is {request.pages}, but must be between 1 and {_MOST_PAGES:,}", field="pages")
    if request.seed < 0:
        raise InvalidInput(f"is {request.seed}, but must be 0 or more", field="seed")
    if request.seconds is not None and not request.seconds > 0:
        raise InvalidInput(f"is {request.seconds:g}, but must be more than 0", field="seconds")
    request.out.mkdir(parents=True, exist_ok=True)
    check_figure(request.out / "plan.png")
    return budget


def _compare(columns: dict[str, Floats], budget: float, clock: Clock) -> tuple[Plan, list[Rival], float]:
    """The plan, the plan beside its rivals as far as there is time, and what one plan takes once compiled."""
    import recrawl

    chosen: Plan | None = None
    rivals: list[Rival] = []
    seconds = 0.0
    for entry in _RIVALS:
        if chosen is not None and clock.left() < _SECONDS_FOR_FIGURES + seconds:
            break
        started = clock.spent()
        plan = recrawl.plan(columns, budget=budget, objective=entry.objective, solver=entry.solver)
        if entry.solver in _ROUND_ROBINS:
            plan = plan.spaced("even")
        rivals.append(_rival(entry, plan))
        # The first plan also waits for the compiler, so its time says nothing of the next.
        seconds = 0.0 if chosen is None else max(seconds, clock.spent() - started)
        chosen = chosen or plan
    assert chosen is not None
    return chosen, rivals, seconds


def _rival(entry: Entry, plan: Plan) -> Rival:
    costs = plan.costs.per_page()
    return Rival(
        name=entry.name,
        solver=plan.solver,
        objective=plan.objective,
        freshness=plan.freshness,
        harmonic=costs.harmonic,
        binary=costs.binary,
        starved=plan.starved,
        optimal=entry.optimal,
    )


def _facts(columns: dict[str, Floats], plan: Plan) -> PlanFacts:
    from recrawl.cli.plan_facts import Shown, compare_budgets, gather
    from recrawl.planning.curve import at_budget

    shown = Shown(columns["importance"], columns["change_rate"], lambda rows: [f"page {row + 1:,}" for row in rows])
    more = compare_budgets(plan, at_budget(plan, 1.1 * plan.budget)) if plan.budget > 0 else None
    return gather(plan, shown, more)


def _points(clock: Clock, seconds_per_plan: float) -> int:
    """How many points of the budget curve there is time for."""
    time_for_curve = clock.left() - _SECONDS_FOR_FIGURES
    return max(0, int(min(_MOST_POINTS, time_for_curve / max(seconds_per_plan, 0.01))))


def _draw(
    request: DemoRequest, columns: dict[str, Floats], plan: Plan, rivals: Sequence[Rival], points: int
) -> list[Path]:
    """Write the figures; the curve needs a plan for each point and is left out if there is time for few."""
    from recrawl.cli.plan_picture import draw_plan
    from recrawl.plots.figures import Bar, comparison_figure
    from recrawl.plots.save import save_figure

    with progress("drawing the budget curve") as report:
        figure = draw_plan(plan, (columns["importance"], columns["change_rate"]), report, points=points)
    bars = [Bar(rival.name, rival.freshness, rival.harmonic, rival.starved, rival.optimal) for rival in rivals]
    figures = {request.out / "plan.png": figure}
    if len(bars) > 1:
        figures[request.out / "comparison.png"] = comparison_figure(bars)
    for path, drawn in figures.items():
        save_figure(drawn, path)
    return list(figures)


def _print_rivals(rivals: Sequence[Rival]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="cyan")
    table.add_column("  the same budget spent by")
    for name in ("freshness", "harmonic staleness", "binary staleness", "never crawled"):
        table.add_column(name, justify="right", no_wrap=True)
    for rival in rivals:
        measures = (number(rival.harmonic), number(rival.binary), percent(rival.starved))
        table.add_row(f"  {rival.name}", percent(rival.freshness), *measures)
    show(Text(), table)
