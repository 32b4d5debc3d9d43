"""The guarantee of WIC (Pandey et al. 2004): the greedy by utilities, against the best in hindsight.

What a crawl of each page would capture, with change probabilities that vary in time (WIC, Pandey et al. 2004).

Time goes in instants. A page changes in instant k with probability π_k. Crawled at j and before that at i it yields

    U(i, j) = importance · Σ_{k=i+1}^{j} urgency(j−k) · π_k · life(k, j)

    life      append            1
              time window w     1 if j−k ≤ w, else 0
              change window Z   probability of fewer than Z changes in (k, j]; Z = 1: each overwrites the last
    urgency   uniform           1
              exponential r     r^t
              sliding window w  1 if t ≤ w, else 0

Both windows cut the sum at the same place, so the shorter one counts. WIC's greedy crawls the C pages of largest U
in each instant and yields at least 1/(1+a) of the best schedule, a the largest urgency(t+1)/urgency(t).

One number per page carries U from one instant to the next: state ← r(1−π)·state + π, without the factor 1−π for
changes that append. For a change window it is Z numbers: what was followed by 0, 1, … Z−1 changes. A time window
takes the last w+1 of these steps; as steps compose, it is put together from the steps of this block of w+1 instants
and the end of the block before: O(1) amortised, nothing is subtracted or divided, so π = 1 is a number like others.

WIC's guarantee: the greedy yields at least 1/(1+a) of the best schedule, which brute force finds on small cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import InvalidInput
from recrawl.lab.papers.experiment import Experiment, Table, exact_finding
from recrawl.pages import Floats
from recrawl.plots.experiments import BarPanel, Series, bars_figure

_PAGES, _INSTANTS = 4, 6
_DIGITS = 12
_SET_UP = (
    f"{_PAGES} pages, {_INSTANTS} instants, importance and probabilities uniform in (0, 1); sums are compared to "
    f"{_DIGITS} digits."
)


class Captures(NamedTuple):
    """What becomes of a change that waits: how it stays on the page, and what it loses by being captured late.

    Args:
        changes_kept: how many changes a page shows; 1: each overwrites the last; None: changes append.
        window: a change is gone (or worthless) more than so many instants after it happened; None: never.
        urgency: its worth falls by this factor each instant; 1: it does not matter when it is captured.
    """

    changes_kept: int | None = None
    window: int | None = None
    urgency: float = 1.0

    def guarantee(self) -> float:
        """The share of the best schedule that the greedy reaches at least: 1/(1+a).

        All of it if nothing can be captured late.

        >>> Captures(urgency=0.5).guarantee(), Captures(window=0).guarantee()
        (0.6666666666666666, 1.0)
        """
        return 1.0 if self.window == 0 else 1.0 / (1.0 + self.urgency)


LASTING = Captures()
"""Changes append and are worth as much whenever they are captured."""


class WicUtilities:
    """U of every page, kept from instant to instant.

    >>> pages = WicUtilities([1.0, 2.0], Captures(urgency=0.5))
    >>> pages.advance([0.5, 0.0])
    >>> pages.advance([0.5, 0.1])
    >>> pages.utilities
    array([0.75, 0.2 ])
    >>> pages.captured(pages.best(1))
    >>> pages.utilities
    array([0. , 0.2])
    """

    def __init__(self, importance: ArrayLike, captures: Captures = LASTING) -> None:
        self._importance = np.array(importance, dtype=np.float64)
        self._captures = _checked(captures)
        self._stays = captures.changes_kept is None
        shape = (1 if captures.changes_kept is None else captures.changes_kept, len(self._importance))
        self._state: Floats = np.zeros(shape)
        self._block = None if captures.window is None else _Block(captures, shape)

    def advance(self, probabilities: ArrayLike) -> None:
        """Go to the next instant, in which each page changes with this probability. O(pages · changes kept)."""
        chance = np.asarray(probabilities, dtype=np.float64)
        if chance.shape != self._importance.shape:
            raise InvalidInput(
                f"has shape {chance.shape}, but must have one number for each of the {len(self._importance)} pages",
                field="probabilities",
            )
        if not ((chance >= 0) & (chance <= 1)).all():
            page = int(np.argmin((chance >= 0) & (chance <= 1)))
            raise InvalidInput(
                f"is {float(chance[page])!r}, but must be a number from 0 to 1", field="probabilities", row=page
            )
        loss = np.zeros_like(chance) if self._stays else chance
        if self._block is not None:
            self._block.advance(loss, chance)
        else:
            self._state = _aged(self._state, self._captures.urgency, loss)
            self._state[0] += chance

    def captured(self, pages: ArrayLike) -> None:
        """These pages were crawled in this instant: what they hold is captured. O(pages · window)."""
        chosen = np.asarray(pages, dtype=np.int64)
        if self._block is not None:
            self._block.forget(chosen)
        else:
            self._state[:, chosen] = 0.0

    @property
    def utilities(self) -> Floats:
        """What a crawl of each page would yield in this instant. O(pages · changes kept)."""
        held = self._state.sum(axis=0) if self._block is None else self._block.held()
        return self._importance * held

    def best(self, count: int) -> NDArray[np.int64]:
        """WIC's choice: so many pages of largest utility, ties by page; none that would yield nothing."""
        utilities = self.utilities
        order = np.argsort(-utilities, kind="stable")[: max(count, 0)]
        return order[utilities[order] > 0]


class _Block:
    """The last steps of every page, as many as the window has: the steps of this block, the end of the one before.

    A step takes a state s to A·s + b, where states are polynomials: the coefficient of zⁿ is what was followed by n
    changes, A is urgency·((1−loss) + loss·z), and what would be beyond the last power is lost.
    """

    def __init__(self, captures: Captures, shape: tuple[int, int]) -> None:
        assert captures.window is not None
        self._urgency = captures.urgency
        self._length = length = captures.window + 1
        self._at = 0
        self._losses = np.zeros((length, shape[1]))
        self._gains = np.zeros((length, shape[1]))
        self._ends = np.zeros((length, *shape))  # what each end of the block before holds
        self._factor = _one(shape)  # A of this block so far
        self._held = np.zeros(shape)  # what this block so far holds

    def advance(self, loss: Floats, gain: Floats) -> None:
        """Take one more step."""
        if self._at == self._length:
            self._close()
        self._losses[self._at], self._gains[self._at] = loss, gain
        self._factor = _aged(self._factor, self._urgency, loss)
        self._held = _aged(self._held, self._urgency, loss)
        self._held[0] += gain
        self._at += 1

    def held(self) -> Floats:
        """What the last steps hold: the sum of coefficients of factor·end + held."""
        total: Floats = self._held.sum(axis=0)
        if self._at < self._length:
            within = np.cumsum(self._ends[self._at], axis=0)[::-1]  # what may still meet so many changes
            total += (self._factor * within).sum(axis=0)
        return total

    def forget(self, pages: NDArray[np.int64]) -> None:
        """These pages hold nothing any more."""
        self._gains[: self._at, pages] = 0.0
        self._ends[:, :, pages] = 0.0
        self._held[:, pages] = 0.0

    def _close(self) -> None:
        """Make this block the one before: work out from its last step back what each of its ends holds."""
        factor, held = _one(self._held.shape), np.zeros_like(self._held)
        for step in range(self._length - 1, -1, -1):
            held = held + factor * self._gains[step]
            self._ends[step] = held
            factor = _aged(factor, self._urgency, self._losses[step])
        self._at = 0
        self._factor, self._held = _one(self._held.shape), np.zeros_like(self._held)


def _aged(state: Floats, urgency: float, loss: Floats) -> Floats:
    """One step: worth falls by urgency, and with probability `loss` there is one more change after each."""
    aged = state * (1.0 - loss)
    aged[1:] += state[:-1] * loss
    aged *= urgency
    return aged


def _one(shape: tuple[int, ...]) -> Floats:
    """The polynomial 1, for each page."""
    one = np.zeros(shape)
    one[0] = 1.0
    return one


def _checked(captures: Captures) -> Captures:
    if captures.changes_kept is not None and captures.changes_kept < 1:
        raise InvalidInput(f"is {captures.changes_kept}, but must be at least 1, or None", field="changes_kept")
    if captures.window is not None and captures.window < 0:
        raise InvalidInput(f"is {captures.window}, but must be at least 0, or None", field="window")
    if not 0 <= captures.urgency <= 1:
        raise InvalidInput(f"is {captures.urgency!r}, but must be a number from 0 to 1", field="urgency")
    return captures


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
