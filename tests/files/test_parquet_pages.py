"""Parquet in: the types that can be read, and the sentences for the rest."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from table_cases import read, refusal, rows_of, told, write

from recrawl.files.page_file import open_pages


def save(folder: Path, columns: dict[str, Any], **options: Any) -> Path:
    """Write a Parquet file."""
    path = folder / "pages.parquet"
    pq.write_table(pa.table(columns), path, **options)
    return path


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, 2, 3], pa.int8()),
        pa.array([1, 2, 3], pa.uint64()),
        pa.array([1, 2, 3], pa.float16()),
        pa.array([1, 2, 3], pa.float32()),
        pa.array([1, 2, 3], pa.float64()),
        pa.array([Decimal("1.00"), Decimal(2), Decimal(3)], pa.decimal128(9, 2)),
        pa.array([Decimal("1.00"), Decimal(2), Decimal(3)], pa.decimal256(50, 4)),
        pa.array(["1", " 2.0", "3e0"], pa.string()),
        pa.array(["1", "2.0", "3e0"], pa.large_string()),
        pa.array(["1", "2.0", "3e0"], pa.string_view()),
        pa.array([b"1", b"2.0", b"3e0"], pa.binary()),
        pa.array(["1", "2.0", "3e0"]).dictionary_encode(),
        pa.array([1.0, 2.0, 3.0]).dictionary_encode(),
    ],
    ids=lambda values: str(values.type),
)
def test_numbers_of_any_type(tmp_path: Path, values: pa.Array[Any]) -> None:
    """Integers, decimals, floats of any width, and text that spells numbers, dictionary-encoded or not."""
    assert read(save(tmp_path, {"importance": values}))["importance"] == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["a", "b", "a"], pa.string()),
        pa.array(["a", "b", "a"], pa.large_string()),
        pa.array(["a", "b", "a"], pa.string_view()),
        pa.array([b"a", b"b", b"a"], pa.binary()),
        pa.array(["a", "b", "a"]).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([2, 1, 3], pa.int8()), pa.array(["unused", "b", "a", "a"])),
    ],
    ids=lambda values: str(values.type),
)
def test_hosts_of_any_type_of_text(tmp_path: Path, values: pa.Array[Any]) -> None:
    """Names of a dictionary that no row uses do not become hosts."""
    path = save(tmp_path, {"host": values})
    assert read(path)["host"] == ["a", "b", "a"]
    hosts = open_pages(path).read(["host"])["host"]
    assert sorted(hosts.names) == ["a", "b"]  # type: ignore[union-attr]


def test_hosts_may_be_integers_and_become_text(tmp_path: Path) -> None:
    """A host is a name, so that caps given as text find it."""
    assert read(save(tmp_path, {"host": [30, 4, 30]}))["host"] == ["30", "4", "30"]


@pytest.mark.parametrize(
    ("values", "row", "problem"),
    [
        (pa.array([1.0, None, None]), 1, "is missing: write a number in every row"),
        (pa.array([None, None], pa.null()), 0, "is missing: write a number in every row"),
        (pa.array(["1", None, "x"]), 1, "is missing: write a number in every row"),
        (pa.array(["1", "1,5"]), 1, "is '1,5', but must be a number: write 1.5 with a point"),
        (pa.array(["1", "abc"]).dictionary_encode(), 1, "is 'abc', but must be a number"),
        (pa.array([[1.0], [2.0]]), None, "holds values of type list<"),
        (pa.array([{"a": 1}]), None, "holds values of type struct<"),
        (pa.array([True, False]), None, "holds values of type bool, but must hold numbers"),
        (pa.array([dt.date(2024, 1, 1)]), None, "holds values of type date32"),
        (pa.array([b"1", b"\xff"]), None, "holds bytes that are not UTF-8 text, but must hold numbers"),
        (pa.array([b"1", b"\xff"]).view(pa.string()), None, "holds bytes that are not UTF-8 text"),
    ],
)
def test_what_is_no_number_is_named(tmp_path: Path, values: pa.Array[Any], row: int | None, problem: str) -> None:
    """By field and, where one cell is at fault, by row."""
    error = refusal(save(tmp_path, {"importance": values}))
    assert (error.field, error.row) == ("importance", row)
    assert told(error).startswith(f"pages.parquet{':' if row is None else f' row {row + 1}:'} importance {problem}")


@pytest.mark.parametrize(
    ("values", "row", "problem"),
    [
        (pa.array(["a", None]), 1, "is missing: write a host in every row"),
        (pa.array(["a", ""]), 1, "is missing: write a host in every row"),
        (pa.array(["a", None]).dictionary_encode(), 1, "is missing"),
        (pa.array([1.5]), None, "holds values of type double, but must hold text"),
        (pa.array([["a"]]), None, "holds values of type list<"),
        (pa.array([b"\xff"]), None, "holds bytes that are not UTF-8 text"),
        (pa.array([b"\xff"]).view(pa.string()), None, "holds bytes that are not UTF-8 text"),
    ],
)
def test_what_is_no_host_is_named(tmp_path: Path, values: pa.Array[Any], row: int | None, problem: str) -> None:
    """A page without a host has no place under caps."""
    error = refusal(save(tmp_path, {"host": values}))
    assert (error.field, error.row) == ("host", row)
    assert problem in told(error)


def test_rows_are_counted_across_row_groups(tmp_path: Path) -> None:
    """The count does not start again with each group."""
    path = save(tmp_path, {"importance": [1.0] * 25 + [None]}, row_group_size=10)
    assert refusal(path).row == 25


def test_no_rows_are_no_pages(tmp_path: Path) -> None:
    """Zero rows are legal: what a plan of nothing is, planning says."""
    path = save(tmp_path, {"importance": pa.array([], pa.float64()), "host": pa.array([], pa.string())})
    file = open_pages(path)
    assert read(path) == {"importance": [], "host": []}
    file.read(["importance"])
    assert rows_of(file) == 0


def test_columns_with_points_in_their_names_are_left_alone(tmp_path: Path) -> None:
    """A column called x.importance is not importance, nor is a field of that name inside a struct."""
    path = save(tmp_path, {"x.importance": [1], "y": [{"importance": 5}], "importance": [2]})
    assert read(path) == {"importance": [2.0]}


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    """Nobody could say which is meant."""
    path = tmp_path / "pages.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["importance"] * 2), path)
    assert told(refusal(path)) == "pages.parquet: has two columns named 'importance': rename or remove one"


@pytest.mark.parametrize("content", [b"", b"PAR1", b"importance\n1\n", b"PAR1" + b"\0" * 100 + b"PAR1"])
def test_what_is_no_parquet_is_refused(tmp_path: Path, content: bytes) -> None:
    """Whatever Arrow says of it becomes part of one sentence."""
    error = refusal(write(tmp_path, "pages.pq", content))
    assert told(error).startswith("pages.pq: is no complete Parquet file, so write it again: ")


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    """Without its footer a Parquet file is nothing."""
    path = save(tmp_path, {"importance": [1.0] * 1000})
    path.write_bytes(path.read_bytes()[:-1])
    assert "is no complete Parquet file" in told(refusal(path))


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    """A whole footer does not make the data whole."""
    path = save(tmp_path, {"importance": [float(i) for i in range(10_000)]})
    content = bytearray(path.read_bytes())
    content[4:2000] = bytes(1996)
    path.write_bytes(bytes(content))
    assert told(refusal(path)).startswith("pages.parquet: cannot be read, so it may be cut off or damaged: ")


def test_no_columns_are_refused(tmp_path: Path) -> None:
    """There is nothing to read in it."""
    path = tmp_path / "pages.parquet"
    pq.write_table(pa.table({}), path)
    assert told(refusal(path)) == "pages.parquet: has no columns"


def test_progress_counts_rows(tmp_path: Path) -> None:
    """The number of rows is known from the start."""
    path = save(tmp_path, {"importance": [1.0] * 300_000})
    reports: list[tuple[int, int | None]] = []
    open_pages(path).read(["importance"], lambda done, total: reports.append((done, total)))
    assert len(reports) > 1
    assert all(total == 300_000 for _, total in reports)
    assert reports[-1][0] == 300_000
