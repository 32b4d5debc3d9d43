"""The stationary index against WIC's greedy, where pages change alike in every instant.

The greedy crawls what would capture most now; the index also asks what waiting would add. Both spend the same crawls;
what they capture is counted in expectation, given when they crawled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from recrawl.lab.papers.experiment import Experiment, Finding, Scale, Table, mean_finding
from recrawl.lab.papers.wic_index import stationary_gain, stationary_index
from recrawl.pages import Floats
from recrawl.plots.experiments import BarPanel, Series, bars_figure

Rule = Callable[..., Floats]

_CELLS = tuple((urgency, overwrites) for overwrites in (False, True) for urgency in (0.5, 0.9, 0.99))
_SET_UP = (
    "500 pages, 25 crawls an instant; change probabilities log-uniform from 0.001 to 0.9, importance exponential; the "
    "first quarter of the instants is not counted."
)


class Pages(NamedTuple):
    """Pages that change alike in every instant."""

    importance: Floats
    probability: Floats
    urgency: float
    overwrites: bool


def index_against_greedy(scale: Scale) -> Experiment:
    """Utility per instant of both rules, for several urgencies and lives."""
    runs, instants = (5, 1500) if scale.quick else (20, 4000)
    ratios = {
        cell: [_ratio(draw_pages(500, seed, *cell), crawls=25, instants=instants) for seed in range(runs)]
        for cell in _CELLS
    }
    found: dict[tuple[float, bool], Finding] = {cell: mean_finding("", ratios[cell]) for cell in _CELLS}
    least = min(_CELLS, key=lambda cell: found[cell].value)
    rows = [
        ("overwrite" if overwrites else "append", urgency, *found[urgency, overwrites][1:])
        for urgency, overwrites in _CELLS
    ]
    panel = BarPanel(
        "Index over greedy", "ratio of utility per instant", [f"{row[0]}\nr = {row[1]:g}" for row in rows],
        [Series("index / greedy", *(np.array([row[at] for row in rows], dtype=np.float64) for at in (2, 3, 4)))],
        bottom=0.98, reference=1.0,
    )  # fmt: skip
    return Experiment(
        "beyond.index",
        "The stationary index against WIC's greedy",
        Table(("life", "urgency", "index over greedy", "low", "high"), rows),
        (mean_finding("beyond.index.against_wic", ratios[least]),),
        lambda: bars_figure([panel]),
        (_SET_UP,),
    )


def draw_pages(pages: int, seed: int, urgency: float, overwrites: bool) -> Pages:
    """Pages of many change probabilities."""
    random = np.random.Generator(np.random.PCG64([seed, pages]))
    probability = np.exp(random.uniform(np.log(0.001), np.log(0.9), pages))
    return Pages(random.exponential(1.0, pages), probability, urgency, overwrites)


def _ratio(pages: Pages, crawls: int, instants: int) -> float:
    return captured(pages, stationary_index, crawls, instants) / captured(pages, stationary_gain, crawls, instants)


def captured(pages: Pages, rule: Rule, crawls: int, instants: int) -> float:
    """Utility per instant if the pages of largest value by a rule are crawled. O(pages · instants)."""
    elapsed = np.zeros(len(pages.importance))
    total = 0.0
    begin = instants // 4
    for now in range(instants):
        elapsed += 1.0
        values = rule(pages.importance, pages.probability, elapsed, pages.urgency, pages.overwrites)
        chosen = np.argsort(-values, kind="stable")[:crawls]
        if now >= begin:
            gains = stationary_gain(
                pages.importance[chosen], pages.probability[chosen], elapsed[chosen], pages.urgency, pages.overwrites
            )
            total += float(gains.sum())
        elapsed[chosen] = 0.0
    return total / (instants - begin)
