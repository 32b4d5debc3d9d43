"""Output is there whole or not at all, and the input is never touched."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from table_cases import told, write

from recrawl.errors import InvalidFile, InvalidInput
from recrawl.files.page_file import open_pages

PAGES = "importance,change_rate\n1,2\n3,4\n"
EXTRA = {"crawl_rate": np.array([1.0, 2.0])}


def refusal(path: Path, out: Path, extra: dict[str, np.ndarray] = EXTRA) -> InvalidFile:
    """The error of an output that cannot be written; the folder is as it was before."""
    before = {found: found.read_bytes() for found in path.parent.rglob("*") if found.is_file()}
    with pytest.raises(InvalidFile) as caught:
        open_pages(path).copy_with(out, extra)
    assert {found: found.read_bytes() for found in path.parent.rglob("*") if found.is_file()} == before
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("out.txt", "the ending says no format that recrawl knows: use .csv, .tsv, .jsonl or .ndjson"),
        ("pages.csv", "is the input itself: choose another name for the output"),
        ("link.csv", "is the input itself: choose another name for the output"),
        ("../{folder}/pages.csv", "is the input itself"),
        ("missing/out.csv", "cannot be written, because there is no folder "),
        ("folder.csv", "is a folder: name a file in it"),
        ("pipe.csv", "is no ordinary file: choose another name"),
        ("nul\0.csv", "cannot be written: its name has a NUL character"),
        ("x" * 300 + ".csv", "cannot be written: File name too long"),
    ],
)
def test_an_impossible_output_is_refused_before_any_work(tmp_path: Path, name: str, problem: str) -> None:
    """By `check_output` as by `copy_with`, with the same sentence."""
    path = write(tmp_path, "pages.csv", PAGES)
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "link.csv").symlink_to(path)
    os.mkfifo(tmp_path / "pipe.csv")
    out = tmp_path / name.format(folder=tmp_path.name)
    error = refusal(path, out)
    assert str(error).startswith(f"{out}: {problem}")
    with pytest.raises(InvalidFile, match=r"^") as caught:
        open_pages(path).check_output(out)
    assert str(caught.value) == str(error)


def test_a_hard_link_to_the_input_is_the_input(tmp_path: Path) -> None:
    """Whatever it is called."""
    path = write(tmp_path, "pages.csv", PAGES)
    (tmp_path / "other.csv").hardlink_to(path)
    assert "is the input itself" in str(refusal(path, tmp_path / "other.csv"))


def test_an_older_output_is_replaced(tmp_path: Path) -> None:
    """Through a link the file behind it is replaced, and the link stays."""
    path, out = write(tmp_path, "pages.csv", PAGES), write(tmp_path, "out.csv", "old")
    (tmp_path / "link.csv").symlink_to(out)
    open_pages(path).copy_with(tmp_path / "link.csv", EXTRA)
    assert (tmp_path / "link.csv").is_symlink()
    assert out.read_text() == "importance,change_rate,crawl_rate\n1,2,1\n3,4,2\n"


def test_output_has_ordinary_permissions(tmp_path: Path) -> None:
    """As any file that the user creates."""
    open_pages(write(tmp_path, "pages.csv", PAGES)).copy_with(tmp_path / "out.csv", EXTRA)
    (tmp_path / "plain").touch()
    assert (tmp_path / "out.csv").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_relative_output_lands_in_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The temporary file beside it too."""
    path = write(tmp_path, "pages.csv", PAGES)
    monkeypatch.chdir(tmp_path)
    open_pages(path).copy_with("out.jsonl", EXTRA)
    assert {found.name for found in tmp_path.iterdir()} == {"pages.csv", "out.jsonl"}


@contextmanager
def files_no_larger_than(size: int) -> Iterator[None]:
    """Let the system refuse to write more: the same path in the code as a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".jsonl", ".parquet"])
def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, ending: str) -> None:
    """An older output stays as it was."""
    numbers = np.random.default_rng(1).random(20_000)
    path = write(tmp_path, "pages.csv", "importance\n" + "\n".join(map(repr, numbers.tolist())))
    out = write(tmp_path, f"out{ending}", "old")
    with files_no_larger_than(20_000):
        error = refusal(path, out, {"crawl_rate": numbers})
    assert str(error) == f"{out}: cannot be written: File too large"
    assert out.read_text() == "old"


@pytest.mark.parametrize("name", ["in.csv", "in.jsonl"])
@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_a_broken_input_leaves_nothing_behind(tmp_path: Path, name: str, ending: str) -> None:
    """Trouble with the input is told as such, with its row."""
    lines = {"in.csv": (b"url\n", b"x\n", b"\xff\n"), "in.jsonl": (b"", b'{"url": 1}\n', b"{\n")}[name]
    path = write(tmp_path, name, lines[0] + lines[1] * 50_000 + lines[2])
    error = refusal(path, tmp_path / f"out{ending}", {"crawl_rate": np.zeros(50_001)})
    assert told(error).startswith(f"{name} row 50001: ")


@pytest.mark.parametrize(("values", "word"), [(1, "more"), (3, "fewer")])
@pytest.mark.parametrize("content", [("in.csv", PAGES), ("in.jsonl", '{"a": 1}\n{"a": 2}\n')])
@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_a_file_that_changed_meanwhile_is_noticed(
    tmp_path: Path, values: int, word: str, content: tuple[str, str], ending: str
) -> None:
    """Rates must not slip to other pages."""
    path = write(tmp_path, *content)
    error = refusal(path, tmp_path / f"out{ending}", {"crawl_rate": np.zeros(values)})
    assert told(error) == f"{path.name}: has {word} rows than the {values} that were read from it: read it again"


def test_added_columns_must_agree_in_length(tmp_path: Path) -> None:
    """A slip of the caller's."""
    extra = {"a": np.zeros(2), "b": np.zeros(3)}
    with pytest.raises(InvalidInput, match="b has 3 values, but 2 are to be added"):
        open_pages(write(tmp_path, "pages.csv", PAGES)).copy_with(tmp_path / "out.csv", extra)


def test_an_interrupt_leaves_nothing_behind(tmp_path: Path) -> None:
    """Control-C in the middle of writing."""

    def interrupt(_done: int, _total: int | None) -> None:
        raise KeyboardInterrupt

    path = write(tmp_path, "pages.csv", PAGES)
    with pytest.raises(KeyboardInterrupt):
        open_pages(path).copy_with(tmp_path / "out.parquet", EXTRA, interrupt)
    assert [found.name for found in tmp_path.iterdir()] == ["pages.csv"]


def test_progress_is_told_while_writing(tmp_path: Path) -> None:
    """Up to the whole of the input."""
    path = write(tmp_path, "pages.csv", PAGES)
    reports: list[tuple[int, int | None]] = []
    open_pages(path).copy_with(tmp_path / "out.csv", EXTRA, lambda done, total: reports.append((done, total)))
    assert reports[-1] == (path.stat().st_size, path.stat().st_size)
