"""`recrawl demo`: a living web, the tracker on it, and the truth: how fresh its copies are, and others' would be."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import click

from recrawl.cli.terminal import clean, is_terminal, print_json, show
from recrawl.errors import InvalidInput
from recrawl.units import parse_budget

if TYPE_CHECKING:
    from recrawl.demo.running import DemoResult

_DAY_S = 86_400.0
_SHORTEST_S = 1.0
_LINE_EVERY_S = 5.0


@click.command("demo", short_help="Track a web that changes as you watch, and compare with round robin.")
@click.option("--pages", default=2000, show_default=True, metavar="N", help="Pages of the web.")
@click.option("--budget", default="200/s", show_default=True, metavar="B", help="Crawls in a time, such as 200/s.")
@click.option("--importance", type=click.Choice(["pareto", "uniform"]), default="pareto", show_default=True,
              help="How clicks are spread over pages.")  # fmt: skip
@click.option("--seconds", type=float, metavar="S", help="End by itself after so many seconds; until Ctrl-C without.")
@click.option("--seed", default=1, show_default=True, metavar="N", help="Another seed, another web.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line at the end, and no view.")
def command(**options: Any) -> None:
    """Track a web that changes as you watch, and compare with round robin.

    Starts a web of some thousand pages on this machine, whose time runs fast, and the tracker with its dashboard on it.
    The web knows the truth, so freshness is measured and not estimated: of the tracker, which starts with nothing but
    addresses and clicks, beside round robin and beside the optimum for known change rates, which get as many crawls as
    the tracker makes requests.

    \b
    Examples:
      recrawl demo
      recrawl demo --pages 5000 --budget 500/s --seconds 60 --json
    """
    from recrawl._event_loop import run
    from recrawl.demo.scene import Scene

    seconds, as_json = options["seconds"], options["as_json"]
    if seconds is not None and not seconds >= _SHORTEST_S:
        raise InvalidInput(f"is {seconds:g}, but must be at least {_SHORTEST_S:g}", field="--seconds")
    budget_per_s = parse_budget(options["budget"]).per_day(pages=options["pages"]) / _DAY_S
    scene = Scene(options["pages"], budget_per_s, options["importance"], seed=options["seed"])
    result = run(_run(scene, seconds, quiet=as_json))
    if as_json:
        print_json(result.as_json())
    else:
        _tell(result)


async def _run(scene: Any, seconds: float | None, *, quiet: bool) -> DemoResult:
    from rich.console import Console
    from rich.live import Live

    from recrawl.demo.running import Show, run_demo
    from recrawl.demo.view import picture
    from recrawl.service.listening import Listening

    def say(sentence: str) -> None:
        if not quiet:
            click.echo(clean(sentence), file=sys.stderr)

    live = None if quiet or not is_terminal(sys.stdout) else Live(console=Console(), refresh_per_second=4, screen=False)
    told = [-_LINE_EVERY_S]

    def look(running: Show) -> None:
        if live is not None:
            live.update(picture(running))
        elif not quiet and running.race.has_begun and running.seconds - told[0] >= _LINE_EVERY_S:
            told[0] = running.seconds
            if running.behind:
                say(running.behind)
            sample = running.race.course.last
            click.echo(
                f"{running.seconds:5.0f} s  fresh {sample.ours:.1%}  round robin {sample.round_robin:.1%}  "
                f"optimum {sample.optimum:.1%}  crawls {running.crawls:,}  changes {running.fetcher.changes:,}"
            )

    with live if live is not None else nullcontext():
        return await run_demo(scene, seconds, look, Listening(), say)


def _tell(result: DemoResult) -> None:
    closed = "–" if result.gap_closed is None else f"{result.gap_closed:.0%}"
    show(
        f"{result.crawls:,} crawls saw {result.changes:,} changes in {result.seconds:.0f} s. Clicks that found a fresh "
        f"copy in the last third: {result.freshness:.1%}; round robin {result.round_robin:.1%}, the optimum for known "
        f"rates {result.optimum:.1%}: {closed} of the gap closed."
    )
