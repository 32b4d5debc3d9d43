"""Figure 5 of the NCIS paper (Busa-Fekete et al. 2025): corrupted precision and recall on 100,000 web pages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from recrawl.lab.papers.experiment import Experiment, Finding, Scale, Table
from recrawl.lab.papers.ncis_findings import least_ratio, mean_of
from recrawl.lab.papers.ncis_runs import CORRUPTIONS, WEB_POLICIES, WebTask, run_web
from recrawl.lab.papers.workers import Workers
from recrawl.pages import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PAGES, _QUICK_PAGES = 100_000, 10_000
_REPETITIONS, _QUICK_REPETITIONS = 10, 3
_SHOWN = ("greedy", *WEB_POLICIES)
_CLAIMS = {"greedy": "greedy", "cis": "greedy-cis", "cis_plus": "greedy-cis+"}

_NOTES = (
    (
        "The paper's data set is not available: pages are drawn from a synthetic web population with lognormal "
        "importance and change rates from once in three years to seven times a day."
    ),
    (
        "4 % of the pages have good signals, of precision uniform in (0.7, 1) and recall in (0.6, 1), others "
        "precision uniform in (0.05, 0.7) and recall in (0, 0.6). The paper shows its distributions as a histogram "
        "only."
    ),
    (
        "Policies believe (1 − p)·truth + p·noise of precision and recall, with one uniform noise per page for both,"
        " as the paper prints it; its formula for recall lacks the p before the noise. Change rates are known, and "
        "the believed rate of false signals follows from the believed precision and recall."
    ),
    (
        "Crawls are 5 % of the pages a step, one at each slot, over 200 steps. The cache is empty at the start, and "
        "the first quarter of the time, in which all pages are crawled a first time, is not counted."
    ),
    "Accuracy is on requests, in expectation given crawls and signals.",
    "The full run has 10 repetitions, as the paper has for this figure; its other figures have 100.",
)


def corrupted_signals(scale: Scale, run: Workers) -> Experiment:
    """Run every policy at every corruption."""
    pages = _QUICK_PAGES if scale.quick else _PAGES
    repetitions = range(_QUICK_REPETITIONS if scale.quick else _REPETITIONS)
    found = run(run_web, [WebTask(pages, repetition) for repetition in repetitions])
    accuracy = {key: np.array([each[key] for each in found]) for key in found[0]}
    rows: list[tuple[str | float | int, ...]] = []
    for share in CORRUPTIONS:
        for policy in _SHOWN:
            mean = mean_of(policy, accuracy[policy, share])
            rows.append((share, policy.upper(), pages, len(found), mean.value, mean.low, mean.high))
    findings = tuple(
        least_ratio(
            f"ncis.fig5.ncis_not_below_{name}",
            [(accuracy["greedy-ncis", share], accuracy[below, share]) for share in CORRUPTIONS],
        )
        for name, below in _CLAIMS.items()
    )
    columns = ("corruption", "policy", "pages", "repetitions", "accuracy", "low", "high")
    title = f"Accuracy with corrupted precision and recall, {pages:,} pages"
    return Experiment("ncis.fig5", title, Table(columns, rows), findings, partial(_draw, accuracy, title), _NOTES)


def _draw(accuracy: dict[tuple[str, float], Floats], title: str) -> Figure:
    from recrawl.plots.experiments import BarPanel, Series, bars_figure

    series = []
    for policy in _SHOWN:
        means: Sequence[Finding] = [mean_of(policy, accuracy[policy, share]) for share in CORRUPTIONS]
        low, high = [each.low for each in means], [each.high for each in means]
        series.append(Series(policy.upper(), [each.value for each in means], low, high))
    least = min(float(samples.mean()) for samples in accuracy.values())
    groups = [f"p = {share:g}" for share in CORRUPTIONS]
    return bars_figure([BarPanel(title, "accuracy", groups, series, bottom=math.floor(50 * least - 0.5) / 50)])
