"""The group `learning` measures what it says: untimed measures hold, the yardstick is right, histories are as told."""

from __future__ import annotations

import numpy as np
import pytest

from recrawl.bench.groups import measures_of
from recrawl.bench.learning_histories import Schedule, draw_histories
from recrawl.bench.learning_yardsticks import rate_by_bisection
from recrawl.bench.measure import run
from recrawl.learning.rates import smoothed_mle


def test_errors_of_rates_hold() -> None:
    """Errors do not depend on the machine, so they must hold here."""
    for measure in measures_of("learning"):
        if measure.name.startswith("rmse_"):
            result = run(measure)
            assert result.reason is None
            assert result.holds, result.as_json()


@pytest.mark.parametrize("schedule", ["daily", "irregular"])
def test_bisection_agrees_with_recrawl(schedule: Schedule) -> None:
    """The yardstick solves the same equation, to the precision it promises."""
    histories = draw_histories(200, 98, schedule).histories
    plain = [rate_by_bisection(gaps.tolist(), changed.tolist()) for gaps, changed in map(histories.of, range(200))]
    np.testing.assert_allclose(plain, smoothed_mle(histories, lowest=0.0005, highest=7.0), atol=1e-4)


def test_schedules_are_as_told() -> None:
    """Daily gaps are 1, irregular ones 1 on average; missing crawls leave longer gaps but no more days."""
    daily = draw_histories(2_000, 20, "daily").histories
    irregular = draw_histories(2_000, 20, "irregular").histories
    missing = draw_histories(2_000, 20, "missing").histories
    assert (daily.gaps == 1).all()
    assert irregular.gaps.mean() == pytest.approx(1, abs=0.02)
    assert len(np.unique(irregular.gaps)) > 39_000
    assert len(missing.gaps) == pytest.approx(0.7 * 40_000, rel=0.02)
    days = np.zeros(2_000)
    np.add.at(days, missing.page_of_rows(), missing.gaps)
    assert days.max() == 20
    assert (missing.gaps >= 1).all()


def test_changes_are_seen_as_often_as_the_rate_says() -> None:
    """Over many pages, changed crawls are as frequent as 1 − e^{−rate·gap} expects."""
    drawn = draw_histories(5_000, 20, "irregular")
    expected = -np.expm1(-np.repeat(drawn.change_rate, 20) * drawn.histories.gaps)
    assert drawn.histories.changed.mean() == pytest.approx(expected.mean(), abs=0.004)
