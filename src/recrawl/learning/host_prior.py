"""Priors of hosts: pages of one site often change alike, and how far that goes is measured.

The weights of a host are fitted to its pages and to so many imaginary ones that follow the population (a Dirichlet
prior). How many those should be is a property of the crowd of hosts: where hosts are alike, many; where each has its
own pace, few. So every other page of a sample of hosts is foreseen from its neighbours, and the number that foresees
best is taken.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from recrawl.learning.em import Members, Pull, fit_each, foresight
from recrawl.learning.evidence import Evidence, evidence_of
from recrawl.learning.histories import Histories
from recrawl.learning.likelihood import GridTable, Rows, rows_of
from recrawl.pages import Floats, Hosts

PAGES_FOR_HOST = 8
"""Hosts with so many crawled pages get a prior of their own."""

_PASSES = 50
_PULLS = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0)
_PAGES_FITTED = 4096
_HOSTS_SAMPLED = 256
_PAGES_SAMPLED = 256


def fit_hosts(
    table: GridTable, weights: Floats, histories: Histories, hosts: Hosts
) -> tuple[Floats, dict[Hashable, int]]:
    """Weights of every host with enough crawled pages, one row each, and the row of each. O(passes · grid · pages)."""
    members, codes = _members(histories, hosts)
    evidence, rows = evidence_of(histories), rows_of(histories)
    pull = Pull(weights, _best_pull(table, rows, evidence, members, weights), 0.0)
    host_weights = fit_each(table, rows, evidence, _shortened(members, _PAGES_FITTED), pull, _PASSES)
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
    seen = [foresight(table, rows, evidence, few, Pull(weights, pull, 0.0), _PASSES) for pull in _PULLS]
    return _PULLS[int(np.argmax(seen))]


def _shortened(members: Members, most: int) -> Members:
    """At most so many pages of each host."""
    return members._replace(ends=np.minimum(members.ends, members.begins + most))
