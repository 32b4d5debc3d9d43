"""Rows that nobody may change, built for every fetch: dataclasses that the type checker holds frozen.

`dataclass(frozen=True)` holds them frozen while the program runs too, and makes building one ten times as slow: with
half a dozen rows for each fetch that would be a tenth of what a tracker costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

Class = TypeVar("Class")


@dataclass_transform(frozen_default=True)
def record(cls: type[Class]) -> type[Class]:
    """Make a class a dataclass with slots and a hash, whose fields are not to be set.

    >>> @record
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> Point(1) == Point(1, 0), len({Point(1), Point(1, 0)})
    (True, 1)
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)
