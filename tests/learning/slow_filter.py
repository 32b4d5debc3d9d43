"""The online filter in its slowest, plainest form: all crawls are kept, and every likelihood is summed afresh."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from recrawl.learning.grid import RatePrior
from recrawl.pages import Floats


class SlowFilter:
    """One page. The constants repeat those of the kernels on purpose: a change must be made twice."""

    def __init__(self, prior: RatePrior, doubt: float = 0.0) -> None:
        self.doubt = doubt
        self.rates = prior.grid.rates
        self.log_rates = prior.grid.log_rates
        self.prior = prior.weights
        self.lasting: list[tuple[float, bool]] = []
        self.recent: list[tuple[float, bool]] = []
        self.evidence = 0.0
        self.rising = True
        self.before = 0.0

    def update(self, gap: float, changed: bool) -> None:
        lasting = _posterior(self.prior, self.rates, self.lasting)
        expected = _chance(lasting, self.rates, gap, changed)
        evidence = 0.0
        if self.evidence > 0:
            recent = _posterior(self._jump(self.before, self.rising), self.rates, self.recent)
            chance = _chance(recent, self.rates, gap, changed)
            evidence = max(self.evidence + _gain(chance, expected, changed, self.rising), 0.0)
        centre = float(lasting @ self.log_rates)
        fresh = _chance(_posterior(self._jump(centre, changed), self.rates, []), self.rates, gap, changed)
        started = _gain(fresh, expected, changed, changed)
        if started > evidence:
            evidence, self.recent, self.rising, self.before = started, [], changed, centre
        self.lasting.append((gap, changed))
        self.evidence = min(evidence, 9.0 + self.doubt)
        if self.evidence <= 0:
            self.recent = []
            return
        self.recent.append((gap, changed))
        changes = sum(changed for _, changed in self.recent)
        if self.evidence >= 6 + self.doubt and min(changes, len(self.recent) - changes) >= 3:
            self.lasting, self.recent, self.evidence = self.recent, [], 0.0

    def log_mean(self) -> float:
        weights = _posterior(self.prior, self.rates, self.lasting)
        if self.evidence > 0:
            believed = (3.3 if self.rising else 5.0) + self.doubt
            share = 1 / (1 + math.exp(-6 * (self.evidence - believed)))
            recent = _posterior(self._jump(self.before, self.rising), self.rates, self.recent)
            weights = (1 - share) * weights + share * recent
        return float(weights @ self.log_rates)

    def _jump(self, before: float, rising: bool) -> Floats:
        jump = (self.log_rates - before) * (1 if rising else -1)
        weights: Floats = np.exp(-(((jump - math.log(12)) / 0.8) ** 2) / 2)
        return weights


def _posterior(prior: Floats, rates: Floats, crawls: list[tuple[float, bool]]) -> Floats:
    log_weights = np.log(np.maximum(prior, 1e-300))
    for gap, changed in crawls:
        log_weights = log_weights + (np.log(-np.expm1(-rates * gap)) if changed else -rates * gap)
    weights: Floats = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    return weights


def _chance(weights: Floats, rates: Floats, gap: float, changed: bool) -> float:
    unchanged: NDArray[np.float64] = np.exp(-rates * gap)
    return float(weights @ (1 - unchanged if changed else unchanged))


def _gain(recent: float, lasting: float, changed: bool, rising: bool) -> float:
    busier = recent if rising else lasting
    return math.log(recent / lasting) - 0.2 * (busier if changed else 1 - busier)


class OneGamma:
    """One Gamma distribution per page, matched to mean and variance after each change: the 8-byte filter."""

    def __init__(self, prior: RatePrior, pages: int) -> None:
        rates = prior.grid.rates
        mean = float(prior.weights @ rates)
        variance = float(prior.weights @ rates**2) - mean**2
        self.shape = np.full(pages, mean**2 / variance)
        self.exposure = np.full(pages, mean / variance)

    def update(self, gaps: Floats, changed: NDArray[np.bool_]) -> None:
        k, exposure = self.shape, self.exposure
        log = -np.log1p(gaps / exposure)
        below = np.expm1(k * log)
        mean = k / exposure * np.expm1((k + 1) * log) / below
        square = k * (k + 1) / exposure**2 * np.expm1((k + 2) * log) / below
        matched = mean / (square - mean**2)
        self.shape = np.where(changed, mean * matched, k)
        self.exposure = np.where(changed, matched, exposure + gaps)
