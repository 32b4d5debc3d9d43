"""The yardsticks for trust and interest: SciPy's optimisers on the formula as written, one page or source at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from recrawl.bench.measure import CannotRun
from recrawl.extras import is_installed, missing
from recrawl.learning.signal_history import SignalHistories
from recrawl.pages import Floats


def load_optimisers() -> Any:
    """SciPy's module of optimisers."""
    if not is_installed("scipy"):
        raise CannotRun(missing("scipy", "the yardstick"))
    from scipy import optimize

    return optimize


def trust_by_minimize(optimize: Any, histories: SignalHistories, page: int) -> Floats:
    """Silent rate and signal weights of one page, by L-BFGS-B with the gradient, all audits in NumPy."""
    rows = slice(histories.offsets[page], histories.offsets[page + 1])
    amounts = np.column_stack([histories.gaps[rows], histories.counts[rows]])
    scale = amounts.mean(axis=0)
    amounts = amounts / scale
    changed = histories.changed[rows]
    against = amounts[~changed].sum(axis=0)
    seen = amounts[changed]

    def loss(strengths: Floats) -> tuple[float, Floats]:
        exponent = np.clip(seen @ strengths, 1e-12, 700.0)
        gradient = against - (seen / np.expm1(exponent)[:, None]).sum(axis=0)
        return against @ strengths - np.log(-np.expm1(-exponent)).sum(), gradient

    start = np.full(len(scale), 0.3)
    options = {"ftol": 1e-14, "gtol": 1e-9}
    found = optimize.minimize(loss, start, jac=True, bounds=[(0, 30)] * len(scale), method="L-BFGS-B", options=options)
    strengths: Floats = found.x / scale
    return strengths


def interest_by_least_squares(
    optimize: Any, gathered: Floats, weights: Floats, bin_width: float
) -> tuple[float, float]:
    """Profit and decay of one source by a trust-region least squares in two variables."""
    ages = bin_width * (1 + np.arange(len(gathered)))
    root = np.sqrt(weights)

    def residuals(variables: Floats) -> Floats:
        shape: Floats = root * (variables[0] * -np.expm1(-np.exp(variables[1]) * ages) - gathered)
        return shape

    start = [float(gathered[-1]), 0.0]
    found = optimize.least_squares(residuals, start, xtol=1e-12, ftol=1e-12, gtol=1e-12)
    return float(found.x[0]), float(np.exp(found.x[1]))
