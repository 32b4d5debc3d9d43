"""Appendix E of the NCIS paper (Busa-Fekete et al. 2025): precision and recall by likelihood and by counting."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recrawl.lab.papers.experiment import Experiment, Scale, Table
from recrawl.lab.papers.ncis_findings import mean_of, ratio_of_means, without_sign
from recrawl.lab.papers.ncis_worlds import generator
from recrawl.lab.papers.workers import Workers
from recrawl.learning.signal_counting import count_trust
from recrawl.learning.signal_history import SignalHistories
from recrawl.learning.trust import fit_trust
from recrawl.pages import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HORIZON = 100_000.0
_LOW, _HIGH = 0.2, 0.95
_PART_PAGES = 50
_BINS = 6


class Errors(NamedTuple):
    """Estimates less truth, by page, and the truth."""

    truth: Floats
    likelihood: Floats
    counting: Floats


def estimators(scale: Scale, run: Workers) -> Experiment:
    """Fit and count trust in the signals of many pages, each alone, and compare the bias."""
    parts = run(run_part, range(4 if scale.quick else 30))
    errors = {name: Errors(*np.concatenate([part[name] for part in parts], axis=1)) for name in ("precision", "recall")}
    rows: list[tuple[str | float | int, ...]] = []
    findings = []
    for name, each in errors.items():
        for estimator, error in (("likelihood", each.likelihood), ("counting", each.counting)):
            bias = mean_of(name, error)
            spread = float(np.sqrt((error**2).mean()))
            rows.append((name, estimator, len(error), bias.value, bias.low, bias.high, spread))
        ratio = ratio_of_means(f"ncis.estimators.{name}_bias", each.likelihood, each.counting)
        findings.append(without_sign(ratio))
    return Experiment(
        name="ncis.estimators",
        title="Bias of estimates of precision and recall: likelihood against counting",
        table=Table(("quantity", "estimator", "pages", "bias", "low", "high", "root_mean_square_error"), rows),
        findings=tuple(findings),
        draw=partial(_draw, errors),
        notes=(
            (
                "Precision and recall are uniform in [0.2, 0.95] and the mean time between changes in [2, 20]; the "
                "horizon is 100,000. The paper leaves open how crawls are spaced and how their rate is drawn: they "
                "come at random, at a quarter to four times the rate of changes, evenly in the logarithm."
            ),
            "Both estimates are per page and without a prior.",
            (
                "The paper prints the same denominator for counted precision and recall; intervals with a signal are"
                " meant for precision."
            ),
        ),
    )


def run_part(part: int) -> dict[str, Errors]:
    """Draw some pages with known precision and recall and estimate both. O(audits)."""
    random = generator(10, part)
    precision, recall = random.uniform(_LOW, _HIGH, (2, _PART_PAGES))
    histories = audits(precision, recall, random)
    fitted, counted = fit_trust(histories, prior=0.0), count_trust(histories)
    return {
        "precision": Errors(precision, fitted.precision[:, 0] - precision, counted.precision[:, 0] - precision),
        "recall": Errors(recall, fitted.recall[:, 0] - recall, counted.recall[:, 0] - recall),
    }


def audits(precision: Floats, recall: Floats, random: np.random.Generator) -> SignalHistories:
    """Crawls of pages with such signals, and what each heard and saw."""
    pages = len(precision)
    change_rate = 1.0 / random.uniform(2.0, 20.0, pages)
    crawl_rate = change_rate * 4.0 ** random.uniform(-1.0, 1.0, pages)
    crawls = np.maximum(random.poisson(crawl_rate * _HORIZON), 1)
    page = np.repeat(np.arange(pages), crawls)
    gaps = random.standard_exponential(len(page)) / crawl_rate[page]
    announced = recall * change_rate
    true = random.poisson(announced[page] * gaps)
    false = random.poisson((announced * (1.0 - precision) / precision)[page] * gaps)
    silent = random.poisson((change_rate - announced)[page] * gaps)
    heard = (true + false).astype(np.int32)[:, None]
    offsets = np.concatenate([[0], np.cumsum(crawls)])
    return SignalHistories(offsets, gaps, true + silent > 0, heard, ("signal",))


def _draw(errors: dict[str, Errors]) -> Figure:
    from recrawl.plots.experiments import LinePanel, Series, lines_figure

    edges = np.linspace(_LOW, _HIGH, _BINS + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    panels = []
    for name, each in errors.items():
        place = np.clip(np.digitize(each.truth, edges) - 1, 0, _BINS - 1)
        series = []
        for label, error in (("likelihood", each.likelihood), ("counting", each.counting)):
            found = [mean_of(name, error[place == bin_]) for bin_ in range(_BINS)]
            values, low, high = ([getattr(one, field) for one in found] for field in ("value", "low", "high"))
            series.append(Series(label, values, low, high))
        panels.append(LinePanel(name.capitalize(), f"true {name}", "mean error", middles, series, reference=0.0))
    return lines_figure(panels)
