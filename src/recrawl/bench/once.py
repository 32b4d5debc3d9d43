"""Work that several measures share: done when the first of them asks, and never again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Once(Generic[T]):
    """Does a piece of work once; if it fails, all who ask are told why, and nobody waits for it again.

    >>> count = iter(range(9))
    >>> number = Once(lambda: next(count))
    >>> number(), number()
    (0, 0)

    Args:
        work: to be done.
    """

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._done: list[T] = []
        self._failed: Exception | None = None

    def __call__(self) -> T:
        """What came of it."""
        if self._failed is not None:
            raise self._failed
        if not self._done:
            try:
                self._done.append(self._work())
            except Exception as error:
                self._failed = error
                raise
        return self._done[0]
