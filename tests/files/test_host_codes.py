"""Host names to codes, against the plainest way to do it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.files.columns import NameColumn
from recrawl.files.parquet_file import plain_cells


def plain_codes(names: list[str]) -> tuple[list[int], list[str]]:
    """Number names as they come, one by one."""
    numbers: dict[str, int] = {}
    codes = [numbers.setdefault(name, len(numbers)) for name in names]
    return codes, list(numbers)


def encoded(codes: Any, names: Any) -> Any:
    """A batch as Parquet hands it over."""
    return plain_cells(pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(names)), "text", "host")


@given(
    batches=st.lists(st.lists(st.sampled_from("abcdefgh") | st.text(min_size=1), max_size=20), max_size=8),
    by_arrow=st.booleans(),
)
def test_codes_count_names_in_order_of_appearance(batches: list[list[str]], by_arrow: bool) -> None:
    """However the rows are cut into batches, from lists and from Arrow."""
    usable = [[name.encode("utf-8", "replace").decode() for name in batch] for batch in batches]
    column = NameColumn("host")
    for batch in usable:
        column.add(plain_cells(pa.array(batch, pa.string()), "text", "host") if by_arrow else batch)
    found = column.finish()
    assert (found.codes.tolist(), list(found.names)) == plain_codes([name for batch in usable for name in batch])
    assert found.codes.dtype == np.int64


def test_plain_and_encoded_batches_mix() -> None:
    """A dictionary may repeat names, hold unused ones, or hold a null that no row uses."""
    column = NameColumn("host")
    column.add(["b", "a"])
    column.add(encoded([3, 1, 0], ["a", "b", "unused", "a"]))
    column.add(encoded([1], [None, "c"]))
    found = column.finish()
    assert [found.names[code] for code in found.codes] == ["b", "a", "a", "b", "a", "c"]
    assert sorted(map(str, found.names)) == ["a", "b", "c"]


def test_a_null_inside_a_dictionary_is_a_missing_host() -> None:
    """Arrow does not count it as a null of the column."""
    column = NameColumn("host")
    column.add(["x"])
    with pytest.raises(ValueError, match=r"host\[2\] is missing"):
        column.add(encoded([0, 1], ["a", None]))


@pytest.mark.parametrize("cell", [1.5, True, ["a"]])
def test_a_host_is_text_or_a_whole_number(cell: object) -> None:
    """Anything else in JSON is a slip, and is named with its row."""
    column = NameColumn("host")
    column.add(["x"])
    with pytest.raises(ValueError, match=r"host\[2\] is '.*', but must be text: put it in quotes"):
        column.add(["a", cell])


def test_no_rows_have_no_hosts() -> None:
    """An empty file has empty columns."""
    found = NameColumn("host").finish()
    assert (found.codes.tolist(), list(found.names)) == ([], [])
