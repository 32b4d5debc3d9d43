"""Trust in signals: right on worlds with known answers, slow to believe, safe on any input."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import optimize

from recrawl.bench.learning_signals import judge_site
from recrawl.bench.signal_worlds import SITE_KINDS, AuditedPages, audited_pages, idle_signals, site_logs
from recrawl.bench.signal_yardsticks import trust_by_minimize
from recrawl.errors import InvalidInput
from recrawl.learning.hazard_fit import HazardProblems, fit_hazards
from recrawl.learning.histories import CrawlLog
from recrawl.learning.signal_counting import count_trust
from recrawl.learning.signal_history import (
    SignalHistories,
    SignalLog,
    read_signal_histories,
    signal_histories_from_log,
)
from recrawl.learning.trust import fit_trust
from recrawl.learning.trust_tracker import TrustTracker


@cache
def appendix_e() -> AuditedPages:
    """The pages of NCIS, appendix E; drawn once."""
    return audited_pages(300, 1)


def world(pages: int, audits: int, weights: list[float], seed: int = 3) -> SignalHistories:
    """Pages with a silent rate of 0.2 and several kinds of signal at rate 0.4 each, of given weights."""
    random = np.random.default_rng(seed)
    rows = pages * audits
    gaps = random.exponential(size=rows) * 2
    counts = random.poisson(0.4 * gaps[:, None], (rows, len(weights)))
    changed = random.random(rows) < -np.expm1(-(0.2 * gaps + counts @ np.array(weights)))
    kinds = [f"kind {k}" for k in range(len(weights))]
    return read_signal_histories(gaps, changed, counts, kinds, offsets=np.arange(0, rows + 1, audits))


# The likelihood


@pytest.mark.parametrize("seed", range(60))
def test_the_maximum_satisfies_the_optimality_conditions(seed: int) -> None:
    """The slope is 0 for causes above 0 and not upward for causes at 0, whether or not causes come together."""
    random = np.random.default_rng(seed)
    causes, rows = int(random.integers(1, 6)), int(random.integers(1, 60))
    amounts = random.exponential(size=(rows, causes)) * (random.random((rows, causes)) < 0.7)
    amounts[:, 0] += 1e-3
    if seed % 3 == 0 and causes > 1:
        amounts[:, 1] = amounts[:, 0] / 2
    changed = random.random(rows) < random.random()
    against = amounts[~changed].sum(axis=0) + np.where(np.arange(causes) == 0, 0.1, 1.0)
    seen = np.ascontiguousarray(amounts[changed])
    fit = fit_hazards(HazardProblems(np.array([0, len(seen)]), seen, np.ones(len(seen)), against[None, :]))
    strengths = fit.strengths[0]
    slope = -against
    if len(seen):
        slope = slope + (seen / np.expm1(seen @ strengths)[:, None]).sum(axis=0)
    tolerance = 1e-5 * (1 + against.max())
    assert (strengths >= 0).all()
    assert np.abs(slope[strengths > 0]).max(initial=0) < tolerance
    assert slope[strengths == 0].max(initial=-1) < tolerance
    assert np.isfinite(fit.covariance).all()


def test_the_plain_fit_is_the_answer_of_a_general_optimiser() -> None:
    """With no prior, silent rate and weights are those of SciPy's L-BFGS-B, page by page."""
    histories = world(pages=12, audits=400, weights=[0.5, 1.5])
    trust = fit_trust(histories, prior=0.0)
    for page in range(12):
        plain = trust_by_minimize(optimize, histories, page)
        np.testing.assert_allclose(trust.silent_rate[page], plain[0], rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(trust.signal_weight[page], plain[1:], rtol=1e-4, atol=1e-6)


def test_standard_errors_match_the_spread_of_repeated_fits() -> None:
    """Over 400 draws of one page the errors, in units of the standard error, have a spread of about 1."""
    trust = fit_trust(world(pages=400, audits=300, weights=[0.8]), prior=0.0)
    truth = 1 - np.exp(-0.8)
    for error in (
        (trust.silent_rate - 0.2) / trust.errors.silent_rate,
        (trust.precision[:, 0] - truth) / trust.errors.precision[:, 0],
        (trust.recall[:, 0] - 0.4 * truth / (0.2 + 0.4 * truth)) / trust.errors.recall[:, 0],
        (trust.change_rate - 0.2 - 0.4 * truth) / trust.errors.change_rate,
    ):
        assert np.std(error) == pytest.approx(1.0, abs=0.15)


# Accuracy


def test_precision_and_recall_are_recovered_without_bias() -> None:
    """NCIS appendix E: mean error at most 0.001, error of a page about 0.01."""
    pages = appendix_e()
    trust = fit_trust(pages.histories, prior=0.0)
    for estimate, truth in ((trust.precision[:, 0], pages.precision), (trust.recall[:, 0], pages.recall)):
        assert abs(np.mean(estimate - truth)) <= 1e-3
        assert np.mean(np.abs(estimate - truth)) <= 0.015


def test_the_default_prior_costs_little_where_there_is_much_to_learn_from() -> None:
    """One imaginary audit against a thousand real ones."""
    pages = appendix_e()
    trust = fit_trust(pages.histories)
    assert abs(np.mean(trust.precision[:, 0] - pages.precision)) <= 3e-3
    assert abs(np.mean(trust.recall[:, 0] - pages.recall)) <= 3e-3


def test_counting_is_visibly_biased() -> None:
    """Counting intervals gives signals credit for changes they did not announce."""
    pages = appendix_e()
    counted = count_trust(pages.histories)
    assert np.mean(counted.precision[:, 0] - pages.precision) > 0.15
    assert np.mean(counted.recall[:, 0] - pages.recall) > 0.15


def test_kinds_are_told_apart() -> None:
    """A strong, a weak and an idle kind at once keep their own weights."""
    weights = fit_trust(world(pages=10, audits=4000, weights=[1.5, 0.4, 0.0]), hosts=["a"] * 10).signal_weight[0]
    np.testing.assert_allclose(weights, [1.5, 0.4, 0.0], atol=0.1)


@pytest.mark.parametrize("kind", SITE_KINDS)
def test_fifty_audits_tell_kinds_of_site_apart(kind: Any) -> None:
    """Honest, always firing, never firing, bumped in bulk: at least 95 of 100 sites are judged rightly."""
    assert np.mean([judge_site(kind, [site, 1]) == kind for site in range(100)]) >= 0.95


@pytest.mark.parametrize("kind", ["always", "never", "bulk"])
def test_a_useless_signal_ends_with_no_weight(kind: Any) -> None:
    """However it is useless, after 50 audits most sites have a weight of 0 and none is trusted."""
    weights = []
    for site in range(60):
        crawls, signals = site_logs(kind, [site, 2])
        histories = signal_histories_from_log(crawls, signals, ["sitemap"])
        weights.append(fit_trust(histories, hosts=["site"] * 10).signal_weight[0, 0])
    assert np.median(weights) < 1e-9
    assert np.mean(weights) < 0.1


def test_a_signal_that_only_marks_busy_pages_is_useless() -> None:
    """It comes where changes are many, but not when they are: pooled pages must not lend it weight."""
    worlds = [idle_signals(20, 50, seed) for seed in range(10)]
    told_apart = [fit_trust(each, hosts=["site"] * 20).signal_weight[0, 0] for each in worlds]
    as_one = [fit_trust(replace(each, offsets=np.array([0, 1000]))).signal_weight[0, 0] for each in worlds]
    assert np.mean(told_apart) < 0.05
    assert np.mean(as_one) > 0.2  # what it would be otherwise


def test_a_signal_is_useless_until_shown_otherwise() -> None:
    """With no audits the weight is 0; with more and more that bear it out it rises."""
    weights = []
    for audits in (0, 1, 5, 25, 125):
        heard = np.ones((2 * audits, 1), int)
        heard[::2] = 0
        histories = read_signal_histories(np.ones(2 * audits), heard[:, 0], heard, ["feed"])
        weights.append(fit_trust(histories).signal_weight[0, 0])
    assert weights[0] == 0
    assert weights == sorted(weights)
    assert weights[1] < 1.2 < 3 < weights[-1]


# Pages and hosts


# The tracker


def test_the_tracker_is_the_batch_fit_while_it_can_keep_every_change() -> None:
    """Up to as many changes as it has points nothing is lost but the digits of single precision."""
    histories = world(pages=1, audits=30, weights=[1.0])
    assert histories.changed.sum() <= 24
    tracker = TrustTracker(1, histories.kinds, memory=np.inf)
    tracker.observe(np.zeros(30, int), histories.gaps, histories.changed, histories.counts)
    batch, online = fit_trust(histories), tracker.trust()
    np.testing.assert_allclose(online.signal_weight, batch.signal_weight, rtol=1e-4)
    np.testing.assert_allclose(online.silent_rate, batch.silent_rate, rtol=1e-4)
    np.testing.assert_allclose(online.recall, batch.recall, rtol=1e-4)


def test_the_tracker_loses_little_in_bounded_memory() -> None:
    """After a thousand audits the error is at most a tenth larger than with all of them, in 480 bytes per host."""
    pages = audited_pages(200, 9, horizon=8_000.0)
    histories = pages.histories
    tracker = TrustTracker(200, histories.kinds, memory=np.inf)
    size = tracker.bytes_per_host
    tracker.observe(histories.page_of_rows(), histories.gaps, histories.changed, histories.counts)
    errors = [
        np.sqrt(np.mean((trust.precision[:, 0] - pages.precision) ** 2))
        for trust in (tracker.trust(), fit_trust(histories))
    ]
    assert errors[0] <= 1.1 * errors[1]
    assert tracker.bytes_per_host == size == 480


def test_the_tracker_notices_a_site_that_ceases_to_tell_the_truth() -> None:
    """Three hundred honest audits, then as many with idle signals, memory of a hundred."""
    random = np.random.default_rng(2)
    tracker = TrustTracker(1, ["feed"], memory=100)
    heard = random.random(300) < 0.5
    tracker.observe(np.zeros(300, int), np.ones(300), heard, heard[:, None].astype(int))
    before = tracker.trust().precision[0, 0]
    tracker.observe(np.zeros(300, int), np.ones(300), random.random(300) < 0.5, heard[:, None].astype(int))
    assert before > 0.9
    assert tracker.trust().precision[0, 0] < 0.3


def test_the_tracker_takes_one_audit_or_many_alike_and_survives_pickling() -> None:
    """Audit by audit, all at once, or interrupted by a restart: the same trust."""
    histories = world(pages=1, audits=100, weights=[0.7])
    whole, single = (TrustTracker(2, histories.kinds) for _ in range(2))
    whole.observe(np.ones(100, int), histories.gaps, histories.changed, histories.counts)
    for row in range(100):
        one = slice(row, row + 1)
        single.observe([1], histories.gaps[one], histories.changed[one], histories.counts[one])
        if row == 50:
            single = pickle.loads(pickle.dumps(single))
    np.testing.assert_array_equal(single.trust([1]).signal_weight, whole.trust([1]).signal_weight)


def test_expected_signals_keep_the_tracker_from_trusting_marks_of_busy_pages() -> None:
    """The same as for the batch fit: a signal that comes where changes are many, but not when."""
    idle = idle_signals(20, 100, 1)
    page = idle.page_of_rows()
    rate = np.bincount(page, idle.counts[:, 0]) / np.bincount(page, idle.gaps)
    plain, fair = TrustTracker(1, ["feed"], memory=np.inf), TrustTracker(1, ["feed"], memory=np.inf)
    plain.observe(np.zeros(2000, int), idle.gaps, idle.changed, idle.counts)
    fair.observe(np.zeros(2000, int), idle.gaps, idle.changed, idle.counts, expected=(rate[page] * idle.gaps)[:, None])
    assert plain.trust().signal_weight[0, 0] > 0.2
    assert fair.trust().signal_weight[0, 0] < 0.1


# Bad input


@pytest.mark.parametrize(
    ("make", "field", "row"),
    [
        (lambda: TrustTracker(2, ["a"]).observe([0, 2], [1.0, 1.0], [0, 1], [[0], [1]]), "hosts", 1),
        (lambda: TrustTracker(2, ["a"]).observe([0], [1.0], [0], [[1]], expected=[[np.nan]]), "expected", 0),
        (lambda: TrustTracker(2, ["a"], memory=0.5), "memory", None),
        (lambda: TrustTracker(2, ["a"], memory="x"), "memory", None),  # type: ignore[arg-type]
        (lambda: TrustTracker(2, ["a"], memory=np.nan), "memory", None),
        (lambda: TrustTracker(2, ["a"], delay=np.inf), "delay", None),
        (lambda: TrustTracker(-1, ["a"]), "hosts", None),
        (lambda: TrustTracker(2, "abc"), "kinds", None),
        (lambda: TrustTracker(2, []), "kinds", None),
        (lambda: TrustTracker(2, {"a", "b"}), "kinds", None),  # type: ignore[arg-type]
        (lambda: TrustTracker(2, ["a", "b", "a"]), "kinds", 2),
        (lambda: TrustTracker(2, ["a", ["b"]]), "kinds", 1),  # type: ignore[list-item]
        (lambda: TrustTracker(2, ["a"]).observe([0, 2**63], [1.0, 1.0], [0, 1], [[0], [1]]), "hosts", 1),
        (lambda: TrustTracker(2, ["a"]).observe([0, 0], [1.0], [0], [[1]]), "gaps", None),
        (lambda: TrustTracker(2, ["a"]).observe([0], [1.0], [0], [[1]], expected=[["x"]]), "expected", 0),
        (lambda: TrustTracker(2, ["a"]).observe([0], [1.0], [0], [[1]], expected=[[1e16]]), "expected", 0),
        (lambda: TrustTracker(2, ["a"]).observe([0], [1.0], [0], [[1]], expected=[1.0]), "expected", None),
        (lambda: TrustTracker(2, ["a"]).trust([-1]), "hosts", 0),
        (lambda: fit_trust([[1.0]]), "histories", None),  # type: ignore[arg-type]
        (lambda: count_trust("x"), "histories", None),  # type: ignore[arg-type]
        (lambda: fit_trust(world(1, 5, [1.0]), prior=-1.0), "prior", None),
        (lambda: fit_trust(world(2, 5, [1.0]), hosts=["a"]), "hosts", None),
    ],
)
def test_bad_input_is_refused_with_the_row_named(make: Callable[[], object], field: str, row: int | None) -> None:
    """The error says which column and which row are at fault."""
    with pytest.raises(InvalidInput) as caught:
        make()
    assert (caught.value.field, caught.value.row) == (field, row)


@pytest.mark.parametrize("changed", [0, 1])
@pytest.mark.parametrize("gap", [0.0, 1e-9, 1.0, 30 * 365.0, 1e12])
@pytest.mark.parametrize("heard", [0, 1, 100_000])
@pytest.mark.parametrize("audits", [1, 40])
def test_any_legal_history_has_a_finite_answer(changed: int, gap: float, heard: int, audits: int) -> None:
    """All changed or none, no time or thirty years, no signal or a flood: finite, with no warning."""
    histories = read_signal_histories(
        [np.full(audits, gap), []], [np.full(audits, changed), []], np.full((audits, 1), heard), ["feed"]
    )
    tracker = TrustTracker(1, ["feed"])
    tracker.observe(np.zeros(audits, int), histories.gaps, histories.changed, histories.counts)
    for trust in (
        fit_trust(histories),
        fit_trust(histories, hosts=["a", "a"]),
        fit_trust(histories, prior=0.0),
        tracker.trust(),
    ):
        for column in (trust.silent_rate, trust.signal_weight, trust.change_rate, trust.false_signal_rate):
            assert np.isfinite(column).all()
            assert (column >= 0).all()
        for share in (trust.precision, trust.recall):
            assert ((share >= 0) & (share <= 1)).all()
        assert all(np.isfinite(error).all() for error in trust.errors)


def test_two_kinds_that_always_come_together_share_one_weight() -> None:
    """How they share it is arbitrary, and their errors say so; the sum is the weight that one of them would have."""
    alone = world(1, 400, [1.0])
    twice = replace(alone, counts=np.repeat(alone.counts, 2, axis=1), kinds=("one", "other"))
    single, double = fit_trust(alone, prior=0.0), fit_trust(twice, prior=0.0)
    assert double.signal_weight.sum() == pytest.approx(single.signal_weight.sum(), rel=1e-6)
    assert double.silent_rate == pytest.approx(single.silent_rate, rel=1e-5)
    assert (double.errors.signal_weight > 100).all()


def test_no_pages_at_all_are_fine() -> None:
    """An empty population has an empty answer."""
    empty = signal_histories_from_log(CrawlLog([], [], []), SignalLog([], [], []), ["feed"])
    assert len(fit_trust(empty)) == len(fit_trust(empty, hosts=[])) == 0
    assert len(count_trust(empty).precision) == 0


def test_fits_change_nothing_they_are_given_and_repeat() -> None:
    """The same histories give the same trust, and stay as they were."""
    histories = world(4, 50, [1.0])
    copy = pickle.loads(pickle.dumps(histories))
    first, second = fit_trust(histories, list("aabb")), fit_trust(histories, list("aabb"))
    np.testing.assert_array_equal(first.signal_weight, second.signal_weight)
    for name in ("offsets", "gaps", "changed", "counts"):
        np.testing.assert_array_equal(getattr(histories, name), getattr(copy, name))


@pytest.mark.parametrize("gap", [1e-55, 4e38, 1e60])
def test_the_tracker_refuses_what_would_spoil_its_memory(gap: float) -> None:
    """Gaps that single precision cannot add up are refused, and what comes after them is learned from."""
    tracker = TrustTracker(1, ["a"])
    with pytest.raises(InvalidInput, match=r"gaps\[0\] is .*, but must be (at most 1e\+15|0 or at least 1e-30)"):
        tracker.observe([0], [gap], [1], [[0]])
    tracker.observe([0] * 4, [1.0] * 4, [1, 0, 1, 0], [[1], [0], [1], [0]])
    assert np.isfinite(tracker.trust().silent_rate).all()
