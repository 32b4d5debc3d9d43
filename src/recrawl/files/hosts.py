"""Names to numbers: a column of host names, or of words from a short list, as codes and the list of names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.files.cells import Cells, Names, Want, dumps, is_unicode, shown, text_of
from recrawl.pages import Hosts

_LONGEST_WORD = 24


class NameColumn:
    """Collects a column of names batch by batch; codes count names in order of appearance."""

    wants: ClassVar[Want] = "text"

    def __init__(self, field: str) -> None:
        self._field = field
        self._codes: list[NDArray[np.int32]] = []
        self._rows = 0
        self._numbers = _numbering()

    def add(self, cells: Cells) -> None:
        """Take the next cells; O(cells)."""
        if isinstance(cells, Names):
            codes = self._translate(cells)
        else:
            assert not isinstance(cells, np.ndarray)
            names = self._text(cells)
            codes = np.fromiter(map(self._numbers.__getitem__, names), np.int32, len(names))
        blank = self._numbers.get("", -1)
        missing = (codes < 0) | (codes == blank)
        if missing.any():
            raise InvalidInput(
                f"is missing: write a {self._field} in every row, or leave the column out",
                field=self._field,
                row=self._rows + int(np.argmax(missing)),
            )
        self._codes.append(codes)
        self._rows += len(codes)

    def finish(self) -> Hosts:
        """Hand over codes and names."""
        chunks, self._codes = self._codes, []
        names, self._numbers = list(self._numbers), _numbering()
        codes = np.concatenate(chunks) if chunks else np.empty(0, dtype=np.int32)
        return Hosts(codes.astype(np.int64), names)

    def _translate(self, cells: Names) -> NDArray[np.int32]:
        """Codes of a batch to ours; names that no row uses get none."""
        used, first = np.unique(cells.codes, return_index=True)
        codes = np.full(len(cells.names) + 1, -1, dtype=np.int32)  # the last is for what is missing
        for code in used[np.argsort(first)]:
            if code >= 0:
                codes[code] = self._numbers[cells.names[code]]
        ours: NDArray[np.int32] = codes[cells.codes]
        return ours

    def _text(self, cells: Sequence[Any]) -> Sequence[str]:
        if set(map(type, cells)) <= {str}:
            return cells if is_unicode("".join(cells)) else [text_of(cell) for cell in cells]
        return [self._name(cell, row) for row, cell in enumerate(cells, self._rows)]

    def _name(self, cell: Any, row: int) -> str:
        if cell is None:
            return ""
        if isinstance(cell, str) or (isinstance(cell, int) and not isinstance(cell, bool)):
            return text_of(cell)
        raise InvalidInput(f"is {shown(dumps(cell))}, but must be text: put it in quotes", field=self._field, row=row)


class WordColumn(NameColumn):
    """Collects a column of words from a short list, as an array of text."""

    def words(self) -> NDArray[np.str_]:
        """Hand over the column; a word longer than any that is legal is cut, so that it costs no memory."""
        words = self.finish()
        names = [str(name)[:_LONGEST_WORD] for name in words.names]
        return np.array(names or [""], dtype=np.str_)[words.codes]


def _numbering() -> defaultdict[str, int]:
    """A dictionary that numbers its keys as they are first asked for."""
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    return numbers
