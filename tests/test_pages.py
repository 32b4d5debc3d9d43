"""Columns of page parameters: every make of table, every bad value."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from recrawl.errors import InvalidInput
from recrawl.pages import Hosts, Objective, Pages, check_number, read_pages

PLAIN: dict[str, Any] = {"importance": [1, 2, 3], "change_rate": [0.5, 0.0, 7.0], "host": ["b", "a", "b"]}


def structured() -> Any:
    """The pages as a structured array."""
    rows = list(zip(*PLAIN.values(), strict=True))
    return np.array(rows, dtype=[("importance", int), ("change_rate", float), ("host", "U3")])


@pytest.mark.parametrize(
    "table",
    [
        PLAIN,
        {name: tuple(values) for name, values in PLAIN.items()},
        {name: np.array(values, dtype=object) for name, values in PLAIN.items()},
        {**PLAIN, "importance": ["1", "2.0", "3e0"]},
        {**PLAIN, "importance": np.array([1, 2, 3], dtype=np.float16)},
        {**PLAIN, "importance": np.ma.masked_array([1, 2, 3], mask=False)},
        {**PLAIN, "host": Hosts(np.array([0, 1, 0]), ["b", "a"])},
        pd.DataFrame(PLAIN),
        pd.DataFrame(PLAIN).astype({"importance": "Int64", "host": "category"}),
        pl.DataFrame(PLAIN),
        pa.table(PLAIN),
        structured(),
    ],
    ids=lambda table: type(table).__name__,
)
def test_any_columnar_table_is_read(table: Any) -> None:
    """The same pages come out of each."""
    pages = read_pages(table)
    assert len(pages) == 3
    assert pages.importance.tolist() == [1.0, 2.0, 3.0]
    assert pages.change_rate.tolist() == [0.5, 0.0, 7.0]
    assert pages.hosts is not None
    assert [pages.hosts.names[code] for code in pages.hosts.codes] == ["b", "a", "b"]
    assert pages.hosts.codes.dtype == np.int64


def test_float64_columns_are_not_copied() -> None:
    """Twenty million pages should not be there twice."""
    importance = np.ones(3)
    pages = read_pages({"importance": importance, "change_rate": importance})
    assert pages.importance is importance
    assert read_pages(pages) is pages


def test_hosts_may_be_numbers() -> None:
    """Their names are then the numbers."""
    hosts = read_pages({**PLAIN, "host": np.array([30, 4, 30])}).hosts
    assert hosts is not None
    assert [hosts.names[code] for code in hosts.codes] == [30, 4, 30]


def test_no_pages_are_legal() -> None:
    """Every column is then empty."""
    empty: dict[str, list[float]] = {
        name: []
        for name in ("importance", "change_rate", "host", "cost", "min_rate", "max_rate", "recall", "precision")
    }
    assert len(read_pages(empty)) == 0


def test_columns_that_the_objective_does_not_need_are_ignored() -> None:
    """Nobody checks the decay of a page whose freshness is wanted."""
    pages = read_pages({**PLAIN, "decay": ["x"] * 3, "life": [None] * 3, "unknown": [object()] * 3})
    assert (pages.decay, pages.life, pages.window) == (None, None, None)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (math.nan, "is nan, but must be a number"),
        (math.inf, "is inf, but must be at most 1e+60; use a larger unit"),
        (-math.inf, "is -inf, but must be 0 or more"),
        (-1, "is -1.0, but must be 0 or more"),
        (1e308, "is 1e+308, but must be at most 1e+60; use a larger unit"),
        (10**400, "is inf, but must be at most 1e+60; use a larger unit"),
        (5e-324, "is 5e-324, but must be 0 or at least 1e-60"),
        (None, "is missing, but must be a number"),
        ("1,5", "is '1,5', but must be a number"),
        (pd.NA, "is <NA>, but must be a number"),
    ],
)
@pytest.mark.parametrize("field", ["importance", "change_rate", "cost", "min_rate", "false_signal_rate"])
def test_a_bad_number_is_named_by_field_and_row(field: str, value: Any, problem: str) -> None:
    """The row counts from 0, as the array does."""
    columns = {**PLAIN, "recall": [0.5] * 3, "false_signal_rate": [1.0] * 3, field: [1.0, value, value]}
    with pytest.raises(InvalidInput) as caught:
        read_pages(columns)
    assert (caught.value.field, caught.value.row) == (field, 1)
    assert str(caught.value) == f"{field}[1] {problem}"


@pytest.mark.parametrize(
    ("column", "problem"),
    [
        ([[1, 2], [3, 4], [5, 6]], "importance has 2 dimensions, but must be a plain column"),
        ([[1], [2, 3], []], "importance holds lists, but must be a plain column"),
        (5.0, "importance has 0 dimensions, but must be a plain column"),
        ([1.0, 2.0], "change_rate has 3 values but importance has 2: every column needs one value per page"),
        (
            np.array(["2024"] * 3, dtype="M8[ns]"),
            "importance holds values of type datetime64[ns], but must be a plain column",
        ),
        ([1, 1j, 2], "importance holds values of type complex128, but must be a plain column"),
        (
            np.ma.masked_array([1.0, 2.0, 3.0], mask=[False, False, True]),
            r"importance[2] is missing, but must be a number",
        ),
        (np.array([1, 2, "1e4000"], dtype=np.longdouble), "importance[2] is inf, but must be at most"),
    ],
)
def test_a_bad_column_is_named(column: Any, problem: str) -> None:
    """Whatever numpy would have made of it."""
    with pytest.raises(InvalidInput) as caught:
        read_pages({**PLAIN, "importance": column})
    assert str(caught.value).startswith(problem)


@pytest.mark.parametrize(
    ("host", "problem"),
    [
        (["a", None, "b"], "host[1] is missing: every page needs a host, or leave the column out"),
        (["a", math.nan, "b"], "host[1] is missing"),
        (pd.Series(["a", pd.NA, "b"], dtype="string"), "host[1] is missing"),
        (np.ma.masked_array(["a", "b", "b"], mask=[False, True, False]), "host[1] is missing"),
        (np.array(["a", {}, "b"], dtype=object), "host[1] is {}, but must be a name or a number"),
        ([["a"], ["b"], ["c"]], "host has 2 dimensions, but must be a plain column"),
        (["a"], "host has 1 values but importance has 3"),
        (Hosts(np.array([0]), ["a"]), "host has 1 values but importance has 3"),
    ],
)
def test_a_bad_host_is_named(host: Any, problem: str) -> None:
    """A page without a host has no place under caps."""
    with pytest.raises(InvalidInput) as caught:
        read_pages({**PLAIN, "host": host})
    assert str(caught.value).startswith(problem)


@pytest.mark.parametrize("table", [5, "pages.csv", [1, 2], None, np.ones(3)])
def test_what_is_not_columnar_is_refused(table: Any) -> None:
    """The sentence says what is."""
    with pytest.raises(InvalidInput, match="must be columnar: a dict of arrays"):
        read_pages(table)


def test_a_missing_column_is_told_with_those_that_are_there() -> None:
    """So that a slip of the pen is seen."""
    with pytest.raises(InvalidInput, match=r"^there is no column 'importance' \(columns: change_rate, imp\)$"):
        read_pages({"imp": [1], "change_rate": [1]})


@pytest.mark.parametrize("others", [[1.0, 1.0], [0.0, 1.0]])
def test_only_a_ceiling_may_be_infinite(others: list[float]) -> None:
    """Infinite is no ceiling; a finite one obeys the range, whatever else is in the column."""
    columns = {"importance": [1.0] * 3, "change_rate": [1.0] * 3}
    assert read_pages({**columns, "max_rate": [math.inf, *others]}).max_rate is not None
    with pytest.raises(InvalidInput, match=r"max_rate\[0\] is 1e\+100, but must be at most 1e\+60"):
        read_pages({**columns, "max_rate": [1e100, *others]})


@pytest.mark.parametrize(
    ("extra", "problem"),
    [
        ({"recall": [0, 1.5, 0], "precision": [1, 1, 1]}, "recall[1] is 1.5, but must be between 0 and 1"),
        ({"recall": [0, 0, -1], "precision": [1, 1, 1]}, "recall[2] is -1.0, but must be between 0 and 1"),
        ({"recall": [1, 1, 1], "precision": [1, 2, 1]}, "precision[1] is 2.0, but must be between 0 and 1"),
        ({"recall": [0, 0.5, 0], "precision": [0, 0, 0]}, "precision[1] is 0 while recall is 0.5"),
        ({"recall": [0, 0, 0]}, "recall needs one of the columns precision and false_signal_rate beside it"),
        (
            {"recall": [0] * 3, "precision": [1] * 3, "false_signal_rate": [0] * 3},
            "recall needs one of the columns precision and false_signal_rate beside it",
        ),
        ({"min_rate": [0, 0, 3], "max_rate": [1, 0, 2]}, "min_rate[2] is 3.0, above max_rate 2.0"),
        ({"cost": [1, 0, 1]}, "cost[1] is 0, but a crawl must cost something"),
    ],
)
def test_columns_that_contradict_are_named(extra: dict[str, Any], problem: str) -> None:
    """Each alone may be fine."""
    with pytest.raises(InvalidInput) as caught:
        read_pages({**PLAIN, **extra})
    assert str(caught.value).startswith(problem)


def test_precision_without_recall_is_ignored() -> None:
    """Without recall there are no signals."""
    pages = read_pages({**PLAIN, "precision": [1, 1, 1]})
    assert (pages.recall, pages.precision, pages.announced(), pages.false_signals()) == (None, None, None, None)


def test_false_signals_follow_from_precision() -> None:
    """ν = λΔ(1 − π)/π, and none where nothing is signalled, whatever the precision."""
    pages = read_pages(
        {"importance": [1] * 4, "change_rate": [2.0] * 4, "recall": [0.5, 1, 0, 1], "precision": [0.25, 1, 0, 0.5]}
    )
    false, announced = pages.false_signals(), pages.announced()
    assert false is not None
    assert announced is not None
    assert false.tolist() == [3.0, 0.0, 0.0, 2.0]
    assert announced.tolist() == [False, True, False, False]


def test_false_signals_may_be_given() -> None:
    """A page is announced if every change is signalled and no signal is false."""
    pages = read_pages({**PLAIN, "recall": [1, 1, 0.5], "false_signal_rate": [0, 3, 0]})
    false, announced = pages.false_signals(), pages.announced()
    assert false is pages.false_signal_rate
    assert announced is not None
    assert announced.tolist() == [True, False, False]


def test_captures_read_how_changes_fade() -> None:
    """Life in codes, beside decay and window."""
    pages = read_pages(
        {**PLAIN, "life": ["append", "overwrite", "window"], "decay": [1, 0, 0], "window": [0, 0, 5]}, "captures"
    )
    assert pages.life is not None
    assert pages.life.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("objective", "extra", "problem"),
    [
        ("captures", {}, "there is no column 'decay', which captures of appended changes need"),
        ("captures", {"decay": [1, 0, 1]}, "decay[1] is 0, but changes that stay for ever"),
        ("captures", {"decay": [0, 1, 1], "life": ["append"] * 3}, "decay[0] is 0, but changes that stay for ever"),
        ("captures", {"life": ["window"] * 3}, "there is no column 'window', which life 'window' needs"),
        ("captures", {"life": ["window"] * 3, "window": [1, 1, 0]}, "window[2] is 0, but life 'window' needs"),
        ("captures", {"life": ["append", "Append", ""]}, "life[1] is 'Append', but must be one of append, overwrite"),
        ("captures", {"life": ["append", None, "x"]}, "life[1] is 'None', but must be one of append, overwrite"),
        ("captures", {"life": [["a"], ["b"], ["c"]]}, "life has 2 dimensions, but must be a plain column"),
        ("news", {}, "there is no column 'profit'"),
        ("news", {"profit": [1] * 3, "new_page_rate": [1] * 3}, "there is no column 'decay'"),
        ("news", {"profit": [1] * 3, "new_page_rate": [1] * 3, "decay": [1, 1, 0]}, "decay[2] is 0, but interest"),
    ],
)
def test_what_an_objective_needs_is_asked_for(objective: Objective, extra: dict[str, Any], problem: str) -> None:
    """By column and, where one page is at fault, by row."""
    with pytest.raises(InvalidInput) as caught:
        read_pages({**PLAIN, **extra}, objective)
    assert str(caught.value).startswith(problem)


def test_news_reads_profit_and_new_pages() -> None:
    """They stand where importance and change rate stand for other objectives."""
    pages = read_pages({"profit": [3.0], "new_page_rate": [4.0], "decay": [1.0]}, "news")
    assert isinstance(pages, Pages)
    assert (pages.importance.tolist(), pages.change_rate.tolist()) == ([3.0], [4.0])


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (math.nan, "budget is nan, but must be a number"),
        (math.inf, "budget is inf, but must be at most 1e+60; use a larger unit"),
        (10**400, "budget is inf, but must be at most 1e+60; use a larger unit"),
        (-1, "budget is -1.0, but must be 0 or more"),
        (1e-300, "budget is 1e-300, but must be 0 or at least 1e-60"),
        ("much", "budget is 'much', but must be a number"),
        (None, "budget is None, but must be a number"),
    ],
)
def test_a_single_number_is_held_to_the_same_rules(value: Any, problem: str) -> None:
    """Such as a budget."""
    assert check_number(2, "budget") == 2.0
    with pytest.raises(InvalidInput) as caught:
        check_number(value, "budget")
    assert str(caught.value) == problem
