"""The grid of change rates on which priors and posteriors live: evenly spaced in the logarithm.

Three numbers define a grid, so it is small, hashable and cheap to send. Rates are per unit time of the caller's
choice. Pure; loads no compiler.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from recrawl.errors import InvalidInput
from recrawl.learning.histories import Histories
from recrawl.learning.inputs import check_count, check_positive
from recrawl.pages import LARGEST, SMALLEST, Floats

POINTS_PER_DECADE = 8

# A page watched for T tells next to nothing of rates below 0.02/T, and crawls g apart of rates above 10/g.
_LEAST_CHANGES_IN_SPAN = 0.02
_MOST_CHANGES_IN_GAP = 10.0
_MOST_POINTS = 512
# Single outliers, such as one gap of thirty years, do not stretch the grid.
_RARE = 0.01


@dataclass(frozen=True, slots=True)
class RateGrid:
    """Change rates `lowest · e^{step·k}`, k = 0 … points − 1.

    >>> RateGrid(lowest=0.01, step=math.log(10), points=4).rates.round(6).tolist()
    [0.01, 0.1, 1.0, 10.0]
    """

    lowest: float
    step: float
    points: int

    def __post_init__(self) -> None:
        check_positive(self.lowest, "lowest")
        check_positive(self.step, "step")
        check_count(self.points, "points", least=2, most=_MOST_POINTS)
        if not SMALLEST <= self.lowest <= LARGEST:
            raise InvalidInput(f"is {self.lowest!r}, but must be a rate above 0", field="lowest")
        if not 0 < self.step <= math.log(LARGEST):
            raise InvalidInput(f"is {self.step!r}, but must be above 0", field="step")
        if math.log(self.lowest) + self.step * (self.points - 1) > math.log(LARGEST):
            raise InvalidInput(f"is {self.points!r}, which ends in rates above {LARGEST:g}", field="points")

    @property
    def log_rates(self) -> Floats:
        """Natural logarithms of the rates, rising. O(points)."""
        return math.log(self.lowest) + self.step * np.arange(self.points, dtype=np.float64)

    @property
    def rates(self) -> Floats:
        """The rates, rising. O(points)."""
        rates: Floats = np.exp(self.log_rates)
        return rates

    @property
    def highest(self) -> float:
        """The last rate."""
        return self.lowest * math.exp(self.step * (self.points - 1))


def rate_grid(lowest: float, highest: float, per_decade: int = POINTS_PER_DECADE) -> RateGrid:
    """A grid from `lowest` to `highest` or a little more, with so many points per factor of ten.

    >>> rate_grid(0.001, 10.0).points
    33
    """
    lowest, highest = check_positive(lowest, "lowest"), check_positive(highest, "highest")
    step = math.log(10) / check_count(per_decade, "per_decade", least=1, most=_MOST_POINTS)
    points = math.ceil(math.log(highest / lowest) / step - 1e-9) + 1
    return RateGrid(lowest, step, max(2, points))


def grid_for(histories: Histories, per_decade: int = POINTS_PER_DECADE) -> RateGrid:
    """The grid of all rates that these histories can tell apart; their outermost hundredths do not count.

    O(observations). Histories without a single gap above 0 get the grid of one crawl after one unit of time.

    >>> from recrawl.learning.histories import read_histories
    >>> grid = grid_for(read_histories(np.full((2, 10), 1.0), np.zeros((2, 10), dtype=bool)))
    >>> round(grid.lowest, 6), grid.highest >= 10
    (0.002, True)
    """
    spans = observed_spans(histories)
    gaps = histories.gaps[histories.gaps > 0]
    longest = float(np.quantile(spans, 1 - _RARE)) if len(spans) else 1.0
    shortest = float(np.quantile(gaps, _RARE)) if len(gaps) else 1.0
    lowest = min(max(_LEAST_CHANGES_IN_SPAN / longest, SMALLEST), LARGEST / 1e3)
    highest = min(max(_MOST_CHANGES_IN_GAP / shortest, lowest), LARGEST)
    widest = lowest * 10 ** ((_MOST_POINTS - 2) / per_decade)
    return rate_grid(lowest, min(highest, widest), per_decade)


def observed_spans(histories: Histories) -> Floats:
    """How long each page was watched, for pages watched at all. O(observations)."""
    starts = histories.offsets[:-1][np.diff(histories.offsets) > 0]
    spans = np.add.reduceat(histories.gaps, starts) if len(starts) else np.zeros(0)
    return np.asarray(spans[spans > 0])
