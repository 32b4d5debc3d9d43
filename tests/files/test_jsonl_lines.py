"""JSON lines: the values that Python's json reads, whichever parser read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from table_cases import read, refusal, write

from recrawl.files.page_file import open_pages

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
OBJECTS = st.fixed_dictionaries(
    {"importance": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63), 2**63)},
    optional={"host": TEXTS, "x": st.recursive(st.none() | st.booleans() | TEXTS, st.lists)},
)


@given(objects=st.lists(OBJECTS, min_size=1, max_size=5), ascii_only=st.booleans())
def test_values_are_those_that_python_reads(
    tmp_path_factory: pytest.TempPathFactory, objects: list[dict[str, Any]], ascii_only: bool
) -> None:
    """To the last bit of every number and the last letter of every name."""
    lines = [json.dumps(found, ensure_ascii=ascii_only) for found in objects]
    path = write(tmp_path_factory.mktemp("lines"), "pages.jsonl", "\n".join(lines))
    assert read(path, ["importance"])["importance"] == [float(found["importance"]) for found in objects]
    if all(found.get("host") for found in objects):
        assert read(path, ["host"])["host"] == [found["host"] for found in objects]


@pytest.mark.parametrize("line", ['{"importance": 1, "x": NaN}', '{"importance": 1, "x": "\\ud800"}'])
def test_what_msgspec_refuses_and_python_knows_is_read(tmp_path: Path, line: str) -> None:
    """Alone and among plain lines."""
    plain = '{"importance": 1}'
    for lines in ([line], [plain, line], [line, plain]):
        assert read(write(tmp_path, "pages.jsonl", "\n".join(lines)))["importance"] == [1.0] * len(lines)


def test_an_object_may_not_span_lines(tmp_path: Path) -> None:
    """Even if the count of objects is that of the lines."""
    for lines in ('{"importance":\n1}{"importance": 2}', '{"importance": 1, "x": {}\n}{"importance": 2}'):
        assert "is not JSON" in str(refusal(write(tmp_path, "pages.jsonl", lines)))


@pytest.mark.parametrize("odd", ['{"importance": "2"}', '{"importance": 2, "x": "\\ud800"}'])
def test_an_odd_line_far_down_changes_nothing(tmp_path: Path, odd: str) -> None:
    """The blocks before and after it are read as ever."""
    lines = ['{"importance": 0.5}'] * 20_000 + [odd] + ['{"importance": 1e-7}'] * 20_000
    assert (
        read(write(tmp_path, "pages.jsonl", "\n".join(lines)))["importance"] == [0.5] * 20_000 + [2.0] + [1e-7] * 20_000
    )


@pytest.mark.parametrize("bad", ['{"importance": "x"}', '{"importance": null}', '{"importance": 1', '{"url": 1}'])
def test_a_bad_line_far_down_is_named(tmp_path: Path, bad: str) -> None:
    """Whichever way it was read."""
    lines = ['{"importance": 0.5}'] * 40_000 + [bad, '{"importance": "worse"}']
    assert refusal(write(tmp_path, "pages.jsonl", "\n".join(lines))).row == 40_000


def test_a_column_that_is_not_asked_for_may_hold_anything(tmp_path: Path) -> None:
    """Also one that recrawl knows."""
    path = write(tmp_path, "pages.jsonl", '{"importance": 1, "decay": "x"}\n{"importance": 2, "decay": []}\n')
    columns = open_pages(path).read(["importance"])
    assert np.array_equal(columns["importance"], [1.0, 2.0])  # type: ignore[arg-type]
