"""Crawls enter the filter, and pages that turned from quiet to busy, or back, are noticed.

Plain forgetting cannot do both: what lets go of old evidence within eight crawls never knows a steady page well.
So a page has two memories, and evidence weighs one against the other (Page's cumulative sum, with both sides
learning): each crawl adds ln(chance by the short memory / chance by the lasting one), less a little. While the sum
is 0 the short memory is empty; above, it holds the crawls since the page seems to have turned. A change may start it
for a rise, an unchanged crawl for a fall, whenever that explains more than what it holds.

Much evidence makes the estimate move over to the short memory. If the sum falls back to 0 it was a false alarm, and
nothing is lost, for the lasting memory took those crawls too. Still more evidence, and the lasting memory is dropped;
but not before the short one knows the rate without leaning on what a turn looks like.

How much is much depends on what a mistake costs. As it is, a turn is noticed within eight crawls and a run of luck is
now and then taken for one. Who would rather wait asks for more evidence: each unit of `Law.doubt` makes mistakes e
times rarer.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import inlined, kernel
from recrawl.learning.filter_memory import (
    Recent,
    clear_short_memory,
    fade,
    lasting_gaps,
    recent_of,
    remember,
    remember_shortly,
    trust_short_memory,
)
from recrawl.learning.filter_state import EVIDENCE_UNITS, LOG_RATE_UNITS, FilterState, PageState
from recrawl.learning.filter_weights import Law, Outlook, fill_chances, fill_lasting, fill_recent, outlook
from recrawl.pages import Floats

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
