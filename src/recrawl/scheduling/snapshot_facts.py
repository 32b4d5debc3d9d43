"""Plain values by name from a snapshot, each checked when it is asked for. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from recrawl.errors import InvalidInput
from recrawl.scheduling.table.records import HostName

_NOT_FINITE = {"inf": math.inf, "-inf": -math.inf}


def plain(number: float) -> float | str:
    """A number as JSON can hold it, which has no infinity."""
    return float(number) if math.isfinite(number) else str(float(number))


class Facts:
    """Values that nobody has checked yet.

    >>> Facts({"seed": 7}).whole("seed", 0, 10)
    7
    >>> Facts({"seed": 7.5}).whole("seed", 0, 10)
    Traceback (most recent call last):
    ...
    recrawl.errors.InvalidInput: is damaged: seed is 7.5
    """

    def __init__(self, values: Any, name: str = "its header") -> None:
        if not isinstance(values, Mapping):
            raise InvalidInput(f"is damaged: {name} is not what it should be")
        self._values = values

    def has(self, name: str) -> bool:
        """Whether there is such a value, and it is not null."""
        return self._values.get(name) is not None

    def number(self, name: str, low: float, high: float) -> float:
        """A number from low to high."""
        value = self._values.get(name)
        if isinstance(value, str):
            value = _NOT_FINITE.get(value)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self._wrong(name)
        try:
            number = float(value)
        except OverflowError:  # a whole number that no float reaches
            number = math.nan
        if not low <= number <= high:
            raise self._wrong(name)
        return number

    def whole(self, name: str, low: int, high: int) -> int:
        """A whole number from low to high; true and false are 1 and 0."""
        value = self._values.get(name)
        if not isinstance(value, int) or not low <= value <= high:
            raise self._wrong(name)
        return int(value)

    def whole_numbers(self, name: str, low: int, high: int) -> list[int]:
        """A list of whole numbers from low to high."""
        values = self._list(name)
        if not all(type(value) is int and low <= value <= high for value in values):
            raise self._wrong(name)
        return values

    def text(self, name: str) -> str:
        """A text."""
        value = self._values.get(name)
        if not isinstance(value, str):
            raise self._wrong(name)
        return value

    def names(self, name: str) -> list[HostName]:
        """A list of names, each a text or a whole number."""
        values = self._list(name)
        if not all(type(value) in (str, int) for value in values):
            raise self._wrong(name)
        return values

    def part(self, name: str) -> Facts:
        """Values within."""
        return Facts(self._values.get(name), name)

    def _list(self, name: str) -> list[Any]:
        value = self._values.get(name)
        if not isinstance(value, list):
            raise self._wrong(name)
        return value

    def _wrong(self, name: str) -> InvalidInput:
        shown = repr(self._values.get(name))
        return InvalidInput(f"is damaged: {name} is {shown if len(shown) <= 60 else shown[:60] + '…'}")
