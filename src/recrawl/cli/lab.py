"""Commands that run experiments: `reproduce`, `demo` and `bench`.

What falls short, be it a claim or a measure, is a finding and no failure of a command: the exit code is 0 either way.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from recrawl.bench.groups import GROUPS, figure_of, measures_of
from recrawl.bench.measure import Measure, Result
from recrawl.bench.measure import run as run_measure
from recrawl.cli.comparison import check_workers
from recrawl.cli.log_options import Voice, log_options
from recrawl.cli.terminal import check_figure, check_folder, is_terminal, print_json, progress, show
from recrawl.errors import InvalidInput
from recrawl.extras import need
from recrawl.units import parse_budget

if TYPE_CHECKING:
    from recrawl.lab.demo.running import DemoResult
    from recrawl.lab.demo.scene import Scene
    from recrawl.lab.papers.claims import Claim
    from recrawl.lab.papers.experiment import Experiment

_DAY_S = 86_400.0
_SHORTEST_S = 1.0
_LINE_EVERY_S = 5.0
_HELP = f"""Measure speed, memory and exactness against plain yardsticks.

GROUP is a group of measures ({", ".join(GROUPS)}); without it all groups run. A group takes a few minutes and tells of
each measure on stderr. The exit code is 0 even if a measure falls short.

Example: recrawl bench planning --json
"""


@click.command("reproduce")
@click.argument("paper", metavar="PAPER")
@click.option("--quick", is_flag=True, help="Fewer pages, steps and repetitions: all papers within 5 minutes.")
@click.option("--out", type=click.Path(path_type=Path), default="recrawl-out/results", show_default=True, metavar="DIR",
              help="Folder for tables, figures and results.md.")  # fmt: skip
@click.option("--workers", type=int, metavar="N", help="Processes to use; by default one for each core.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line instead of a table.")
def reproduce(paper: str, quick: bool, out: Path, workers: int | None, as_json: bool) -> None:
    """Run the experiments of a paper and say which of its claims hold.

    PAPER is azar, lambdacrawl, echo, ncis, wic, beyond (what no paper has) or all. Each experiment becomes a table
    (CSV and Markdown), a figure and a number for each claim; claims were fixed before anything was measured. The same
    command gives the same numbers, whatever the number of workers. All papers take up to an hour on two cores. The
    exit code is 0 even if a claim does not hold.

    \b
    Examples:
      recrawl reproduce azar
      recrawl reproduce all --quick --out results --json
    """
    from recrawl.lab.papers.claims import load_claims
    from recrawl.lab.papers.experiment import Scale
    from recrawl.lab.papers.registry import check_paper, run_paper
    from recrawl.lab.papers.report import claim_document, read_results, results_page, write_experiment

    names = check_paper(paper)
    need("matplotlib", "the figure of an experiment")
    check_folder(out, option="out")
    scale = Scale(quick, check_workers(workers))
    claims = load_claims()
    # The page shows all experiments of the folder: say before the work that a file of another paper cannot be read.
    read_results(out, {claim.experiment for claim in claims.values() if claim.paper not in names})
    call = f"recrawl reproduce {paper}{' --quick' if quick else ''}"
    done: list[Experiment] = []
    with progress("Reproducing") as report:
        total = len({claim.experiment for claim in claims.values() if claim.paper in names})
        for name in names:
            for experiment in run_paper(name, scale):
                write_experiment(experiment, out, claims, call)
                done.append(experiment)
                report(len(done), total)
                click.echo(f"{len(done)}/{total} {experiment.name}: {experiment.title}", err=True)
    results = read_results(out, {claim.experiment for claim in claims.values()})
    (out / "results.md").write_text(results_page(results), encoding="utf-8")
    if as_json:
        print_json({"claims": [claim_document(claims[one.claim], one) for each in done for one in each.findings]})
    else:
        _print_claims(done, claims, out)


def _print_claims(done: list[Experiment], claims: dict[str, Claim], out: Path) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    words = {True: "holds", False: "does not hold", None: "observation"}
    table = Table(title="Claims", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in ("claim", "verdict", "value", "95 % interval", "statement"):
        table.add_column(column, no_wrap=column != "statement")
    verdicts = []
    for finding in (finding for one in done for finding in one.findings):
        claim = claims[finding.claim]
        verdicts.append(claim.holds(finding))
        spread = "" if finding.low == finding.high else f"{finding.low:.4g} to {finding.high:.4g}"
        table.add_row(claim.id, words[verdicts[-1]], f"{finding.value:.4g}", spread, claim.statement)
    judged = len(verdicts) - verdicts.count(None)
    show(table, f"{verdicts.count(True)} of {judged} claims hold. Tables, figures and results.md are in {out}.")


@click.command("demo")
@click.option("--pages", default=2000, show_default=True, metavar="N", help="Pages of the web.")
@click.option("--budget", default="200/s", show_default=True, metavar="B", help="Crawls in a time, such as 200/s.")
@click.option("--importance", type=click.Choice(["pareto", "uniform"]), default="pareto", show_default=True,
              help="How clicks are spread over pages.")  # fmt: skip
@click.option("--seconds", type=float, metavar="S", help="End after S seconds; without it, run until Ctrl-C.")
@click.option("--seed", default=1, show_default=True, metavar="N", help="Another seed, another web.")
@log_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line at the end, and no view.")
def demo(
    pages: int,
    budget: str,
    importance: Literal["pareto", "uniform"],
    seconds: float | None,
    seed: int,
    voice: Voice,
    as_json: bool,
) -> None:
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
    from recrawl.lab.demo.scene import Scene

    if seconds is not None and not seconds >= _SHORTEST_S:
        raise InvalidInput(f"is {seconds:g}, but must be at least {_SHORTEST_S:g}", field="--seconds")
    budget_per_s = parse_budget(budget).per_day(pages=pages) / _DAY_S
    scene = Scene(pages, budget_per_s, importance, seed=seed)
    result = run(_run_demo(scene, seconds, voice, silent=as_json))
    if as_json:
        print_json(result.as_json())
    else:
        _tell_demo(result)


async def _run_demo(scene: Scene, seconds: float | None, voice: Voice, *, silent: bool) -> DemoResult:
    from rich.console import Console
    from rich.live import Live

    from recrawl.lab.demo.running import Show, run_demo
    from recrawl.lab.demo.view import picture
    from recrawl.service.listening import Listening

    def tell(sentence: str) -> None:
        if not silent:
            voice.say(sentence)

    is_live = not silent and is_terminal(sys.stdout)
    live = Live(console=Console(), refresh_per_second=4, screen=False) if is_live else None
    told = [-_LINE_EVERY_S]

    def look(running: Show) -> None:
        if live is not None:
            live.update(picture(running))
        elif not (silent or voice.quiet) and running.race.has_begun and running.seconds - told[0] >= _LINE_EVERY_S:
            told[0] = running.seconds
            if running.behind:
                tell(running.behind)
            sample = running.race.course.last
            click.echo(
                f"{running.seconds:5.0f} s  fresh {sample.ours:.1%}  round robin {sample.round_robin:.1%}  "
                f"optimum {sample.optimum:.1%}  crawls {running.crawls:,}  changes {running.fetcher.changes:,}"
            )

    with live if live is not None else nullcontext():
        return await run_demo(scene, seconds, look, Listening(), tell)


def _tell_demo(result: DemoResult) -> None:
    closed = "–" if result.gap_closed is None else f"{result.gap_closed:.0%}"
    show(
        f"{result.crawls:,} crawls saw {result.changes:,} changes in {result.seconds:.0f} s. Clicks that found a fresh "
        f"copy in the last third: {result.freshness:.1%}; round robin {result.round_robin:.1%}, the optimum for known "
        f"rates {result.optimum:.1%}: {closed} of the gap closed."
    )


@click.command("bench", help=_HELP)
@click.argument("group", type=click.Choice(GROUPS), metavar="[GROUP]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line per group instead of a table.")
@click.option("--plot", type=click.Path(path_type=Path), help="Draw the figure of a group instead; .png, .svg or .pdf.")
def bench(group: str | None, as_json: bool, plot: Path | None) -> None:
    """Measure speed, memory and exactness; `--help` has the groups as they are."""
    if plot is not None:
        _draw_group(group or "learning", plot)
        return
    for name in GROUPS if group is None else (group,):
        print_group(name, measures_of(name), as_json)


def _draw_group(group: str, path: Path) -> None:
    """Draw the figure of a group into a file."""
    check_figure(path)
    figure = figure_of(group)
    from recrawl.plots.save import save_figure

    save_figure(figure, path)
    click.echo(f"wrote {path}", err=True)


def print_group(group: str, measures: Sequence[Measure], as_json: bool) -> None:
    """Run measures, telling of each on stderr, and print their results as one JSON line or as a table."""
    results = []
    for number, measure in enumerate(measures, start=1):
        click.echo(f"{group} {number}/{len(measures)} {measure.name}: ", err=True, nl=False)
        results.append(run_measure(measure))
        click.echo(_verdict(results[-1]), err=True)
    if as_json:
        print_json({"group": group, "measures": [result.as_json() for result in results]})
    else:
        _print_measures(group, results)


def _print_measures(group: str, results: list[Result]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=f"recrawl bench {group}", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("measure", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("against")
    table.add_column("ratio", justify="right", no_wrap=True)
    table.add_column("held to", no_wrap=True)
    table.add_column("verdict")
    for result in results:
        measure, reading = result.measure, result.reading
        value = "" if reading is None else f"{reading.value:.4g} {measure.unit}"
        ratio = "" if reading is None or reading.ratio is None else f"{reading.ratio:.3g}"
        table.add_row(measure.name, value, result.yardstick, ratio, str(measure.bound), _verdict(result))
    short = sum(not result.holds for result in results)
    seconds = sum(result.seconds for result in results)
    show(table, f"{len(results) - short} of {len(results)} hold; {seconds:.0f} s")


def _verdict(result: Result) -> str:
    if result.reason is not None:
        return f"cannot run: {result.reason}"
    return "holds" if result.holds else "falls short"
