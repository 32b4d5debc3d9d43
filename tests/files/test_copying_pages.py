"""Pages out: every column kept, new ones added, from each format to each."""

from __future__ import annotations

import csv
import gzip
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_cases import read, write

from recrawl.errors import InvalidFile
from recrawl.files.page_file import open_pages

EXTRA = {"crawl_rate": np.array([0.1, 1 / 3, 1e-300]), "interval": np.array([10.0, 3.0, np.inf])}
ENDINGS = (".csv", ".tsv", ".csv.gz", ".jsonl", ".ndjson.gz", ".parquet", ".pq")
CSV = 'url,importance,note\n"a,b",1.50,\n"say ""hi""",+2,"two\nlines"\né,3e0,=1+1\n'


def source(folder: Path, ending: str) -> Path:
    """The same three pages in any format."""
    rows = [
        {"url": "a,b", "importance": 1.5, "note": ""},
        {"url": 'say "hi"', "importance": 2.0, "note": "two\nlines"},
        {"url": "é", "importance": 3.0, "note": "=1+1"},
    ]
    if ending in (".parquet", ".pq"):
        path = folder / f"in{ending}"
        pq.write_table(pa.Table.from_pylist(rows), path)
        return path
    text = CSV if "sv" in ending else "".join(json.dumps(row) + "\n" for row in rows)
    if ending == ".tsv":
        text = 'url\timportance\tnote\na,b\t1.50\t\n"say ""hi"""\t+2\t"two\nlines"\né\t3e0\t=1+1\n'
    return write(folder, f"in{ending}", gzip.compress(text.encode()) if ending.endswith(".gz") else text)


def table(path: Path) -> dict[str, list[Any]]:
    """Read any output with a library that is not ours, and numbers as numbers."""
    if path.name.endswith((".parquet", ".pq")):
        frame = pd.read_parquet(path)
    elif "json" in path.name:
        frame = pd.read_json(path, lines=True, precise_float=True)
    else:
        frame = pd.read_csv(path, sep="\t" if ".tsv" in path.name else ",", keep_default_na=False)
    return {str(name): frame[name].tolist() for name in frame.columns}


@pytest.mark.parametrize("out_ending", ENDINGS)
@pytest.mark.parametrize("in_ending", ENDINGS)
def test_every_format_is_written_to_every_format(tmp_path: Path, in_ending: str, out_ending: str) -> None:
    """Unknown columns come along; the numbers added have every digit."""
    path, out = source(tmp_path, in_ending), tmp_path / f"out{out_ending}"
    before = path.read_bytes()
    open_pages(path).copy_with(out, EXTRA)
    columns = table(out)
    assert list(columns) == ["url", "importance", "note", "crawl_rate", "interval"]
    assert columns["url"] == ["a,b", 'say "hi"', "é"]
    assert columns["note"] == ["", "two\nlines", "=1+1"]
    assert [float(value) for value in columns["importance"]] == [1.5, 2.0, 3.0]
    assert columns["crawl_rate"] == [0.1, 1 / 3, 1e-300]
    assert columns["interval"][:2] == [10.0, 3.0]
    assert math.isinf(columns["interval"][2]) or "json" in out_ending
    assert read(out)["importance"] == [1.5, 2.0, 3.0]
    assert path.read_bytes() == before
    assert sorted(tmp_path.iterdir()) == sorted([path, out])


def test_csv_cells_are_copied_as_written(tmp_path: Path) -> None:
    """Also numbers: 1.50 does not become 1.5; quotes stand only where they are needed."""
    out = tmp_path / "out.csv"
    open_pages(write(tmp_path, "in.csv", CSV)).copy_with(out, {"crawl_rate": np.array([0.1, 2.0, 1e22])})
    assert out.read_text() == (
        'url,importance,note,crawl_rate\n"a,b",1.50,,0.1\n"say ""hi""",+2,"two\nlines",2\né,3e0,=1+1,1e+22\n'
    )


def test_jsonl_lines_are_copied_as_written(tmp_path: Path) -> None:
    """Spacing, order, digits, differing and repeated keys, NaN: all of it is the user's."""
    lines = [
        '{"b":1.10,  "a" : [1e5, "\\u00e9"]}',
        "{}",
        ' {"b": NaN, "z": {"crawl_rate": 1}, "b": 12345678901234567890 } ',
    ]
    out = tmp_path / "out.jsonl"
    path = write(tmp_path, "in.jsonl", "\n".join(lines) + "\r\n\n")
    open_pages(path).copy_with(out, {"crawl_rate": np.array([0.5, 2.0, np.nan])})
    assert out.read_text().splitlines() == [
        '{"b":1.10,  "a" : [1e5, "\\u00e9"], "crawl_rate": 0.5}',
        '{"crawl_rate": 2}',
        '{"b": NaN, "z": {"crawl_rate": 1}, "b": 12345678901234567890, "crawl_rate": null}',
    ]


def test_jsonl_members_of_the_same_name_give_way(tmp_path: Path) -> None:
    """The others stay as they were written, also when the name is spelled with escapes or comes twice."""
    path = write(
        tmp_path,
        "in.jsonl",
        '{"rate":1,"b": 1.10}\n'
        '{ "b":"\\"rate\\": {" , "r\\u0061te" : {"x": [1, 2]} }\n'
        '{"rate": 1, "rate":2}\n'
        '{"b":[ ]}\n',
    )
    open_pages(path).copy_with(tmp_path / "out.jsonl", {"rate": np.array([5, 6, 7, 8])})
    assert (tmp_path / "out.jsonl").read_text().splitlines() == [
        '{"b": 1.10, "rate": 5}',
        '{"b":"\\"rate\\": {", "rate": 6}',
        '{"rate": 7}',
        '{"b":[ ], "rate": 8}',
    ]


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_columns_of_the_same_name_are_replaced_in_place(tmp_path: Path, ending: str) -> None:
    """A second run on the output of a first changes no order."""
    path, out = source(tmp_path, ending), tmp_path / f"out{ending}"
    open_pages(path).copy_with(out, {"note": np.array([1.0, 2.0, 3.0]), "new": np.array(["x", "y", "z"])})
    columns = table(out)
    assert list(columns) == ["url", "importance", "note", "new"]
    assert (columns["note"], columns["new"]) == ([1.0, 2.0, 3.0], ["x", "y", "z"])


@pytest.mark.parametrize(("ending", "cell"), [(".csv", "1,0.5,\n"), (".jsonl", '"interval": null')])
def test_masked_values_are_missing(tmp_path: Path, ending: str, cell: str) -> None:
    """An empty cell, a null: how a page that is never crawled shows its interval."""
    path, out = write(tmp_path, "in.csv", "importance\n1\n"), tmp_path / f"out{ending}"
    interval = np.ma.masked_array([np.inf], mask=[True])
    open_pages(path).copy_with(out, {"crawl_rate": np.array([0.5]), "interval": interval})
    assert cell in out.read_text()


def test_parquet_keeps_types_nulls_and_metadata(tmp_path: Path) -> None:
    """Nested, decimal, dictionary and time columns, and what pandas noted about its index."""
    frame = pd.DataFrame({"importance": [1.0, 2.0]}, index=pd.Index(["p", "q"], name="key"))
    original = pa.Table.from_pandas(frame)
    for name, values in {
        "tags": pa.array([["a", None], None]),
        "deep": pa.array([{"x": 1, "y": [{"z": b"\xff"}]}, None]),
        "when": pa.array([1, None], pa.timestamp("ns", "UTC")),
        "kind": pa.array(["a", None]).dictionary_encode(),
        "price": pa.array([1, None], pa.decimal128(9, 2)),
        "dotted.name": pa.array([1, 2], pa.int8()),
    }.items():
        original = original.append_column(name, values)
    pq.write_table(original, tmp_path / "in.parquet")
    open_pages(tmp_path / "in.parquet").copy_with(tmp_path / "out.parquet", {"crawl_rate": np.array([1.0, 2.0])})
    copy = pq.read_table(tmp_path / "out.parquet")
    assert copy.drop_columns(["crawl_rate"]).equals(original)
    assert copy.schema.metadata == original.schema.metadata
    assert pd.read_parquet(tmp_path / "out.parquet").index.tolist() == ["p", "q"]


def test_parquet_types_become_text_where_the_format_has_none(tmp_path: Path) -> None:
    """Nested values become JSON, what is missing an empty cell or null."""
    columns = {
        "tags": pa.array([["é", None], None]),
        "when": pa.array([1500, None], pa.timestamp("ms")),
        "flag": pa.array([True, None]),
        "half": pa.array([0.5, None], pa.float16()),
        "price": pa.array([1, None], pa.decimal128(9, 2)),
        "raw": pa.array([b"abc", None]),
        "kind": pa.array(["a", None]).dictionary_encode(),
    }
    pq.write_table(pa.table(columns), tmp_path / "in.parquet")
    file = open_pages(tmp_path / "in.parquet")
    file.copy_with(tmp_path / "out.csv", {})
    assert (tmp_path / "out.csv").read_text() == (
        'tags,when,flag,half,price,raw,kind\n"[""é"", null]",1970-01-01 00:00:01.500,true,0.5,1.00,abc,a\n,,,,,,\n'
    )
    file.copy_with(tmp_path / "out.jsonl", {})
    first, second = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert first == {
        "tags": ["é", None], "when": "1970-01-01 00:00:01.500", "flag": True, "half": 0.5, "price": 1.0,
        "raw": "abc", "kind": "a",
    }  # fmt: skip
    assert set(second.values()) == {None}


@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
@pytest.mark.parametrize(
    "values",
    [
        pa.array([b"\xff"]),
        pa.array([b"\xff"]).view(pa.string()),
        pa.array([[10**17]], pa.list_(pa.timestamp("ms"))),
    ],
    ids=lambda values: str(values.type),
)
def test_what_has_no_text_is_refused_in_formats_of_text(tmp_path: Path, values: pa.Array[Any], ending: str) -> None:
    """The sentence names the column and a way out; nothing is left behind. Parquet keeps it."""
    pq.write_table(pa.table({"raw": values}), tmp_path / "in.parquet")
    file = open_pages(tmp_path / "in.parquet")
    with pytest.raises(
        InvalidFile, match=r"raw holds values of type .* that are no text: write a Parquet file instead"
    ):
        file.copy_with(tmp_path / f"out{ending}", {})
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]
    file.copy_with(tmp_path / "out.parquet", {})
    assert pq.read_table(tmp_path / "out.parquet").equals(pq.read_table(tmp_path / "in.parquet"))


def test_jsonl_columns_get_a_type_that_holds_every_value(tmp_path: Path) -> None:
    """Also keys that come late; what mixes types becomes text."""
    lines = (
        [
            '{"int": 1, "big": 9007199254740993, "float": 1, "mixed": 1, "text": "a", "bool": true, "deep": {"é": []}}',
            '{"int": 2, "big": 1, "float": 1.5, "mixed": "b", "huge": 1}',
        ]
        + ["{}"] * 20_000
        + [f'{{"late": 7, "huge": {10**20}}}']
    )
    path, out = write(tmp_path, "in.jsonl", "\n".join(lines)), tmp_path / "out.parquet"
    open_pages(path).copy_with(out, {"crawl_rate": np.zeros(len(lines))})
    columns = pq.read_table(out)
    assert {field.name: str(field.type) for field in columns.schema} == {
        "int": "int64", "big": "int64", "float": "double", "mixed": "string", "text": "string", "bool": "bool",
        "deep": "string", "huge": "string", "late": "int64", "crawl_rate": "double",
    }  # fmt: skip
    assert columns["big"][0].as_py() == 9007199254740993
    assert [columns[name][0].as_py() for name in ("mixed", "deep")] == ["1", '{"é": []}']
    assert (columns["huge"][1].as_py(), columns["huge"][-1].as_py()) == ("1", str(10**20))
    assert (columns["late"][0].as_py(), columns["late"][-1].as_py()) == (None, 7)


def test_csv_numbers_that_recrawl_knows_become_numbers(tmp_path: Path) -> None:
    """Other columns of CSV stay text, as a postal code must."""
    path, out = write(tmp_path, "in.csv", "importance,max_rate,code\n1,,007\n2,inf,008\n"), tmp_path / "out.parquet"
    open_pages(path).copy_with(out, {})
    assert pq.read_table(out).to_pydict() == {
        "importance": [1.0, 2.0], "max_rate": [None, math.inf], "code": ["007", "008"],
    }  # fmt: skip


@pytest.mark.parametrize("out_ending", [".csv", ".jsonl", ".parquet"])
def test_a_file_without_rows_is_copied_with_its_columns(tmp_path: Path, out_ending: str) -> None:
    """The header, or the schema, has the new columns too; JSONL has nowhere to keep them."""
    out = tmp_path / f"out{out_ending}"
    for path in (write(tmp_path, "in.csv", "url,importance"), tmp_path / "in.parquet"):
        if path.suffix == ".parquet":
            pq.write_table(pa.table({"url": pa.array([], pa.string()), "importance": pa.array([], pa.float64())}), path)
        open_pages(path).copy_with(out, {"crawl_rate": np.empty(0)})
        if out_ending == ".jsonl":
            assert out.read_bytes() == b""
        else:
            assert open_pages(out).columns == ("url", "importance", "crawl_rate")


def test_a_csv_of_one_column_keeps_its_empty_cells(tmp_path: Path) -> None:
    """A blank line would be skipped by the next reader."""
    path, out = write(tmp_path, "in.csv", 'note\nx\n""\ny\n'), tmp_path / "out.csv"
    open_pages(path).copy_with(out, {})
    assert out.read_text() == 'note\nx\n""\ny\n'


@settings(max_examples=60, deadline=None)
@given(
    cells=st.lists(
        st.tuples(st.text(st.characters(exclude_categories=["Cs"])), st.floats(allow_nan=False)), min_size=1, max_size=6
    )
)
def test_csv_round_trips(tmp_path_factory: pytest.TempPathFactory, cells: list[tuple[str, float]]) -> None:
    """Any text and any float comes back from CSV as it was, read by Python's own csv module and by recrawl."""
    folder = tmp_path_factory.mktemp("csv")
    pq.write_table(pa.table({"text": [text for text, _ in cells]}), folder / "in.parquet")
    extra = np.array([number for _, number in cells])
    open_pages(folder / "in.parquet").copy_with(folder / "one.csv", {"importance": extra})
    open_pages(folder / "one.csv").copy_with(folder / "two.csv", {})
    assert (folder / "one.csv").read_bytes() == (folder / "two.csv").read_bytes()
    with (folder / "two.csv").open(newline="", encoding="utf-8") as stream:
        rows = list(csv.reader(stream))[1:]
    assert [(text, float(number)) for text, number in rows] == cells
    assert read(folder / "two.csv")["importance"] == extra.tolist()
