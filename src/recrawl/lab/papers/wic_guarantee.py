"""WIC's guarantee: the greedy yields at least 1/(1+a) of the best schedule, which brute force finds on small cases."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from recrawl.lab.papers.experiment import Experiment, Table, exact_finding
from recrawl.lab.papers.wic_utilities import Captures, WicUtilities
from recrawl.pages import Floats
from recrawl.plots.experiments import BarPanel, Series, bars_figure

_PAGES, _INSTANTS = 4, 6
_DIGITS = 12
_SET_UP = (
    f"{_PAGES} pages, {_INSTANTS} instants, importance and probabilities uniform in (0, 1); sums are compared to "
    f"{_DIGITS} digits."
)
_LIVES = (
    Captures(urgency=0.0),
    Captures(urgency=0.3),
    Captures(urgency=0.7),
    Captures(),
    Captures(changes_kept=1, urgency=0.0),
    Captures(changes_kept=1, urgency=0.7),
    Captures(changes_kept=1),
    Captures(changes_kept=2),
    Captures(window=0),
    Captures(window=2),
    Captures(changes_kept=1, window=1),
)


def guarantee(cases: int) -> Experiment:
    """Hold the greedy to its guarantee: random importance and change probabilities, one crawl an instant."""
    rows: list[tuple[str, int, float, float, float]] = []
    least = np.inf
    for captures in _LIVES:
        shares = [_share(captures, seed) for seed in range(cases)]
        bound = captures.guarantee()
        least = min(least, min(shares) / bound)
        rows.append((_name(captures), cases, bound, min(shares), float(np.mean(shares))))
    return Experiment(
        "wic.guarantee",
        "The greedy against brute force",
        Table(("life and urgency", "cases", "guaranteed", "least share of the best", "mean share"), rows),
        (exact_finding("wic.guarantee.brute_force", round(float(least), _DIGITS)),),
        lambda: bars_figure([_panel("append", rows), _panel("last", rows)]),
        notes=(_SET_UP,),
    )


def _panel(life: str, rows: Sequence[tuple[str, int, float, float, float]]) -> BarPanel:
    """The rows of a life: what is guaranteed, and what was found."""
    own = [row for row in rows if row[0].startswith(life)]
    groups = [row[0].removeprefix("append, ").replace(", ", "\n").replace("window ", "window\n") for row in own]
    names = ("guaranteed", "least of all cases", "mean of all cases")
    series = [Series(name, [float(row[column]) for row in own]) for column, name in enumerate(names, start=2)]
    return BarPanel(f"Greedy over best schedule ({life})", "share", groups, series)


def _share(captures: Captures, seed: int) -> float:
    """What the greedy yields of the best schedule."""
    random = np.random.Generator(np.random.PCG64([seed, 7]))
    importance = random.random(_PAGES)
    chances = random.random((_INSTANTS, _PAGES))
    pages = WicUtilities(importance, captures)
    gained = 0.0
    for chance in chances:
        pages.advance(chance)
        chosen = pages.best(1)
        gained += float(pages.utilities[chosen].sum())
        pages.captured(chosen)
    return gained / best_schedule(captures, importance, chances)


def best_schedule(captures: Captures, importance: Floats, chances: Floats) -> float:
    """The most that one crawl an instant can yield, by trying all of them. O(instants^pages)."""
    instants, pages = chances.shape
    worth = np.zeros((pages, instants + 1, instants))  # of a crawl at j after one before i
    for i in range(instants):
        utilities = WicUtilities(importance, captures)
        for j in range(i, instants):
            utilities.advance(chances[j])
            worth[:, i, j] = utilities.utilities

    @cache
    def best(j: int, since: tuple[int, ...]) -> float:
        if j == instants:
            return 0.0
        return max(
            float(worth[page, since[page], j]) + best(j + 1, (*since[:page], j + 1, *since[page + 1 :]))
            for page in range(pages)
        )

    return best(0, (0,) * pages)


def _name(captures: Captures) -> str:
    life = "append" if captures.changes_kept is None else f"last {captures.changes_kept}"
    window = "" if captures.window is None else f", window {captures.window}"
    return f"{life}{window}, r = {captures.urgency:g}"
