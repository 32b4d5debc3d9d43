"""Figure 9 of the NCIS paper (Busa-Fekete et al. 2025): GREEDY while the bandwidth goes from 100 to 150 and back."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from recrawl.lab.papers.experiment import Experiment, Scale, Table
from recrawl.lab.papers.ncis_findings import largest_distance, mean_of
from recrawl.lab.papers.ncis_runs import PHASE_BANDWIDTHS, PHASE_ENDS, run_bandwidths
from recrawl.lab.papers.workers import Workers
from recrawl.pages import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_REPETITIONS, _QUICK_REPETITIONS = 100, 5
_NAMES = ("100, then 150, then 100", "100 throughout", "150 throughout")


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
        ratio = mean_of("", own / other)
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
        draw=partial(_draw, means),
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


def _draw(means: Floats) -> Figure:
    from recrawl.plots.experiments import LinePanel, Series, lines_figure

    time: Floats = np.arange(means.shape[1], dtype=np.float64) + 0.5
    series = [Series(name, values) for name, values in zip(_NAMES, means, strict=True)]
    return lines_figure([LinePanel("Accuracy of GREEDY by bandwidth", "time", "accuracy", time, series)])
