"""The papers by name. To add one, write its module with `experiments(scale)` and name it here."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from importlib import import_module
from typing import NamedTuple

from recrawl.errors import InvalidInput
from recrawl.lab.papers.experiment import Experiment, Scale


class Paper(NamedTuple):
    """Where a paper's experiments are, and what it is."""

    module: str
    title: str


PAPERS = {
    "azar": Paper("recrawl.lab.papers.azar", "Azar et al. 2018: exact policies for freshness"),
    "lambdacrawl": Paper(
        "recrawl.lab.papers.lambdacrawl", "LambdaCrawl, Kolobov et al. 2019: harmonic staleness, learned"
    ),
    "echo": Paper("recrawl.lab.papers.echo", "ECHO, Lefortier et al. 2013: timely crawling of short-lived new pages"),
    "ncis": Paper("recrawl.lab.papers.ncis", "NCIS, Busa-Fekete et al. 2025: noisy change-indicating signals"),
    "wic": Paper("recrawl.lab.papers.wic", "WIC, Pandey et al. 2004: timeliness and completeness in monitoring"),
    "beyond": Paper("recrawl.lab.papers.beyond", "Beyond the papers: one price for every crawl"),
}


def check_paper(name: str) -> tuple[str, ...]:
    """The papers that a name stands for: itself, or all.

    Raises:
        InvalidInput: if there is none, with the nearest name.
    """
    if name == "all":
        return tuple(PAPERS)
    if name in PAPERS:
        return (name,)
    near = difflib.get_close_matches(name, (*PAPERS, "all"), n=1, cutoff=0.4)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise InvalidInput(f"is {name!r}, but must be one of {', '.join(PAPERS)} or all{hint}", field="paper")


def run_paper(name: str, scale: Scale) -> Iterator[Experiment]:
    """Run the experiments of a paper one after the other."""
    experiments: Iterator[Experiment] = import_module(PAPERS[name].module).experiments(scale)
    yield from experiments
