"""Whether what is believed of changes holds: every crawl is an audit, and corrects beliefs by what it found. Pure.

A page that was last fetched a while ago is believed to have changed with probability 1 − e^{−h}. If crawls find more,
or fewer, than that, all h are taken times a factor c such that what was expected is what was found,

    Σ w (1 − e^{−c·h}) = Σ w·changed

with w the importance of the page times the time since its last crawl: pages that are crawled often are audited often,
and must not count for more than they are. Pages of which little is known err together, by their prior, and those of
which much is known do not; so there is a factor for each of a few classes, by the shape k of the belief, and each leans
on the one for all while it has few audits. Audits fade, for beliefs get better. Where the spread of rates over all
pages was fitted again, audits of what was believed before are dropped.

How far the factor can be off is known too: its logarithm has the variance Σ w² p(1 − p) / (Σ w c·h e^{−c·h})², with
p = 1 − e^{−c·h}, and that of a first guess, a factor of e either way, while there are few audits.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.pages import Floats

EDGES = (0.75, 1.5, 3.0)
"""Shapes that divide the classes; a rate that is given, not learned, is in the last one."""
CLASSES = len(EDGES) + 1
KEPT = 4000
HALF_LIFE = (
    800.0  # audits, after which one counts half: beliefs get better, and old errors must not be corrected for ever
)
_PRIOR = 10.0  # audits that the belief itself, or the factor for all, is worth
_HEAVIEST = 10.0  # of an audit, in mean weights: one crawl of one page must not decide
_GUESS = 1.0  # standard deviation of the logarithm of rates that nothing is known of
_LEAST, _MOST = 0.02, 50.0
_HALVINGS = 40


class Correction(NamedTuple):
    """Factors on the believed change rates, by class of the shape of the belief.

    Class i has shapes below `edges[i]`; the last class has all others and the rates that are given, not learned.
    """

    edges: Floats
    factors: Floats

    def of(self, shapes: Floats) -> Floats:
        """Return the factor for each shape; a shape of 0 means a given rate. O(shapes)."""
        return self.factors[classes_of(shapes, self.edges)]


def classes_of(shapes: ArrayLike, edges: ArrayLike) -> NDArray[np.int64]:
    """Return the class of each shape between these edges; a shape of 0 means a given rate. O(shapes).

    >>> classes_of([0.5, 1.0, 2.0, 9.0, 0.0], edges=(0.75, 1.5, 3.0)).tolist()
    [0, 1, 2, 3, 3]
    """
    known, bounds = np.asarray(shapes, dtype=np.float64), np.asarray(edges, dtype=np.float64)
    return np.where(known > 0, np.searchsorted(bounds, known, side="right"), len(bounds)).astype(np.int64)


NO_CORRECTION = Correction(np.empty(0), np.ones(1))
"""All rates as they are believed."""


class Audit(NamedTuple):
    """A crawl of a page with a copy: hazard believed, whether it had changed, importance × gap, shape of the belief."""

    hazard: float
    changed: bool
    weight: float
    shape: float


@dataclass(slots=True)
class Calibration:
    """The last audits, and the factors that they ask for."""

    audits: deque[Audit] = field(default_factory=lambda: deque(maxlen=KEPT))
    _since: list[int] = field(default_factory=list)
    """How many audits there were since each of the last fits."""

    def take(self, audits: Iterable[Audit]) -> None:
        """Take in audits."""
        taken = [each for each in audits if each.weight > 0 and each.hazard >= 0]
        self.audits.extend(taken)
        self._since = [count + len(taken) for count in self._since]

    def renew(self) -> None:
        """The spread of rates was fitted again: keep the audits since the last fit but this one.

        What was believed before the first fit was a guess, of which nothing holds any more.
        """
        kept = self._since[-1] if self._since else 0
        self.audits = deque(list(self.audits)[-kept:] if kept else (), maxlen=KEPT)
        self._since = [0]

    def __len__(self) -> int:
        return len(self.audits)

    def factors(self) -> Floats:
        """The factor of each class; 1 before there are audits. O(audits)."""
        if not self.audits:
            return np.ones(CLASSES)
        table = np.array(self.audits, dtype=np.float64)
        hazard, changed, weight, shape = table.T
        weight = np.minimum(weight / weight.mean(), _HEAVIEST) * _recency(len(weight))
        overall = _factor(hazard, changed, weight, 1.0)
        kinds = classes_of(shape, EDGES)
        chosen = [kinds == kind for kind in range(CLASSES)]
        return np.array([_factor(hazard[part], changed[part], weight[part], overall) for part in chosen])

    def correction(self) -> Correction:
        """Return the factors with the shapes that divide their classes. O(audits)."""
        return Correction(np.array(EDGES), self.factors())

    @property
    def doubt(self) -> float:
        """Standard deviation of the logarithm of the factor for all. O(audits)."""
        if not self.audits:
            return _GUESS
        hazard, changed, weight, _shape = np.array(self.audits, dtype=np.float64).T
        weight = np.minimum(weight / weight.mean(), _HEAVIEST) * _recency(len(weight))
        expected = _factor(hazard, changed, weight, 1.0) * hazard
        chance = -np.expm1(-expected)
        noise = math.sqrt(float((weight**2 * chance * (1.0 - chance)).sum()))
        told = float((weight * expected * np.exp(-expected)).sum())
        return 1.0 / math.hypot(1.0 / _GUESS, told / max(noise, 1e-300))

    @property
    def found_by_expected(self) -> float:
        """Changes found by changes expected, of late: 1 if beliefs hold."""
        table = np.array(self.audits, dtype=np.float64).reshape(-1, len(Audit._fields))
        recency = _recency(len(table))
        found, expected = float(recency @ table[:, 1]), -float(recency @ np.expm1(-table[:, 0]))
        return (found + 2.0) / (expected + 2.0)  # so that the first few mean little


def _recency(count: int) -> Floats:
    return np.exp2((np.arange(count) - count + 1) / HALF_LIFE)


def _factor(hazard: Floats, changed: Floats, weight: Floats, before: float) -> float:
    """The factor by halving; a few imagined audits, with the chances that `before` gives them, keep it from jumping."""
    if not len(hazard):
        return before
    imagined = _PRIOR * float((weight**2).sum() / weight.sum())  # heavy audits make for a heavier prior
    mean = float((weight * hazard).sum() / weight.sum())
    target = float((weight * changed).sum()) - imagined * float(np.expm1(-before * mean))

    def expected(factor: float) -> float:
        return -float((weight * np.expm1(-factor * hazard)).sum()) - imagined * float(np.expm1(-factor * mean))

    low, high = _LEAST, _MOST
    for _ in range(_HALVINGS):
        middle = float(np.sqrt(low * high))
        if expected(middle) < target:
            low = middle
        else:
            high = middle
    return float(np.sqrt(low * high))
