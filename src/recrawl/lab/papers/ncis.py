"""NCIS (Busa-Fekete et al. 2025): figures and tables.

Figure 9 of the NCIS paper (Busa-Fekete et al. 2025): GREEDY while the bandwidth goes from 100 to 150 and back.

Appendix E of the NCIS paper (Busa-Fekete et al. 2025): precision and recall by likelihood and by counting.

The experiments of the NCIS paper (Busa-Fekete et al. 2025): crawling with noisy change-indicating signals.

Worlds are in `ncis_worlds`, the policies in `simulation.lazy_argmax`, accuracy in `ncis_accuracy`, repetitions in
`ncis_runs`, the estimators of appendix E in `ncis_estimators`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recrawl.lab.papers.experiment import (
    Experiment,
    Finding,
    Scale,
    Table,
    largest_distance,
    least_ratio,
    mean_finding,
    ratio_of_means,
    without_sign,
)
from recrawl.lab.papers.ncis_runs import (
    PHASE_BANDWIDTHS,
    PHASE_ENDS,
    UniformTask,
    corrupted_signals,
    generator,
    run_bandwidths,
    run_uniform,
)
from recrawl.lab.parallel import Workers, workers
from recrawl.learning.signal_counting import count_trust
from recrawl.learning.signal_history import SignalHistories
from recrawl.learning.trust import fit_trust
from recrawl.pages import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_REPETITIONS, _QUICK_REPETITIONS = 100, 5
_NCIS_PHASES_NAMES = ("100, then 150, then 100", "100 throughout", "150 throughout")


_HORIZON = 100_000.0
_LOW, _HIGH = 0.2, 0.95
_PART_PAGES = 50
_BINS = 6

_PAGES = (100, 200, 500, 750, 1000, 10_000)
_QUICK_PAGES = (100, 1000, 10_000)

_NCIS_NAMES = {
    "baseline": "baseline",
    "greedy": "GREEDY",
    "lds": "LDS",
    "greedy-cis-clean": "GREEDY-CIS",
    "greedy-cis": "GREEDY-CIS",
    "greedy-cis+": "GREEDY-CIS+",
    "greedy-ncis": "GREEDY-NCIS",
    "ncis-approx-1": "G-NCIS-APPROX-1",
    "ncis-approx-2": "G-NCIS-APPROX-2",
    "ncis-seen": "GREEDY-NCIS, no delay",
    "ncis-delayed": "GREEDY-NCIS, delayed",
    "ncis-quiet": "GREEDY-NCIS-D, delayed",
}
_SETUP = (
    (
        "Importance and change rate are uniform in (0, 1), the bandwidth is 100 and time ends at 1000: 100,000 "
        "crawls, one at each slot, each the argmax over all pages."
    ),
    (
        "Accuracy is on requests, which come at the rate of importance: the importance-weighted share of time with a"
        " fresh copy. It is integrated in expectation given crawls and signals instead of drawing changes and "
        "requests, which has the same mean and less noise."
    ),
    "The paper does not say how a run starts: here the cache is empty, and the first tenth of the time does not count.",
    "The baseline is the optimum for evenly spaced crawls without signals.",
)
_SIGNALS = "Recall is Beta(0.25, 0.25)"


def changing_bandwidth(scale: Scale, run: Workers) -> Experiment:
    """Compare the accuracy in the last half of each phase with that of a run at its bandwidth throughout."""
    found = np.stack(run(run_bandwidths, range(_QUICK_REPETITIONS if scale.quick else _REPETITIONS)))
    halves = [_last_half(phase) for phase in range(len(PHASE_ENDS))]
    steady = [PHASE_BANDWIDTHS.index(bandwidth) + 1 for bandwidth in PHASE_BANDWIDTHS]
    pairs = [
        (found[:, 0, half].mean(axis=1), found[:, which, half].mean(axis=1))
        for half, which in zip(halves, steady, strict=True)
    ]
    rows: list[tuple[str | float | int, ...]] = []
    for phase, (own, other) in enumerate(pairs):
        ratio = mean_finding("", own / other)
        row = (PHASE_BANDWIDTHS[phase], len(own), float(own.mean()), float(other.mean()))
        rows.append((phase + 1, *row, ratio.value, ratio.low, ratio.high))
    means: Floats = found.mean(axis=0)
    worst = max(
        float(np.abs(means[0, half] / means[which, half] - 1.0).max())
        for half, which in zip(halves, steady, strict=True)
    )
    columns = ("phase", "bandwidth", "repetitions", "accuracy", "steady_accuracy", "ratio", "low", "high")
    return Experiment(
        name="ncis.fig9",
        title="Accuracy of GREEDY over time as the bandwidth changes",
        table=Table(columns, rows),
        findings=(largest_distance("ncis.fig9.change_absorbed", pairs),),
        draw=partial(_ncis_phases_draw, means),
        notes=(
            (
                "1,000 pages with importance and change rate uniform in (0, 1); the bandwidth is 100, from time 133 "
                "on 150, from 266 to the end at 400 again 100. The cache is empty at the start."
            ),
            (
                "Accuracy is on requests, in expectation given the crawls, in each unit of time; the paper takes the"
                " last 1,000 crawls. The claim compares means over the last half of each phase."
            ),
            f"In no single unit of time of these halves was the mean over repetitions off by more than {worst:.2%}.",
        ),
    )


def _last_half(phase: int) -> slice:
    start = PHASE_ENDS[phase - 1] if phase else 0.0
    end = PHASE_ENDS[phase]
    return slice(int(np.ceil((start + end) / 2)), int(end))


def _ncis_phases_draw(means: Floats) -> Figure:
    from recrawl.plots.experiments import LinePanel, Series, lines_figure

    time: Floats = np.arange(means.shape[1], dtype=np.float64) + 0.5
    series = [Series(name, values) for name, values in zip(_NCIS_PHASES_NAMES, means, strict=True)]
    return lines_figure([LinePanel("Accuracy of GREEDY by bandwidth", "time", "accuracy", time, series)])


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
            bias = mean_finding(name, error)
            spread = float(np.sqrt((error**2).mean()))
            rows.append((name, estimator, len(error), bias.value, bias.low, bias.high, spread))
        ratio = ratio_of_means(f"ncis.estimators.{name}_bias", each.likelihood, each.counting)
        findings.append(without_sign(ratio))
    return Experiment(
        name="ncis.estimators",
        title="Bias of estimates of precision and recall: likelihood against counting",
        table=Table(("quantity", "estimator", "pages", "bias", "low", "high", "root_mean_square_error"), rows),
        findings=tuple(findings),
        draw=partial(_ncis_estimators_draw, errors),
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


def _ncis_estimators_draw(errors: dict[str, Errors]) -> Figure:
    from recrawl.plots.experiments import LinePanel, Series, lines_figure

    edges = np.linspace(_LOW, _HIGH, _BINS + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    panels = []
    for name, each in errors.items():
        place = np.clip(np.digitize(each.truth, edges) - 1, 0, _BINS - 1)
        series = []
        for label, error in (("likelihood", each.likelihood), ("counting", each.counting)):
            found = [mean_finding(name, error[place == bin_]) for bin_ in range(_BINS)]
            values, low, high = ([getattr(one, field) for one in found] for field in ("value", "low", "high"))
            series.append(Series(label, values, low, high))
        panels.append(LinePanel(name.capitalize(), f"true {name}", "mean error", middles, series, reference=0.0))
    return lines_figure(panels)


class Runs(NamedTuple):
    """Accuracies by name, numbers of pages by repetitions."""

    pages: Sequence[int]
    accuracy: Mapping[str, Floats]

    def pairs(self, above: str, below: str) -> Iterator[tuple[Floats, Floats]]:
        """Paired samples for each number of pages."""
        return zip(self.accuracy[above], self.accuracy[below], strict=True)


def experiments(scale: Scale) -> Iterator[Experiment]:
    """Run the experiments; those on uniform pages share their repetitions."""
    with workers(scale.workers) as run:
        runs = _uniform_runs(scale, run)
        yield _without_signals(runs)
        yield _without_noise(runs)
        yield _with_noise(runs)
        yield corrupted_signals(scale, run)
        yield _with_delay(runs)
        yield changing_bandwidth(scale, run)
        yield estimators(scale, run)


def _uniform_runs(scale: Scale, run: Workers) -> Runs:
    pages = _QUICK_PAGES if scale.quick else _PAGES
    repetitions = range(_QUICK_REPETITIONS if scale.quick else _REPETITIONS)
    # The long ones first, so that no process waits for the other at the end.
    tasks = [UniformTask(number, repetition) for number in reversed(pages) for repetition in repetitions]
    found = dict(zip(tasks, run(run_uniform, tasks), strict=True))
    names = found[tasks[0]]
    by_name = {
        name: np.array([[found[UniformTask(number, each)][name] for each in repetitions] for number in pages])
        for name in names
    }
    return Runs(pages, by_name)


def _without_signals(runs: Runs) -> Experiment:
    return _experiment(
        runs,
        "ncis.fig2",
        "Accuracy without signals, by number of pages",
        ("baseline", "greedy", "lds"),
        (
            largest_distance("ncis.fig2.greedy_equals_baseline", runs.pairs("greedy", "baseline")),
            largest_distance("ncis.fig2.lds_equals_baseline", runs.pairs("lds", "baseline")),
        ),
        _SETUP,
    )


def _without_noise(runs: Runs) -> Experiment:
    return _experiment(
        runs,
        "ncis.fig3",
        "Accuracy with signals free of noise, by number of pages",
        ("baseline", "greedy", "greedy-cis-clean"),
        (least_ratio("ncis.fig3.cis_above_greedy", runs.pairs("greedy-cis-clean", "greedy")),),
        (*_SETUP, f"{_SIGNALS} and no signal is false."),
    )


def _with_noise(runs: Runs) -> Experiment:
    least = {
        name: least_ratio(f"ncis.fig4.ncis_not_below_{name}", runs.pairs("greedy-ncis", below))
        for name, below in (("greedy", "greedy"), ("cis", "greedy-cis"), ("cis_plus", "greedy-cis+"))
    }
    exact = runs.accuracy["greedy-ncis"]
    shares = {terms: runs.accuracy[f"ncis-approx-{terms}"] / exact for terms in (1, 2)}
    scarce = mean_finding("ncis.fig4.approx_when_scarce", shares[2][-1])
    return _experiment(
        runs,
        "ncis.fig4",
        "Accuracy with noisy signals, by number of pages",
        ("baseline", "greedy", "greedy-cis", "greedy-cis+", "greedy-ncis", "ncis-approx-1", "ncis-approx-2"),
        (
            *least.values(),
            mean_finding("ncis.fig4.approx_1_when_ample", shares[1][0]),
            mean_finding("ncis.fig4.approx_2_when_ample", shares[2][0]),
            scarce,
        ),
        (
            *_SETUP,
            f"{_SIGNALS}, false signals come at rates uniform in (0.1, 0.6), and both are known to the policies.",
            "GREEDY-CIS+ is in the paper's figure 5 only; it is run here too because a claim names it.",
        ),
    )


def _with_delay(runs: Runs) -> Experiment:
    seen, late, quiet = (runs.accuracy[name] for name in ("ncis-seen", "ncis-delayed", "ncis-quiet"))
    shares = [
        ratio_of_means("ncis.fig8.delay_recovers", quiet[i] - late[i], seen[i] - late[i]) for i in range(len(seen))
    ]
    by_pages = ", ".join(f"{share.value:.2f} at {number}" for number, share in zip(runs.pages, shares, strict=True))
    return _experiment(
        runs,
        "ncis.fig8",
        "Accuracy with delayed signals, by number of pages",
        ("baseline", "ncis-seen", "ncis-delayed", "ncis-quiet"),
        (shares[0],),
        (
            *_SETUP,
            (
                f"{_SIGNALS}, false signals come at rates uniform in (0.1, 0.6); each signal arrives late by a "
                "Poisson(6) number of slots, and GREEDY-NCIS-D drops signals that arrive within 5 slots after a "
                "crawl of their page."
            ),
            (
                "Accuracy is on announced changes as they happen, because a late signal has no closed form; silent "
                "changes are integrated in expectation."
            ),
            (
                "The claim is judged at 100 pages, where the paper says that the rule almost recovers the loss. "
                f"Share won back by number of pages: {by_pages}."
            ),
            (
                "The rule can only save crawls spent on outdated signals. That changes are heard late is a loss it "
                "cannot touch, and with ample bandwidth that is most of it."
            ),
        ),
    )


def _experiment(
    runs: Runs, name: str, title: str, shown: Sequence[str], findings: tuple[Finding, ...], notes: tuple[str, ...]
) -> Experiment:
    rows: list[tuple[str | float | int, ...]] = []
    for i, pages in enumerate(runs.pages):
        for policy in shown:
            mean = mean_finding(name, runs.accuracy[policy][i])
            ratio = float((runs.accuracy[policy][i] / runs.accuracy["baseline"][i]).mean())
            repetitions = len(runs.accuracy[policy][i])
            rows.append((pages, _NCIS_NAMES[policy], repetitions, mean.value, mean.low, mean.high, ratio))
    columns = ("pages", "policy", "repetitions", "accuracy", "low", "high", "over_baseline")
    return Experiment(
        name, title, Table(columns, rows), findings, partial(_ncis_draw, runs, title, tuple(shown)), notes
    )


def _ncis_draw(runs: Runs, title: str, shown: tuple[str, ...]) -> Figure:
    """Accuracy and its ratio to the baseline, over the number of pages."""
    from recrawl.plots.experiments import LinePanel, Series, lines_figure

    accuracy: list[Series] = []
    ratio: list[Series] = []
    for policy in shown:
        samples = runs.accuracy[policy]
        for series, values in ((accuracy, samples), (ratio, samples / runs.accuracy["baseline"])):
            means = [mean_finding(policy, each) for each in values]
            low, high = [each.low for each in means], [each.high for each in means]
            series.append(Series(_NCIS_NAMES[policy], [each.value for each in means], low, high))
    pages = np.array(runs.pages, dtype=np.float64)
    return lines_figure([
        LinePanel(title, "pages", "accuracy", pages, accuracy, log_x=True),
        LinePanel("The same, over the baseline", "pages", "accuracy over baseline", pages, ratio, log_x=True),
    ])  # fmt: skip
