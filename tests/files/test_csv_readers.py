"""Two readers of CSV, one answer: Python's csv module is the reference, Arrow must agree or step aside."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_cases import read, write

from recrawl.errors import InvalidFile
from recrawl.files.csv_file import LARGE_BYTES

CELLS = st.text(alphabet='0129.,;"\n\r\t\0 eE+-_xé\xa0\u2028nainfINF()%', max_size=8)
PLAIN = st.sampled_from(["1", "0.5", "2e-3", "", '""', '"a"', "nan", "inf", "-0", "1e999", "nan(1)", "\ufeff1"])


def answer(path: Path, from_bytes: int) -> dict[str, list[Any]] | str:
    """The columns, or the sentence, with Arrow from a size of the file on."""
    token = LARGE_BYTES.set(from_bytes)
    try:
        return read(path, ["importance", "max_rate", "host"])
    except InvalidFile as error:
        return str(error)
    finally:
        LARGE_BYTES.reset(token)


@settings(max_examples=400)
@given(st.lists(st.lists(CELLS | PLAIN, min_size=1, max_size=4).map(",".join), max_size=5).map("\n".join))
def test_any_text_is_read_alike(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    """The same numbers, names and row numbers, or the same sentence."""
    path = write(tmp_path_factory.mktemp("both"), "pages.csv", "importance,max_rate,host\n" + text)
    assert repr(answer(path, 0)) == repr(answer(path, sys.maxsize))


@pytest.mark.parametrize("bad", ["1,2,3,4", "x,1,a", '"open,1,a', " 7 ,,b"])
def test_the_csv_module_goes_on_where_arrow_stops(tmp_path: Path, bad: str) -> None:
    """No row is lost or read twice, after several blocks that Arrow had read."""
    lines = [f"{row},{row % 7},host{row % 5}{'x' * 200}" for row in range(1, 90_001)]
    path = write(tmp_path, "pages.csv", "\n".join(["importance,max_rate,host", *lines, bad, lines[0]]))
    assert path.stat().st_size > 16 << 20
    assert answer(path, 0) == answer(path, sys.maxsize)
