"""Writes what experiments left behind: a CSV and a Markdown table, a figure, and one page of results with verdicts.

The only part of this room that touches the disk.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recrawl.papers.claims import Claim
from recrawl.papers.experiment import Experiment, Finding, Table
from recrawl.papers.registry import PAPERS

_HEAD = ("verdict", "claim", "measured", "value", "95 % interval")
_MOST_ROWS = 60  # on a page; the CSV file has all
_VERDICTS = {True: "holds", False: "**does not hold**", None: "observation"}


def claim_document(claim: Claim, finding: Finding) -> dict[str, Any]:
    """A claim with its number and verdict, for machines."""
    return {
        "id": claim.id,
        "paper": claim.paper,
        "experiment": claim.experiment,
        "statement": claim.statement,
        "measured": claim.measured,
        "value": finding.value,
        "low": finding.low,
        "high": finding.high,
        "kind": claim.kind,
        "holds": claim.holds(finding),
    }


def write_experiment(experiment: Experiment, folder: Path, claims: dict[str, Claim]) -> tuple[Path, ...]:
    """Write an experiment's files into a folder, which is made if it is missing; the paths written."""
    folder.mkdir(parents=True, exist_ok=True)
    written = [_write(folder / f"{experiment.name}.csv", csv_text(experiment.table))]
    if experiment.draw is not None:
        from recrawl.plots.save import save_figure

        picture = folder / f"{experiment.name}.png"
        save_figure(experiment.draw(), picture)
        written.append(picture)
    written.append(_write(folder / f"{experiment.name}.md", experiment_page(experiment, claims, heading="#")))
    return tuple(written)


def experiment_page(experiment: Experiment, claims: dict[str, Claim], heading: str = "##") -> str:
    """An experiment as Markdown: its verdicts, figure, table and notes. Pictures are beside the page."""
    parts = [f"{heading} {experiment.name}: {experiment.title}"]
    parts.append(_rows(_HEAD, [_verdict_row(claims[finding.claim], finding) for finding in experiment.findings]))
    if experiment.draw is not None:
        parts.append(f"![{experiment.title}]({experiment.name}.png)")
    if experiment.notes:
        parts.append("\n".join(f"- {note}" for note in experiment.notes))
    rows = experiment.table.rows
    parts.append(f"All {len(rows)} rows: [{experiment.name}.csv]({experiment.name}.csv)")
    if len(rows) <= _MOST_ROWS:
        parts.append(_rows(experiment.table.columns, [tuple(map(_cell, row)) for row in rows]))
    return "\n\n".join(parts) + "\n"


def results_page(experiments: Sequence[Experiment], claims: dict[str, Claim], command: str) -> str:
    """All experiments as one page, with the command that makes it and how many claims hold."""
    verdicts = [claims[finding.claim].holds(finding) for one in experiments for finding in one.findings]
    held, judged = verdicts.count(True), len(verdicts) - verdicts.count(None)
    summary = (
        f"Made by `{command}`. The claims and their bounds were fixed in `src/recrawl/papers/claims.toml` before\n"
        f"anything was measured. Of {judged} claims {held} hold and {judged - held} do not; "
        f"{verdicts.count(None)} more numbers are observations.\nValues over repetitions have 95 % intervals."
    )
    parts = ["# Results", summary]
    shown: set[str] = set()
    for one in experiments:
        paper = one.name.split(".")[0]
        if paper not in shown:
            shown.add(paper)
            parts.append(f"## {PAPERS[paper].title}\n\n    recrawl reproduce {paper}")
        parts.append(experiment_page(one, claims, heading="###").rstrip())
    return "\n\n".join(parts) + "\n"


def csv_text(table: Table) -> str:
    """A table as CSV, numbers with all their digits."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(table.rows)
    return out.getvalue()


def _write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def _verdict_row(claim: Claim, finding: Finding) -> tuple[str, ...]:
    spread = "" if finding.low == finding.high else f"{finding.low:.4g} to {finding.high:.4g}"
    bound = " and ".join(
        f"{sign} {value:g}" for sign, value in (("≥", claim.at_least), ("≤", claim.at_most)) if value is not None
    )
    value = f"{finding.value:.4g}" + (f" ({bound})" if bound else "")
    return (
        f"{_VERDICTS[claim.holds(finding)]}", f"`{claim.id}` {claim.statement}", claim.measured, value, spread
    )  # fmt: skip


def _rows(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(value: str | float | int) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)
