"""A bounded memory of audits: a few weighted points instead of every crawl that saw a change.

The likelihood of trust needs unchanged audits only as sums. Of changed audits it needs amounts (time, expected signals,
signals), but audits with nearly the same amounts are as good as one audit with a weight. So each host keeps a few
points; when there is one too many, the two that lose least by it are merged. As long as a host has seen no more changes
than it has points, nothing is lost at all.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import exact, kernel
from recrawl.pages import Floats

Singles = NDArray[np.float32]

# The columns of `sums` before those of each kind: audits, time, time of listening, audits with any signal.
AUDITS, GAPS, LISTENING, ANY_SIGNAL, FIRST_KIND = range(5)
_NOTHING = 1e-30


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
