"""Measures of change rates: how far learned rates are from the true ones, and how fast a million pages are learned."""

from __future__ import annotations

from functools import cache, partial

import numpy as np

from recrawl.bench.learning_histories import Drawn, Schedule, draw_histories
from recrawl.bench.learning_yardsticks import rate_by_bisection
from recrawl.bench.measure import Bound, Measure, Reading, best_cpu_seconds
from recrawl.learning.histories import Histories
from recrawl.pages import Floats

PAGES = 50_000
_MILLION = 1_000_000
_LONG = 98
_YARDSTICK_PAGES = 2_000


def rate_measures() -> tuple[Measure, ...]:
    """The measures of change rates, in the order they run."""
    return (
        _error("rmse_14", 14, limit=1.12),
        _error("rmse_98", 98, limit=0.65),
        _error_elsewhere("rmse_14_irregular", 14, "irregular"),
        _error_elsewhere("rmse_98_irregular", 98, "irregular"),
        _error_elsewhere("rmse_14_missing", 14, "missing"),
        _error_elsewhere("rmse_98_missing", 98, "missing"),
        _speed("batch_posterior_regular", "daily", floor=30),
        _speed("batch_posterior_irregular", "irregular", floor=10),
    )


def error_of_log(log_rate: Floats, drawn: Drawn) -> float:
    """Root mean square error of the natural logarithm of rates."""
    return float(np.sqrt(np.mean((log_rate - np.log(drawn.change_rate)) ** 2)))


@cache
def learned_error(crawls: int, schedule: Schedule) -> float:
    """Error of rates learned from so many days of crawls, the prior from the same crawls."""
    drawn = draw_histories(PAGES, crawls, schedule)
    return error_of_log(_learn(drawn.histories), drawn)


def _learn(histories: Histories) -> Floats:
    from recrawl.learning.posterior import posterior
    from recrawl.learning.prior import fit_prior

    return posterior(fit_prior(histories), histories).log_mean


def _error(name: str, crawls: int, limit: float) -> Measure:
    def read() -> Reading:
        from recrawl.learning.rates import smoothed_mle

        drawn = draw_histories(PAGES, crawls)
        plain = error_of_log(np.log(smoothed_mle(drawn.histories, lowest=0.0005, highest=7.0)), drawn)
        ours = learned_error(crawls, "daily")
        return Reading(ours, ours / plain, f"{plain:.3g}")

    return Measure(name, "ln rate", "smoothed MLE", Bound("value", limit=limit), read)


def _error_elsewhere(name: str, crawls: int, schedule: Schedule) -> Measure:
    def read() -> Reading:
        ours, daily = learned_error(crawls, schedule), learned_error(crawls, "daily")
        return Reading(ours, ours / daily, f"{daily:.3g}")

    return Measure(name, "ln rate", "daily crawls", Bound("ratio", limit=1.1), read)


def _speed(name: str, schedule: Schedule, floor: float) -> Measure:
    def read() -> Reading:
        histories = draw_histories(_MILLION, _LONG, schedule).histories
        plain = _seconds_of_bisection(histories)
        ours = best_cpu_seconds(partial(_learn, histories))
        return Reading(ours, plain / ours, f"{plain:.3g} s")

    return Measure(name, "s", "plain Python bisection", Bound("ratio", floor=floor), read)


def _seconds_of_bisection(histories: Histories) -> float:
    """CPU seconds of the yardstick for all pages, scaled up from some that are spread over them."""
    pages = range(0, len(histories), len(histories) // _YARDSTICK_PAGES)
    lists = [(gaps.tolist(), changed.tolist()) for gaps, changed in map(histories.of, pages)]

    def work() -> None:
        for gaps, changed in lists:
            rate_by_bisection(gaps, changed)

    return best_cpu_seconds(work) * len(histories) / len(lists)
