"""Host names to codes, against the plainest way to do it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.tables import hosts
from recrawl.tables.hosts import NameColumn


def plain_codes(names: list[str]) -> tuple[list[int], list[str]]:
    """Number names as they come, one by one."""
    numbers: dict[str, int] = {}
    codes = [numbers.setdefault(name, len(numbers)) for name in names]
    return codes, list(numbers)


@given(batches=st.lists(st.lists(st.sampled_from("abcdefgh") | st.text(min_size=1), max_size=20), max_size=8))
def test_codes_count_names_in_order_of_appearance(batches: list[list[str]]) -> None:
    """However the rows are cut into batches, and whenever these are merged."""
    usable = [[name.encode("utf-8", "replace").decode() for name in batch] for batch in batches]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hosts, "_LEAST_MERGED_ROWS", 7)
        column = NameColumn("host")
        for batch in usable:
            column.add(pa.array(batch, pa.string()))
        found = column.finish()
    assert (found.codes.tolist(), list(found.names)) == plain_codes([name for batch in usable for name in batch])
    assert found.codes.dtype == np.int64


def test_plain_and_encoded_batches_mix() -> None:
    """A dictionary may repeat names, hold unused ones, or hold a null that no row uses."""
    column = NameColumn("host")
    column.add(pa.array(["b", "a"]))
    column.add(pa.DictionaryArray.from_arrays(pa.array([3, 1, 0]), pa.array(["a", "b", "unused", "a"])))
    column.add(pa.DictionaryArray.from_arrays(pa.array([1]), pa.array([None, "c"])))
    found = column.finish()
    assert [found.names[code] for code in found.codes] == ["b", "a", "a", "b", "a", "c"]
    assert sorted(map(str, found.names)) == ["a", "b", "c"]


def test_a_null_inside_a_dictionary_is_a_missing_host() -> None:
    """Arrow does not count it as a null of the column."""
    column = NameColumn("host")
    column.add(pa.array(["x"]))
    cells = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None]))
    with pytest.raises(ValueError, match=r"host\[2\] is missing"):
        column.add(cells)


def test_no_rows_have_no_hosts() -> None:
    """An empty file has empty columns."""
    found = NameColumn("host").finish()
    assert (found.codes.tolist(), list(found.names)) == ([], [])
