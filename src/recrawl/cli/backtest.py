"""`recrawl backtest`: which policy would have served your own history best, and at what budget.

A history is replayed: policies learn on the way and never see what lies ahead.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import click

from recrawl.cli.comparison import (
    PAGE_MEASURES,
    MeasureColumn,
    by_rank,
    check_count,
    check_crawls,
    check_plot,
    check_seed,
    check_workers,
    draw_comparison,
    in_words,
    names_of,
    policies_document,
    print_comparison,
)
from recrawl.cli.options import parse_share
from recrawl.cli.terminal import clean, print_json, progress
from recrawl.errors import InvalidInput
from recrawl.units import parse_budget

if TYPE_CHECKING:
    from recrawl.files.history import ChangeHistory
    from recrawl.lab.simulation.compare import Comparison, EqualBudget, MakeWorld, Trial
    from recrawl.lab.simulation.policy import Competitor
    from recrawl.lab.worlds.world import CrawlLog, World

_USUAL = ("recrawl", "recrawl-harmonic", "argmax-mle", "round-robin", "nutch-adaptive", "stormcrawler-adaptive",
          "cho-interval", "miniflux-entry-frequency")  # fmt: skip
TODAY = "today"
_MOST_PUT_OFF = 0.1  # of the history: how long before it a crawler may start
_MOST_TIMES_TODAY = 4.0  # the crawls of today: with how many more the winner is tried
_NEXT_TO_NOTHING = 0.0005  # points, or harmonic cost: what would be written as 0.000
_SCORES = {"freshness": PAGE_MEASURES[0], "harmonic": PAGE_MEASURES[1]}


@click.command("backtest")
@click.argument("history", type=click.Path(path_type=Path), metavar="HISTORY")
@click.option("--budget", metavar="B", help="2000/day, 2/s, or 20% of the pages; that of the crawl log if left out.")
@click.option("--policy", "policies", multiple=True, metavar="NAME", help="A policy; repeat it or use commas.")
@click.option("--score", type=click.Choice(list(_SCORES)), default="freshness", show_default=True, help="Who wins.")
@click.option("--importance", type=click.Choice(["given", "uniform"]), default="given", show_default=True,
              help="As the history gives it, or the same for every page.")  # fmt: skip
@click.option(
    "--warm-up", default="30%", show_default=True, metavar="S", help="Share of the time that is not measured."
)
@click.option("--since", metavar="DATE", help="Where the history of a git repository begins.")
@click.option("--repetitions", default=1, show_default=True, metavar="N",
              help="Times that the crawler may have started at; with 2 or more there are intervals.")  # fmt: skip
@click.option("--seed", default=0, show_default=True, metavar="N", help="The first seed.")
@click.option("--workers", type=int, metavar="N", help="Processes to use; by default one for each core.")
@click.option(
    "--plot", type=click.Path(path_type=Path), metavar="FILE", help="Draw the comparison; .png, .svg or .pdf."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line instead of a table.")
def backtest(
    history: Path,
    budget: str | None,
    policies: tuple[str, ...],
    score: str,
    importance: Literal["given", "uniform"],
    warm_up: str,
    since: str | None,
    repetitions: int,
    seed: int,
    workers: int | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Replay policies on your own change history and say who wins, by how much, and what budget the winner needs.

    HISTORY is a crawl log with the columns url, time and changed (CSV, TSV, JSONL or Parquet), a git repository (files
    are pages, commits are changes), or a trace (NAME.events.parquet with NAME.pages.parquet, or both in CSV). Change
    rates are learned on the way. Today's schedule is that of the crawl log, or round robin where there is none.

    \b
    Examples:
      recrawl backtest crawls.csv
      recrawl backtest path/to/repository --budget 2% --plot backtest.png
    """
    from recrawl.files.history import open_history
    from recrawl.lab.simulation.compare import Trial
    from recrawl.lab.worlds.trace import trace_world

    check_plot(plot)
    check_count(repetitions, "repetitions")
    processes, unmeasured = check_workers(workers), parse_share(warm_up, "warm-up", zero=True)
    opened = open_history(history, seed=check_seed(seed), since=since)
    world = trace_world(opened, importance)
    competitors, log = _competitors(names_of(policies, _USUAL), opened, world)
    crawls = _budget(budget, None if log is None else len(log) / world.horizon, len(opened))
    check_crawls(crawls, world.horizon)
    put_off = min(len(opened) / crawls, _MOST_PUT_OFF * world.horizon)
    trial = Trial(
        make_world=_worlds(
            world, opened if log is not None else None, importance, put_off if repetitions > 1 else None
        ),
        competitors=competitors,
        budget=crawls,
        start=unmeasured * world.horizon,
        repetitions=repetitions,
        seed=seed,
    )
    shown = _SCORES[score]
    comparison, verdict = _compare(trial, shown, processes)
    title = f"{clean(opened.name)}: {in_words(len(opened), opened.days)}, {crawls:,.4g} crawls a day"
    columns = (shown, *(column for column in PAGE_MEASURES if column is not shown))
    if plot is not None:
        draw_comparison(plot, title, comparison, columns)
    sentences = _sentences(comparison, verdict, shown)
    if as_json:
        said = {"score": score, "importance": importance, "plot": plot, "summary": " ".join(sentences)}
        print_json(_document(opened, trial, comparison, verdict) | said)
    else:
        print_comparison(title, comparison, columns, *sentences, *([] if plot is None else [f"wrote {plot}"]))


def _competitors(
    names: Sequence[str], history: ChangeHistory, world: World
) -> tuple[list[Competitor], CrawlLog | None]:
    """Return who competes, and the crawls of today's schedule, if the history is a crawl log."""
    from recrawl.lab.simulation.scenarios import make_contender
    from recrawl.lab.worlds.trace import Replay, todays_schedule

    competitors = [make_contender(name) for name in names if name != TODAY]
    log = todays_schedule(history)
    if log is not None:
        competitors.append(Replay(TODAY, log, world.horizon))
    elif TODAY in names:
        raise InvalidInput("today needs a crawl log, and this history is not one", field="policy")
    return competitors, log


def _worlds(
    world: World, logged: ChangeHistory | None, importance: Literal["given", "uniform"], put_off: float | None
) -> MakeWorld:
    """Return what makes the world of each repetition: the same for all, or begun up to `put_off` days later."""
    from recrawl.lab.worlds.trace import LoggedWorld, SameWorld

    if put_off is None:
        return SameWorld(world)
    return SameWorld(world, put_off) if logged is None else LoggedWorld(logged, importance, put_off)


class Verdict(NamedTuple):
    """Who is best, the best that is not today's schedule, who stands for that, and what would equal it.

    `of_today` is the budget that equals today's schedule over the crawls that schedule makes.
    """

    best: str
    winner: str
    today: str
    equal: EqualBudget | None = None
    of_today: float | None = None


def _budget(text: str | None, logged: float | None, pages: int) -> float:
    if text is None:
        if logged is None:
            raise InvalidInput("a history without crawls needs --budget, such as 200/day or 2% of the pages")
        return logged
    budget = parse_budget(text).per_day(pages)
    if not budget > 0:
        raise InvalidInput(f"is {text!r}: nothing can be crawled; give more than 0", field="budget")
    return budget


def _compare(trial: Trial, shown: MeasureColumn, workers: int) -> tuple[Comparison, Verdict]:
    from recrawl.lab.simulation.compare import compare, equal_budget
    from recrawl.lab.worlds.trace import Replay

    with progress("Replaying") as report:
        comparison = compare(trial, workers, report)
    ranked = by_rank(comparison, shown)
    winner = next((name for name in ranked if name != TODAY), TODAY)
    today = next((name for name in (TODAY, "round-robin") if name in comparison.names), winner)
    if winner == today:
        return comparison, Verdict(ranked[0], winner, today)
    competitor = next(each for each in trial.competitors if each.name == winner)
    logged = next((each.per_day for each in trial.competitors if isinstance(each, Replay)), trial.budget)
    with progress("Looking for the budget") as _:
        equal = equal_budget(
            trial,
            competitor,
            comparison.mean(today, shown.measure).value,
            "freshness" if shown.measure == "freshness" else "harmonic_cost",
            workers=workers,
            most=_MOST_TIMES_TODAY * logged,
        )
    return comparison, Verdict(ranked[0], winner, today, equal, equal.budget / logged)


def _sentences(comparison: Comparison, verdict: Verdict, shown: MeasureColumn) -> list[str]:
    ranked = by_rank(comparison, shown)
    sentences = []
    if len(ranked) > 1:
        other = ranked[1] if verdict.best == TODAY else next(name for name in ranked if name != verdict.winner)
        sentences.append(_who_wins(comparison, verdict.best, other, shown))
    if verdict.equal is not None and verdict.of_today is not None:
        best = verdict.winner if verdict.best == TODAY else "It"
        sentences.append(_what_it_needs(best, verdict.of_today, verdict.equal, shown, _called(verdict.today)))
    return sentences


def _who_wins(comparison: Comparison, best: str, other: str, shown: MeasureColumn) -> str:
    more = comparison.difference(best, other, shown.measure)
    scale, unit = (100, " points") if shown.percent else (1, "")
    spread = f" (95 % interval {scale * more.low:+.3f} to {scale * more.high:+.3f})" if more.high > more.low else ""
    if scale * abs(more.value) < _NEXT_TO_NOTHING:
        return f"{_called(best)} and {_called(other)} are equal{spread}."
    by = f"by {scale * abs(more.value):.3f}{unit}"
    if more.low < 0 < more.high:
        return f"{_called(best)} is ahead of {_called(other)} {by}, which may be chance{spread}."
    return f"{_called(best)} wins {by} over {_called(other)}{spread}."


def _what_it_needs(who: str, share: float, equal: EqualBudget, shown: MeasureColumn, today: str) -> str:
    word = "freshness" if shown.measure == "freshness" else "harmonic cost"
    if equal.reached:
        return f"{who} needs {100 * share:.0f} % of the crawls for the same {word} as {today}."
    if share >= 1:
        return f"{who} does not come to the {word} of {today} with {share:.3g} times the crawls either."
    return f"{who} needs less than {100 * share:.2g} % of the crawls for the same {word} as {today}."


def _called(name: str) -> str:
    return "today's schedule" if name == TODAY else name


def _document(history: ChangeHistory, trial: Trial, comparison: Comparison, verdict: Verdict) -> dict[str, Any]:
    equal = verdict.equal
    return {
        "history": history.name,
        "pages": len(history),
        "days": history.days,
        "budget_per_day": trial.budget,
        "warm_up_days": trial.start,
        "repetitions": trial.repetitions,
        "best": verdict.best,
        "winner": verdict.winner,
        "today": verdict.today,
        "equal_budget_per_day": None if equal is None else equal.budget,
        "equal_budget_share": verdict.of_today,
        "equal_budget_reached": None if equal is None else equal.reached,
        "policies": policies_document(comparison, verdict.today),
    }
