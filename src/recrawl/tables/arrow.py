"""Arrow as this room uses it, where its type stubs know less than it can do."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute

Cells: TypeAlias = "pa.Array[Any]"
"""One column of one batch."""

TEXT = pa.large_string()

# The stubs lack overloads that mix columns and single values.
compute: Any = pyarrow.compute


def open_file(path: Path) -> pa.NativeFile:
    """Open a file for Arrow by its bytes, as a name need not be UTF-8."""
    return pa.OSFile(cast(str, os.fsencode(path)), "rb")


def to_text(cells: Cells) -> Cells:
    """Cells as text; raises ArrowInvalid for bytes that are not UTF-8, which Parquet does not keep out of text."""
    text = cells.cast(TEXT)
    text.validate(full=True)
    return text


def first_true(mask: Any) -> int:
    """The index of the first true entry of a column of booleans."""
    return int(compute.index(mask, True).as_py())


def join(*parts: Cells | str, between: str = "") -> Cells:
    """Join columns of text and fixed pieces row by row."""
    pieces = [pa.scalar(part, TEXT) if isinstance(part, str) else part for part in parts]
    joined: Cells = compute.binary_join_element_wise(*pieces, pa.scalar(between, TEXT))
    return joined


def content(texts: Cells) -> memoryview:
    """The bytes of all texts of a column, one after the other."""
    buffers: list[Any] = texts.buffers()
    ends = np.frombuffer(buffers[1], dtype=np.int64)
    return memoryview(buffers[2])[ends[texts.offset] : ends[texts.offset + len(texts)]]
