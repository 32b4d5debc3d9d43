"""The prior of a population: what is known of a page's change rate before its first crawl, fitted to histories.

Rates on the web spread over four decades, and no simple law fits them. So the prior is a weight for every rate of a
grid, fitted by EM to the crawls of all pages (nonparametric empirical Bayes, after Laird 1978). Left alone, EM ends in
a few spikes; each pass is therefore followed by a light smoothing (Silverman et al. 1990), and a few pseudo-pages hold
the weights where the crawls say nothing.

**Evidence.** A crawl after a gap a that saw no change has probability e^{−Δa}, one that saw a change 1 − e^{−Δa}. The
unchanged crawls of a page count only by their total time, and changed ones with equal gaps only by their number. Pages
with equal evidence are computed once: on a regular schedule a million pages fall into a few hundred groups. A gap of 0
says nothing and is left out.

**Hosts** with enough pages get a prior of their own: a Dirichlet fit with n pseudo-pages distributed like the
population. Where hosts are alike, n should be large; where each has its own pace, small. So every other page of a
sample of hosts is predicted from its neighbours, and the n with the best prediction is used.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import kernel
from recrawl.learning.grid import (
    MOST_POINTS,
    POINTS_PER_DECADE,
    GridTable,
    RateGrid,
    RatePrior,
    add_changes,
    exponentials,
    grid_table,
    rate_grid,
)
from recrawl.learning.histories import Histories
from recrawl.learning.inputs import HostColumn, check_made, number_hosts
from recrawl.learning.population import Pull, fit_weights
from recrawl.pages import LARGEST, SMALLEST, Floats, Hosts
from recrawl.values.special import bits_of

Indices = NDArray[np.int64]

MIXED_GAPS = -1.0
"""The common gap of changed crawls whose gaps differ."""


PAGES_FITTED = 1 << 15
"""Larger populations are fitted to so many of their pages, drawn by a fixed seed: more pages tell hardly more."""

_PASSES = 300
_SMOOTHING = 0.03
_IMAGINARY_PAGES = 10.0
_SPANS_USED = 64

# A page watched for T tells next to nothing of rates below 0.02/T, and crawls g apart of rates above 10/g.
_LEAST_CHANGES_IN_SPAN = 0.02

_MOST_CHANGES_IN_GAP = 10.0

# Single outliers, such as one gap of thirty years, do not stretch the grid.
_RARE = 0.01

PAGES_FOR_HOST = 8
"""Hosts with so many crawled pages get a prior of their own."""

_HOST_PASSES = 50
_PULLS = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0)
_PAGES_FITTED = 4096
_HOSTS_SAMPLED = 256
_PAGES_SAMPLED = 256


class Evidence(NamedTuple):
    """Per page: total time of unchanged crawls, number of changed ones, and their gap if all have the same."""

    unchanged_time: Floats
    changes: Indices
    common_gap: Floats  # 0 without changes, MIXED_GAPS where gaps differ


class Groups(NamedTuple):
    """Pages that say the same: the first page of each group, and the group of each page."""

    first: Indices
    of_page: Indices


def evidence_of(histories: Histories) -> Evidence:
    """Sum up every page. O(observations)."""
    return summed_up(histories.offsets, histories.gaps, histories.changed)


def groups_of(evidence: Evidence, prior_rows: Indices) -> Groups:
    """Put pages together that say the same and have the same prior. O(pages)."""
    first, of_page, count = _grouped(evidence, prior_rows)
    return Groups(first[:count], of_page)


@kernel
def summed_up(offsets: Indices, gaps: Floats, changed: NDArray[np.bool_]) -> Evidence:
    """Sum up the pages between these offsets."""
    pages = len(offsets) - 1
    unchanged_time = np.empty(pages)
    changes = np.empty(pages, dtype=np.int64)
    common_gap = np.empty(pages)
    for page in range(pages):
        begin, end = offsets[page], offsets[page + 1]
        time = 0.0
        for row in range(begin, end):  # without a branch, so that it vectorises
            time += 0.0 if changed[row] else gaps[row]
        gap = 0.0
        for row in range(begin, end):
            if changed[row] and gaps[row] > 0.0:
                gap = gaps[row]
                break
        same = 0
        others = 0
        if gap > 0.0:
            for row in range(begin, end):
                same += changed[row] & (gaps[row] == gap)
                others += changed[row] & (gaps[row] != gap) & (gaps[row] != 0.0)
        unchanged_time[page] = time
        changes[page] = same + others
        common_gap[page] = gap if others == 0 else MIXED_GAPS
    return Evidence(unchanged_time, changes, common_gap)


@kernel
def _grouped(evidence: Evidence, prior_rows: Indices) -> tuple[Indices, Indices, int]:
    """Groups through an open hash table; pages with mixed gaps stand alone."""
    pages = len(evidence.changes)
    size = 16
    while size < 2 * pages:
        size *= 2
    table = np.full(size, -1, dtype=np.int64)
    first = np.empty(pages, dtype=np.int64)
    of_page = np.empty(pages, dtype=np.int64)
    count = 0
    for page in range(pages):
        slot = -1
        if evidence.common_gap[page] != MIXED_GAPS:
            slot = _hash(evidence, prior_rows, page) & (size - 1)
            while table[slot] >= 0 and not _same(evidence, prior_rows, first[table[slot]], page):
                slot = (slot + 1) & (size - 1)
            if table[slot] >= 0:
                of_page[page] = table[slot]
                continue
            table[slot] = count
        first[count] = page
        of_page[page] = count
        count += 1
    return first, of_page, count


@kernel
def _same(evidence: Evidence, prior_rows: Indices, one: int, other: int) -> bool:
    return bool(
        evidence.unchanged_time[one] == evidence.unchanged_time[other]
        and evidence.changes[one] == evidence.changes[other]
        and evidence.common_gap[one] == evidence.common_gap[other]
        and prior_rows[one] == prior_rows[other]
    )


@kernel
def _hash(evidence: Evidence, prior_rows: Indices, page: int) -> int:
    """Mix the numbers of a page; products wrap around, and the high bits hold the mixture."""
    mixed = bits_of(evidence.unchanged_time[page])
    mixed = (mixed ^ evidence.changes[page]) * 0x2545F4914F6CDD1D
    mixed = (mixed ^ (mixed >> 29) ^ bits_of(evidence.common_gap[page])) * 0x1B873593CC9E2D51
    mixed = (mixed ^ (mixed >> 31) ^ prior_rows[page]) * 0x2545F4914F6CDD1D
    return int(mixed >> 24)


class Rows(NamedTuple):
    """The observations of some pages, as in `Histories`."""

    offsets: NDArray[np.int64]
    gaps: Floats
    changed: NDArray[np.bool_]


def rows_of(histories: Histories, begin: int = 0, end: int | None = None) -> Rows:
    """The observations of the pages from `begin` to `end`, not copied: offsets still count from the first page."""
    stop = len(histories) if end is None else end
    return Rows(histories.offsets[begin : stop + 1], histories.gaps, histories.changed)


@kernel
def fill_log_likelihood(table: GridTable, rows: Rows, evidence: Evidence, page: int, out: Floats) -> None:
    """Write ln L at every rate of the grid for one page. O(points · (1 + changes)), O(points) if gaps are equal."""
    time = evidence.unchanged_time[page]
    for k in range(len(out)):
        out[k] = -time * table.rates[k]
    if evidence.common_gap[page] != MIXED_GAPS:
        if evidence.changes[page] > 0:
            add_changes(table, evidence.common_gap[page], float(evidence.changes[page]), out)
        return
    for row in range(rows.offsets[page], rows.offsets[page + 1]):
        if rows.changed[row] and rows.gaps[row] > 0.0:
            add_changes(table, rows.gaps[row], 1.0, out)


class Members(NamedTuple):
    """Pages of several hosts: those of host h are `pages[begins[h]:ends[h]]`."""

    pages: Indices
    begins: Indices
    ends: Indices


@kernel
def likelihoods(table: GridTable, rows: Rows, evidence: Evidence, pages: Indices) -> Floats:
    """The likelihood of each of these pages at the rates of the grid; the highest of a page is 1."""
    points = len(table.rates)
    out = np.empty((len(pages), points))
    for i in range(len(pages)):
        row = out[i]
        fill_log_likelihood(table, rows, evidence, pages[i], row)
        exponentials(row, row)
    return out


@kernel
def fit_each(table: GridTable, rows: Rows, evidence: Evidence, members: Members, pull: Pull, passes: int) -> Floats:
    """Fit weights to the pages of each host alone. O(passes · pages · points)."""
    out = np.empty((len(members.begins), len(table.rates)))
    for host in range(len(members.begins)):
        pages = members.pages[members.begins[host] : members.ends[host]]
        out[host] = fit_weights(likelihoods(table, rows, evidence, pages), np.ones(len(pages)), pull, passes)
    return out


@kernel
def foresight(table: GridTable, rows: Rows, evidence: Evidence, members: Members, pull: Pull, passes: int) -> float:
    """How well weights fitted to every other page of a host foresee its other pages: a sum of log-likelihoods."""
    total = 0.0
    for host in range(len(members.begins)):
        pages = members.pages[members.begins[host] : members.ends[host]]
        likelihood = likelihoods(table, rows, evidence, pages)
        fitted = likelihood[::2].copy()
        weights = fit_weights(fitted, np.ones(len(fitted)), pull, passes)
        for i in range(1, len(pages), 2):
            seen = 0.0
            for k in range(len(weights)):
                seen += likelihood[i, k] * weights[k]
            total += np.log(seen)
    return total


def fit_prior(histories: Histories, hosts: HostColumn | None = None, grid: RateGrid | None = None) -> RatePrior:
    """Fit the prior to the crawls of a population.

    Args:
        histories: crawls of the pages; pages without crawls say nothing and do no harm.
        hosts: the host of each page; without it there is one prior for all.
        grid: the rates to weigh; those that the crawls can tell apart if it is None.

    The same histories give the same prior. O(observations of the pages fitted + passes · grid · pages fitted), at
    most `PAGES_FITTED` pages for the population and a few thousand for a host.

    >>> from recrawl.learning.histories import read_histories
    >>> prior = fit_prior(read_histories(np.ones((50, 10)), np.arange(500).reshape(50, 10) % 10 == 0))
    >>> round(float(prior.weights.sum()), 9), round(float(prior.grid.rates[prior.weights.argmax()]), 2)
    (1.0, 0.11)
    """
    check_made(histories, Histories, "histories", "read_histories")
    if grid is not None:
        check_made(grid, RateGrid, "grid", "rate_grid")
    sample = _sampled(histories)
    grid = grid_for(sample) if grid is None else grid
    table = grid_table(grid)
    pull = Pull(base_weights(grid, sample), _IMAGINARY_PAGES, _SMOOTHING)
    evidence = evidence_of(sample)
    groups = groups_of(evidence, np.zeros(len(sample), dtype=np.int64))
    likelihood = likelihoods(table, rows_of(sample), evidence, groups.first)
    counts = np.bincount(groups.of_page, minlength=len(groups.first)).astype(np.float64)
    weights = fit_weights(likelihood, counts, pull, _PASSES)
    if hosts is None:
        return RatePrior(grid, weights, np.empty((0, grid.points)))
    host_weights, host_rows = fit_hosts(table, weights, histories, number_hosts(hosts, len(histories)))
    return RatePrior(grid, weights, host_weights, host_rows)


def base_weights(grid: RateGrid, histories: Histories) -> Floats:
    """Where weights start and are drawn to: even in the logarithm, fading where pages were not watched long enough.

    The weight of a rate Δ is the mean of √(ΔT/(1 + ΔT)) over the observation times T of the pages: a Jeffreys prior
    that fades where ΔT is small.
    """
    spans = observed_spans(histories)
    if not len(spans):
        return np.full(grid.points, 1 / grid.points)
    typical = np.quantile(spans, (np.arange(_SPANS_USED) + 0.5) / _SPANS_USED)
    expected = grid.rates[:, None] * typical
    weights = np.sqrt(expected / (1 + expected)).mean(axis=1)
    return np.asarray(weights / weights.sum())


def _sampled(histories: Histories) -> Histories:
    """At most `PAGES_FITTED` pages, drawn by a fixed seed, in their order."""
    if len(histories) <= PAGES_FITTED:
        return histories
    drawn = np.random.Generator(np.random.PCG64(0)).choice(len(histories), size=PAGES_FITTED, replace=False)
    return histories.pick(np.sort(drawn))


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
    widest = lowest * 10 ** ((MOST_POINTS - 2) / per_decade)
    return rate_grid(lowest, min(highest, widest), per_decade)


def observed_spans(histories: Histories) -> Floats:
    """How long each page was watched, for pages watched at all. O(observations)."""
    starts = histories.offsets[:-1][np.diff(histories.offsets) > 0]
    spans = np.add.reduceat(histories.gaps, starts) if len(starts) else np.zeros(0)
    return np.asarray(spans[spans > 0])


def fit_hosts(
    table: GridTable, weights: Floats, histories: Histories, hosts: Hosts
) -> tuple[Floats, dict[Hashable, int]]:
    """Weights of every host with enough crawled pages, one row each, and the row of each. O(passes · grid · pages)."""
    members, codes = _members(histories, hosts)
    evidence, rows = evidence_of(histories), rows_of(histories)
    pull = Pull(weights, _best_pull(table, rows, evidence, members, weights), 0.0)
    host_weights = fit_each(table, rows, evidence, _shortened(members, _PAGES_FITTED), pull, _HOST_PASSES)
    return host_weights, {hosts.names[code]: row for row, code in enumerate(codes)}


def _members(histories: Histories, hosts: Hosts) -> tuple[Members, list[int]]:
    """The crawled pages of every host that has enough of them, and the codes of those hosts."""
    crawled = np.flatnonzero(np.diff(histories.offsets) > 0)
    crawled = crawled[np.argsort(hosts.codes[crawled], kind="stable")]
    codes, begins, lengths = np.unique(hosts.codes[crawled], return_index=True, return_counts=True)
    enough = lengths >= PAGES_FOR_HOST
    members = Members(crawled, begins[enough], begins[enough] + lengths[enough])
    return members, codes[enough].tolist()


def _best_pull(table: GridTable, rows: Rows, evidence: Evidence, members: Members, weights: Floats) -> float:
    """How many imaginary pages foresee best; the most if hosts tell nothing."""
    if not len(members.begins):
        return _PULLS[-1]
    sample = np.unique(np.linspace(0, len(members.begins) - 1, _HOSTS_SAMPLED).astype(np.int64))
    few = _shortened(Members(members.pages, members.begins[sample], members.ends[sample]), _PAGES_SAMPLED)
    seen = [foresight(table, rows, evidence, few, Pull(weights, pull, 0.0), _HOST_PASSES) for pull in _PULLS]
    return _PULLS[int(np.argmax(seen))]


def _shortened(members: Members, most: int) -> Members:
    """At most so many pages of each host."""
    return members._replace(ends=np.minimum(members.ends, members.begins + most))
