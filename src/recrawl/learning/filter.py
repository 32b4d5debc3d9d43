"""Kernels of the online filter: add crawls to the state of pages, detect pages that turned, and read beliefs.

**Two windows.** Plain forgetting cannot both let go of old evidence within eight crawls and know a steady page well.
So each page has a long and a short window (`filter_state.py`). A CUSUM statistic compares their likelihoods: each crawl
adds ln(probability by the short window / probability by the long one), less a drift. While the sum is 0 the short
window is empty; above 0 it holds the crawls since the page may have turned. A changed crawl may start a short window
for a rise, an unchanged crawl for a fall, if that explains more than the present short window.

The long window is weighed against the prior, the short window against the rate before the turn: a turn is a jump of
the rate by a factor of about twelve, five to thirty. The prior of the population would need far more crawls to tell the
turned page from the page before.

Much evidence moves the estimate to the short window. If the sum falls back to 0 it was a false alarm, and nothing is
lost, since the long window took those crawls too. Still more evidence, and enough crawls of both kinds, replace the
long window. By default a jump is detected within eight crawls, with some false alarms; each unit of `Law.doubt` makes
false alarms e times rarer.

**Beliefs** are the five numbers of the batch posterior, and the Gamma distribution with the same mean and variance: its
shape and exposure are what `values/uncertain.py` takes. Values by that Gamma are on average within 1 % of those by the
whole posterior for pages crawled daily 14 times and then left alone for ten days, 10 % if left alone for a hundred.
Matching the mean logarithm instead of the variance is worse.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import inlined, kernel
from recrawl.learning.filter_state import (
    EVIDENCE_UNITS,
    LOG_RATE_UNITS,
    FilterState,
    GapMoments,
    Memory,
    PageState,
    Recent,
    clear_short_memory,
    fade,
    lasting_gaps,
    recent_of,
    remember,
    remember_shortly,
    trust_short_memory,
    two_gaps,
)
from recrawl.learning.grid import (
    NODES,
    NUMBERS,
    GridTable,
    Nodes,
    RatePrior,
    add_changes,
    exponentials,
    grid_table,
    place_nodes,
    share_of_nodes,
    sum_up,
)
from recrawl.pages import SMALLEST, Floats
from recrawl.values.special import exp_of_minus

_JUMP = math.log(12.0)
_JUMP_SPREAD = 0.8
_LEAST_WEIGHT = 1e-300
_NEGLIGIBLE = 300.0  # e^{−300} times any weight is a normal float, and those are quicker


# Chosen on simulated turns and steady pages (docs/learning-filter.md). Evidence is in natural logarithms of odds.
# The drift is taken off for each change that the busier memory expects. Without it, evidence that neither rises nor
# falls would keep stale crawls in the short memory.
_DRIFT = 0.2
_RISE_HALF_BELIEVED = 3.3  # a page that turned busy is missed more dearly than one that turned quiet
_FALL_HALF_BELIEVED = 5.0
_STEEPNESS = 6.0
_CERTAIN = 6.0
_MOST_EVIDENCE = 9.0  # so that a page that turns back is not held up for long
_CRAWLS_OF_EACH_KIND = 3.0  # changed and unchanged, that the short memory must hold to stand alone

BELIEF_NUMBERS = NUMBERS + 2
"""Mean, median, low, high, mean of the logarithm, then shape and exposure of the Gamma distribution."""

_LEAST_SHARE = 1e-3  # less is nothing
_LEAST_VARIANCE = 1e-9  # relative to the square of the mean


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


@kernel
def update(state: FilterState, law: Law, page: int, gap: float, changed: bool) -> None:
    """Take in one crawl: the time since the crawl before it, and whether it saw a change. O(grid), no history."""
    update_many(state, law, np.array([page]), np.array([gap]), np.array([changed]))


@kernel
def update_many(
    state: FilterState, law: Law, pages: NDArray[np.int64], gaps: Floats, changed: NDArray[np.bool_]
) -> None:
    """Take in crawls in the order given; a page may come more than once. O(crawls · grid)."""
    # Whatever holds arrays is unpacked here and not handed on: counting references would take a third of the time.
    table, priors, log_rates = law.table, law.priors, law.log_rates
    even = len(priors) - 1
    chances, weights = np.empty(len(log_rates)), np.empty(len(log_rates))
    for i in range(len(pages)):
        page, gap, saw_change = state[pages[i]], gaps[i], changed[i]
        if gap == 0.0:  # says nothing
            continue
        if law.fading > 0.0:
            fade(page, math.exp(-law.fading * gap))
        evidence = 0.0
        if law.notices_turns:
            fill_chances(table.rates, gap, saw_change, chances)
            fill_lasting(table, np.float64(page["unchanged_time"]), lasting_gaps(page), weights)
            lasting = outlook(weights, chances, priors, page["prior_row"], log_rates)
            if page["turn_evidence"] != 0:
                fill_recent(table, recent_of(page), weights)
                recent = outlook(weights, chances, priors, even, log_rates)
                evidence = _continued(page, recent.chance, lasting.chance, saw_change)
            if evidence < -math.log(lasting.chance):  # else a turn just now could not explain more
                fill_recent(table, Recent(lasting.log_rate, saw_change, 0.0, 0.0, 0.0), weights)
                fresh = outlook(weights, chances, priors, even, log_rates)
                evidence = _restarted(page, evidence, fresh.chance, lasting, saw_change)
        _remember_both(page, gap, saw_change, evidence, law.doubt)


@inlined
def turned_share(page: PageState, doubt: float) -> float:
    """How far the estimate has moved over to the short memory."""
    evidence = page["turn_evidence"] / EVIDENCE_UNITS
    if evidence == 0.0:
        return 0.0
    half_believed = _RISE_HALF_BELIEVED if evidence > 0.0 else _FALL_HALF_BELIEVED
    return 1.0 / (1.0 + math.exp(-_STEEPNESS * (abs(evidence) - half_believed - doubt)))


@inlined
def _continued(page: PageState, recent_chance: float, lasting_chance: float, changed: bool) -> float:
    """Evidence for the turn that the short memory holds, with a crawl more."""
    rising = page["turn_evidence"] > 0
    before: float = abs(page["turn_evidence"]) / EVIDENCE_UNITS
    return max(before + _gain(recent_chance, lasting_chance, changed, rising), 0.0)


@inlined
def _restarted(page: PageState, evidence: float, fresh_chance: float, lasting: Outlook, changed: bool) -> float:
    """Evidence for a turn just before this crawl, if that is more; then the short memory starts with it."""
    started = _gain(fresh_chance, lasting.chance, changed, changed)
    if started <= evidence:
        return evidence
    clear_short_memory(page)
    page["log_rate_before"] = round(lasting.log_rate * LOG_RATE_UNITS)
    page["turn_evidence"] = 1 if changed else -1  # the side; how much is set with the crawl
    return started


@inlined
def _gain(recent_chance: float, lasting_chance: float, changed: bool, rising: bool) -> float:
    """What a crawl adds to the evidence, from how likely the two memories held what it saw."""
    busier = recent_chance if rising else lasting_chance
    return math.log(recent_chance / lasting_chance) - _DRIFT * (busier if changed else 1.0 - busier)


@inlined
def _remember_both(page: PageState, gap: float, changed: bool, evidence: float, doubt: float) -> None:
    """Put a crawl into the lasting memory, and into the short one if there is evidence for a turn."""
    remember(page, gap, changed)
    if evidence <= 0.0:
        if page["turn_evidence"] != 0:
            clear_short_memory(page)
        return
    remember_shortly(page, gap, changed)
    units = max(round(min(evidence, _MOST_EVIDENCE + doubt) * EVIDENCE_UNITS), 1)
    page["turn_evidence"] = units if page["turn_evidence"] > 0 else -units
    of_each_kind = min(page["recent_changes"], page["recent_unchanged_time"] / gap)
    if evidence >= _CERTAIN + doubt and of_each_kind >= _CRAWLS_OF_EACH_KIND:
        trust_short_memory(page)


@kernel
def believe(state: FilterState, law: Law, page: int, tail: float) -> Floats:
    """The numbers of one page, with `tail` of the weight below its low end and as much above its high. O(grid)."""
    numbers: Floats = believe_many(state, law, np.array([page]), tail)[0]
    return numbers


@kernel
def believe_many(state: FilterState, law: Law, pages: NDArray[np.int64], tail: float) -> Floats:
    """The numbers of these pages, one row each. O(pages · grid)."""
    points = len(law.log_rates)
    likelihood = np.empty(points)
    grid = Nodes(law.log_rates, law.table.rates, np.empty(points))
    fine = Nodes(np.empty(NODES), np.empty(NODES), np.empty(NODES))
    by_nodes = np.empty(BELIEF_NUMBERS)
    out = np.empty((len(pages), BELIEF_NUMBERS))
    for i in range(len(pages)):
        page = state[pages[i]]
        prior = law.priors[page["prior_row"]]
        fill_lasting(law.table, np.float64(page["unchanged_time"]), lasting_gaps(page), likelihood)
        turned = turned_share(page, law.doubt)
        has_turned = turned > _LEAST_SHARE
        on_nodes = 0.0 if has_turned else share_of_nodes(likelihood)
        if on_nodes < 1.0:
            exponentials(likelihood, grid.weights)
            for k in range(points):
                grid.weights[k] *= prior[k]
            if has_turned:
                fill_recent(law.table, recent_of(page), likelihood)
                exponentials(likelihood, likelihood)
                _mix(grid.weights, likelihood, turned)
            _sum_up_all(grid, tail, out[i])
        if on_nodes > 0.0:
            place_nodes(law.table, likelihood, prior, fine)
            _sum_up_all(fine, tail, by_nodes)
            for k in range(BELIEF_NUMBERS):
                out[i, k] = by_nodes[k] if on_nodes == 1.0 else out[i, k] + on_nodes * (by_nodes[k] - out[i, k])
    return out


@kernel
def _sum_up_all(nodes: Nodes, tail: float, out: Floats) -> None:
    """Write the numbers of one page. O(nodes)."""
    sum_up(nodes, tail, out[:NUMBERS])
    mean = out[0]
    total = 0.0
    squares = 0.0
    for k in range(len(nodes.weights)):
        off = nodes.rates[k] / mean - 1.0
        total += nodes.weights[k]
        squares += nodes.weights[k] * off * off
    out[5] = 1.0 / max(squares / total, _LEAST_VARIANCE)
    out[6] = out[5] / mean


@kernel
def _mix(weights: Floats, others: Floats, share: float) -> None:
    """Mix a share of other weights into these."""
    total = other_total = 0.0
    for k in range(len(weights)):
        total += weights[k]
        other_total += others[k]
    ours, theirs = (1.0 - share) / total, share / other_total
    for k in range(len(weights)):
        weights[k] = ours * weights[k] + theirs * others[k]
