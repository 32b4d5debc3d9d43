"""Writes what experiments left behind: tables, a figure and verdicts, and one page over all that a folder holds.

The only part of this room that touches the disk.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypedDict

import msgspec

from recrawl.errors import InvalidFile
from recrawl.lab.papers.claims import Claim
from recrawl.lab.papers.experiment import Experiment, Finding, Table
from recrawl.lab.papers.registry import PAPERS

_HEAD = ("verdict", "claim", "measured", "value", "95 % interval")
_MOST_ROWS = 60  # on a page; the CSV file has all
_VERDICTS = {True: "holds", False: "**does not hold**", None: "observation"}


class ClaimDocument(TypedDict):
    """A claim with its number and verdict."""

    id: str
    paper: str
    experiment: str
    statement: str
    measured: str
    value: float
    low: float
    high: float
    at_least: float | None
    at_most: float | None
    kind: str
    holds: bool | None


class ExperimentDocument(TypedDict):
    """The verdicts of an experiment, and the command that they are from."""

    title: str
    command: str
    figure: bool
    claims: list[ClaimDocument]


def claim_document(claim: Claim, finding: Finding) -> ClaimDocument:
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
        "at_least": claim.at_least,
        "at_most": claim.at_most,
        "kind": claim.kind,
        "holds": claim.holds(finding),
    }


def write_experiment(experiment: Experiment, folder: Path, claims: dict[str, Claim], command: str) -> tuple[Path, ...]:
    """Write an experiment's files into a folder, which is made if it is missing; the paths written.

    The JSON file holds the verdicts and the command they are from, for `read_results`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = [_write(folder / f"{experiment.name}.csv", csv_text(experiment.table))]
    if experiment.draw is not None:
        from recrawl.plots.save import save_figure

        picture = folder / f"{experiment.name}.png"
        save_figure(experiment.draw(), picture)
        written.append(picture)
    written.append(_write(folder / f"{experiment.name}.md", experiment_page(experiment, claims, command)))
    document: ExperimentDocument = {
        "title": experiment.title,
        "command": command,
        "figure": experiment.draw is not None,
        "claims": [claim_document(claims[finding.claim], finding) for finding in experiment.findings],
    }
    written.append(
        _write(folder / f"{experiment.name}.json", json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    )
    return tuple(written)


def experiment_page(experiment: Experiment, claims: dict[str, Claim], command: str) -> str:
    """An experiment as Markdown: its verdicts, figure, table and notes. Pictures are beside the page."""
    parts = [f"# {experiment.name}: {experiment.title}", f"Made by `{command}`."]
    verdicts = [claim_document(claims[finding.claim], finding) for finding in experiment.findings]
    parts.append(_rows(_HEAD, [_row(verdict) for verdict in verdicts]))
    if experiment.draw is not None:
        parts.append(f"![{experiment.title}]({experiment.name}.png)")
    if experiment.notes:
        parts.append("\n".join(f"- {note}" for note in experiment.notes))
    rows = experiment.table.rows
    parts.append(f"All {len(rows)} rows: [{experiment.name}.csv]({experiment.name}.csv)")
    if len(rows) <= _MOST_ROWS:
        parts.append(_rows(experiment.table.columns, [tuple(map(_cell, row)) for row in rows]))
    return "\n\n".join(parts) + "\n"


def read_results(folder: Path, experiments: Iterable[str]) -> dict[str, ExperimentDocument]:
    """The verdicts that `write_experiment` left in a folder, by experiment; other files are not looked at."""
    found = {name: folder / f"{name}.json" for name in sorted(experiments)}
    return {name: _read(path) for name, path in found.items() if path.exists()}


def _read(path: Path) -> ExperimentDocument:
    try:
        return msgspec.convert(json.loads(path.read_text(encoding="utf-8")), ExperimentDocument)
    except (OSError, ValueError) as problem:
        raise InvalidFile(
            str(path), "does not hold the verdicts of an experiment; remove it or choose another --out"
        ) from problem


def results_page(found: Mapping[str, ExperimentDocument]) -> str:
    """Experiments as one page: every claim with its verdict, and where to read on."""
    ordered = sorted(sorted(found), key=lambda name: list(PAPERS).index(name.split(".")[0]))
    claims = [claim for name in ordered for claim in found[name]["claims"]]
    verdicts = [claim["holds"] for claim in claims]
    held, judged = verdicts.count(True), len(verdicts) - verdicts.count(None)
    sizes = {found[name]["command"] for name in ordered}
    summary = (
        "The claims and their bounds were fixed in `src/recrawl/lab/papers/claims.toml` before anything was measured.\n"
        f"Of {judged} claims {held} hold and {judged - held} do not; {verdicts.count(None)} more numbers are "
        "observations. Values over repetitions\nhave 95 % intervals."
    )
    parts = ["# Results", summary, "Made by " + ", ".join(f"`{command}`" for command in sorted(sizes)) + "."]
    for paper, about in PAPERS.items():
        names = [name for name in ordered if name.split(".")[0] == paper]
        if not names:
            continue
        parts.append(f"## {about.title}")
        for name in names:
            parts.append(f"### [{name}]({name}.md): {found[name]['title']}")
            parts.append(_rows(_HEAD, [_row(claim) for claim in found[name]["claims"]]))
            if found[name]["figure"]:
                parts.append(f"![{found[name]['title']}]({name}.png)")
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


def _row(claim: ClaimDocument) -> tuple[str, ...]:
    spread = "" if claim["low"] == claim["high"] else f"{claim['low']:.4g} to {claim['high']:.4g}"
    bounds = (("≥", claim["at_least"]), ("≤", claim["at_most"]))
    bound = " and ".join(f"{sign} {value:g}" for sign, value in bounds if value is not None)
    value = f"{claim['value']:.4g}" + (f" ({bound})" if bound else "")
    return _VERDICTS[claim["holds"]], f"`{claim['id']}` {claim['statement']}", claim["measured"], value, spread


def _rows(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(value: str | float | int) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)
