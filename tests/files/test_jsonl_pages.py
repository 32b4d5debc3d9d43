"""JSONL in: what each oddity means, or the sentence it ends in."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import pytest
from table_cases import read, refusal, rows_of, told, write

from recrawl.files import jsonl_file
from recrawl.files.page_file import open_pages

PLAIN = (
    '{"url": "x", "host": "a", "importance": 1, "change_rate": 0.5}\n'
    '{"url": null, "host": "b", "importance": 2.5, "change_rate": 1e-3}\n'
    '{"change_rate": 7, "importance": 3, "host": "a", "more": [{}]}\n'
)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("pages.jsonl", PLAIN.encode()),
        ("pages.ndjson", PLAIN.encode()),
        ("pages.jsonl.gz", gzip.compress(PLAIN.encode(), mtime=0)),
        ("bom.jsonl", b"\xef\xbb\xbf" + PLAIN.encode()),
        ("crlf.jsonl", PLAIN.replace("\n", "\r\n").encode()),
        ("blank-lines.jsonl", b"\n \n" + PLAIN.replace("\n", "\n\n").encode()),
        ("no-last-newline.jsonl", PLAIN.strip().encode()),
        ("numbers-as-text.jsonl", PLAIN.replace("2.5", '" 2.5"').replace("7", '"7"').encode()),
        ("line-separator-in-text.jsonl", PLAIN.replace('"x"', '"\u2028"').encode()),
        ("half-a-pair-in-unknown-column.jsonl", PLAIN.replace('"x"', r'"\ud800"').encode()),
        ("nested.jsonl", PLAIN.replace('"x"', "[" * 100 + "]" * 100).encode()),
        ("same-key-twice.jsonl", PLAIN.replace('"url": "x"', '"importance": "abc"').encode()),
        ("long-unknown-field.jsonl", PLAIN.replace('"x"', '"' + "x" * 200_000 + '"').encode()),
    ],
)
def test_forms_that_mean_the_same(tmp_path: Path, name: str, content: bytes) -> None:
    """None of these changes what recrawl reads."""
    columns = read(write(tmp_path, name, content))
    assert columns == {"host": ["a", "b", "a"], "importance": [1.0, 2.5, 3.0], "change_rate": [0.5, 1e-3, 7.0]}


def test_columns_are_the_keys_of_the_first_lines(tmp_path: Path) -> None:
    """In order of appearance; a line need not have them all."""
    file = open_pages(write(tmp_path, "pages.jsonl", PLAIN))
    assert file.columns == ("url", "host", "importance", "change_rate", "more")
    assert file.format == "jsonl"
    file.read([])
    assert rows_of(file) == 3


def test_limits_may_be_infinite_missing_or_null(tmp_path: Path) -> None:
    """No limit is "inf", Infinity, null, or nothing."""
    lines = [f'{{"max_rate": {value}}}' for value in ('"inf"', "Infinity", "null", "2")]
    path = write(tmp_path, "pages.jsonl", "\n".join([*lines, "{}"]))
    assert read(path)["max_rate"] == [math.inf, math.inf, math.inf, 2.0, math.inf]


def test_numbers_keep_their_value(tmp_path: Path) -> None:
    """Integers beyond 2^53 and beyond 64 bits are rounded once, as floats."""
    path = write(
        tmp_path, "pages.jsonl", "".join(f'{{"importance": {number}}}\n' for number in (2**53 + 1, 1e-7, 10**30))
    )
    assert read(path)["importance"] == [9007199254740992.0, 1e-7, 1e30]


def test_hosts_may_be_numbers_and_become_text(tmp_path: Path) -> None:
    """A host is a name, so that caps given as text find it."""
    assert read(write(tmp_path, "pages.jsonl", '{"host": 7}\n{"host": "x"}\n{"host": 7}\n'))["host"] == ["7", "x", "7"]
    assert read(write(tmp_path, "all.jsonl", '{"host": 7}\n{"host": 8}\n'))["host"] == ["7", "8"]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ('"1,5"', "is '1,5', but must be a number: write 1.5 with a point"),
        ('"abc"', "is 'abc', but must be a number"),
        ('""', "is missing: write a number in every row"),
        ("null", "is missing: write a number in every row"),
        ("true", "is 'true', but must be a number"),
        ("[1]", "is '[1]', but must be a number"),
        ('{"a": 1}', "is '{\"a\": 1}', but must be a number"),
        (r'"\ud800"', "is '?', but must be a number"),
    ],
)
def test_a_value_that_is_no_number_is_named(tmp_path: Path, value: str, problem: str) -> None:
    """The sentence has file, row and field, as for CSV."""
    path = write(
        tmp_path, "pages.jsonl", f'{{"importance": 1}}\n\n{{"importance": {value}}}\n{{"importance": "worse"}}\n'
    )
    error = refusal(path)
    assert (error.field, error.row) == ("importance", 1)
    assert told(error).startswith(f"pages.jsonl row 2: importance {problem}")


@pytest.mark.parametrize("value", ["true", "[1]"])
def test_a_whole_column_of_something_else_is_refused_too(tmp_path: Path, value: str) -> None:
    """Not only one among numbers."""
    assert refusal(write(tmp_path, "pages.jsonl", f'{{"importance": {value}}}\n')).field == "importance"


def test_a_missing_key_is_named(tmp_path: Path) -> None:
    """Every row needs its numbers and its host."""
    error = refusal(write(tmp_path, "pages.jsonl", '{"importance": 1}\n{"url": "x"}\n'))
    assert told(error) == "pages.jsonl row 2: importance is missing: write a number in every row"
    error = refusal(write(tmp_path, "pages.jsonl", '{"host": "a"}\n{"url": "x"}\n'))
    assert told(error).startswith("pages.jsonl row 2: host is missing")


def test_a_known_key_that_comes_late_is_not_ignored(tmp_path: Path) -> None:
    """Nobody looked for it in the first thousand rows, so a limit would be lost in silence."""
    path = write(tmp_path, "pages.jsonl", '{"importance": 1}\n' * 1500 + '{"importance": 1, "max_rate": 2}\n')
    error = refusal(path)
    assert (error.field, error.row) == ("max_rate", 1500)
    assert "comes first after 1000 rows without it" in str(error)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("[1, 2]", "is '[1, 2]', but must be an object"),
        ("5", "is '5', but must be an object"),
        ('{"importance": 1', "is not JSON (Expecting ',' delimiter at character 17): write one object per line"),
        ('{"importance": 1}{"importance": 2}', "is not JSON (Extra data"),
        ("{'importance': 1}", "is not JSON (Expecting property name"),
        ("importance,change_rate", "is not JSON ("),
        ('{"x": "\0"}', "is not JSON (Invalid control character"),
        (b'{"x": "\xff"}', "is not UTF-8 text: save the file as UTF-8"),
        ('{"x": ' + "[" * 100_000 + "]" * 100_000 + "}", "is nested too deeply: flatten it"),
        ('{"x": ' + "9" * 5_000 + "}", "holds a number of too many digits: write it as text"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: str | bytes, problem: str) -> None:
    """Rows are lines that are not blank, counted from 1."""
    raw = line if isinstance(line, bytes) else line.encode()
    error = refusal(write(tmp_path, "pages.jsonl", b'{"importance": 1}\n\n' + raw + b"\n"))
    assert error.row == 1
    assert told(error).startswith(f"pages.jsonl row 2: {problem}")


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("pages.jsonl", b"", "is empty: write one JSON object per line"),
        ("pages.jsonl", b"\xef\xbb\xbf\n  \n", "is empty"),
        ("pages.jsonl", PLAIN.encode("utf-16"), "is UTF-16 text: save it as UTF-8"),
        ("pages.jsonl", gzip.compress(PLAIN.encode(), mtime=0), "is compressed with gzip: add .gz to its name"),
        ("pages.jsonl", '{"\\ud800": 1}', r"has a column name that is not UTF-8 text, '\ud800': rename it"),
        ("pages.jsonl.gz", PLAIN, "cannot be read, so it may be cut off or damaged: Not a gzipped file"),
        (
            "pages.jsonl.gz",
            gzip.compress(PLAIN.encode(), mtime=0)[:-9],
            "cannot be read, so it may be cut off or damaged: ",
        ),
        (
            "pages.jsonl.gz",
            gzip.compress(PLAIN.encode(), mtime=0)[:12] + b"xxxx" * 9,
            "cannot be read, so it may be cut off",
        ),
    ],
)
def test_what_is_no_jsonl_is_refused(tmp_path: Path, name: str, content: str | bytes, problem: str) -> None:
    """The sentence says what the file seems to be and what to do."""
    error = refusal(write(tmp_path, name, content))
    assert told(error).startswith(f"{name}: {problem}")


def test_objects_without_keys_are_refused(tmp_path: Path) -> None:
    """There is nothing to read in them."""
    assert told(refusal(write(tmp_path, "pages.jsonl", "{}\n{}\n"))).startswith(
        "pages.jsonl row 1: is {}: name the columns"
    )


def test_progress_ends_at_the_size_of_the_file(tmp_path: Path) -> None:
    """Bytes done never exceed the total."""
    path = write(tmp_path, "pages.jsonl", '{"importance": 1}\n' * 40_000)
    reports: list[tuple[int, int | None]] = []
    open_pages(path).read(["importance"], lambda done, total: reports.append((done, total)))
    size = path.stat().st_size
    assert len(reports) > 2
    assert all(done <= size == total for done, total in reports)
    assert reports[-1] == (size, size)


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is one long line must not fill the memory; the limit is lowered so that the test need not either."""
    monkeypatch.setattr(jsonl_file, "_LONGEST_LINE", 1 << 20)
    path = write(tmp_path, "pages.jsonl", '{"importance": 1}\n{"x": "' + "x" * (3 << 20) + '"}\n')
    assert told(refusal(path)) == "pages.jsonl row 2: is longer than 1 MB: write one object per line"
