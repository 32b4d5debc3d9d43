"""The thin checked wrapper between the caller's arrays and the value kernels.

A kernel returns NaN exactly when an argument breaks its rule. So the wrapper computes first, looks for NaN in
the answer once, and only then searches for the argument at fault: legal input costs one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import InvalidInput

Floats: TypeAlias = NDArray[np.float64]
Values: TypeAlias = Any
"""A float if every argument is a scalar, else a float64 array of the broadcast shape; typed like a ufunc."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What an argument must be: a sentence that starts with "must be", and the test for it."""

    sentence: str
    holds: Callable[[Floats], NDArray[np.bool_]]


AMOUNT = Rule("must be a finite number, 0 or more", lambda x: (x >= 0) & (x < np.inf))
POSITIVE = Rule("must be a finite number above 0", lambda x: (x > 0) & (x < np.inf))
SPAN = Rule("must be a number, 0 or more; infinity is allowed", lambda x: x >= 0)
COUNT = Rule("must be a whole number, 0 or more", lambda x: (x >= 0) & _whole(x))
POSITIVE_COUNT = Rule("must be a whole number, 1 or more", lambda x: (x >= 1) & _whole(x))


def evaluate(function: Callable[..., Any], rules: Mapping[str, Rule], *inputs: ArrayLike) -> Values:
    """Apply an elementwise kernel to inputs that broadcast against each other.

    Args:
        function: a ufunc that returns NaN exactly when an argument breaks its rule.
        rules: the name and rule of each argument, in order.
        inputs: numbers or arrays of numbers.

    Returns:
        A float if every input is a scalar, else a float64 array. O(elements).

    Raises:
        InvalidInput: naming the first argument at fault, its index, its value and its rule.
    """
    columns = [_numbers(name, value) for name, value in zip(rules, inputs, strict=True)]
    _check_shapes(list(rules), columns)
    with np.errstate(all="ignore"):  # overflow to infinity is a right answer here
        values = function(*columns)
    if np.isnan(values).any():
        raise _first_fault(rules, columns)
    return float(values) if np.ndim(values) == 0 else values


def _numbers(name: str, value: ArrayLike) -> Floats:
    try:
        column = np.asarray(value)
    except ValueError:  # rows of different lengths
        column = np.empty(0, dtype=object)
    if column.dtype.kind not in "biuf":
        raise InvalidInput("must be a number or an array of numbers", field=name)
    return column.astype(np.float64, copy=False)


def _whole(x: Floats) -> NDArray[np.bool_]:
    whole: NDArray[np.bool_] = (x < np.inf) & (x == np.floor(x))
    return whole


def _check_shapes(names: list[str], columns: list[Floats]) -> None:
    try:
        np.broadcast_shapes(*(column.shape for column in columns))
    except ValueError:
        shapes = ", ".join(f"{name} {column.shape}" for name, column in zip(names, columns, strict=True))
        raise InvalidInput(f"shapes do not fit together: {shapes}; give one number or equally many") from None


def _first_fault(rules: Mapping[str, Rule], columns: list[Floats]) -> InvalidInput:
    for (name, rule), column in zip(rules.items(), columns, strict=True):
        faults = ~rule.holds(column)
        if faults.any():
            index = np.unravel_index(int(np.argmax(faults)), column.shape)
            problem = f"is {float(column[index])}: it {rule.sentence}"
            if column.ndim == 1:
                return InvalidInput(problem, field=name, row=int(index[0]))
            place = f"[{', '.join(str(int(i)) for i in index)}]" if column.ndim else ""
            return InvalidInput(problem, field=name + place)
    return InvalidInput(f"{', '.join(rules)} have no value together")
