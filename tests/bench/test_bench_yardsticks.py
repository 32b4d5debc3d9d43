"""Each yardstick gives recrawl's answer: a yardstick that is wrong measures nothing."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from recrawl.bench import yardsticks
from recrawl.bench.measure import CannotRun
from recrawl.bench.plans import PLANS, PlanCase, draw_millions
from recrawl.lab.worlds.laws import web_population
from recrawl.values import inverse_shape_g, inverse_shape_h, shape_g


@pytest.mark.parametrize("case", PLANS, ids=lambda case: case.name)
def test_yardstick_plan_agrees_with_recrawl(case: PlanCase) -> None:
    """Price and every rate of the plain bisection are those of the plan."""
    population = web_population(3_000)
    plan = case.plan(population)
    plain = case.solve_plainly(population)
    assert plain.price == pytest.approx(plan.price, rel=1e-9)
    np.testing.assert_allclose(plain.rates, plan.rates, rtol=1e-6, atol=1e-9)
    assert plain.rates.sum() == pytest.approx(600.0, rel=1e-9)


def test_both_kinds_of_page_and_starved_pages_occur() -> None:
    """The population is rich enough for the comparison to mean something."""
    population = web_population(3_000)
    assert 0 < population["recall"].sum() < 3_000
    starved = {case.name: case.plan(population).starved for case in PLANS}
    assert starved["azar"] > 0
    assert starved["even_freshness"] > 0
    assert starved["even_harmonic"] == 0


def test_formulas_agree_with_the_shapes() -> None:
    """The NumPy and SciPy forms are the functions that recrawl computes, where they have their digits."""
    lambertw = yardsticks.load_lambertw()
    x = np.logspace(-1, 1.4, 200)
    np.testing.assert_allclose(yardsticks.g_by_formula(x), shape_g(x), rtol=1e-12)
    level = np.linspace(0.01, 0.99, 200)
    np.testing.assert_allclose(yardsticks.inverse_g_by_lambertw(lambertw, level), inverse_shape_g(level), rtol=1e-12)
    np.testing.assert_allclose(
        yardsticks.inverse_h_by_lambertw(lambertw, 9 * level), inverse_shape_h(9 * level), rtol=1e-12
    )


def test_bisection_makes_sixty_passes_and_finds_the_price() -> None:
    """Spending 1/price meets a budget of 4 at a price of 1/4, through 60 passes."""
    prices = []

    def spent(price: float) -> float:
        prices.append(price)
        return 1.0 / price

    found = yardsticks.bisect(spent, np.array([2.5, 1.5]), 4.0)
    assert len(prices) == yardsticks.PASSES == 60
    assert found == pytest.approx(0.25, rel=1e-12)


def test_missing_scipy_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without SciPy the yardstick cannot run, and the reason names the remedy."""
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(CannotRun, match=r"pip install 'recrawl\[bench\]'"):
        yardsticks.load_lambertw()


def test_millions_are_drawn_in_parts_of_the_population() -> None:
    """The many-million population is that of `web_population`, million by million, and only the columns asked for."""
    columns = draw_millions(1, ("change_rate",))
    assert list(columns) == ["change_rate"]
    np.testing.assert_array_equal(columns["change_rate"], web_population(1_000_000, seed=0)["change_rate"])
