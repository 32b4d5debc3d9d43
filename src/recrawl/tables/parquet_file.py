"""Parquet files as a stream of batches, with the types that the file has."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as kinds

from recrawl.errors import InvalidFile
from recrawl.tables.arrow import open_file
from recrawl.tables.formats import WORD_COLUMNS
from recrawl.tables.source import Progress, check_names, damaged, pick, reason

_BATCH_BYTES = 32 << 20
_MOST_BATCH_ROWS = 1 << 17
_SAMPLED_GROUPS = 16
# Read column chunks piece by piece and none ahead: neither a huge row group nor a long file fills the memory.
_STREAMED: dict[str, Any] = {"buffer_size": 1 << 20, "pre_buffer": False}


class ParquetFile:
    """A Parquet file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            file = self._open()
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise InvalidFile(str(path), f"is no complete Parquet file, so write it again: {reason(error)}") from None
        self.columns = tuple(file.schema_arrow.names)
        if not self.columns:
            raise InvalidFile(str(path), "has no columns")
        check_names(path, self.columns)

    def batches(
        self, names: Collection[str] | None = None, progress: Progress | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Stream the named columns, or all; of named ones, words come dictionary-encoded."""
        wanted = [name for name in self.columns if names is None or name in names]
        words = [] if names is None else [name for name in wanted if name in WORD_COLUMNS]
        try:
            file = self._open(words)
            total = file.metadata.num_rows
            if not total:
                schema = file.schema_arrow.empty_table().select(wanted).schema
                yield pa.RecordBatch.from_pylist([], schema=schema)
            done = 0
            for batch in file.iter_batches(_batch_rows(file.metadata), columns=None if names is None else wanted):
                yield batch
                done += batch.num_rows
                if progress is not None:
                    progress(done, total)
        except (pa.ArrowException, OSError) as error:
            raise damaged(self._path, error) from None

    def typed_batches(self, progress: Progress | None = None) -> Iterator[pa.RecordBatch]:
        """Stream all columns with the types that the file has."""
        return self.batches(progress=progress)

    def cells(self, name: str, rows: Sequence[int]) -> dict[int, Any]:
        """The values of one column in a few rows; reads only the row groups that hold them."""
        found: dict[int, Any] = {}
        try:
            file = self._open()
            start = 0
            for group in range(file.metadata.num_row_groups):
                stop = start + file.metadata.row_group(group).num_rows
                inside = [row - start for row in rows if start <= row < stop]
                if inside:
                    batches = file.iter_batches(_batch_rows(file.metadata), row_groups=[group], columns=[name])
                    found.update((start + row, value) for row, value in pick(batches, inside).items())
                start = stop
        except (pa.ArrowException, OSError) as error:
            raise damaged(self._path, error) from None
        return found

    def _open(self, words: Sequence[str] = ()) -> pq.ParquetFile:
        file = pq.ParquetFile(open_file(self._path), **_STREAMED)
        texts = [name for name in words if kinds.is_string(file.schema_arrow.field(name).type)]
        if not texts:
            return file
        return pq.ParquetFile(open_file(self._path), **_STREAMED, read_dictionary=texts)


def _batch_rows(metadata: pq.FileMetaData) -> int:
    """How many rows make a batch of some megabytes, judged by the largest rows of a few row groups.

    The sizes of single columns are left alone: asked for those of a damaged file, Arrow ends the process.
    """
    groups = metadata.num_row_groups
    row_bytes = 1.0
    for group in range(0, groups, max(1, groups // _SAMPLED_GROUPS)):
        facts = metadata.row_group(group)
        row_bytes = max(row_bytes, facts.total_byte_size / max(facts.num_rows, 1))
    return max(1, min(_MOST_BATCH_ROWS, int(_BATCH_BYTES / row_bytes)))
