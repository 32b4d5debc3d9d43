"""The policy `wic`: it takes the pages that would yield most now."""

from __future__ import annotations

import math

import numpy as np
import pytest
from small_tables import all_slots, set_limits, table_of

from recrawl.scheduling.policies.wic import Wic
from recrawl.scheduling.table.records import CAPTURES, FRESHNESS, HARMONIC, NO_COPY, ONCE, SOURCE, WINDOW


def test_the_policy_takes_what_would_yield_most_now() -> None:
    """Captured changes, sources, changes in a window, pages to be kept fresh, and a new page."""
    table = table_of(
        [3.0, 3.0, 3.0, 3.0, 3.0, 3.0],
        [0.5, 0.5, 1.5, 0.5, 0.5, 0.5],
        [FRESHNESS, SOURCE, WINDOW, FRESHNESS, HARMONIC, ONCE],
    )
    table.pages["flags"][0] = CAPTURES
    set_limits(table, [1], profit=1.0)
    policy = Wic(table, 1.0, 0)
    policy.place(all_slots(table), 0.0)
    stale = 1 - math.exp(-1.0)
    expected = np.array([6 * stale, 6 * stale, 4.5, 3 * stale, 3 * stale, 3 * math.exp(-1.0)])
    taken = policy.choose(2.0, 6, 6.0)
    assert taken.slots.tolist() == np.argsort(-expected, kind="stable").tolist()
    assert taken.values == pytest.approx(expected[taken.slots])


def test_a_page_without_a_copy_yields_as_much_as_one_never_crawled() -> None:
    table = table_of([3.0, 3.0, 3.0, 3.0, 0.0], [0.5, 0.5, 2.0, 0.0, 0.0], [FRESHNESS, SOURCE, WINDOW, SOURCE, SOURCE])
    table.pages["flags"][:5] = NO_COPY
    set_limits(table, [1, 3, 4], profit=1.0)
    policy = Wic(table, 1.0, 0)
    assert policy.worth(all_slots(table), 0.1).tolist() == [3.0, 6.0, 6.0, 1e300, 0.0]


def test_without_decay_captured_changes_pile_up() -> None:
    table = table_of([3.0, 3.0], [0.0, 0.0])
    table.pages["flags"][0] = CAPTURES
    assert Wic(table, 1.0, 0).worth(all_slots(table), 2.0).tolist() == [6.0, 0.0]
