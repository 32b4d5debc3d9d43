"""`recrawl reproduce`: runs the papers' experiments again and says which of their claims hold.

A claim that does not hold is a finding, not a failure of the command: the exit code is 0 either way.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from recrawl.cli.laboratory import check_workers
from recrawl.cli.terminal import check_folder, print_json, progress, show
from recrawl.extras import need
from recrawl.papers.claims import load_claims
from recrawl.papers.experiment import Experiment, Scale
from recrawl.papers.registry import check_paper, run_paper
from recrawl.papers.report import claim_document, read_results, results_page, write_experiment

if TYPE_CHECKING:
    from recrawl.papers.claims import Claim


@click.command("reproduce", short_help="Run the papers' experiments and judge their claims.")
@click.argument("paper", metavar="PAPER")
@click.option("--quick", is_flag=True, help="Fewer pages, steps and repetitions: all papers within 5 minutes.")
@click.option("--out", type=click.Path(path_type=Path), default="recrawl-out/results", show_default=True, metavar="DIR",
              help="Folder for tables, figures and results.md.")  # fmt: skip
@click.option("--workers", type=int, metavar="N", help="Processes to use; by default one for each core.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line instead of a table.")
def command(paper: str, quick: bool, out: Path, workers: int | None, as_json: bool) -> None:
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
