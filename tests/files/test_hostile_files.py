"""Files made to mislead or to fill the memory: one sentence with the row, or the right numbers, and never more."""

from __future__ import annotations

import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_cases import read, refusal, told, write

from patience import PATIENCE_S
from recrawl.errors import InvalidFile
from recrawl.files.page_file import open_pages

pytestmark = pytest.mark.usefixtures("csv_reader")


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl"])
@pytest.mark.parametrize(
    "cell",
    [
        "1_0",
        "\u0663",
        "\uff11",
        "\u00bd",
        "1\u00a0000",
        "1'000",
        "1,5",
        "1e",
        "0b1",
        "1d5",
        "infinite",
        "=1+1",
        "\u2212" + "1",
        "1\u200b",
    ],
)
def test_what_python_or_a_spreadsheet_would_take_for_a_number_is_named_with_its_row(
    tmp_path: Path, ending: str, cell: str
) -> None:
    """`float` takes `1_0` for ten and an Arabic three for three."""
    lines = {
        "csv": f'importance,change_rate\n1,1\n"{cell}",1\n',
        "tsv": f"importance\tchange_rate\n1\t1\n{cell}\t1\n",
        "jsonl": f'{{"importance": 1, "change_rate": 1}}\n{{"importance": "{cell}", "change_rate": 1}}\n',
    }
    error = refusal(write(tmp_path, f"pages.{ending}", lines[ending]))
    assert (error.field, error.row) == ("importance", 1)
    assert "must be a number" in told(error)


HEADERS = (
    b"",
    b"importance,change_rate\n",
    b"\xef\xbb\xbfimportance,change_rate\n1,1\n",
    b'{"importance": 1}\n',
    b"PAR1",
    b"\x1f\x8b\x08",
)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(["pages.csv", "pages.tsv", "pages.jsonl", "pages.csv.gz", "pages.jsonl.gz", "pages.parquet"]),
    st.sampled_from(HEADERS),
    st.binary(max_size=60) | st.text(alphabet='0123,.;"\n\r\t\0{}[]:eE+-_ import', max_size=60).map(str.encode),
)
def test_any_bytes_are_numbers_or_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, name: str, header: bytes, rest: bytes
) -> None:
    path = write(tmp_path_factory.mktemp("hostile"), name, header + rest)
    columns, sentence = _numbers_or_sentence(path)
    assert all(isinstance(number, float) for column in columns.values() for number in column)
    assert sentence is None or (sentence.startswith(str(path)) and sentence.isprintable())


def _numbers_or_sentence(path: Path) -> tuple[dict[str, list[object]], str | None]:
    try:
        return read(path, ["importance", "change_rate"]), None
    except InvalidFile as error:
        return {}, str(error)


LARGE = """
    import gzip, resource, sys
    import pyarrow as pa, pyarrow.parquet as pq
    from recrawl.files.page_file import open_pages

    folder, kind = sys.argv[1:]
    path = f"{folder}/pages.{kind}"
    ROWS, WIDE = 400_000, 1_500  # 600 MB, of which recrawl needs two numbers a row
    block = b"".join(b"%d,%s,0.5\\n" % (row % 7 + 1, b"x" * WIDE) for row in range(1000))
    if kind == "csv.gz":
        with gzip.open(path, "wb", compresslevel=1) as file:
            file.write(b"importance,text,change_rate\\n")
            for _ in range(ROWS // 1000):
                file.write(block)
    else:
        wide = pa.DictionaryArray.from_arrays(pa.array([0] * ROWS, pa.int32()), pa.array(["x" * WIDE]))
        table = pa.table({"importance": [1.0] * ROWS, "text": wide, "change_rate": [0.5] * ROWS})
        pq.write_table(table, path, row_group_size=ROWS)
        del table, wide
    open_pages(path).read(["max_rate"])  # start threads and pools
    pages = int(open("/proc/self/statm").read().split()[0])
    most = pages * resource.getpagesize() + (300 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    columns = open_pages(path).read(["importance", "change_rate"])
    print(len(columns["importance"]), float(columns["change_rate"].sum()))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit on memory is a Linux one")
@pytest.mark.parametrize("kind", ["csv.gz", "parquet"])
def test_a_file_larger_than_the_memory_is_read_in_a_stream(tmp_path: Path, kind: str) -> None:
    """Six hundred megabytes of text, half of that of memory, and a single row group in Parquet."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(LARGE), str(tmp_path), kind],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.stdout == "400000 200000.0\n", done.stderr


class Trap:
    """Whoever unpickles this writes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str, ...]]:
        return Path.touch, (self.path,)  # type: ignore[return-value]


def test_a_pickled_type_and_paths_in_the_metadata_of_parquet_are_inert(tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    hostile = {
        b"ARROW:extension:name": b"arrow.py_extension_type",
        b"ARROW:extension:metadata": pickle.dumps(Trap(sprung)),
    }
    schema = pa.schema(
        [pa.field("importance", pa.float64(), metadata=hostile), pa.field("change_rate", pa.float64())],
        metadata={b"pandas": b'{"index_columns": ["../../etc/passwd"]}', b"file_path": b"../../etc/passwd"},
    )
    path = tmp_path / "pages.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array([1.0]), pa.array([0.5])], schema=schema), path)
    assert read(path, ["importance", "change_rate"]) == {"importance": [1.0], "change_rate": [0.5]}
    assert not sprung.exists()


def test_a_sound_extension_type_is_read_by_what_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "pages.parquet"
    kept = pa.array(["a", "b"])
    pq.write_table(
        pa.table(
            {
                "importance": [1.0, 2.0],
                "change_rate": [0.5, 0.5],
                "host": kept,
                "id": pa.array([b"x" * 16] * 2, pa.binary(16)).cast(pa.uuid()),
            }
        ),
        path,
    )
    assert read(path)["host"] == ["a", "b"]
    assert open_pages(path).columns == ("importance", "change_rate", "host", "id")
