"""The rates that a page's two memories point to, as weights on the grid of the prior.

The lasting memory is weighed against the prior. The short memory is weighed against the rate that the page may have
left: a turn is a jump of the rate by a factor of about twelve, five to thirty. A turned page is not a fresh page of
the population: against that it would take far more crawls to tell it from the page it was.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from recrawl.jit import inlined, kernel
from recrawl.learning.filter_gaps import GapMoments, two_gaps
from recrawl.learning.filter_memory import Memory, Recent
from recrawl.learning.likelihood import GridTable, add_changes, grid_table
from recrawl.learning.prior import RatePrior
from recrawl.pages import SMALLEST, Floats
from recrawl.values.special import exp_of_minus

_JUMP = math.log(12.0)
_JUMP_SPREAD = 0.8
_LEAST_WEIGHT = 1e-300
_NEGLIGIBLE = 300.0  # e^{−300} times any weight is a normal float, and those are quicker


class Law(NamedTuple):
    """What all pages share: the grid, priors by row, and how evidence fades per unit time.

    The first row is the prior of the population, then come those of hosts; the last weighs all rates alike. `doubt`
    is evidence for a turn that is asked for beyond the usual.
    """

    table: GridTable
    log_rates: Floats
    priors: Floats
    fading: float
    notices_turns: bool
    doubt: float


class Outlook(NamedTuple):
    """What a memory says: how likely the crawl was to see what it saw, and the mean logarithm of the rate before."""

    chance: float
    log_rate: float


def law_of(prior: RatePrior, memory: Memory, doubt: float = 0.0) -> Law:
    """Put a prior into the form that kernels read, and how much more than usual a turn must show. O(grid · hosts)."""
    priors = np.vstack([prior.weights, prior.host_weights, np.ones(prior.grid.points)])
    fading = math.log(2.0) / memory.half_life
    least = np.maximum(priors, _LEAST_WEIGHT)
    return Law(grid_table(prior.grid), prior.grid.log_rates, least, fading, memory.notices_turns, doubt)


@inlined
def fill_lasting(table: GridTable, time: float, gaps: GapMoments, out: Floats) -> None:
    """Write ln of the likelihood of the lasting memory at every rate, up to a constant. O(grid)."""
    for k in range(len(out)):
        out[k] = -time * table.rates[k]
    if gaps.number > 0.0:
        both = two_gaps(gaps)
        if both.share > 0.0:
            add_changes(table, max(both.longer, SMALLEST), gaps.number * both.share, out)
        add_changes(table, max(both.shorter, SMALLEST), gaps.number * (1.0 - both.share), out)


@inlined
def fill_recent(table: GridTable, recent: Recent, out: Floats) -> None:
    """Write ln of the weights that the jump and the short memory give the rates, up to a constant. O(grid)."""
    side = 1.0 if recent.rising else -1.0
    for k in range(len(out)):
        jump = side * (table.log_lowest + k * table.step - recent.log_rate_before)
        off = (jump - _JUMP) / _JUMP_SPREAD
        out[k] = -0.5 * off * off - recent.unchanged_time * table.rates[k]
    if recent.changes > 0.0:
        add_changes(table, max(recent.gap, SMALLEST), recent.changes, out)


@inlined
def fill_chances(rates: Floats, gap: float, changed: bool, out: Floats) -> None:
    """Write how likely each rate was to show after this gap what was seen. O(grid)."""
    if changed:
        for k in range(len(out)):
            out[k] = _change_chance(gap * rates[k])
    else:
        for k in range(len(out)):
            out[k] = exp_of_minus(min(gap * rates[k], _NEGLIGIBLE))


@kernel
def outlook(log_weights: Floats, chances: Floats, priors: Floats, row: int, log_rates: Floats) -> Outlook:
    """Average over the rates by their weights and a prior. O(grid)."""
    highest = log_weights[0]
    for k in range(1, len(log_weights)):  # three times as fast as the method
        highest = max(highest, log_weights[k])
    total = 0.0
    chance = 0.0
    log_rate = 0.0
    for k in range(len(log_weights)):
        weight = priors[row, k] * exp_of_minus(min(highest - log_weights[k], _NEGLIGIBLE))
        total += weight
        chance += weight * chances[k]
        log_rate += weight * log_rates[k]
    return Outlook(chance / total, log_rate / total)


@inlined
def _change_chance(x: float) -> float:
    """1 − e^{−x}, accurate for small x too."""
    return x - 0.5 * x * x if x < 1e-5 else 1.0 - exp_of_minus(min(x, _NEGLIGIBLE))
