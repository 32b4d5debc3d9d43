"""Interest in new pages: profit, decay and new links per source, from hits and crawls as they come in."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import optimize
from slow_interest import calm_by_hand

from recrawl.bench.signal_worlds import hit_sources
from recrawl.bench.signal_yardsticks import interest_by_least_squares
from recrawl.learning.hit_histograms import HitHistograms, Interest
from recrawl.learning.interest import DEFAULT_PROFIT, fit_interest
from recrawl.learning.new_links import NewLinks
from recrawl.pages import Floats


def exact_hits(profit: float, decay: float, pages: float, bins: int = 504, width: float = 1 / 72) -> Floats:
    """Hits that follow the law without noise."""
    edges = np.exp(-decay * width * np.arange(bins + 1))
    hits: Floats = pages * profit * (edges[:-1] - edges[1:])
    return hits


# The fit


@pytest.mark.parametrize("decay", [0.2, 1.0, 5.0, 60.0])
@pytest.mark.parametrize("profit", [0.05, 3.0, 1e4])
def test_noiseless_hits_give_the_law_back(profit: float, decay: float) -> None:
    """With a billion pages the defaults have no say, and profit and decay are those drawn from."""
    hits = exact_hits(profit, decay, pages=1e9)[None, :]
    fit = fit_interest(hits, np.full(hits.shape, 1e9), 1 / 72)
    assert fit.profit[0] == pytest.approx(profit, rel=1e-3)
    assert fit.decay[0] == pytest.approx(decay, rel=1e-3)


def test_the_fit_is_that_of_a_general_least_squares_solver() -> None:
    """On noisy hits, counted a million times each so that the defaults have no say, profit and decay are SciPy's."""
    histograms = hit_sources(40, 50, 1).histograms
    hits, watched = 1e6 * histograms.hits(), 1e6 * histograms.watched()
    fit = fit_interest(hits, watched, histograms.bin_width)
    hits = np.array([calm_by_hand(*row) for row in zip(hits, watched, strict=True)])
    gathered = np.cumsum(np.divide(hits, watched, out=np.zeros(hits.shape), where=watched > 0), axis=1)
    for source in range(40):
        profit, decay = interest_by_least_squares(optimize, gathered[source], watched[source], histograms.bin_width)
        assert fit.profit[source] == pytest.approx(profit, rel=1e-4)
        assert fit.decay[source] == pytest.approx(decay, rel=1e-3)


def test_profit_and_decay_of_drawn_sources_are_recovered() -> None:
    """A hundred pages each over a week, 0.5 to 50 hits per page: typically within 5 % and 10 %."""
    world = hit_sources(300, 100, 2)
    fit = Interest(world.histograms).refit()
    assert np.median(np.abs(np.log(fit.profit / world.profit))) < 0.05
    assert np.median(np.abs(np.log(fit.decay / world.decay))) < 0.10


def test_the_search_finds_the_deepest_valley() -> None:
    """No decay on a fine grid leaves less unexplained, on curves that no exponential fits."""
    random = np.random.default_rng(3)
    hits = random.exponential(size=(30, 60)) * (random.random((30, 60)) < 0.3)
    watched = np.full(hits.shape, 1e6)
    fit = fit_interest(1e6 * hits, watched, 1.0)
    gathered = np.cumsum([calm_by_hand(1e6 * row, watched[0]) / 1e6 for row in hits], axis=1)
    ages = np.arange(1, 61)

    def unexplained(decay: Floats) -> Floats:
        shape = -np.expm1(-decay[:, None] * ages)
        profit = (shape * gathered).sum(axis=1) / (shape**2).sum(axis=1)
        loss: Floats = ((profit[:, None] * shape - gathered) ** 2).sum(axis=1)
        return loss

    best = np.min([unexplained(np.full(30, decay)) for decay in np.geomspace(0.001, 15, 2000)], axis=0)
    np.testing.assert_array_less(unexplained(fit.decay), best * (1 + 1e-5))


def test_profit_never_reaches_zero_and_starts_pessimistic() -> None:
    """Of an unknown source 0.01 is expected; of one whose pages nobody hits less, the more pages there were."""
    watched = np.array([[0.0] * 5, [1.0] * 5, [1000.0] * 5])
    profit = fit_interest(np.zeros((3, 5)), watched, 1.0).profit
    assert profit[0] == DEFAULT_PROFIT == 0.01
    assert profit[0] > profit[1] > profit[2] > 0


def test_few_hits_leave_the_decay_near_its_default() -> None:
    """One hit in the first bin is no proof that interest fades at once; a thousand are."""
    decays = []
    for hits in (1.0, 1000.0):
        row = np.zeros((1, 504))
        row[0, 0] = hits
        decays.append(fit_interest(row, np.ones((1, 504)), 1 / 72).decay[0])
    assert decays[0] < 0.5 * decays[1]


@pytest.mark.parametrize("pages", [0.0, 1e-6, 1.0, 1e6])
@pytest.mark.parametrize("hits", [0.0, 1e-6, 1.0, 1e9])
@pytest.mark.parametrize("where", [0, 250, 503, None])
def test_any_legal_histogram_has_a_finite_positive_answer(pages: float, hits: float, where: int | None) -> None:
    """One spike anywhere, hits everywhere, none at all, hits on pages never watched: no warning, no 0, no infinity."""
    row = np.zeros((1, 504))
    row[0, slice(None) if where is None else where] = hits
    fit = fit_interest(row, np.full((1, 504), pages), 1 / 72)
    assert np.isfinite(fit.profit[0])
    assert fit.profit[0] > 0
    assert 0 < fit.decay[0] < np.inf


def test_hits_at_ages_that_no_page_has_reached_are_not_counted() -> None:
    """Hits and pages watched that do not belong together change neither profit nor decay."""
    hits, watched = exact_hits(3.0, 0.1, 50.0, bins=40, width=1.0)[None, :], np.full((1, 40), 50.0)
    watched[0, 30:] = 0.0
    stray = hits.copy()
    hits[0, 30:], stray[0, 30:] = 0.0, 1e9
    assert fit_interest(stray, watched, 1.0) == fit_interest(hits, watched, 1.0)


# Histograms


def test_each_age_is_averaged_over_the_pages_that_reached_it() -> None:
    """Young pages do not pull the average of old ages down."""
    histograms = HitHistograms(1, 0.0, bin_width=1.0, bins=4)
    histograms.add_pages([0], [0.0])
    histograms.add_hits([0, 0, 0], [0.5, 1.5, 2.5], [3, 2, 1])
    histograms.advance(3.0)
    histograms.add_pages([0], [3.0])
    histograms.advance(4.0)
    histograms.add_hits([0], [0.2], [1])
    np.testing.assert_allclose(histograms.watched(), [[2, 1, 1, 1]])
    np.testing.assert_allclose(histograms.cumulative_hits(), [[2, 4, 5, 5]])


def test_time_watched_is_exact_for_pages_born_at_any_time() -> None:
    """Whether pages are added as they appear or found later, each bin holds the time that pages spent in it."""
    random = np.random.default_rng(1)
    born = np.sort(random.uniform(0.0, 9.0, 50))
    prompt, late = (HitHistograms(1, 0.0, bin_width=1.0, bins=4) for _ in range(2))
    for time in born:
        prompt.advance(time)
        prompt.add_pages([0], [time])
    prompt.advance(10.0)
    late.advance(10.0)
    late.add_pages(np.zeros(50, int), born)
    by_hand = [np.clip(10.0 - born - place, 0, 1).sum() for place in range(4)]
    np.testing.assert_allclose(prompt.watched()[0], by_hand, rtol=1e-5)
    np.testing.assert_allclose(late.watched()[0], by_hand, rtol=1e-5)


def test_average_hits_are_right_whenever_they_are_asked_for() -> None:
    """A steady stream of pages with one hit per unit of age: every bin averages one, in the middle of a step too."""
    random = np.random.default_rng(2)
    histograms = HitHistograms(1, 0.0, bin_width=1.0, bins=5)
    born = np.sort(random.uniform(0.0, 8.4, 4000))
    histograms.advance(8.4)
    histograms.add_pages(np.zeros(4000, int), born)
    page = np.repeat(np.arange(4000), 20)
    age = random.uniform(0.0, 20.0, len(page))
    seen = born[page] + age < 8.4
    histograms.add_hits(np.zeros(int(seen.sum()), int), age[seen], np.ones(int(seen.sum())))
    np.testing.assert_allclose(histograms.hits() / histograms.watched(), 1.0, atol=0.08)


def test_old_hits_fade_if_asked_to() -> None:
    """After two half-lives a quarter is left of hits and of pages watched, so the averages stay."""
    histograms = HitHistograms(1, 0.0, bin_width=1.0, bins=3, half_life=2.0)
    histograms.add_pages([0], [0.0])
    histograms.advance(3.0)
    histograms.add_hits([0, 0, 0], [0.0, 1.0, 2.0], [8, 4, 2])
    before, watched = histograms.cumulative_hits(), histograms.watched()
    histograms.advance(7.0)
    np.testing.assert_allclose(histograms.hits(), [[2, 1, 0.5]], rtol=1e-5)
    np.testing.assert_allclose(histograms.watched(), watched / 4, rtol=1e-5)
    np.testing.assert_allclose(histograms.cumulative_hits(), before, rtol=1e-5)


def test_a_long_silence_is_passed_over_in_one_go() -> None:
    """Thirty years cost no more than all bins, and pages from before are all past counting."""
    histograms = HitHistograms(2, 0.0, half_life=100.0)
    histograms.add_pages([0], [0.0])
    histograms.advance(30 * 365.0)
    histograms.add_pages([1], [30 * 365.0])
    histograms.advance(30 * 365.0 + 1.0)
    watched = histograms.watched()
    assert watched[0].max() < 1e-9
    assert watched[1, :71] == pytest.approx(1.0, abs=0.05)


def test_memory_stays_the_same_however_much_happens() -> None:
    """Twenty bytes per source and bin, before and after a hundred thousand hits."""
    histograms = HitHistograms(3, 0.0, bins=100)
    before = histograms.bytes_per_source
    histograms.advance(5.0)
    random = np.random.default_rng(1)
    histograms.add_pages(random.integers(0, 3, 10_000), random.uniform(0, 5, 10_000))
    histograms.add_hits(random.integers(0, 3, 100_000), random.exponential(size=100_000), np.ones(100_000))
    assert histograms.bytes_per_source == before == 2004


# Refitting


def test_only_sources_with_new_hits_are_fitted_again() -> None:
    """Hits arrive for one of two sources: the other keeps its defaults until everything is asked for."""
    histograms = HitHistograms(2, 0.0, bin_width=1.0, bins=10)
    histograms.add_pages([0, 1], [0.0, 0.0])
    histograms.advance(10.0)
    interest = Interest(histograms, default_decay=0.3)
    histograms.add_hits([0], [1.5], [7])
    first = interest.refit()
    assert first.profit[0] > 1
    assert (first.profit[1], first.decay[1]) == (DEFAULT_PROFIT, 0.3)
    assert interest.refit(everything=True).profit[1] < DEFAULT_PROFIT
    histograms.add_hits([1], [0.5], [2])
    assert interest.refit().profit[1] > 1
    assert interest.fit.profit[1] > 1
    assert first.profit[1] == DEFAULT_PROFIT  # an answer once given stays as it was


def test_interest_survives_pickling() -> None:
    """A restart loses nothing, neither counts nor what is yet to be fitted."""
    histograms = hit_sources(3, 20, 4).histograms
    interest = Interest(histograms)
    copy = pickle.loads(pickle.dumps(interest))
    np.testing.assert_array_equal(copy.refit().profit, interest.refit().profit)


# New links


def rate_by_hand(times: list[float], found: list[int], crawls: int, smoothing: float) -> float:
    """The rule as written: links of the last crawls over the time since the crawl before them."""
    last = slice(max(len(times) - crawls, 1), None)
    span = times[-1] - times[last.start - 1] if len(times) > 1 else 0.0
    return (sum(found[last]) + 0.5) / (span + smoothing)


def test_new_link_rates_are_those_of_the_last_seven_crawls() -> None:
    """Against the plain rule, at every step, recorded one by one and in mixed batches."""
    random = np.random.default_rng(1)
    links, together = NewLinks(3), NewLinks(3)
    times: list[list[float]] = [[], [], []]
    found: list[list[int]] = [[], [], []]
    clock = 0.0
    for _ in range(60):
        source, number = int(random.integers(0, 3)), int(random.integers(0, 9))
        clock += float(random.exponential())
        links.record([source], [clock], [number])
        times[source].append(clock)
        found[source].append(number)
        assert links.rates()[source] == pytest.approx(rate_by_hand(times[source], found[source], 7, 0.5))
    flat = sorted(
        (time, source, number) for source in range(3) for time, number in zip(times[source], found[source], strict=True)
    )
    moments, sources, numbers = zip(*flat, strict=True)
    together.record(sources, moments, numbers)
    np.testing.assert_allclose(together.rates(), links.rates())


def test_a_source_that_shows_nothing_is_never_given_up() -> None:
    """The rate falls with every empty crawl, and stays above 0."""
    links = NewLinks(1)
    rates = [float(links.rates()[0])]
    for day in range(1, 9):
        links.record([0], [float(day)], [0])
        rates.append(float(links.rates()[0]))
    assert rates[:8] == sorted(rates[:8], reverse=True)
    assert rates[-1] == pytest.approx(0.5 / 7.5)
