"""Trust in signals, updated audit by audit in bounded memory.

The likelihood of trust needs unchanged audits only as sums. Of changed audits it needs amounts (time, expected signals,
signals), but one weighted audit can replace several with nearly the same amounts. So `TrustTracker` keeps a few points
per host; when there is one too many, it merges the two that lose least. As long as a host has had no more changes than
it has points, nothing is lost. Audits fade, so that the tracker notices a site that begins or ceases to be right.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.jit import exact, kernel
from recrawl.learning.hazard_fit import HazardProblems, fit_hazards
from recrawl.learning.inputs import check_amounts, check_codes, check_count, check_positive, check_table
from recrawl.learning.signal_history import check_kinds, read_signal_histories
from recrawl.learning.trust import Totals, Trust, imaginary_audits, scales_of, trust_of
from recrawl.pages import Floats

Singles = NDArray[np.float32]

# The columns of `sums` before those of each kind: audits, time, time of listening, audits with any signal.
AUDITS, GAPS, LISTENING, ANY_SIGNAL, FIRST_KIND = range(5)
_NOTHING = 1e-30


POINTS = 24
"""Changed audits remembered apart per host: enough to lose nothing that the noise would not drown."""

MEMORY = 1000.0
"""Audits of a host that count by default; older ones have faded."""

# The memory is in single precision: one audit with more or less than it can add up would spoil a host for good.
_SMALLEST_GAP = 1e-30
_LARGEST_AMOUNT = 1e15
_LEAST_PRECISION = 1e-6  # signals that are right more seldom are not heard


class ClusterState(NamedTuple):
    """What is remembered of each host.

    `amounts[host, point, cause]` with causes time, expected signals of each kind, signals of each kind; `weights` of
    the points; `against` the sums over unchanged audits; `sums` over all audits: the columns named above, then per
    kind expected signals, signals, and audits with a signal.
    """

    amounts: Singles
    weights: Singles
    against: Floats
    sums: Floats


class AuditBatch(NamedTuple):
    """Audits as they come in: host, amounts of each cause, time of listening, whether a change was seen."""

    host: NDArray[np.int64]
    amounts: Floats
    listening: Floats
    changed: NDArray[np.bool_]


def new_clusters(hosts: int, kinds: int, points: int) -> ClusterState:
    """Nothing is known of any host; one point is spare, for the newcomer before a merge."""
    causes = 1 + 2 * kinds
    return ClusterState(
        np.zeros((hosts, points + 1, causes), np.float32),
        np.zeros((hosts, points + 1), np.float32),
        np.zeros((hosts, causes)),
        np.zeros((hosts, FIRST_KIND + 3 * kinds)),
    )


@kernel
def remember(state: ClusterState, batch: AuditBatch, keep: float) -> None:
    """Take in audits, in order; each one fades all earlier ones of its host by the factor `keep`.

    O(points² + points · causes) per changed audit, O(points) per unchanged one; nothing is allocated per audit.
    """
    points, causes = state.amounts.shape[1:]
    logs = np.empty((points, causes))
    for row in range(batch.host.size):
        host = batch.host[row]
        if keep < 1.0:
            _fade(state.weights[host], keep)
            _fade(state.against[host], keep)
            _fade(state.sums[host], keep)
        _add_up(state.sums[host], batch.amounts[row], batch.listening[row])
        if batch.changed[row]:
            _add_point(state, host, batch.amounts[row], logs)
        else:
            for cause in range(causes):
                state.against[host, cause] += batch.amounts[row, cause]


@kernel
def _fade(amounts: Floats, keep: float) -> None:
    """Let amounts fade; next to nothing is nothing, since numbers that are hardly any are slow and never end."""
    for i in range(amounts.size):
        faded = amounts[i] * keep
        amounts[i] = faded if faded > _NOTHING else 0.0


@kernel
def _add_up(sums: Floats, amounts: Floats, listening: float) -> None:
    kinds = (amounts.size - 1) // 2
    sums[AUDITS] += 1.0
    sums[GAPS] += amounts[0]
    sums[LISTENING] += listening
    any_signal = 0.0
    for kind in range(kinds):
        heard = amounts[1 + kinds + kind]
        sums[FIRST_KIND + kind] += amounts[1 + kind]
        sums[FIRST_KIND + kinds + kind] += heard
        if heard > 0.0:
            sums[FIRST_KIND + 2 * kinds + kind] += 1.0
            any_signal = 1.0
    sums[ANY_SIGNAL] += any_signal


@kernel
def _add_point(state: ClusterState, host: int, amounts: Floats, logs: Floats) -> None:
    """Put the audit in a free place; if it is the last one, merge two points to free another."""
    points = state.weights.shape[1]
    place = 0
    while state.weights[host, place] > 0.0:
        place += 1
    state.weights[host, place] = 1.0
    for cause in range(amounts.size):
        state.amounts[host, place, cause] = amounts[cause]
    if place < points - 1:
        return
    mean_gap = state.sums[host, GAPS] / state.sums[host, AUDITS]
    _take_logs(state.amounts[host], mean_gap, logs)
    first, second = _nearest_pair(state.weights[host], logs)
    _merge(state, host, first, second)


@kernel
def _take_logs(amounts: Singles, mean_gap: float, logs: Floats) -> None:
    """Place points on scales where equal steps matter about equally: near 0 absolute, beyond it relative."""
    points, causes = amounts.shape
    for point in range(points):
        logs[point, 0] = math.log(amounts[point, 0] + 0.05 * mean_gap + 1e-300)
        for cause in range(1, causes):
            logs[point, cause] = math.log(amounts[point, cause] + 0.4)


@kernel
def _nearest_pair(weights: Singles, logs: Floats) -> tuple[int, int]:
    """The pair whose merging moves the least weight the least way."""
    points, causes = logs.shape
    best, first, second = math.inf, 0, 1
    for a in range(1, points):
        for b in range(a):
            distance = 0.0
            for cause in range(causes):
                distance += (logs[a, cause] - logs[b, cause]) ** 2
            distance *= weights[a] * weights[b] / (weights[a] + weights[b])
            if distance < best:
                best, first, second = distance, b, a
    return first, second


@exact
def _merge(state: ClusterState, host: int, first: int, second: int) -> None:
    """Merge the second point into the first, and move the last point to where the second was."""
    weights, amounts = state.weights[host], state.amounts[host]
    total = weights[first] + weights[second]
    last = weights.size - 1
    for cause in range(amounts.shape[1]):
        moment = weights[first] * amounts[first, cause] + weights[second] * amounts[second, cause]
        amounts[first, cause] = moment / total
        amounts[second, cause] = amounts[last, cause]
    weights[first] = total
    weights[second] = weights[last]
    weights[last] = 0.0


class HostMemory(NamedTuple):
    """What a tracker remembers of one host, to be kept: see `ClusterState`; `amounts` and `weights` of used points."""

    amounts: Floats
    weights: Floats
    against: Floats
    sums: Floats


class TrustTracker:
    """Trust in the signals of many hosts, kept up to date in O(1) per audit.

    Args:
        hosts: how many hosts; they are numbered from 0.
        kinds: names of the kinds of signal.
        memory: about how many of its latest audits count for a host; infinite if nothing is to fade.
        prior: how many audits the belief that signals are useless is worth.
        delay: signals within this time after a crawl were not counted (see `signal_histories_from_log`).

    >>> tracker = TrustTracker(hosts=2, kinds=["sitemap"])
    >>> tracker.observe([0] * 40, [1.0] * 40, [1, 0] * 20, [[1], [0]] * 20)
    >>> trust = tracker.trust()
    >>> bool(trust.precision[0, 0] > 0.9), trust.precision[1, 0].item()
    (True, 0.0)
    """

    def __init__(
        self,
        hosts: int,
        kinds: Sequence[Hashable],
        *,
        memory: float = MEMORY,
        prior: float = 1.0,
        delay: float = 0.0,
    ) -> None:
        self.kinds = check_kinds(kinds)
        self.memory = check_positive(memory, "memory", may_be_infinite=True)
        if self.memory < 1:
            raise InvalidInput(f"is {memory!r}, but at least 1 audit must count", field="memory")
        self.prior = check_positive(prior, "prior", may_be_zero=True)
        self.delay = check_positive(delay, "delay", may_be_zero=True)
        self._state = new_clusters(check_count(hosts, "hosts"), len(self.kinds), POINTS)

    def __len__(self) -> int:
        return len(self._state.against)

    @property
    def bytes_per_host(self) -> int:
        """Memory that a host takes, however many audits it has had."""
        return sum(column.nbytes for column in self._state) // max(len(self), 1)

    def observe(self, hosts: Any, gaps: Any, changed: Any, counts: Any, expected: Any = None) -> None:
        """Take in audits. O(1) each; audits of one host count in the order given.

        Args:
            hosts: number of the host of each audit.
            gaps: time since the crawl before.
            changed: whether the crawl saw a change, 0 or 1.
            counts: signals heard in between, one column per kind.
            expected: signals that the page usually has in such a time, of the same form. Without it a signal that
                merely marks the busy pages of a host looks telling.
        """
        codes = check_codes(hosts, "hosts", len(self))
        times = check_amounts(gaps, "gaps", len(codes), smallest=_SMALLEST_GAP, largest=_LARGEST_AMOUNT)
        audits = read_signal_histories(times, changed, counts, self.kinds)
        shape = len(codes), len(self.kinds)
        given = np.zeros(shape) if expected is None else expected
        usual = check_table(given, "expected", shape, largest=_LARGEST_AMOUNT)
        amounts = np.concatenate([audits.gaps[:, None], usual, audits.counts], axis=1)
        told = audits.telling()
        batch = AuditBatch(
            codes[told], amounts[told], np.maximum(audits.gaps - self.delay, 0.0)[told], audits.changed[told]
        )
        remember(self._state, batch, 1.0 - 1.0 / self.memory)

    def grow(self, hosts: int | None = None, kinds: Sequence[Hashable] = ()) -> None:
        """Make room for so many hosts in all, and for more kinds, which were not heard so far. O(hosts)."""
        size = len(self) if hosts is None else max(check_count(hosts, "hosts"), len(self))
        wider = check_kinds([*self.kinds, *kinds])
        if size == len(self) and wider == self.kinds:
            return
        old, had, has, rows = self._state, len(self.kinds), len(wider), len(self)
        self.kinds, self._state = wider, new_clusters(size, has, POINTS)
        causes = [0, *range(1, 1 + had), *range(1 + has, 1 + has + had)]
        sums = [*range(FIRST_KIND), *(FIRST_KIND + part * has + kind for part in range(3) for kind in range(had))]
        self._state.amounts[:rows, :, causes] = old.amounts
        self._state.weights[:rows] = old.weights
        self._state.against[:rows, causes] = old.against
        self._state.sums[:rows, sums] = old.sums

    def memory_of(self, host: int) -> HostMemory:
        """What is remembered of a host, for `put_back`. O(points · kinds)."""
        (code,) = check_codes([host], "host", len(self))
        state, used = self._state, self._state.weights[code] > 0
        used[-1] = False
        return HostMemory(
            state.amounts[code][used].astype(np.float64),
            state.weights[code][used].astype(np.float64),
            state.against[code].copy(),
            state.sums[code].copy(),
        )

    def put_back(self, host: int, memory: HostMemory) -> None:
        """Go on with what `memory_of` gave of a host, which is forgotten before. O(points · kinds)."""
        (code,) = check_codes([host], "host", len(self))
        state = self._state
        causes, points = state.against.shape[1], len(memory.weights)
        shapes = [column.shape for column in memory]
        if shapes != [(points, causes), (points,), (causes,), (state.sums.shape[1],)] or points > POINTS:
            raise InvalidInput(
                f"has the shapes {shapes}, which are not those of {len(self.kinds)} kinds", field="memory"
            )
        for name, column in zip(memory._fields, memory, strict=True):
            if not ((column >= 0) & (column <= _LARGEST_AMOUNT)).all():
                raise InvalidInput(f"has {name} that no audits add up to", field="memory")
        state.amounts[code] = 0
        state.weights[code] = 0
        state.amounts[code, :points] = memory.amounts
        state.weights[code, :points] = memory.weights
        state.against[code] = memory.against
        state.sums[code] = memory.sums

    def trust(self, hosts: Any = None) -> Trust:
        """Fit trust in some hosts, or in all. O(points · kinds²) per host, whatever it has seen."""
        codes = np.arange(len(self)) if hosts is None else check_codes(hosts, "hosts", len(self))
        everything = self._state
        state = ClusterState(
            everything.amounts[codes], everything.weights[codes], everything.against[codes], everything.sums[codes]
        )
        totals = _totals(state.sums)
        fit = fit_hazards(_problems(state, totals, self.prior))
        return trust_of(fit, totals, codes.tolist(), self.kinds)


def usual_signals(ever: Floats, listening: Floats | float, gaps: Floats | float) -> Floats:
    """Signals that pages usually have in gaps of this length: `expected` of `observe`.

    Half a signal more than was ever heard, so that a page that had one signal need not have many.

    Args:
        ever: signals heard in all, those of the audit itself included.
        listening: the time they were heard in.
        gaps: of the audits.
    """
    usual: Floats = (ever + 0.5) / listening * gaps
    return usual


def qualities(trust: Trust) -> tuple[Floats, Floats]:
    """Recall and precision as a scheduler takes them: a kind that tells nothing has recall 0. Hosts by kinds."""
    telling = trust.precision > _LEAST_PRECISION
    return np.where(telling, trust.recall, 0.0), np.maximum(trust.precision, _LEAST_PRECISION)


def _totals(sums: Floats) -> Totals:
    expected, counts, signalled = np.split(sums[:, FIRST_KIND:], 3, axis=1)
    return Totals(sums[:, AUDITS], sums[:, GAPS], sums[:, LISTENING], expected, counts, signalled, sums[:, ANY_SIGNAL])


def _problems(state: ClusterState, totals: Totals, prior: float) -> HazardProblems:
    """Scale the points and add the imaginary audits."""
    mean_gap, mean_expected, mean_count = scales_of(totals)
    scale = np.concatenate([mean_gap[:, None], mean_expected, mean_count], axis=1)
    against = state.against / scale
    silent_change, weight = imaginary_audits(against, totals, prior)
    # The spare point of each host is free between calls: it takes the imaginary audit.
    amounts = state.amounts / scale[:, None, :]
    weights = state.weights.astype(np.float64)
    amounts[:, -1] = silent_change
    weights[:, -1] = weight
    used = weights > 0
    offsets = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
    return HazardProblems(offsets, amounts[used], weights[used], against)
