"""The one likelihood behind trust in signals: several causes of change, each adding to the chance.

An interval with amounts x ≥ 0 of the causes (time, signals of each kind) sees a change with probability 1 − e^{−x·s},
where s ≥ 0 are the strengths of the causes. The log-likelihood

    Σ_changed w ln(1 − e^{−x·s})  −  (Σ_unchanged x)·s

is concave. Intervals without a change enter by their sum alone, so only intervals with a change need to be kept.
The maximum is found by Newton steps that stop at the bounds (an active set). Many problems are solved at once.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import exact, kernel
from recrawl.pages import Floats

_STEPS = 200
_HALVINGS = 60
_SMALL = 1e-100
_FINE_ENOUGH = 1e-13
_NEARLY = 1e-4
# A cause that nothing speaks against would be infinitely strong. This many intervals in 1 speak against it.
_AGAINST = 1e-12


class HazardProblems(NamedTuple):
    """Many problems; problem g has the changed intervals `offsets[g]` to `offsets[g+1]`.

    Amounts should be scaled so that each column is about 1 on average; `against[g]` is the sum of amounts over the
    unchanged intervals.
    """

    offsets: NDArray[np.int64]
    amounts: Floats
    weights: Floats
    against: Floats


class HazardFit(NamedTuple):
    """Strengths of the causes (problems by causes) and the covariance of their errors."""

    strengths: Floats
    covariance: Floats


class _Work(NamedTuple):
    gradient: Floats
    curvature: Floats
    factor: Floats
    step: Floats
    trial: Floats


def fit_hazards(problems: HazardProblems) -> HazardFit:
    """Maximise the likelihood of every problem. O(changed intervals · causes²) per Newton step, about 8 steps.

    >>> problems = HazardProblems(np.array([0, 3]), np.ones((3, 1)), np.ones(3), np.array([[3.0]]))
    >>> bool(abs(fit_hazards(problems).strengths[0, 0] - np.log(2)) < 1e-12)  # half of six intervals changed
    True
    """
    groups, causes = problems.against.shape
    fit = HazardFit(np.zeros((groups, causes)), np.zeros((groups, causes, causes)))
    _fit_all(problems, fit)
    return fit


@kernel
def _fit_all(problems: HazardProblems, fit: HazardFit) -> None:
    groups, causes = problems.against.shape
    square = (causes, causes)
    work = _Work(np.empty(causes), np.empty(square), np.empty(square), np.empty(causes), np.empty(causes))
    for group in range(groups):
        strengths = fit.strengths[group]
        against = problems.against[group].copy()
        _start(problems, group, against, strengths)
        _climb(problems, group, against, strengths, work)
        _measure_errors(work, strengths, fit.covariance[group])


@kernel
def _start(problems: HazardProblems, group: int, against: Floats, strengths: Floats) -> None:
    """Share the overall chance of a change between the causes; one that no changed interval had cannot be a cause."""
    causes = against.size
    changed = 0.0
    for row in range(problems.offsets[group], problems.offsets[group + 1]):
        changed += problems.weights[row]
        for i in range(causes):
            strengths[i] += problems.weights[row] * problems.amounts[row, i]
    for i in range(causes):
        if strengths[i] > 0.0:
            against[i] = max(against[i], _AGAINST * changed)
            # Of one cause alone the answer would be about ln(1 + for/against) in units of its mean amount.
            mean = strengths[i] / changed
            strengths[i] = math.log1p(strengths[i] / against[i]) / (causes * mean)


@kernel
def _climb(problems: HazardProblems, group: int, against: Floats, strengths: Floats, work: _Work) -> None:
    """Newton steps to the maximum; a strength that reaches 0 stays there until the slope calls it back."""
    height = _evaluate(problems, group, against, strengths, work)
    for _ in range(_STEPS):
        gain = _newton_step(strengths, work)
        if gain <= _FINE_ENOUGH * (1.0 + abs(height)):
            return
        higher = _step_up(problems, group, against, strengths, work, height, gain)
        if higher == -math.inf:
            _evaluate(problems, group, against, strengths, work)
            return
        height = higher


@kernel
def _step_up(
    problems: HazardProblems, group: int, against: Floats, strengths: Floats, work: _Work, height: float, gain: float
) -> float:
    """Go along the step as far as it leads up, and no strength below 0; return the new height, or −∞ if it does not."""
    causes = strengths.size
    length, bound = 1.0, -1
    for i in range(causes):
        if strengths[i] + length * work.step[i] < 0.0:
            length, bound = -strengths[i] / work.step[i], i
    for _ in range(_HALVINGS):
        for i in range(causes):
            work.trial[i] = max(strengths[i] + length * work.step[i], 0.0)
        if bound >= 0:
            work.trial[bound] = 0.0
        higher = _evaluate(problems, group, against, work.trial, work)
        if higher >= height + 1e-4 * length * gain:
            strengths[:] = work.trial
            return higher
        length, bound = 0.5 * length, -1
    return -math.inf


@kernel
def _evaluate(problems: HazardProblems, group: int, against: Floats, strengths: Floats, work: _Work) -> float:
    """Set gradient and curvature (the negative Hessian) of the log-likelihood and return its height.

    Returns −∞ if a change happened that nothing can have caused.
    """
    causes = against.size
    height = 0.0
    work.curvature[:] = 0.0
    for i in range(causes):
        work.gradient[i] = -against[i]
        height -= against[i] * strengths[i]
    for row in range(problems.offsets[group], problems.offsets[group + 1]):
        exponent = 0.0
        for i in range(causes):
            exponent += problems.amounts[row, i] * strengths[i]
        if exponent <= 0.0:
            return -math.inf
        exponent = min(exponent, 700.0)  # all is certain long before, and e^y must not overflow
        grown = max(math.expm1(exponent), _SMALL)
        weight = problems.weights[row]
        height += weight * (math.log(grown) - exponent)
        pull = weight / grown
        bend = pull * (1.0 + 1.0 / grown)
        for i in range(causes):
            amount = problems.amounts[row, i]
            work.gradient[i] += pull * amount
            for j in range(i + 1):
                work.curvature[i, j] += bend * amount * problems.amounts[row, j]
    return height


@exact
def _newton_step(strengths: Floats, work: _Work) -> float:
    """Set the step and return what it promises to gain; near the maximum of the others a cause may leave its bound."""
    gain = _step_of_free(strengths, work, -1)
    if gain > _NEARLY:
        return gain
    called, slope = -1, 0.0
    for i in range(strengths.size):
        if strengths[i] == 0.0 and work.gradient[i] > slope:
            called, slope = i, work.gradient[i]
    if called >= 0:
        gain = _step_of_free(strengths, work, called)
        if work.step[called] <= 0.0:  # the others are not near enough yet
            gain = _step_of_free(strengths, work, -1)
    return gain


@exact
def _step_of_free(strengths: Floats, work: _Work, called: int) -> float:
    """The Newton step of the causes above 0 and of the one that is called back."""
    causes = strengths.size
    free = np.empty(causes, dtype=np.int64)
    size = 0
    for i in range(causes):
        work.step[i] = 0.0
        if strengths[i] > 0.0 or i == called:
            free[size] = i
            size += 1
    for a in range(size):
        for b in range(a + 1):
            work.factor[a, b] = work.curvature[free[a], free[b]]
    _factorise(work.factor, size)
    solution = np.empty(size)
    for a in range(size):
        solution[a] = work.gradient[free[a]]
    _solve(work.factor, size, solution)
    gain = 0.0
    for a in range(size):
        work.step[free[a]] = solution[a]
        gain += solution[a] * work.gradient[free[a]]
    return gain


@exact
def _factorise(matrix: Floats, size: int) -> None:
    """Cholesky factor in place (lower half); causes that always come together get a little stiffness of their own."""
    for a in range(size):
        for b in range(a + 1):
            total = matrix[a, b]
            for c in range(b):
                total -= matrix[a, c] * matrix[b, c]
            if a == b:
                matrix[a, a] = math.sqrt(max(total, 1e-11 * matrix[a, a], 1e-200))
            else:
                matrix[a, b] = total / matrix[b, b]


@exact
def _solve(factor: Floats, size: int, vector: Floats) -> None:
    """Solve with a Cholesky factor, in place."""
    for a in range(size):
        for b in range(a):
            vector[a] -= factor[a, b] * vector[b]
        vector[a] /= factor[a, a]
    for a in range(size - 1, -1, -1):
        for b in range(a + 1, size):
            vector[a] -= factor[b, a] * vector[b]
        vector[a] /= factor[a, a]


@exact
def _measure_errors(work: _Work, strengths: Floats, covariance: Floats) -> None:
    """The covariance at the maximum.

    At a bound the likelihood falls with slope g, as e^{−gs} does, whose standard deviation is 1/g: g² stands for the
    curvature that is missing there.
    """
    causes = strengths.size
    for i in range(causes):
        for j in range(i + 1):
            work.factor[i, j] = work.curvature[i, j]
        if strengths[i] == 0.0:
            work.factor[i, i] += max(work.gradient[i] ** 2, 1e-30)
    _factorise(work.factor, causes)
    column = np.empty(causes)
    for i in range(causes):
        column[:] = 0.0
        column[i] = 1.0
        _solve(work.factor, causes, column)
        for j in range(causes):
            covariance[j, i] = column[j]
