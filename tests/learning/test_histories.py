"""Histories enter in many forms, and only if they make sense."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from recrawl.errors import InvalidInput
from recrawl.learning.histories import Histories, histories_from_log, read_histories

GAPS = [[1.0, 2.0], [], [0.5]]
CHANGED = [[True, False], [], [True]]


def _lists(histories: Histories) -> list[tuple[list[float], list[bool]]]:
    return [(gaps.tolist(), changed.tolist()) for gaps, changed in map(histories.of, range(len(histories)))]


@pytest.mark.parametrize(
    "histories",
    [
        read_histories(GAPS, CHANGED),
        read_histories([1.0, 2.0, 0.5], [1, 0, 1], offsets=[0, 2, 2, 3]),
        read_histories(pa.array(GAPS), pa.array(CHANGED)),
        read_histories(pa.chunked_array([GAPS[:1], GAPS[1:]]), pa.chunked_array([CHANGED])),
        read_histories(pl.Series(GAPS), pl.Series(CHANGED)),
        read_histories(pd.Series(GAPS), pd.Series(CHANGED)),
    ],
    ids=["lists", "offsets", "arrow", "chunked arrow", "polars", "pandas"],
)
def test_every_form_is_the_same_history(histories: Histories) -> None:
    """Lists per page, flat arrays with offsets and Arrow columns say the same."""
    assert _lists(histories) == list(zip(GAPS, CHANGED, strict=True))


def test_rectangles_have_a_row_per_page() -> None:
    """A two-dimensional array is pages by crawls."""
    histories = read_histories(np.ones((3, 2)), np.eye(3, 2))
    assert histories.offsets.tolist() == [0, 2, 4, 6]
    assert histories.changed.tolist() == [True, False, False, True, False, False]


def test_no_pages_and_a_page_without_crawls_are_two_things() -> None:
    """The empty list has no page, a list with an empty list has one, and so has an empty flat array."""
    assert len(read_histories([], [])) == 0
    assert read_histories([], []).offsets.tolist() == [0]
    assert len(read_histories(np.zeros((0, 3)), np.zeros((0, 3)))) == 0
    assert len(read_histories([[]], [[]])) == 1
    assert len(read_histories([[], []], [[], []])) == 2
    assert len(read_histories(np.zeros(0), np.zeros(0))) == 1
    assert len(read_histories([], [], offsets=[0, 0, 0])) == 2


def test_picked_pages_are_copies_in_the_order_asked() -> None:
    """Pages may be picked in any order, and twice."""
    histories = read_histories(GAPS, CHANGED).pick(np.array([2, 0, 2, 1]))
    assert _lists(histories) == [(GAPS[page], CHANGED[page]) for page in (2, 0, 2, 1)]


@pytest.mark.parametrize(
    ("gaps", "changed", "field", "row"),
    [
        ([1.0, -1.0], [0, 1], "gaps", 1),
        ([1.0, math.nan], [0, 1], "gaps", 1),
        ([math.inf], [0], "gaps", 0),
        ([1e61], [0], "gaps", 0),
        ([1e-70], [0], "gaps", 0),
        (["a"], [0], "gaps", 0),
        ([1.0, 1.0], [0, 2], "changed", 1),
        ([1.0, 1.0], [0.0, math.nan], "changed", 1),
        ([1.0, 1.0], [0], "changed", None),
        ([[1.0], [1.0]], [[0, 1], []], "changed", None),
        (np.ones((2, 2, 2)), np.ones((2, 2, 2)), "gaps", None),
        ([1.0, "x"], [0, 1], "gaps", 1),
        ([1.0, None], [0, 1], "gaps", 1),
        ([[1.0, 2.0], [None]], [[0, 1], [1]], "gaps", 2),
        ([[1.0], ["x"]], [[0], [1]], "gaps", 1),
        ([[1.0], 2.0], [[0], [1]], "gaps", 1),
        ([1.0, [2.0]], [0, 1], "gaps", 0),
        ([[1.0], None], [[0], [1]], "gaps", 1),
        ([[[1.0]]], [[0]], "gaps", 0),
        (pa.array([1.0, None]), [0, 1], "gaps", 1),
        (pa.array([[1.0], None]), [[0], [1]], "gaps", 1),
        (pa.array([[1.0], [2.0, None]]), [[0], [1, 1]], "gaps", 2),
        (pa.array(["a", "b"]), [0, 1], "gaps", 0),
        (np.ma.array([1.0, 2.0], mask=[False, True]), [0, 1], "gaps", 1),
        ([True, False], [0, 1], "gaps", 0),
        ("x", [0], "gaps", None),
        (1.0, [0], "gaps", None),
        (np.array([1, 2], dtype="M8[D]"), [0, 1], "gaps", 0),
        ([10**400], [0], "gaps", 0),
        ([1.0, 1.0], [0, None], "changed", 1),
        ([1.0, 1.0], ["0", "1"], "changed", 0),
        ([[1.0], [1.0]], [[0], 1], "changed", 1),
        (pa.array([1.0, 1.0]), pa.array([True, None]), "changed", 1),
    ],
)
def test_bad_observations_are_refused(gaps: object, changed: object, field: str, row: int | None) -> None:
    """The field and the row at fault are in the error."""
    with pytest.raises(InvalidInput) as caught:
        read_histories(gaps, changed)
    assert (caught.value.field, caught.value.row) == (field, row)


@pytest.mark.parametrize(
    "offsets", [[0, 3], [1, 2], [0, 2, 1, 2], [0.0, 2.0], [], [[0, 2]], "x", [0, None], [0, 2**63]]
)
def test_bad_offsets_are_refused(offsets: object) -> None:
    """Offsets rise from 0 to the number of observations."""
    with pytest.raises(InvalidInput, match="offsets"):
        read_histories([1.0, 1.0], [0, 1], offsets=offsets)


def test_offsets_do_not_contradict_lists() -> None:
    """Lists per page say where pages begin; other offsets beside them are an error."""
    with pytest.raises(InvalidInput, match="gaps has other numbers of crawls per page than offsets"):
        read_histories([[1.0], [1.0]], [[0], [1]], offsets=[0, 2])


@pytest.mark.parametrize("page", [-1, 3, 1.5, "x"])
def test_pages_that_do_not_exist_are_not_found(page: Any) -> None:
    """Neither by one number nor among several."""
    histories = read_histories(GAPS, CHANGED)
    with pytest.raises(InvalidInput, match="page is"):
        histories.of(page)
    with pytest.raises(InvalidInput, match=r"pages\[1\] is"):
        histories.pick([0, page])  # type: ignore[arg-type]


def test_a_log_becomes_gaps_between_crawls() -> None:
    """The first crawl of a page is what later ones compare with; pages may be mixed and missing."""
    histories = histories_from_log([2, 0, 2, 0, 2], [1.0, 2.0, 4.0, 2.5, 4.25], [1, 1, 1, 0, 0], pages=4)
    assert _lists(histories) == [([0.5], [False]), ([], []), ([3.0, 0.25], [True, False]), ([], [])]


def test_crawls_at_one_time_count_once() -> None:
    """Whichever comes first, the gap before them saw the change and no time passed between them."""
    for flags in ([0, 1, 0], [0, 0, 1]):
        histories = histories_from_log([0, 0, 0], [0.0, 3.0, 3.0], flags)
        assert _lists(histories) == [([3.0, 0.0], [True, False])]


@pytest.mark.parametrize(
    ("page", "time", "changed", "field", "row"),
    [
        ([0, 1, 0, 1], [1.0, 5.0, 2.0, 4.0], [0, 0, 0, 0], "time", 3),
        ([0, 0], [1.0, math.nan], [0, 0], "time", 1),
        ([0, 0], [1.0, math.inf], [0, 0], "time", 1),
        ([0, 0], [1.0, 2.0], [0, 3], "changed", 1),
        ([0, -1], [1.0, 2.0], [0, 0], "page", 1),
        ([0, 2], [1.0, 2.0], [0, 0], "page", 1),
        ([0.5, 1.0], [1.0, 2.0], [0, 0], "page", 0),
        ([0, 0], [1.0], [0, 0], "time", None),
        ([0, "x"], [1.0, 2.0], [0, 0], "page", 1),
        ([0, None], [1.0, 2.0], [0, 0], "page", 1),
        (np.array([0, 2**63], dtype=np.uint64), [1.0, 2.0], [0, 0], "page", 1),
        ([0, 2**64], [1.0, 2.0], [0, 0], "page", 1),
        ([0, 0], [1.0, "x"], [0, 0], "time", 1),
        ([0, 0], [1.0, 1e300], [0, 0], "time", 1),
        ([0, 0], np.array([1, 2], dtype="M8[s]"), [0, 0], "time", 0),
        ([0, 1, 0, 1], [-9e59, -9e59, 0.0, 9e59], [0, 0, 0, 0], "time", 3),
        ([1, 0, 0, 1], [0.0, 0.0, 1.0, 1e-70], [0, 0, 0, 0], "time", 3),
        ([0, 0], [1.0, 2.0], ["a", "b"], "changed", 0),
        (pa.array([0, 1]), pa.array([1.0, None]), pa.array([True, False]), "time", 1),
    ],
)
def test_bad_logs_are_refused(page: object, time: object, changed: object, field: str, row: int | None) -> None:
    """Times that are missing or go backwards within a page, and pages that do not exist, are named with their row."""
    with pytest.raises(InvalidInput) as caught:
        histories_from_log(page, time, changed, pages=2)
    assert (caught.value.field, caught.value.row) == (field, row)


@pytest.mark.parametrize("pages", [-1, 2.5, "x", math.nan, [2], True, 10**12])
def test_the_number_of_pages_is_a_whole_number(pages: Any) -> None:
    """Anything else is refused, and named."""
    with pytest.raises(InvalidInput, match=r"pages is .*, but must be a whole number"):
        histories_from_log([0, 0], [1.0, 2.0], [0, 0], pages=pages)


def test_hashes_are_no_page_numbers() -> None:
    """A page number that nobody counted to is refused before memory is sought for all the pages below it."""
    with pytest.raises(InvalidInput, match=r"page\[1\] is 4611686018427387904, but is counted from 0 to 1000000000"):
        histories_from_log([0, 2**62], [1.0, 2.0], [0, 0])


def test_an_absurd_gap_is_told_by_its_row_in_the_log() -> None:
    """The sentence names the crawl, its page and the gap, in a log whose pages are mixed."""
    with pytest.raises(InvalidInput) as caught:
        histories_from_log([3, 0, 1, 0, 3], [-1e60, 0.0, 1.0, 2.0, 1e60], [0] * 5)
    assert str(caught.value) == (
        "time[4] is 2e+60 after the crawl before it of page 3, but the time between two crawls must be at most 1e+60; "
        "use a larger unit"
    )
