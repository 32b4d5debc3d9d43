"""Array functions made of scalar kernels: check the arguments, broadcast them, call the kernel.

Kernels trust their arguments. Everything that comes from outside is checked here, once for each array.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from recrawl.errors import InvalidInput
from recrawl.jit import elementwise
from recrawl.pages import Floats

Values: TypeAlias = Any
"""A float if every argument is a scalar, else a float64 array of the broadcast shape; typed like a ufunc."""
ArrayFunction: TypeAlias = Callable[..., Values]

_LARGEST = math.nextafter(math.inf, 0.0)
_SMALLEST = math.nextafter(0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Rule:
    """What every number of an argument must be: from `low` to `high`, and whole if `whole` is set."""

    sentence: str
    low: float = 0.0
    high: float = math.inf
    whole: bool = False

    def check(self, name: str, column: Floats) -> None:
        """Raise `InvalidInput` that names the first number which breaks the rule; NaN breaks all. O(column)."""
        if not self._holds(column):
            good = (column >= self.low) & (column <= self.high)
            bad = ~(good & (column == np.floor(column)) if self.whole else good)
            index = np.unravel_index(int(np.argmax(bad)), column.shape)
            problem = f"is {float(column[index])}: it {self.sentence}"
            if column.ndim == 1:
                raise InvalidInput(problem, field=name, row=int(index[0]))
            place = f"[{', '.join(str(int(i)) for i in index)}]" if column.ndim else ""
            raise InvalidInput(problem, field=name + place)

    def _holds(self, column: Floats) -> bool:
        # The least and the largest number tell quickly.
        if not column.size:
            return True
        inside = self.low <= column.min() and column.max() <= self.high
        return bool(inside and (not self.whole or (column == np.floor(column)).all()))


AMOUNT = Rule("must be a finite number, 0 or more", high=_LARGEST)
POSITIVE = Rule("must be a finite number above 0", low=_SMALLEST, high=_LARGEST)
SPAN = Rule("must be a number, 0 or more; infinity is allowed")
PROBABILITY = Rule("must be a number from 0 to 1", high=1.0)
COUNT = Rule("must be a whole number, 0 or more", high=_LARGEST, whole=True)


def function(kernel: Callable[..., float], rules: Mapping[str, Rule], doc: str, **defaults: float) -> ArrayFunction:
    """Make a function over arrays of a scalar kernel.

    Args:
        kernel: takes floats that obey the rules, in their order.
        rules: the name and rule of each argument.
        doc: the docstring; "O(elements)" is not repeated there.
        defaults: values of the last arguments, used if the caller omits them or gives None.

    Returns:
        A function of numbers or arrays that broadcast against each other. It returns a float if every argument is a
        scalar, else a float64 array, and raises `InvalidInput` that names the first argument at fault, its index,
        its value and its rule.
    """
    return over_arrays(elementwise(kernel), rules, doc, **defaults)


def over_arrays(apply: Callable[..., Any], rules: Mapping[str, Rule], doc: str, **defaults: float) -> ArrayFunction:
    """Make the same of a function that takes float64 arrays which broadcast against each other."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature(
        [inspect.Parameter(name, kind, default=None if name in defaults else inspect.Parameter.empty) for name in rules]
    )

    def call(*inputs: ArrayLike | None, **named: ArrayLike | None) -> Values:
        given = defaults | {
            name: value
            for name, value in signature.bind(*inputs, **named).arguments.items()
            if value is not None or name not in defaults
        }
        columns = {name: _numbers(name, given[name]) for name in rules}
        _check_shapes(columns)
        for name, rule in rules.items():
            rule.check(name, columns[name])
        with np.errstate(all="ignore"):  # overflow to infinity is a right answer here
            values = apply(*columns.values())
        return float(values) if np.ndim(values) == 0 else values

    call.__doc__ = doc
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def _numbers(name: str, value: ArrayLike | None) -> Floats:
    try:
        column = np.asarray(value)
    except ValueError:  # rows of different lengths
        column = np.empty(0, dtype=object)
    if column.dtype.kind not in "biuf":
        raise InvalidInput("must be a number or an array of numbers", field=name)
    return column.astype(np.float64, copy=False)


def _check_shapes(columns: Mapping[str, Floats]) -> None:
    try:
        np.broadcast_shapes(*(column.shape for column in columns.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {column.shape}" for name, column in columns.items())
        raise InvalidInput(f"shapes do not fit together: {shapes}; give one number or equally many") from None
