"""Before any format: is there a file, may it be read, what are its pages called?"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from table_cases import refusal, told, write

from recrawl.errors import InvalidFile, InvalidInput
from recrawl.files.page_file import open_pages

pytestmark = pytest.mark.usefixtures("csv_reader")


ENDINGS = ("csv", "tsv", "jsonl", "parquet")


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_missing_file_is_named(tmp_path: Path, ending: str) -> None:
    """In the same words for every format."""
    error = refusal(tmp_path / f"pages.{ending}")
    assert told(error) == f"pages.{ending}: does not exist: check the name and the folder"


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_folder_is_refused(tmp_path: Path, ending: str) -> None:
    """Also one with the ending of a file, as other tools write."""
    (tmp_path / f"pages.{ending}").mkdir()
    assert told(refusal(tmp_path / f"pages.{ending}")) == f"pages.{ending}: is a folder, but must be one file"


def test_a_pipe_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    """A file is read more than once, which a pipe cannot be."""
    os.mkfifo(tmp_path / "pages.csv")
    assert "is no ordinary file: save the pages to a file first" in told(refusal(tmp_path / "pages.csv"))


@contextmanager
def without_privileges() -> Iterator[None]:
    """Root may read everything, so be somebody else for a while."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


def test_a_file_without_permission_is_named(tmp_path: Path) -> None:
    """Whoever runs the test."""
    path = write(tmp_path, "pages.csv", "importance\n1\n")
    path.chmod(0)
    with without_privileges(), pytest.raises(InvalidFile, match="may not be read: give yourself permission"):
        open_pages(path)


@pytest.mark.parametrize("name", ["loop.csv", "nul\0.csv", "x" * 300 + ".csv"])
def test_a_name_that_cannot_be_opened_is_refused(tmp_path: Path, name: str) -> None:
    """A ring of links, a NUL, a name too long for the system."""
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    assert "cannot be opened: " in told(refusal(tmp_path / name))


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "jsonl", "parquet"])
def test_a_name_need_not_be_unicode(tmp_path: Path, ending: str) -> None:
    """File names are bytes."""
    plain = write(tmp_path, "in.csv", "importance\n1\n")
    path = tmp_path / os.fsdecode(b"\xff." + ending.encode())
    open_pages(plain).copy_with(path, {})
    assert list(open_pages(path).read(["importance"])) == ["importance"]


def test_a_name_may_be_text() -> None:
    """A string is as good as a path."""
    with pytest.raises(InvalidFile, match=r"^no-such-file\.csv: does not exist"):
        open_pages("no-such-file.csv")


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_labels_are_read_where_they_are_asked_for(tmp_path: Path, ending: str) -> None:
    """In the order of the question, repeats too, across batches and row groups."""
    rows = 40_000
    pq.write_table(
        pa.table({"importance": np.ones(rows), "page": [f"p{row}" for row in range(rows)], "id": range(rows)}),
        tmp_path / "in.parquet",
        row_group_size=15_000,
    )
    path = tmp_path / f"pages.{ending}"
    open_pages(tmp_path / "in.parquet").copy_with(path, {})
    asked = np.array([39_999, 0, 15_000, 0, 14_999])
    assert open_pages(path).labels(asked.tolist()) == ["p39999", "p0", "p15000", "p0", "p14999"]
    assert open_pages(path).labels(asked) == ["p39999", "p0", "p15000", "p0", "p14999"]  # type: ignore[arg-type]
    assert open_pages(path).labels([]) == []


@pytest.mark.parametrize(
    ("header", "labels"),
    [
        ("path,id,page,url", ["d1", "d2"]),
        ("path,id,page,x", ["c1", "c2"]),
        ("path,id,x,y", ["b1", "b2"]),
        ("path,x,y,z", ["a1", "a2"]),
        ("w,x,y,z", ["row 1", "row 2"]),
    ],
)
def test_the_best_name_of_a_page_is_taken(tmp_path: Path, header: str, labels: list[str]) -> None:
    """Url, page, id, path, and without any of them the row, counted from 1."""
    path = write(tmp_path, "pages.csv", f"{header}\na1,b1,c1,d1\na2,b2,c2,d2\n")
    assert open_pages(path).labels([0, 1]) == labels


def test_a_label_is_safe_to_print(tmp_path: Path) -> None:
    """One short line without control characters; an empty one becomes the row."""
    lines = ['{"url": "a\\u001b[31m\\nb"}', '{"url": "%s"}' % ("x" * 1000), '{"url": " "}', "{}", '{"url": 5}']
    labels = open_pages(write(tmp_path, "pages.jsonl", "\n".join(lines))).labels(range(5))
    assert labels == ["a\ufffd[31m\ufffdb", "x" * 199 + "…", "row 3", "row 4", "5"]


@pytest.mark.parametrize("values", [pa.array([b"a\xff"]), pa.array([b"a\xff"]).view(pa.string())])
def test_a_label_need_not_be_text(tmp_path: Path, values: pa.Array[Any]) -> None:
    """Parquet keeps bytes where others keep text, and does not check text."""
    pq.write_table(pa.table({"url": values}), tmp_path / "pages.parquet")
    assert open_pages(tmp_path / "pages.parquet").labels([0]) == ["a\ufffd"]


def test_explanations_name_the_file(tmp_path: Path) -> None:
    """With and without field and row, whoever found the fault."""
    file = open_pages(write(tmp_path, "pages.csv", "importance\n1\n"))
    assert told(file.explain(InvalidInput("is odd", field="cost", row=4))) == "pages.csv row 5: cost is odd"
    assert told(file.explain(InvalidInput("is odd", field="cost"))) == "pages.csv: cost is odd"
    assert told(file.explain(InvalidInput("needs more pages"))) == "pages.csv: needs more pages"
