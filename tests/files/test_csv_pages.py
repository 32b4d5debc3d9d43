"""CSV in: what each oddity means, or the sentence it ends in."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import pytest
from table_cases import read, refusal, rows_of, told, write

from recrawl.errors import InvalidFile
from recrawl.files.page_file import open_pages
from recrawl.pages import Hosts, read_pages

pytestmark = pytest.mark.usefixtures("csv_reader")


PLAIN = "url,host,importance,change_rate\nhttp://a/1,a,1,0.5\nhttp://b/1,b,2.5,1e-3\nhttp://a/2,a,3,7\n"


def test_known_columns_are_read_and_unknown_ones_are_not(tmp_path: Path) -> None:
    """Numbers become float64, hosts codes and names, in the order of the file."""
    file = open_pages(write(tmp_path, "pages.csv", PLAIN))
    columns = file.read({"importance", "change_rate", "host", "cost"})
    assert file.format == "csv"
    assert file.columns == ("url", "host", "importance", "change_rate")
    assert rows_of(file) == 3
    assert set(columns) == {"host", "importance", "change_rate"}
    assert not isinstance(columns["importance"], Hosts)
    assert columns["importance"].dtype == "float64"
    assert columns["importance"].tolist() == [1.0, 2.5, 3.0]
    hosts = columns["host"]
    assert isinstance(hosts, Hosts)
    assert hosts.codes.dtype == "int64"
    assert (hosts.codes.tolist(), list(hosts.names)) == ([0, 1, 0], ["a", "b"])


def test_what_is_read_can_be_planned(tmp_path: Path) -> None:
    """The columns are what `read_pages` takes."""
    assert (
        len(read_pages(open_pages(write(tmp_path, "pages.csv", PLAIN)).read(["importance", "change_rate", "host"])))
        == 3
    )


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("bom.csv", b"\xef\xbb\xbf" + PLAIN.encode()),
        ("crlf.csv", PLAIN.replace("\n", "\r\n").encode()),
        ("old-mac.csv", PLAIN.replace("\n", "\r").encode()),
        ("no-last-newline.csv", PLAIN.rstrip("\n").encode()),
        ("blank-lines.csv", b"\n" + PLAIN.replace("\n", "\n\n").encode()),
        ("pages.tsv", PLAIN.replace(",", "\t").encode()),
        ("pages.csv.gz", gzip.compress(PLAIN.encode(), mtime=0)),
        (
            "two-members.csv.gz",
            gzip.compress(PLAIN[:40].encode(), mtime=0) + gzip.compress(PLAIN[40:].encode(), mtime=0),
        ),
        (
            "quoted.csv",
            b'"url","host","importance","change_rate"\n"x,\n""y""","a","1","0.5"\n,b,2.5,1e-3\n,a,3,7\n',
        ),
        ("spaces.csv", PLAIN.replace(",2.5,", ", 2.5 ,").encode()),
        ("plus.csv", PLAIN.replace(",2.5,", ",+2.5,").encode()),
        ("UPPER.CSV", PLAIN.encode()),
        ("nul-in-unknown-column.csv", PLAIN.replace("http://b/1", "\0").encode()),
        ("latin-1-in-unknown-column.csv", PLAIN.replace("http://b/1", "é").encode("latin-1")),
        ("long-unknown-field.csv", PLAIN.replace("http://b/1", "x" * 200_000).encode()),
        ("long-first-field.csv", PLAIN.replace("http://a/1", "x" * 1_500_000).encode()),
    ],
)
def test_forms_that_mean_the_same(tmp_path: Path, name: str, content: bytes) -> None:
    """None of these changes what recrawl reads."""
    columns = read(write(tmp_path, name, content))
    assert columns == {"host": ["a", "b", "a"], "importance": [1.0, 2.5, 3.0], "change_rate": [0.5, 1e-3, 7.0]}


@pytest.mark.parametrize(
    "text", ["importance,change_rate\n", "importance,change_rate", '"importance",change_rate\r\n\r\n']
)
def test_a_header_alone_is_no_pages(tmp_path: Path, text: str) -> None:
    """Zero rows are legal: what a plan of nothing is, planning says."""
    file = open_pages(write(tmp_path, "pages.csv", text))
    columns = file.read(["importance", "change_rate"])
    assert [len(column.codes if isinstance(column, Hosts) else column) for column in columns.values()] == [0, 0]
    assert rows_of(file) == 0


def test_a_file_without_known_columns_still_counts_its_rows(tmp_path: Path) -> None:
    """The complaint about missing columns comes from whoever needs them."""
    file = open_pages(write(tmp_path, "pages.csv", "a,b\n1,2\n3,4\n"))
    assert file.read(["importance"]) == {}
    assert rows_of(file) == 2


def test_limits_may_be_infinite_or_left_empty(tmp_path: Path) -> None:
    """No limit is inf, or an empty cell in a column of limits."""
    path = write(tmp_path, "pages.csv", "min_rate,max_rate\n0.5,inf\n,\n , +Infinity\n1,2\n")
    columns = read(path, ["min_rate", "max_rate"])
    assert columns == {"min_rate": [0.5, 0.0, 0.0, 1.0], "max_rate": [math.inf, math.inf, math.inf, 2.0]}


@pytest.mark.parametrize(
    ("cell", "problem"),
    [
        ('"1,5"', "is '1,5', but must be a number: write 1.5 with a point"),
        ('"-0,25e3"', "is '-0,25e3', but must be a number: write -0.25e3 with a point"),
        ('"1,234"', "is '1,234', but must be a number: leave out the comma between thousands"),
        ('"1,234,567.5"', "is '1,234,567.5', but must be a number: leave out the comma between thousands"),
        ("20%", "is '20%', but must be a number: write 0.2 instead of a percentage"),
        ("abc", "is 'abc', but must be a number: write it with digits"),
        ("1_000", "is '1_000', but must be a number"),
        ("0x10", "is '0x10', but must be a number"),
        ("\N{FULLWIDTH DIGIT ONE}", "is '\N{FULLWIDTH DIGIT ONE}', but must be a number"),
        ("1 2", "is '1 2', but must be a number"),
        ("--1", "is '--1', but must be a number"),
        ("1\0", r"is '1\x00', but must be a number"),
        ("true", "is 'true', but must be a number"),
        ("", "is missing: write a number in every row"),
        (" ", "is missing: write a number in every row"),
        ("x" * 200_000, "is '" + "x" * 59 + "…', but must be a number"),
    ],
)
def test_a_cell_that_is_no_number_is_named(tmp_path: Path, cell: str, problem: str) -> None:
    """The sentence has file, row and field, and says how to repair it; the attribute counts from 0."""
    path = write(tmp_path, "pages.csv", f"importance,url,change_rate\n1,a,1\n\n{cell},b,1\nworse,c,1\n")
    error = refusal(path)
    assert (error.field, error.row) == ("importance", 1)
    assert told(error).startswith(f"pages.csv row 2: importance {problem}")


def test_the_row_is_counted_across_blocks(tmp_path: Path) -> None:
    """Arrow reads in blocks of megabytes; the count does not start again with each."""
    lines = ["importance,change_rate,text"] + [f"1,2,{'x' * 1000}"] * 20_000 + ["1,oops,"]
    error = refusal(write(tmp_path, "pages.csv", "\n".join(lines)))
    assert (error.field, error.row) == ("change_rate", 20_000)


@pytest.mark.parametrize("cell", ["nan", "-1", "inf", "1e308", "1e-300"])
def test_numbers_out_of_range_are_told_in_terms_of_the_file(tmp_path: Path, cell: str) -> None:
    """What `read_pages` refuses names an array's row; `explain` makes it the file's."""
    file = open_pages(write(tmp_path, "pages.csv", f"importance,change_rate\n1,1\n1,{cell}\n"))
    columns = file.read(["importance", "change_rate"])
    with pytest.raises(ValueError, match=r"change_rate\[1\]") as caught:
        read_pages(columns)
    error = file.explain(caught.value)  # type: ignore[arg-type]
    assert isinstance(error, InvalidFile)
    assert (error.field, error.row, error.path) == ("change_rate", 1, str(file.path))
    assert told(error).startswith("pages.csv row 2: change_rate is ")
    assert file.explain(error) is error


@pytest.mark.parametrize(
    ("header", "ending"),
    [
        ("url,Importance,change_rate", "; did you mean 'Importance'?)"),
        ("url, importance,change_rate", "; did you mean ' importance'?)"),
        ("a,b,change_rate", "(columns: a, b, change_rate)"),
        ('"a\n\x1b[1m",change_rate', "(columns: a\ufffd\ufffd[1m, change_rate)"),
        ("change_rate," + ",".join(f"c{i}" for i in range(20)), "c9, c10 and 9 more)"),
    ],
)
def test_a_wrong_header_is_told_with_the_columns_of_the_file(tmp_path: Path, header: str, ending: str) -> None:
    """Also those that were not read, and the one that was probably meant."""
    row = ",".join("1" for _ in header.split(","))
    file = open_pages(write(tmp_path, "pages.csv", f"{header}\n{row}\n"))
    with pytest.raises(ValueError, match="there is no column 'importance'") as caught:
        read_pages(file.read(["importance", "change_rate"]))
    sentence = told(file.explain(caught.value))  # type: ignore[arg-type]
    assert sentence.startswith("pages.csv: there is no column 'importance' (columns: ")
    assert sentence.endswith(ending)


@pytest.mark.parametrize(
    ("content", "row", "problem"),
    [
        ("a,importance\n1,1\n\n2\n", 1, "has 1 field where the header has 2: "),
        ("a,importance\n1,1\n1,1,1\n", 1, "has 3 fields where the header has 2: "),
        ('a,importance\n"x\ny",1\n1,1,5\n', 1, "has 3 fields where the header has 2: "),
        ('a,importance\n1,1\n"x,2\n3,4\n', 1, "has 1 field where the header has 2: "),
        (b"a,importance\n1,1\n\xe9\n", 1, "has 1 field where the header has 2: "),
        (b"a,importance\n1,1\n1,\xe9\n", 1, "importance is not UTF-8 text: save the file as UTF-8"),
        ('a,importance\n1,1\n"' + "x,1\n" * 4_500_000, 1, "is longer than 8 MB: close an open quote, or shorten it"),
    ],
)
def test_a_broken_row_is_named(tmp_path: Path, content: str | bytes, row: int, problem: str) -> None:
    """Errors of the parser get the row as well; blank lines and the header do not count."""
    error = refusal(write(tmp_path, "pages.csv", content))
    assert error.row == row
    assert told(error).startswith(f"pages.csv row {row + 1}: {problem}")


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("pages.csv", b"", "is empty: begin it with a line of column names"),
        ("pages.csv", b"\xef\xbb\xbf\n\n", "is empty"),
        ("pages.csv", PLAIN.encode("utf-16"), "is UTF-16 text: save it as UTF-8"),
        ("pages.csv", PLAIN.encode("utf-16-le"), "is UTF-16 text or no text at all: save it as UTF-8"),
        ("pages.csv", b"\x00\x01\x02\xff" * 100, "is UTF-16 text or no text at all"),
        ("pages.csv", b"\x89\xfe\xfa\x01junk\x02\n\xff", "begins with bytes that are not UTF-8 text"),
        ("pages.csv", b"importance\0,change_rate\n1,2\n", "begins with bytes that are not UTF-8 text"),
        ("pages.csv", gzip.compress(PLAIN.encode(), mtime=0), "is compressed with gzip: add .gz to its name"),
        ("pages.csv", b"PAR1....", "is a Parquet file: give its name the ending .parquet"),
        ("pages.csv", b"PK\x03\x04....", "is a spreadsheet or a zip archive: save it as CSV"),
        ("pages.csv", "importance;change_rate\n1,5;2\n", "has semicolons between its columns: save it with commas"),
        ("pages.csv", "importance\tchange_rate\n1\t2\n", "has tabs between its columns: save it with commas"),
        ("pages.csv", "importance,x,importance\n1,2,3\n", "has two columns named 'importance': rename or remove one"),
        ("pages.csv", "x" * 200_000 + ",importance\n1,2\n", "begins with no line of column names"),
        ("pages.csv.gz", PLAIN, "cannot be read, so it may be cut off or damaged: "),
        (
            "pages.csv.gz",
            gzip.compress(PLAIN.encode(), mtime=0)[:30],
            "cannot be read, so it may be cut off or damaged: ",
        ),
        ("pages.xlsx", b"PK", "the ending says no format that recrawl knows: use .csv, .tsv, .jsonl or .ndjson"),
        ("pages", b"", "the ending says no format that recrawl knows"),
    ],
)
def test_what_is_no_csv_is_refused(tmp_path: Path, name: str, content: str | bytes, problem: str) -> None:
    """The sentence says what the file seems to be and what to do."""
    error = refusal(write(tmp_path, name, content))
    assert error.row is None
    assert told(error).startswith(f"{name}: {problem}")


def test_a_cut_off_gzip_is_found_at_its_end(tmp_path: Path) -> None:
    """Rows before the cut are no reason to believe the file."""
    packed = gzip.compress(b"importance\n" + b"".join(b"%d.%d\n" % (i, i * i) for i in range(300_000)), mtime=0)
    assert "cut off or damaged" in told(refusal(write(tmp_path, "pages.csv.gz", packed[:-100])))


def test_a_host_may_not_be_missing(tmp_path: Path) -> None:
    """An empty host would make one host of all pages without one."""
    error = refusal(write(tmp_path, "pages.csv", "host,importance\na,1\n,1\n"))
    assert told(error) == "pages.csv row 2: host is missing: write a host in every row, or leave the column out"


def test_lives_come_as_text(tmp_path: Path) -> None:
    """The words are checked where they are used; a monstrous one costs no memory."""
    path = write(tmp_path, "pages.csv", f"life\nappend\nwindow\n{'x' * 100_000}\nappend\n")
    lives = open_pages(path).read(["life"])["life"]
    assert not isinstance(lives, Hosts)
    assert lives.dtype.kind == "U"
    assert lives.dtype.itemsize <= 100
    assert lives.tolist() == ["append", "window", "x" * 24, "append"]


def test_progress_ends_at_the_size_of_the_file(tmp_path: Path) -> None:
    """Bytes done never fall and never exceed the total."""
    path = write(tmp_path, "pages.csv", "importance\n" + "0.123456789\n" * 1_600_000)
    reports: list[tuple[int, int | None]] = []
    open_pages(path).read(["importance"], lambda done, total: reports.append((done, total)))
    size = path.stat().st_size
    assert len(reports) > 1
    assert [done for done, _ in reports] == sorted(done for done, _ in reports)
    assert reports[-1] == (size, size)
