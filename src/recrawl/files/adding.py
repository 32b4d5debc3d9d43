"""Columns that are added to a file while it is copied, handed out in step with its rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.files.cells import Batch, rows_of


class AddedColumns:
    """Extra columns of one length, taken from the front as the rows of the file go by."""

    def __init__(self, columns: Mapping[str, NDArray[Any]]) -> None:
        self._columns = dict(columns)
        self._taken = 0
        self._rows: int | None = None
        for name, values in self._columns.items():
            if self._rows is not None and len(values) != self._rows:
                raise InvalidInput(f"has {len(values)} values, but {self._rows} are to be added", field=name)
            self._rows = len(values)

    @property
    def names(self) -> frozenset[str]:
        """Names of the columns."""
        return frozenset(self._columns)

    def take(self, rows: int) -> dict[str, NDArray[Any]]:
        """Hand out the values of the next rows."""
        start, self._taken = self._taken, self._taken + rows
        if self._rows is not None and self._taken > self._rows:
            raise self._mismatch("more")
        return {name: values[start : self._taken] for name, values in self._columns.items()}

    def extend(self, batch: Batch) -> Batch:
        """Put the next values beside a batch, in place of columns with the same name."""
        return {**batch, **self.take(rows_of(batch))}

    def finish(self) -> None:
        """Refuse to end while values are left."""
        if self._rows is not None and self._taken < self._rows:
            raise self._mismatch("fewer")

    def _mismatch(self, word: str) -> InvalidInput:
        return InvalidInput(f"has {word} rows than the {self._rows} that were read from it: read it again")
