"""The population prior and the posteriors of pages: right, accurate, shared by hosts, and small."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from recrawl.bench.learning_histories import Schedule, draw_histories
from recrawl.bench.learning_rates import error_of_log
from recrawl.errors import InvalidInput
from recrawl.learning.grid import RateGrid, RatePrior, grid_table, rate_grid
from recrawl.learning.histories import Histories, read_histories
from recrawl.learning.inputs import number_hosts
from recrawl.learning.population import Pull, fit_weights
from recrawl.learning.posterior import RatePosterior, posterior
from recrawl.learning.prior import (
    MIXED_GAPS,
    PAGES_FITTED,
    evidence_of,
    fill_log_likelihood,
    fit_prior,
    grid_for,
    groups_of,
    rows_of,
)
from recrawl.learning.rates import smoothed_mle
from recrawl.pages import Floats, Hosts

PAGES = 30_000
GRID = rate_grid(1e-3, 20.0)
IRREGULAR = draw_histories(300, 40, "irregular").histories


def _learned_error(crawls: int, schedule: Schedule) -> float:
    drawn = draw_histories(PAGES, crawls, schedule)
    return error_of_log(posterior(fit_prior(drawn.histories), drawn.histories).log_mean, drawn)


def _log_likelihood(gaps: Floats, changed: NDArray[np.bool_], rates: Floats) -> Floats:
    """The slow twin: every crawl, every rate."""
    total = np.zeros(len(rates))
    for gap, flag in zip(gaps, changed, strict=True):
        if gap > 0:
            total += np.log(-np.expm1(-gap * rates)) if flag else -gap * rates
    return total


@pytest.mark.parametrize(("crawls", "limit"), [(14, 1.12), (98, 0.65)])
def test_learned_rates_come_close_to_the_bayes_limit(crawls: int, limit: float) -> None:
    """The error is near what knowing the true law gives (1.08, 0.63), and far below that of the smoothed MLE."""
    drawn = draw_histories(PAGES, crawls)
    ours = error_of_log(posterior(fit_prior(drawn.histories), drawn.histories).log_mean, drawn)
    plain = error_of_log(np.log(smoothed_mle(drawn.histories, lowest=0.0005, highest=7.0)), drawn)
    assert ours <= limit
    assert ours <= 0.7 * plain


@pytest.mark.parametrize("crawls", [14, 98])
def test_irregular_and_missing_crawls_cost_little(crawls: int) -> None:
    """Crawls at random times, or three in ten missing, raise the error by less than a tenth."""
    daily = _learned_error(crawls, "daily")
    assert _learned_error(crawls, "irregular") <= 1.1 * daily
    assert _learned_error(crawls, "missing") <= 1.1 * daily


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_intervals_cover_about_as_often_as_they_say(level: float) -> None:
    """The share of true rates within the credible interval is near its level, though the prior was learned."""
    drawn = draw_histories(PAGES, 98)
    known = posterior(fit_prior(drawn.histories), drawn.histories, level=level)
    covered = (known.low <= drawn.change_rate) & (drawn.change_rate <= known.high)
    assert covered.mean() == pytest.approx(level, abs=0.06)


def test_log_likelihood_equals_its_slow_twin() -> None:
    """The table gives every page's likelihood to 1e-5 per crawl, for mixed, equal, zero and extreme gaps."""
    random = np.random.default_rng(3)
    pages = [
        (random.exponential(1.0, 30), random.random(30) < 0.5),
        (np.full(20, 0.7), random.random(20) < 0.3),
        (np.array([0.0, 1.0, 0.0]), np.array([True, True, False])),
        (np.array([1e-9, 1e-12, 3.0]), np.array([True, True, False])),
        (np.array([1e5, 1e9, 40.0]), np.array([True, True, True])),
        (np.zeros(0), np.zeros(0, dtype=np.bool_)),
    ]
    histories = read_histories([gaps for gaps, _ in pages], [changed for _, changed in pages])
    table, evidence, out = grid_table(GRID), evidence_of(histories), np.empty(GRID.points)
    for page, (gaps, changed) in enumerate(pages):
        fill_log_likelihood(table, rows_of(histories), evidence, page, out)
        slow = _log_likelihood(gaps, changed, GRID.rates)
        np.testing.assert_allclose(out - out[0], slow - slow[0], atol=2e-5 * max(1, len(gaps)), rtol=1e-8)


def test_pages_that_say_the_same_are_grouped() -> None:
    """Pages of a group have equal evidence and prior, no two groups do, and pages with mixed gaps stand alone."""
    random = np.random.default_rng(1)
    regular = read_histories(np.ones((500, 6)), random.random((500, 6)) < 0.4)
    rows = random.integers(0, 3, 500)
    evidence = evidence_of(regular)
    groups = groups_of(evidence, rows)
    keys = list(zip(evidence.unchanged_time, evidence.changes, evidence.common_gap, rows, strict=True))
    assert len(groups.first) == len(set(keys)) < 30
    assert all(keys[groups.first[group]] == key for group, key in zip(groups.of_page, keys, strict=True))
    mixed = evidence_of(IRREGULAR).common_gap == MIXED_GAPS
    alone = groups_of(evidence_of(IRREGULAR), np.zeros(len(IRREGULAR), dtype=np.int64))
    assert len(set(alone.of_page[mixed].tolist())) == mixed.sum() > 100


def test_em_equals_its_slow_twin() -> None:
    """Ten passes of the kernel are ten passes in plain NumPy."""
    random = np.random.default_rng(2)
    likelihood, counts = random.random((40, 9)), random.integers(1, 5, 40).astype(np.float64)
    towards = random.random(9)
    weights = towards / towards.sum()
    base = 3.0 * weights
    for _ in range(10):
        shares = likelihood * weights / (likelihood @ weights)[:, None]
        fresh = (counts @ shares + base) / (counts.sum() + 3.0)
        padded = np.pad(fresh, 1, mode="edge")
        weights = fresh + 0.05 * (padded[:-2] - 2 * fresh + padded[2:])
    np.testing.assert_allclose(fit_weights(likelihood, counts, Pull(towards, 3.0, 0.05), 10), weights, rtol=1e-12)


@pytest.mark.parametrize("rate", [0.01, 0.3, 2.0])
@pytest.mark.parametrize("crawls", [0, 3, 30, 300, 3_000, 100_000])
def test_posterior_equals_its_slow_twin(rate: float, crawls: int) -> None:
    """Means and quantiles are those of a very fine grid, also where crawls tell more than the grid's step."""
    prior = fit_prior(IRREGULAR)
    random = np.random.default_rng(crawls)
    gaps = random.choice([0.5, 1.0, 2.0], crawls)
    changed = random.random(crawls) < -np.expm1(-rate * gaps)
    known = posterior(prior, read_histories(gaps, changed))

    half = prior.grid.step / 2  # every rate of the grid stands for its surroundings
    at = np.linspace(prior.grid.log_rates[0] - half, prior.grid.log_rates[-1] + half, 200_001)
    log_weights = np.log(np.interp(at, prior.grid.log_rates, prior.weights)) - gaps[~changed].sum() * np.exp(at)
    for gap in (0.5, 1.0, 2.0):
        log_weights += (changed & (gaps == gap)).sum() * np.log(-np.expm1(-gap * np.exp(at)))
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    log_mean = float(weights @ at)
    deviation = float(np.sqrt(weights @ (at - log_mean) ** 2))
    below = np.cumsum(weights)

    assert known.log_mean[0] == pytest.approx(log_mean, abs=0.05 * deviation)
    assert np.log(known.mean[0]) == pytest.approx(np.log(weights @ np.exp(at)), abs=0.1 * deviation)
    for number, share in ((known.median, 0.5), (known.low, 0.05), (known.high, 0.95)):
        assert np.log(number[0]) == pytest.approx(np.interp(share, below, at), abs=0.25 * deviation)


def test_batch_equals_pages_one_by_one() -> None:
    """Grouping and blocks do not show."""
    drawn = draw_histories(200, 10, "missing").histories
    prior = fit_prior(drawn)
    together = posterior(prior, drawn)
    for page in range(0, 200, 7):
        alone = posterior(prior, drawn.pick(np.array([page])))
        assert alone.mean[0] == together.mean[page]
        assert alone.high[0] == together.high[page]


def test_more_crawls_narrow_the_interval() -> None:
    """Of pages that change in every third crawl, those crawled longer are known better."""
    lengths = (3, 12, 48, 192, 768)
    changed = [np.arange(length) % 3 == 0 for length in lengths]
    known = posterior(fit_prior(IRREGULAR), read_histories([np.ones(length) for length in lengths], changed))
    assert (np.diff(np.log(known.high / known.low)) < 0).all()
    assert (known.low < known.median).all()
    assert (known.median < known.high).all()


def _hosts_apart(pages_per_host: int, hosts: int = 60) -> tuple[Floats, Histories, NDArray[np.int64]]:
    """Hosts whose pages change alike, and at very different paces from host to host."""
    random = np.random.default_rng(8)
    codes = np.repeat(np.arange(hosts), pages_per_host)
    rates = np.exp(random.normal(-3.0, 2.0, hosts)[codes] + random.normal(0.0, 0.5, len(codes)))
    changed = random.random((len(codes), 10)) < -np.expm1(-rates[:, None])
    return rates, read_histories(np.ones(changed.shape), changed), codes


def _error(known: RatePosterior, rates: Floats) -> float:
    return float(np.sqrt(np.mean((known.log_mean - np.log(rates)) ** 2)))


def test_hosts_with_a_pace_of_their_own_are_learned() -> None:
    """Where pages of a host change alike, knowing the host takes a third off the error."""
    rates, histories, codes = _hosts_apart(100)
    together = _error(posterior(fit_prior(histories), histories), rates)
    by_host = _error(posterior(fit_prior(histories, codes), histories, codes), rates)
    assert by_host < 0.67 * together


def test_hosts_that_are_alike_cost_nothing() -> None:
    """Where hosts tell nothing, priors of hosts are drawn to that of the population and do no harm."""
    drawn = draw_histories(6_000, 14)
    codes = np.random.default_rng(5).integers(0, 200, 6_000)
    together = error_of_log(posterior(fit_prior(drawn.histories), drawn.histories).log_mean, drawn)
    by_host = posterior(fit_prior(drawn.histories, codes), drawn.histories, codes)
    assert error_of_log(by_host.log_mean, drawn) < 1.01 * together


def test_cold_pages_inherit_the_prior_of_their_host() -> None:
    """A page never crawled is expected to change at its host's pace, or the population's if the host is new."""
    names = ["quick.org"] * 50 + ["slow.org"] * 50 + ["tiny.org"] * 2
    changed = np.array([[1, 1, 1, 0]] * 50 + [[0, 0, 0, 0]] * 50 + [[0, 1, 0, 0]] * 2)
    prior = fit_prior(read_histories(np.ones(changed.shape), changed), names)
    assert set(prior.host_rows) == {"quick.org", "slow.org"}
    cold = read_histories([[]] * 4, [[]] * 4)
    quick, slow, tiny, new = posterior(prior, cold, ["quick.org", "slow.org", "tiny.org", "new.org"]).median
    assert slow < new < quick
    assert tiny == new
    np.testing.assert_allclose(prior.host_weights.sum(axis=1), 1)


def test_hosts_may_be_names_numbers_or_numbered_already() -> None:
    """Three ways to say the same."""
    _, histories, codes = _hosts_apart(20, hosts=5)
    names = [f"host{code}" for code in codes]
    numbered = Hosts(codes, [f"host{code}" for code in range(5)])
    by_name = posterior(fit_prior(histories, names), histories, names)
    by_number = posterior(fit_prior(histories, codes), histories, codes)
    by_code = posterior(fit_prior(histories, numbered), histories, numbered)
    np.testing.assert_array_equal(by_name.mean, by_number.mean)
    np.testing.assert_array_equal(by_name.mean, by_code.mean)


def test_a_pickled_prior_is_small_and_the_same() -> None:
    """A prior of half a million crawls and 60 hosts is a few dozen kilobytes, and works after a journey."""
    rates, histories, codes = _hosts_apart(100)
    prior = fit_prior(histories, codes)
    letter = pickle.dumps(prior)
    assert len(letter) < 50_000
    again: RatePrior = pickle.loads(letter)
    np.testing.assert_array_equal(
        posterior(again, histories, codes).mean, posterior(prior, histories, codes).mean, strict=True
    )
    assert len(rates) == len(codes)


def test_large_populations_are_fitted_to_a_fixed_sample() -> None:
    """Beyond the limit the same pages are drawn each time, and the prior hardly differs from that of all pages."""
    drawn = draw_histories(PAGES_FITTED + 20_000, 5).histories
    prior = fit_prior(drawn)
    np.testing.assert_array_equal(prior.weights, fit_prior(drawn).weights)
    part = fit_prior(drawn.pick(np.arange(PAGES_FITTED)), grid=prior.grid)
    assert np.abs(prior.weights - part.weights).sum() < 0.1


def test_nothing_crawled_leaves_an_even_prior() -> None:
    """Without a crawl the prior is even in the logarithm."""
    prior = fit_prior(read_histories([[], []], [[], []]))
    np.testing.assert_allclose(prior.weights, 1 / prior.grid.points)


def test_read_only_arrays_are_welcome() -> None:
    """Arrays that may not be written to, as Arrow gives them, are only read."""
    arrays = [IRREGULAR.offsets.copy(), IRREGULAR.gaps.copy(), IRREGULAR.changed.copy()]
    for array in arrays:
        array.flags.writeable = False
    locked = read_histories(arrays[1], arrays[2], offsets=arrays[0])
    known, expected = posterior(fit_prior(locked), locked), posterior(fit_prior(IRREGULAR), IRREGULAR)
    np.testing.assert_allclose(known.mean, expected.mean, rtol=1e-12)


def test_grid_follows_the_unit_of_time() -> None:
    """The same crawls told in seconds give the same answer per second."""
    seconds = Histories(IRREGULAR.offsets, IRREGULAR.gaps * 86_400, IRREGULAR.changed)
    per_day, per_second = posterior(fit_prior(IRREGULAR), IRREGULAR), posterior(fit_prior(seconds), seconds)
    np.testing.assert_allclose(per_second.mean * 86_400, per_day.mean, rtol=1e-6)


def test_one_odd_gap_does_not_stretch_the_grid() -> None:
    """A gap of thirty years on one page of hundreds leaves the grid as it was."""
    gaps = IRREGULAR.gaps.copy()
    gaps[7] = 10_957.0
    assert grid_for(Histories(IRREGULAR.offsets, gaps, IRREGULAR.changed)).points == grid_for(IRREGULAR).points


@pytest.mark.parametrize(
    ("lowest", "step", "points", "field"),
    [
        (0.0, 0.1, 10, "lowest"),
        (float("nan"), 0.1, 10, "lowest"),
        (1.0, 0.0, 10, "step"),
        (1.0, 0.1, 1, "points"),
        (1.0, 0.1, 1_000, "points"),
        (1e50, 1.0, 100, "points"),
    ],
)
def test_bad_grids_are_refused(lowest: float, step: float, points: int, field: str) -> None:
    """A grid that cannot be is refused by the number at fault."""
    with pytest.raises(InvalidInput) as caught:
        RateGrid(lowest, step, points)
    assert caught.value.field == field


def test_bad_hosts_and_levels_are_refused() -> None:
    """Hosts must be one per page and comparable; a level lies between 0 and 1."""
    prior = fit_prior(IRREGULAR)
    for hosts in (["a"], "a", [[1.0], 2.0], [["a"]] * 300):
        with pytest.raises(InvalidInput, match="hosts"):
            posterior(prior, IRREGULAR, hosts)  # type: ignore[arg-type]
    unfit: list[Any] = [None, float("nan"), 7, {}]
    for host in unfit:
        with pytest.raises(InvalidInput, match=r"hosts\[299\]"):
            posterior(prior, IRREGULAR, [*["a"] * 299, host])
    with pytest.raises(InvalidInput, match=r"hosts\[0\] is 2, but is counted from 0 to 1"):
        posterior(prior, IRREGULAR, Hosts(np.full(300, 2), ["a", "b"]))
    for level in (1.0, 0.0, float("nan"), "x", None):
        with pytest.raises(InvalidInput, match=r"level is .*, but must be"):
            posterior(prior, IRREGULAR, level=level)  # type: ignore[arg-type]


def test_what_was_not_made_for_it_is_refused() -> None:
    """Arguments of a wrong type are named, with what makes the right one."""
    prior = fit_prior(IRREGULAR)
    with pytest.raises(InvalidInput, match="prior is a list, but must be RatePrior, as fit_prior gives"):
        posterior([0.5], IRREGULAR)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="histories is a list, but must be Histories, as read_histories gives"):
        posterior(prior, [[1.0]])  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="histories is a str"):
        fit_prior("x")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="grid is a list, but must be RateGrid, as rate_grid gives"):
        fit_prior(IRREGULAR, grid=[0.1, 1.0])  # type: ignore[arg-type]


def test_hosts_of_any_column_are_numbered_alike() -> None:
    """Lists, arrays and Arrow columns, also with a dictionary, name the same hosts."""
    names = ["b.org", "a.org", "b.org"]
    arrow = pa.array(names)
    columns: list[Any] = [names, np.array(names), np.array(names, dtype=object), arrow, arrow.dictionary_encode()]
    for column in columns:
        numbered = number_hosts(column, 3)
        assert numbered.codes.tolist() == [1, 0, 1]
        assert list(numbered.names) == ["a.org", "b.org"]
