"""Blocks of JSON lines: the same values as line by line, or no answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from table_cases import read, refusal, write

from recrawl.tables.json_blocks import parse_block
from recrawl.tables.page_file import open_pages

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
OBJECTS = st.fixed_dictionaries(
    {"importance": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63), 2**63) | st.none()},
    optional={"host": TEXTS, "x": st.recursive(st.none() | st.booleans() | TEXTS, st.lists)},
)


@given(objects=st.lists(OBJECTS, min_size=1, max_size=5), ascii_only=st.booleans())
def test_a_block_gives_what_its_lines_give(objects: list[dict[str, Any]], ascii_only: bool) -> None:
    """To the last bit of every number and the last letter of every name."""
    lines = [json.dumps(found, ensure_ascii=ascii_only).encode() for found in objects]
    batch = parse_block(lines, ["importance", "host"], {"max_rate"})
    assert batch is not None
    numbers = [found["importance"] for found in objects]
    assert batch.column("importance").to_pylist() == [None if number is None else float(number) for number in numbers]
    assert batch.column("host").to_pylist() == [found.get("host") for found in objects]


@pytest.mark.parametrize(
    "line",
    [
        b'{"importance": "1"}',
        b'{"importance": true}',
        b'{"importance": [1]}',
        b'{"importance": 1e400}',
        b'{"importance": 1, "importance": 2}',
        b'{"importance": 1}{"importance": 2}',
        b'{"importance": 1, "max_rate": 1}',
        b'{"importance": 1, "host": 7}',
        b'{"importance": 1, "x": "\xff"}',
        b'{"importance": 1, "x": "\\ud800"}',
        b'{"importance": 1, "x": "\0"}',
        b'{"importance": 1, "x": 01}',
        b'{"importance": 1,}',
        b'{"importance": 1',
        b"[1]",
        b"5",
    ],
)
def test_whatever_is_not_plain_has_no_answer(line: bytes) -> None:
    """Neither alone nor among plain lines; then the lines are read one by one."""
    plain = b'{"importance": 1}'
    for lines in ([line], [plain, line], [line, plain]):
        assert parse_block(lines, ["importance", "host"], {"max_rate"}) is None


def test_an_object_may_not_span_lines() -> None:
    """Even if the count of objects is that of the lines."""
    assert parse_block([b'{"importance":', b'1}{"importance": 2}'], ["importance"], set()) is None
    assert parse_block([b'{"importance": 1, "x": {}', b'}{"importance": 2}'], ["importance"], set()) is None


def test_columns_of_unknown_type_have_no_answer() -> None:
    """Only the types of columns that recrawl knows are known."""
    assert parse_block([b'{"url": 1}'], ["url"], set()) is None


@pytest.mark.parametrize("odd", ['{"importance": "2"}', '{"importance": 2, "x": "\\ud800"}'])
def test_an_odd_line_far_down_changes_nothing(tmp_path: Path, odd: str) -> None:
    """The blocks before it are read by Arrow, those after it line by line."""
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
