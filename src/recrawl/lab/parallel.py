"""Processes that share the repetitions of an experiment. Results come in order and do not depend on their number."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Protocol, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


class Workers(Protocol):
    """Maps tasks to results, in the order of the tasks."""

    def __call__(self, function: Callable[[Task], Result], tasks: Sequence[Task], /) -> list[Result]:
        """Run the function, which must be one that a process can import, on every task."""
        ...


@contextmanager
def workers(number: int) -> Iterator[Workers]:
    """So many processes that share the tasks, or none beside this one; results are the same."""
    if number <= 1:
        yield _one_by_one
        return
    # Spawned, because a fork of a process with threads of numba or matplotlib may hang.
    with ProcessPoolExecutor(number, mp_context=multiprocessing.get_context("spawn")) as pool:

        def shared(function: Callable[[Task], Result], tasks: Sequence[Task], /) -> list[Result]:
            return list(pool.map(function, tasks))

        yield shared


def _one_by_one(function: Callable[[Task], Result], tasks: Sequence[Task], /) -> list[Result]:
    return [function(task) for task in tasks]
