"""The online filter: as right as the batch posterior, awake to turns, small, and strict about what it is fed."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import digamma
from slow_filter import OneGamma, SlowFilter

from recrawl.bench.learning_filter import GridOfWeights, population_prior, shares_noticed
from recrawl.bench.learning_histories import Schedule, draw_histories
from recrawl.errors import InvalidInput
from recrawl.learning.filter import believe, believe_many, fill_lasting, law_of, update, update_many
from recrawl.learning.filter_state import (
    FOREVER,
    PAGE_STATE,
    GapMoments,
    Memory,
    empty_state,
    lasting_gaps,
    two_gaps,
    with_gap,
)
from recrawl.learning.histories import Histories, read_histories
from recrawl.learning.online_filter import OnlineFilter
from recrawl.learning.posterior import posterior
from recrawl.learning.prior import fit_prior
from recrawl.pages import Floats
from recrawl.scheduling.learner import TURN_DOUBT

PRIOR = population_prior()
GAPS = st.lists(st.floats(1e-4, 1e4), min_size=1, max_size=30)
CRAWLS = st.lists(st.tuples(st.sampled_from([0.25, 1.0, 3.0]), st.booleans()), max_size=60)


def _filtered(histories: Histories, memory: Memory) -> OnlineFilter:
    online = OnlineFilter(PRIOR, len(histories), memory=memory)
    online.update_many(histories.page_of_rows(), histories.gaps, histories.changed)
    return online


def _error(log_mean: Floats, change_rate: Floats) -> float:
    return float(np.sqrt(np.mean((log_mean - np.log(change_rate)) ** 2)))


@pytest.mark.parametrize("schedule", ["daily", "irregular", "missing"])
@pytest.mark.parametrize("crawls", [14, 98])
def test_without_forgetting_it_is_as_right_as_the_batch_posterior(crawls: int, schedule: Schedule) -> None:
    """Within 3 % is promised; summed-up gaps cost a tenth of a percent at most."""
    drawn = draw_histories(5_000, crawls, schedule)
    prior = fit_prior(drawn.histories)
    online = OnlineFilter(prior, 5_000, memory=FOREVER)
    online.update_many(drawn.histories.page_of_rows(), drawn.histories.gaps, drawn.histories.changed)
    batch = _error(posterior(prior, drawn.histories).log_mean, drawn.change_rate)
    assert _error(online.estimate().log_mean, drawn.change_rate) < 1.001 * batch


def test_gaps_of_hours_and_weeks_on_one_page_cost_nothing() -> None:
    """Two different gaps are kept exactly: every number of every page is that of the batch posterior."""
    drawn = draw_histories(2_000, 60)
    random = np.random.default_rng(1)
    gaps = np.where(random.random((2_000, 60)) < 0.5, 1 / 24, 7.0)
    seen = read_histories(gaps, random.random(gaps.shape) < -np.expm1(-drawn.change_rate[:, None] * gaps))
    online, batch = _filtered(seen, FOREVER).estimate(), posterior(PRIOR, seen)
    for name in ("mean", "median", "low", "high"):
        np.testing.assert_allclose(getattr(online, name), getattr(batch, name), rtol=2e-3)
    np.testing.assert_allclose(online.log_mean, batch.log_mean, atol=1e-3)


def test_a_hundred_thousand_crawls_are_not_wasted() -> None:
    """Thinned evidence and single precision leave a well known rate known to one percent."""
    changed = np.random.default_rng(2).random(100_000) < -np.expm1(-2.0 * 0.7)
    known = _filtered(read_histories(np.full(100_000, 0.7), changed), FOREVER).estimate()
    assert known.mean[0] == pytest.approx(2.0, rel=0.01)
    assert known.high[0] / known.low[0] < 1.05


@pytest.mark.parametrize("rate", [0.2, 1.0, 4.0])
def test_thousands_of_irregular_crawls_are_right_to_a_tenth(rate: float) -> None:
    """Two gaps stand for all: that is where the filter stops learning if gaps are random, worst if they are long."""
    random = np.random.default_rng(3)
    gaps = random.exponential(1.0, 100_000)
    seen = read_histories(gaps, random.random(len(gaps)) < -np.expm1(-rate * gaps))
    assert _filtered(seen, FOREVER).estimate().mean[0] == pytest.approx(rate, rel=0.1)


def test_one_gamma_per_page_is_too_narrow() -> None:
    """The 8-byte filter, as a comparison: rates over four decades leave it half as right again at best."""
    drawn = draw_histories(2_000, 98)
    histories = drawn.histories
    plain = OneGamma(PRIOR, 2_000)
    for gaps, changed in zip(histories.gaps.reshape(-1, 98).T, histories.changed.reshape(-1, 98).T, strict=True):
        plain.update(gaps, changed)
    narrow = _error(digamma(plain.shape) - np.log(plain.exposure), drawn.change_rate)
    assert narrow > 1.5 * _error(_filtered(histories, FOREVER).estimate().log_mean, drawn.change_rate)


@settings(deadline=None)
@given(GAPS)
def test_moments_of_gaps_are_those_of_their_roots(gaps: list[float]) -> None:
    """One by one gives what NumPy gives at once, and two gaps have the same three moments."""
    moments = GapMoments(0.0, 0.0, 0.0, 0.0)
    for gap in gaps:
        moments = with_gap(moments, gap)
    roots = np.array(gaps) ** 0.125
    off = roots - roots.mean()
    assert moments.number == len(gaps)
    expected = (roots.mean(), (off**2).mean(), (off**3).mean())
    np.testing.assert_allclose((moments.mean, moments.variance, moments.skew), expected, rtol=1e-9, atol=1e-12)
    both = two_gaps(moments)
    root = np.array([both.longer, both.shorter]) ** 0.125
    share = np.array([both.share, 1 - both.share])
    assert share @ root == pytest.approx(moments.mean, rel=1e-9)
    spread = root - share @ root
    tolerance = 2e-6 * moments.mean**2
    assert share @ spread**2 == pytest.approx(moments.variance, rel=1e-9, abs=tolerance)
    assert share @ spread**3 == pytest.approx(moments.skew, rel=1e-8, abs=tolerance)


def test_likelihood_of_the_state_agrees_with_many_digits() -> None:
    """The log-likelihood on the grid is that of the crawls, to the table's precision."""
    gaps, changed = [0.5, 0.5, 20.0, 0.5, 3.0], [True, True, True, False, False]
    online = _filtered(read_histories(gaps, changed), FOREVER)
    page = online.state[0]
    found = np.empty(PRIOR.grid.points)
    fill_lasting(law_of(PRIOR, FOREVER).table, float(page["unchanged_time"]), lasting_gaps(page), found)
    with mpmath.workdps(30):
        exact = [
            float(
                sum(
                    mpmath.log(-mpmath.expm1(-rate * a)) if z else -rate * a for a, z in zip(gaps, changed, strict=True)
                )
            )
            for rate in PRIOR.grid.rates
        ]
    np.testing.assert_allclose(found, exact, atol=1e-4)


def test_the_gamma_has_the_mean_and_variance_of_the_rate() -> None:
    """`shape` and `exposure` are those that match the posterior's first two moments."""
    changed = np.arange(20) % 4 == 0
    known = _filtered(read_histories(np.ones(20), changed), FOREVER).estimate()
    rates = PRIOR.grid.rates
    log_likelihood = 5 * np.log(-np.expm1(-rates)) - 15 * rates
    weights = PRIOR.weights * np.exp(log_likelihood - log_likelihood.max())
    weights /= weights.sum()
    mean = weights @ rates
    variance = weights @ rates**2 - mean**2
    assert known.shape[0] / known.exposure[0] == pytest.approx(mean, rel=1e-3)
    assert known.shape[0] / known.exposure[0] ** 2 == pytest.approx(variance, rel=1e-2)


def test_a_page_that_turns_busy_is_noticed_within_eight_crawls() -> None:
    """Rate × 20, a crawl per change: three runs in four are within a factor of 2 after eight crawls."""
    noticed = shares_noticed(crawl_gap=1.0, crawls=16)
    assert noticed[7] >= 0.75
    assert noticed[15] >= 0.9
    assert shares_noticed(crawl_gap=1.0, crawls=16, memory=FOREVER)[-1] < 0.01


def test_crawls_far_apart_notice_a_turn_at_once() -> None:
    """With four changes between crawls, five crawls are enough."""
    assert shares_noticed(crawl_gap=4.0, crawls=5)[-1] >= 0.75


def test_a_page_that_turns_quiet_is_noticed() -> None:
    """After 98 busy crawls, 40 that see nothing bring the rate down to a tenth; without forgetting it stays."""
    changed = np.append(np.random.default_rng(3).random(98) < 0.6, np.zeros(40, dtype=bool))
    seen = read_histories(np.ones(138), changed)
    assert _filtered(seen, Memory()).estimate().mean[0] < 0.1
    assert _filtered(seen, FOREVER).estimate().mean[0] > 0.4


def test_noticing_turns_hardly_costs_steady_pages() -> None:
    """98 daily crawls of pages that never turn: the error grows by less than 5 %."""
    drawn = draw_histories(10_000, 98)
    batch = _error(posterior(PRIOR, drawn.histories).log_mean, drawn.change_rate)
    assert _error(_filtered(drawn.histories, Memory()).estimate().log_mean, drawn.change_rate) < 1.05 * batch


@pytest.mark.parametrize("doubt", [0.0, 6.0])
@pytest.mark.parametrize("seed", range(8))
def test_it_does_what_its_slow_twin_does(seed: int, doubt: float) -> None:
    """Crawl by crawl, as a page turns busy and quiet again: evidence, turns taken for certain, and the estimate."""
    random = np.random.default_rng(seed)
    chance = np.repeat([0.04, 0.6, 0.03], [60, 30, 40])
    slow, state, law = SlowFilter(PRIOR, doubt), empty_state(1), law_of(PRIOR, Memory(), doubt)
    sides = set()
    for changed in (random.random(len(chance)) < chance).tolist():
        slow.update(0.5, changed)
        update(state, law, 0, 0.5, changed)
        evidence = state["turn_evidence"][0] / 1024
        assert evidence == pytest.approx(slow.evidence if slow.rising else -slow.evidence, abs=0.02)
        assert state["changes"][0] == sum(changed for _, changed in slow.lasting)
        assert believe(state, law, 0, 0.05)[4] == pytest.approx(slow.log_mean(), abs=0.05)
        sides.add(np.sign(evidence))
    assert sides == {-1, 0, 1} or sides == {-1, 1}
    assert doubt > 0 or len(slow.lasting) < len(chance)  # a turn was taken for certain


@pytest.mark.parametrize(("doubt", "least", "crawls"), [(0.0, 1.05, 12), (TURN_DOUBT, 1.0, 24)])
def test_doubt_makes_mistakes_rare_and_turns_late(doubt: float, least: float, crawls: int) -> None:
    """400 daily crawls of steady pages, and a page that turns busy: with the scheduler's doubt luck costs nothing."""
    drawn = draw_histories(2_000, 400)
    rows = drawn.histories.page_of_rows(), drawn.histories.gaps, drawn.histories.changed
    errors = {}
    for memory in (Memory(), FOREVER):
        state, law = empty_state(2_000), law_of(PRIOR, memory, doubt)
        update_many(state, law, *rows)
        errors[memory] = _error(believe_many(state, law, np.arange(2_000), 0.05)[:, 4], drawn.change_rate)
    assert least * 0.999 <= errors[Memory()] / errors[FOREVER] <= least + 0.1
    random, state, law = np.random.default_rng(5), empty_state(500), law_of(PRIOR, Memory(), doubt)
    for crawl in range(98 + crawls):
        rate = 0.05 if crawl < 98 else 1.0
        changed = random.random(500) < -np.expm1(-rate)
        update_many(state, law, np.arange(500), np.ones(500), changed)
    off = believe_many(state, law, np.arange(500), 0.05)[:, 4]
    assert np.mean(np.abs(off) <= np.log(2)) >= 0.75


@settings(deadline=None, max_examples=60)
@given(CRAWLS)
def test_a_change_speaks_for_a_higher_rate_than_none(crawls: list[tuple[float, bool]]) -> None:
    """Whatever came before, and forgetting or not."""
    for memory in (FOREVER, Memory(), Memory(half_life=20.0)):
        online = OnlineFilter(PRIOR, 2, memory=memory)
        for gap, changed in crawls:
            online.update_many([0, 1], [gap, gap], [changed, changed])
        online.update_many([0, 1], [1.0, 1.0], [False, True])
        unchanged, changed = online.estimate().mean
        assert changed > unchanged


def test_evidence_fades_by_its_half_life() -> None:
    """After a half-life of time, evidence counts half; what the last crawl showed counts whole."""
    online = OnlineFilter(PRIOR, 1, memory=Memory(half_life=10.0, notices_turns=False))
    online.update_many([0, 0, 0], [2.0, 2.0, 4.0], [True, True, False])
    online.update(0, 10.0, False)
    assert online.state["changes"][0] == pytest.approx((1 + 2**-0.2) * 2**-0.4 / 2)
    assert online.state["unchanged_time"][0] == pytest.approx(4 / 2 + 10)


def test_a_page_takes_forty_bytes() -> None:
    """State and what is reported of it."""
    assert PAGE_STATE.itemsize == OnlineFilter(PRIOR, 3).bytes_per_page <= 40


def test_crawls_one_by_one_and_in_batches_are_the_same() -> None:
    """Bit for bit, for pages that come again and again in one batch."""
    random = np.random.default_rng(4)
    pages, gaps, changed = random.integers(0, 5, 300), random.exponential(1.0, 300), random.random(300) < 0.4
    whole, parts, single = (OnlineFilter(PRIOR, 5) for _ in range(3))
    whole.update_many(pages, gaps, changed)
    parts.update_many(pages[:170], gaps[:170], changed[:170])
    parts.update_many(pages[170:], gaps[170:], changed[170:])
    state = empty_state(5)
    for page, gap, flag in zip(pages.tolist(), gaps.tolist(), changed.tolist(), strict=True):
        single.update(page, gap, flag)
        update(state, single.law, page, gap, flag)
    assert whole.state.tobytes() == parts.state.tobytes() == single.state.tobytes() == state.tobytes()
    np.testing.assert_array_equal(believe(state, single.law, 3, 0.05)[4], whole.estimate(3).log_mean[0])


def test_a_gap_of_zero_says_nothing() -> None:
    """The state stays as it was."""
    online = _filtered(read_histories(np.ones(9), np.arange(9) % 3 == 0), Memory(half_life=5.0))
    before = online.state.copy()
    online.update_many([0, 0], [0.0, 0.0], [True, False])
    assert online.state.tobytes() == before.tobytes()


@pytest.mark.parametrize("memory", [FOREVER, Memory(), Memory(half_life=180.0), Memory(half_life=1e-9)])
@pytest.mark.parametrize("gap", [1e-60, 1e-5, 1.0, 10_957.0, 1e60])
@pytest.mark.parametrize("changed", [True, False])
def test_all_numbers_are_finite_and_in_order(memory: Memory, gap: float, changed: bool) -> None:
    """From the shortest gap to the longest, alone and after others."""
    online = OnlineFilter(PRIOR, 2, memory=memory)
    with np.errstate(all="raise"):
        online.update_many([0, 1, 1, 0, 0], [gap, 1.0, gap, gap, 0.5], [changed, True, changed, not changed, changed])
        known = online.estimate()
    for numbers in (known.mean, known.median, known.low, known.high, known.shape, known.exposure):
        assert (np.isfinite(numbers) & (numbers > 0)).all()
    assert (known.low <= known.median).all()
    assert (known.median <= known.high).all()
    assert np.isfinite(known.log_mean).all()


@pytest.mark.parametrize("memory", [FOREVER, Memory()])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_a_million_crawls_do_not_overflow(memory: Memory, share: float) -> None:
    """Counts are thinned in time; the rate is that of the crawls or the grid's end."""
    changed = np.random.default_rng(5).random(1_000_000) < share
    known = _filtered(read_histories(np.full(1_000_000, 0.7), changed), memory).estimate()
    rate = -np.log1p(-share) / 0.7 if share < 1 else np.inf
    within = np.clip(rate, PRIOR.grid.lowest, PRIOR.grid.highest)
    assert known.median[0] == pytest.approx(within, rel=0.05)


def test_inputs_are_not_changed() -> None:
    """Arrays of the caller stay as they were, and may be read-only."""
    pages, gaps, changed = np.array([0, 1, 0]), np.array([1.0, 2.0, 3.0]), np.array([1, 0, 1])
    for array in (pages, gaps, changed):
        array.flags.writeable = False
    OnlineFilter(PRIOR, 2).update_many(pages, gaps, changed)
    assert (pages.tolist(), gaps.tolist(), changed.tolist()) == ([0, 1, 0], [1.0, 2.0, 3.0], [1, 0, 1])


def test_pickling_keeps_everything() -> None:
    """A filter can be sent to another process and goes on there as here."""
    online = _filtered(draw_histories(50, 20).histories, Memory(half_life=100.0))
    copy = pickle.loads(pickle.dumps(online))
    for each in (online, copy):
        each.update_many([3, 49], [1.0, 2.0], [True, False])
    assert copy.state.tobytes() == online.state.tobytes()
    np.testing.assert_array_equal(copy.estimate().mean, online.estimate().mean)


def test_pages_may_be_added_at_any_time() -> None:
    """Old pages keep what is known of them; new ones have the prior."""
    online = OnlineFilter(PRIOR)
    assert len(online) == 0
    assert len(online.estimate()) == 0
    for count in (1, 2, 40):
        online.add(count)
        online.update(0, 1.0, True)
    fresh = OnlineFilter(PRIOR, 1).estimate()
    assert len(online) == 43
    assert online.state["changes"][0] == 3
    assert online.add(2).tolist() == [43, 44]
    assert online.estimate([44]).mean[0] == fresh.mean[0]
    assert fresh.mean[0] == pytest.approx(PRIOR.weights @ PRIOR.grid.rates, rel=0.02)


def test_cold_pages_have_the_prior_of_their_host() -> None:
    """Hosts of the prior count when pages are added, reset, or given another prior."""
    busy = np.random.default_rng(6).random((400, 30)) < np.repeat([0.02, 0.8], 200)[:, None]
    seen = read_histories(np.ones(busy.shape), busy)
    prior = fit_prior(seen, hosts=np.repeat(["quiet.org", "busy.org"], 200))
    online = OnlineFilter(prior, 2, hosts=["quiet.org", "busy.org"])
    online.add(1, hosts=["elsewhere.org"])
    quiet, busy_mean, elsewhere = online.estimate().mean
    assert quiet < 0.5 * elsewhere < elsewhere < 0.7 * busy_mean
    online.update(0, 30.0, False)
    online.reset([0], hosts=["busy.org"])
    assert online.estimate().mean[0] == busy_mean
    online.renew(PRIOR)
    assert online.estimate().mean[1] == OnlineFilter(PRIOR, 1).estimate().mean[0]
    online.renew(prior, hosts=["quiet.org", "quiet.org", "busy.org"])
    np.testing.assert_array_equal(online.estimate().mean, [quiet, quiet, busy_mean])


def test_another_prior_reads_the_same_crawls() -> None:
    """What was learned under one prior is known under the next, on another grid too."""
    seen = draw_histories(200, 40).histories
    other = fit_prior(draw_histories(3_000, 14, "irregular").histories)
    online = _filtered(seen, FOREVER)
    online.renew(other)
    np.testing.assert_allclose(online.estimate().log_mean, posterior(other, seen).log_mean, atol=1e-3)


def test_the_yardstick_of_the_benchmark_is_right() -> None:
    """Weights on a grid, multiplied crawl by crawl, give the batch posterior."""
    seen = draw_histories(300, 14).histories
    plain = GridOfWeights(PRIOR, 300)
    for gaps, changed in zip(seen.gaps.reshape(-1, 14).T, seen.changed.reshape(-1, 14).T, strict=True):
        plain.update_many(np.arange(300), gaps, changed)
    np.testing.assert_allclose(plain.log_mean(), posterior(PRIOR, seen).log_mean, atol=0.02)


# What it refuses

FINE: tuple[NDArray[np.int64], Floats, NDArray[np.int64]] = (np.array([0, 1, 2]), np.ones(3), np.array([0, 1, 0]))


@pytest.mark.parametrize(
    ("pages", "gaps", "changed", "field", "row"),
    [
        (FINE[0], [1.0, 1.0, -1.0], FINE[2], "gaps", 2),
        (FINE[0], [1.0, np.nan, 1.0], FINE[2], "gaps", 1),
        (FINE[0], [np.inf, 1.0, 1.0], FINE[2], "gaps", 0),
        (FINE[0], FINE[1], [0, 2, 1], "changed", 1),
        ([0, 3, 1], FINE[1], FINE[2], "pages", 1),
        ([0, 1, -1], FINE[1], FINE[2], "pages", 2),
        ([0.0, 1.0, 2.0], FINE[1], FINE[2], "pages", 0),
        (np.array([0, 1, 2**63], dtype=np.uint64), FINE[1], FINE[2], "pages", 2),
        (FINE[0], [1.0, "x", 1.0], FINE[2], "gaps", 1),
        (FINE[0], [[1.0], [1.0], [1.0]], FINE[2], "gaps", None),
        (FINE[0], FINE[1], [0, None, 1], "changed", 1),
        (FINE[0], [1.0, 1.0], [0, 1], "gaps", None),
        (FINE[0], FINE[1], [0, 1], "changed", None),
    ],
)
def test_bad_crawls_are_refused(pages: Any, gaps: Any, changed: Any, field: str, row: int | None) -> None:
    """The error names the row, and no crawl of the batch is taken in."""
    online = OnlineFilter(PRIOR, 3)
    before = online.state.copy()
    with pytest.raises(InvalidInput) as refused:
        online.update_many(pages, gaps, changed)
    assert (refused.value.field, refused.value.row) == (field, row)
    assert online.state.tobytes() == before.tobytes()


def test_bad_settings_are_refused() -> None:
    """Each with the name of what is wrong."""
    for time in (0.0, -1.0, np.nan, "x", None):
        _refuses(r"half_life is .*, but must be", lambda x: OnlineFilter(PRIOR, 1, memory=Memory(x)), time)
    for pages in (-1, 2.5, "x", None, np.nan, 10**12):
        _refuses(r"pages is .*, but must be a whole number", lambda x: OnlineFilter(PRIOR, x), pages)
        _refuses(r"count is .*, but must be a whole number", lambda x: OnlineFilter(PRIOR).add(x), pages)
    for level in (1.0, np.nan, "x"):
        _refuses("level is .*, but must be", lambda x: OnlineFilter(PRIOR, 1).estimate(level=x), level)
    _refuses("notices_turns is 'x'", lambda x: OnlineFilter(PRIOR, 1, memory=Memory(notices_turns=x)), "x")
    _refuses("memory is a str, but must be Memory", lambda x: OnlineFilter(PRIOR, 1, memory=x), "x")
    _refuses("prior is a list, but must be RatePrior, as fit_prior gives", lambda x: OnlineFilter(x, 1), [0.5])
    _refuses(r"pages\[0\] is 'x'", lambda x: OnlineFilter(PRIOR, 1).reset(x), "x")
    _refuses("hosts has 1 values but there are 2 pages", lambda x: OnlineFilter(PRIOR, 2, hosts=x), ["a.org"])


def _refuses(sentence: str, call: Callable[[Any], object], argument: object) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        call(argument)
