"""`recrawl bench`: run the measures and print what they read, for people or for machines.

A measure that falls short is a finding, not a failure of the command: the exit code is 0 either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from recrawl.bench.groups import GROUPS, figure_of, measures_of
from recrawl.bench.measure import Measure, Result, run
from recrawl.cli.terminal import check_figure, print_json, show

_HELP = f"""Measure speed, memory and exactness against plain yardsticks.

GROUP is a group of measures ({", ".join(GROUPS)}); without it all groups run. A group takes a few minutes and tells of
each measure on stderr. The exit code is 0 even if a measure falls short.

Example: recrawl bench planning --json
"""


@click.command("bench", help=_HELP, short_help="Measure speed against plain yardsticks.")
@click.argument("group", type=click.Choice(GROUPS), metavar="[GROUP]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line per group instead of a table.")
@click.option("--plot", type=click.Path(path_type=Path), help="Draw the figure of a group instead; .png, .svg or .pdf.")
def command(group: str | None, as_json: bool, plot: Path | None) -> None:
    """Measure speed, memory and exactness; `--help` has the groups as they are."""
    if plot is not None:
        draw(group or "learning", plot)
        return
    for name in GROUPS if group is None else (group,):
        report(name, measures_of(name), as_json)


def draw(group: str, path: Path) -> None:
    """Draw the figure of a group into a file."""
    check_figure(path)
    figure = figure_of(group)
    from recrawl.plots.save import save_figure

    save_figure(figure, path)
    click.echo(f"wrote {path}", err=True)


def report(group: str, measures: Sequence[Measure], as_json: bool) -> None:
    """Run measures, telling of each on stderr, and print their results as one JSON line or as a table."""
    results = []
    for number, measure in enumerate(measures, start=1):
        click.echo(f"{group} {number}/{len(measures)} {measure.name}: ", err=True, nl=False)
        results.append(run(measure))
        click.echo(_verdict(results[-1]), err=True)
    if as_json:
        print_json({"group": group, "measures": [result.as_json() for result in results]})
    else:
        _print_table(group, results)


def _print_table(group: str, results: list[Result]) -> None:
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
