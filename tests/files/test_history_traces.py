"""Traces in: the two files, what a path may mean, and the sentences for bad ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from recrawl.errors import InvalidFile, InvalidInput
from recrawl.files.history import ChangeHistory, open_history

EVENTS = {
    "page": pa.array([0, 1, 0, 1], pa.int32()),
    "time": pa.array([1000, 2000, 3000, 4000], pa.int64()),
    "kind": pa.array([0, 0, 1, 2], pa.int8()),
}
PAGES = {
    "page": pa.array([0, 1], pa.int32()),
    "path": pa.array(["a.md", "b.md"]),
    "importance": pa.array([1.0, 3.0], pa.float32()),
}


def save(folder: Path, name: str = "site", events: dict[str, Any] | None = None, pages: Any = None) -> Path:
    """Write a trace, of the parts above where none are given."""
    pq.write_table(pa.table({**EVENTS, **(events or {})}), folder / f"{name}.events.parquet")
    pq.write_table(pa.table({**PAGES, **(pages or {})}), folder / f"{name}.pages.parquet")
    return folder / name


def refusal(path: Path) -> str:
    """The sentence that a bad trace ends in, without its folder."""
    with pytest.raises(InvalidFile) as caught:
        open_history(path)
    sentence = str(caught.value)
    assert "\n" not in sentence
    return sentence.replace(f"{path.parent}/", "")


def as_csv(trace: Path) -> None:
    """Write the files of a trace as CSV in place of Parquet."""
    for part in ("events", "pages"):
        file = trace.with_name(f"{trace.name}.{part}.parquet")
        csv.write_csv(pq.read_table(file), file.with_suffix(".csv"))
        file.unlink()


@pytest.mark.parametrize("format_", ["parquet", "csv"])
@pytest.mark.parametrize("part", ["", ".events", ".pages"])
def test_a_trace_is_found_by_its_beginning_or_either_file(tmp_path: Path, part: str, format_: str) -> None:
    """NAME, NAME.events.parquet and NAME.pages.parquet mean the same, and so do those in CSV."""
    path = save(tmp_path)
    if format_ == "csv":
        as_csv(path)
    history = open_history(path.with_name(f"{path.name}{part}.{format_}") if part else path)
    assert history.name == "site"
    assert history.page_names == ("a.md", "b.md")
    assert history.importance is not None
    assert history.importance.tolist() == [1.0, 3.0]
    assert history.events.page.tolist() == [0, 1, 0, 1]
    assert history.events.time.tolist() == [1000.0, 2000.0, 3000.0, 4000.0]
    assert history.events.kind.tolist() == [0, 0, 1, 2]
    assert (history.start, history.end) == (1000.0, 4000.0)
    assert history.days == 3000 / 86400
    assert history.crawls is None


def test_a_folder_with_one_trace_is_enough(tmp_path: Path) -> None:
    """A folder with more must say which."""
    save(tmp_path)
    assert open_history(str(tmp_path)).name == "site"
    save(tmp_path, "other")
    assert "holds 2 traces (other, site): name one, such as other" in refusal(tmp_path)


def test_page_numbers_may_have_gaps_and_any_order(tmp_path: Path) -> None:
    """Numbers of the files become places in the order of numbers."""
    path = save(tmp_path, events={"page": pa.array([70, 5, 70, 5])}, pages={"page": pa.array([70, 5])})
    history = open_history(path)
    assert history.page_names == ("b.md", "a.md")
    assert history.events.page.tolist() == [1, 0, 1, 0]
    assert history.importance is not None
    assert history.importance.tolist() == [3.0, 1.0]


def test_a_page_without_events_was_there_all_the_time(tmp_path: Path) -> None:
    """It is created where the trace starts."""
    pages = {"page": [0, 1, 2], "path": ["a", "b", "c"], "importance": [1, 1, 1]}
    history = open_history(save(tmp_path, pages=pages))
    assert history.events.page[0] == 2
    assert history.events.kind[0] == 0
    assert history.events.time[0] == history.start == 1000.0


def test_path_and_importance_may_be_absent(tmp_path: Path) -> None:
    """Pages are then called by their numbers and have no importance."""
    save(tmp_path)
    pq.write_table(pa.table({"page": [0, 1]}), tmp_path / "site.pages.parquet")
    history = open_history(tmp_path / "site")
    assert history.page_names == ("page 0", "page 1")
    assert history.importance is None


@pytest.mark.parametrize(
    ("events", "sentence"),
    [
        ({"time": [1000, 3000, 2999, 4000]}, "row 3: time is 2999, before the 3000 of the row above: sort by time"),
        ({"time": [1000.0, float("nan"), 3.0, 4.0]}, "row 2: time is nan, but must be unix seconds, 0 or more"),
        ({"time": [-5, 1, 2, 3]}, "row 1: time is -5.0, but must be unix seconds, 0 or more"),
        ({"time": [1, 2, 3, 1700000000000]}, "row 4: time is 1.7e+12, which is no time in unix seconds"),
        ({"time": [1, 2, None, 4]}, "row 3: time is missing"),
        ({"time": [7, 7, 7, 7]}, "has everything at one time"),
        ({"kind": [0, 3, 1, 1]}, "row 2: kind is 3, but must be a whole number from 0 to 2"),
        ({"kind": [0.5, 1, 1, 1]}, "row 1: kind is 0.5, but must be a whole number"),
        ({"page": [0, 1, 9, 1]}, "row 3: page is 9, which is not in the file of pages"),
        ({"page": [0, -1, 0, 1]}, "row 2: page is -1, but must be a whole number"),
        ({"page": [0.0, float("inf"), 0.0, 1.0]}, "row 2: page is inf, but must be a whole number"),
        ({"page": [0, None, 0, 1]}, "row 2: page is missing"),
        ({"page": ["a", "b", "c", "d"]}, "row 1: page is 'a', but must be a number"),
        ({"page": [[0], [1], [0], [1]]}, "page holds values of type list"),
        ({"page": [], "time": [], "kind": []}, "holds no events"),
    ],
)
def test_bad_events_are_named(tmp_path: Path, events: dict[str, Any], sentence: str) -> None:
    """The sentence names the row, counted from 1, and the field."""
    assert sentence in refusal(save(tmp_path, events=events))


@pytest.mark.parametrize(
    ("pages", "sentence"),
    [
        ({"page": [1, 1]}, "row 2: page is 1, which an earlier row has too"),
        ({"importance": [1.0, -2.0]}, "row 2: importance is -2.0, but must be 0 or more"),
        ({"importance": [float("nan"), 1.0]}, "row 1: importance is nan, but must be a number"),
        ({"importance": [0.0, 0.0]}, "importance is 0 on every page"),
        ({"page": [], "path": [], "importance": []}, "holds no pages"),
    ],
)
def test_bad_pages_are_named(tmp_path: Path, pages: dict[str, Any], sentence: str) -> None:
    """The same for the file of pages."""
    assert sentence in refusal(save(tmp_path, pages=pages))


@pytest.mark.parametrize("name", ["page", "time", "kind"])
def test_a_missing_column_is_named(tmp_path: Path, name: str) -> None:
    """With the columns that are there."""
    save(tmp_path)
    pq.write_table(pa.table(EVENTS).drop_columns([name]), tmp_path / "site.events.parquet")
    sentence = refusal(tmp_path / "site")
    assert f"site.events.parquet: there is no column '{name}' (columns: " in sentence


def test_a_trace_needs_both_files(tmp_path: Path) -> None:
    """The one that is missing is named."""
    save(tmp_path)
    (tmp_path / "site.pages.parquet").unlink()
    assert refusal(tmp_path / "site").startswith("site.pages.parquet: does not exist")


def test_damaged_files_are_named(tmp_path: Path) -> None:
    """Cut off, empty, or something else under the name."""
    path = save(tmp_path)
    events = tmp_path / "site.events.parquet"
    whole = events.read_bytes()
    for content in (whole[: len(whole) // 2], b"", b"page,time,kind\n0,1,0\n"):
        events.write_bytes(content)
        assert refusal(path).startswith("site.events.parquet: ")


def test_a_trace_has_no_since(tmp_path: Path) -> None:
    """Only git histories can begin later."""
    with pytest.raises(InvalidInput, match="since is for git repositories only"):
        open_history(save(tmp_path), since="2024-01-01")


def test_negative_seeds_are_refused(tmp_path: Path) -> None:
    """A seed is 0 or more."""
    with pytest.raises(InvalidInput, match="seed is -1"):
        open_history(save(tmp_path), seed=-1)


def test_histories_print_short(tmp_path: Path) -> None:
    """A history in an error message is no wall of numbers."""
    history: ChangeHistory = open_history(save(tmp_path))
    assert "PageEvents(4 events)" in repr(history)
    assert len(history) == 2
