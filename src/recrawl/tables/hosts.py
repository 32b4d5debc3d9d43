"""Names to numbers: a column of host names, or of words from a short list, as codes and the list of names.

No step looks at rows one by one in Python: each batch is dictionary-encoded by Arrow, and dictionaries are
merged when the rows that wait outnumber the names known, so that the work stays proportional to the rows.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.pages import Hosts
from recrawl.tables.arrow import TEXT, Cells, compute, first_true, to_text
from recrawl.tables.numbers import is_text

_Encoded: TypeAlias = "pa.DictionaryArray[Any, Any]"
_LEAST_MERGED_ROWS = 1_000_000
_LONGEST_WORD = 24


class NameColumn:
    """Collects a column of names batch by batch; codes count names in order of appearance."""

    def __init__(self, field: str) -> None:
        self._field = field
        self._names: Cells = pa.array([], TEXT)
        self._codes: list[NDArray[np.int32]] = []
        self._waiting: list[_Encoded] = []
        self._waiting_rows = 0
        self._rows = 0

    def add(self, cells: Cells) -> None:
        """Take the next cells; O(cells), amortised."""
        encoded = self._encode(cells)
        self._waiting.append(encoded)
        self._waiting_rows += len(encoded)
        self._rows += len(encoded)
        if self._waiting_rows >= max(_LEAST_MERGED_ROWS, len(self._names)):
            self._merge()

    def finish(self) -> Hosts:
        """Hand over codes and names; names that no row uses are dropped."""
        self._merge()
        chunks, self._codes = self._codes, []
        codes = np.concatenate(chunks) if chunks else np.empty(0, dtype=np.int32)
        used = np.bincount(codes, minlength=len(self._names)) > 0
        names, self._names = self._names, pa.array([], TEXT)
        if not used.all():
            codes = (np.cumsum(used) - 1)[codes]
            names = names.filter(pa.array(used))
        return Hosts(codes.astype(np.int64, copy=False), names.to_pylist())

    def _encode(self, cells: Cells) -> _Encoded:
        if isinstance(cells, pa.DictionaryArray):
            values, indices = self._text(cells.dictionary), cells.indices.cast(pa.int32())
            if values.null_count:
                cells = self._text(cells.dictionary_decode()).dictionary_encode()
            else:
                cells = pa.DictionaryArray.from_arrays(indices, values)
        else:
            cells = self._text(cells).dictionary_encode()
        self._check_present(cells)
        return cells

    def _text(self, cells: Cells) -> Cells:
        kind = cells.type
        if not (is_text(kind) or kinds.is_integer(kind) or kinds.is_null(kind)):
            raise InvalidInput(f"holds values of type {kind}, but must hold text", field=self._field)
        try:
            return to_text(cells)
        except pa.ArrowInvalid:
            raise InvalidInput("holds bytes that are not UTF-8 text", field=self._field) from None

    def _check_present(self, cells: _Encoded) -> None:
        missing = cells.indices.is_null()
        blank = compute.index(cells.dictionary, pa.scalar("", TEXT)).as_py()
        if blank >= 0:
            missing = compute.or_(missing, compute.fill_null(compute.equal(cells.indices, blank), True))
        if compute.any(missing).as_py():
            raise InvalidInput(
                f"is missing: write a {self._field} in every row, or leave the column out",
                field=self._field,
                row=self._rows + first_true(missing),
            )

    def _merge(self) -> None:
        """Give the waiting rows codes; the known names stand first, so codes given earlier stay right."""
        if not self._waiting:
            return
        known = pa.DictionaryArray.from_arrays(pa.array([], pa.int32()), self._names)
        merged: Any = pa.chunked_array([known, *self._waiting]).unify_dictionaries()
        self._waiting, self._waiting_rows = [], 0
        self._names = merged.chunk(0).dictionary
        self._codes.extend(chunk.indices.to_numpy() for chunk in merged.chunks[1:])


class WordColumn(NameColumn):
    """Collects a column of words from a short list, as an array of text."""

    def words(self) -> NDArray[np.str_]:
        """Hand over the column; a word longer than any that is legal is cut, so that it costs no memory."""
        words = self.finish()
        names = [str(name)[:_LONGEST_WORD] for name in words.names]
        return np.array(names or [""], dtype=np.str_)[words.codes]
