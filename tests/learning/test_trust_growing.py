"""A tracker of trust that grows with hosts and kinds knows the same as one that was large from the start."""

from __future__ import annotations

import numpy as np
import pytest

from recrawl.errors import InvalidInput
from recrawl.learning.trust_tracker import HostMemory, TrustTracker


def audits(rng: np.random.Generator, count: int, kinds: int) -> tuple[np.ndarray, ...]:
    heard = rng.poisson(0.7, (count, kinds))
    chance = -np.expm1(-(0.3 + heard @ np.linspace(0.2, 2.0, kinds)))
    return rng.uniform(0.5, 2.0, count), rng.random(count) < chance, heard, np.full((count, kinds), 0.7)


def test_growing_changes_nothing_that_was_learned() -> None:
    rng = np.random.default_rng(1)
    small, large = TrustTracker(1, ["feed"]), TrustTracker(3, ["feed", "sitemap"])
    gaps, changed, heard, usual = audits(rng, 60, 1)
    nothing = np.zeros((60, 1))
    small.observe([0] * 60, gaps, changed, heard, usual)
    large.observe([0] * 60, gaps, changed, np.hstack([heard, nothing]), np.hstack([usual, nothing]))
    before = small.trust()
    small.grow(3, ["sitemap"])
    assert (len(small), small.kinds) == (3, ("feed", "sitemap"))
    assert small.trust([0]).precision[0, 0] == pytest.approx(before.precision[0, 0])
    gaps, changed, heard, usual = audits(rng, 200, 2)
    hosts = rng.integers(0, 3, 200)
    for tracker in (small, large):
        tracker.observe(hosts, gaps, changed, heard, usual)
    np.testing.assert_allclose(small.trust().precision, large.trust().precision, rtol=1e-9)
    np.testing.assert_allclose(small.trust().recall, large.trust().recall, rtol=1e-9)
    small.grow(2)  # never smaller
    assert len(small) == 3


def test_the_memory_of_a_host_goes_to_another_tracker() -> None:
    rng = np.random.default_rng(2)
    one, other = TrustTracker(2, ["feed", "sitemap"]), TrustTracker(5, ["feed", "sitemap"])
    gaps, changed, heard, usual = audits(rng, 300, 2)
    one.observe(rng.integers(0, 2, 300), gaps, changed, heard, usual)
    other.put_back(4, one.memory_of(1))
    np.testing.assert_allclose(other.trust([4]).precision, one.trust([1]).precision, rtol=1e-6)
    assert other.trust([0]).audits[0] == 0


@pytest.mark.parametrize("field", range(4))
@pytest.mark.parametrize("wrong", [-1.0, float("nan"), float("inf"), 1e30])
def test_a_memory_that_cannot_be_is_refused(field: int, wrong: float) -> None:
    tracker = TrustTracker(1, ["feed"])
    tracker.observe([0] * 4, [1.0] * 4, [1, 0, 1, 0], [[1], [0], [2], [0]])
    columns = [column.copy() for column in tracker.memory_of(0)]
    columns[field].reshape(-1)[0] = wrong
    with pytest.raises(InvalidInput, match="memory"):
        tracker.put_back(0, HostMemory(*columns))
    with pytest.raises(InvalidInput, match="shapes"):
        TrustTracker(1, ["feed", "sitemap"]).put_back(0, tracker.memory_of(0))
