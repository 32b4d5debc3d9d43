"""Every odd input has a defined meaning or ends in one sentence that names the field and the row."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import recrawl
from recrawl.bench.optimality import optimality_gap
from recrawl.planning.solve import SOLVERS, Solver

PAGES: dict[str, Any] = {"importance": [3.0, 1.0, 2.0], "change_rate": [0.5, 2.0, 1.0]}


@pytest.mark.parametrize("column", ["importance", "change_rate", "cost", "min_rate", "max_rate"])
@pytest.mark.parametrize("bad", [-1.0, math.nan, -math.inf, 1e308, 5e-324])
def test_numbers_that_cannot_be_used_are_named(column: str, bad: float) -> None:
    values = [1.0, 1.0, bad]
    with pytest.raises(recrawl.InvalidInput) as caught:
        recrawl.plan({**PAGES, column: values}, 1.0)
    assert str(caught.value).startswith(f"{column}[2] is {bad!r}")
    assert (caught.value.field, caught.value.row) == (column, 2)


@pytest.mark.parametrize("bad", [math.inf])
@pytest.mark.parametrize("column", ["importance", "change_rate", "cost", "min_rate"])
def test_infinity_is_refused_everywhere_but_as_a_ceiling(column: str, bad: float) -> None:
    with pytest.raises(recrawl.InvalidInput, match=rf"{column}\[0\] is inf"):
        recrawl.plan({**PAGES, column: [bad, 1.0, 1.0]}, 1.0)
    assert recrawl.plan({**PAGES, "max_rate": [bad, bad, bad]}, 1.0).used == pytest.approx(1.0)


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf, 1e308, 5e-324, "2000/day", None])
def test_budgets_that_cannot_be_used_are_named(bad: Any) -> None:
    with pytest.raises(recrawl.InvalidInput, match=r"^budget is "):
        recrawl.plan(PAGES, bad)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"recall": [0, 0, 1.5], "precision": [1, 1, 1]}, r"recall\[2\] is 1.5, but must be between 0 and 1"),
        ({"recall": [0, 0, 1], "precision": [1, 1, -0.1]}, r"precision\[2\] is -0.1"),
        ({"recall": [0, 0.5, 1], "precision": [0, 0, 1]}, r"precision\[1\] is 0 while recall is 0.5"),
        ({"recall": [0, 0, 1]}, "recall needs one of the columns precision and false_signal_rate"),
        ({"change_rate": [1.0, 2.0]}, "change_rate has 2 values but importance has 3"),
        ({"importance": ["1", "x", "2"]}, r"importance\[1\] is .*'x'.*must be a number"),
        ({"importance": ["1", None, "2"]}, r"importance\[1\] is missing"),
        ({"importance": [[1.0], [2.0], [3.0]]}, "importance has 2 dimensions"),
        ({"min_rate": [1, 1, 2], "max_rate": [1, 1, 1]}, r"min_rate\[2\] is 2.0, above max_rate 1.0"),
        ({"cost": [1, 0, 1]}, r"cost\[1\] is 0"),
        ({"host": ["a", None, "b"]}, r"host\[1\] is missing"),
        ({"host": ["a", "b"]}, "host has 2 values"),
    ],
)
def test_columns_that_contradict_are_named(columns: dict[str, Any], sentence: str) -> None:
    with pytest.raises(recrawl.InvalidInput, match=sentence):
        recrawl.plan({**PAGES, **columns}, 1.0)


def test_a_missing_column_is_named_with_the_ones_there_are() -> None:
    with pytest.raises(recrawl.InvalidInput, match=r"no column 'change_rate' \(columns: importance\)"):
        recrawl.plan({"importance": [1.0]}, 1.0)


@pytest.mark.parametrize("table", [3, "pages.csv", [1, 2], None])
def test_something_that_is_no_table_is_named(table: Any) -> None:
    with pytest.raises(recrawl.InvalidInput, match="must be columnar"):
        recrawl.plan(table, 1.0)


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(recrawl.InvalidInput, match="solver is 'best', but must be one of even, azar"):
        recrawl.plan(PAGES, 1.0, solver="best")  # type: ignore[arg-type]
    with pytest.raises(recrawl.InvalidInput, match="objective is 'speed', but must be one of freshness"):
        recrawl.plan(PAGES, 1.0, objective="speed")  # type: ignore[arg-type]
    with pytest.raises(recrawl.InvalidInput, match="the solver azar optimises freshness"):
        recrawl.plan(PAGES, 1.0, objective="harmonic", solver="azar")


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_all_kinds_of_tables_are_read(make: Any) -> None:
    table = make({**PAGES, "host": ["a", "b", "a"], "other": ["x", "y", "z"]})
    plan = recrawl.plan(table, 1.0, host_caps={"a": 0.3})
    assert plan.host_use["a"] == pytest.approx(0.3)
    structured = np.array(
        list(zip(*PAGES.values(), strict=True)), dtype=[("importance", float), ("change_rate", float)]
    )
    assert recrawl.plan(structured, 1.0).rates == pytest.approx(recrawl.plan(make(PAGES), 1.0).rates)


def _columns(solver: Solver, size: int) -> dict[str, Any]:
    if solver.startswith("echo"):
        return {"profit": np.ones(size), "new_page_rate": np.full(size, 0.5), "decay": np.ones(size)}
    return {"importance": np.ones(size), "change_rate": np.full(size, 0.5)}


@pytest.mark.parametrize("solver", SOLVERS)
def test_no_pages_need_no_budget(solver: Solver) -> None:
    plan = recrawl.plan(_columns(solver, 0), 5.0, solver=solver)
    assert (len(plan.rates), plan.used, plan.surplus, plan.freshness, plan.starved) == (0, 0.0, 5.0, 1.0, 0.0)


@pytest.mark.parametrize("solver", SOLVERS)
def test_no_budget_crawls_nothing(solver: Solver) -> None:
    plan = recrawl.plan(_columns(solver, 3), 0.0, solver=solver)
    assert plan.rates.tolist() == [0.0, 0.0, 0.0]
    assert (plan.used, plan.surplus, plan.starved, plan.freshness) == (0.0, 0.0, 1.0, 0.0)


@pytest.mark.parametrize("solver", [name for name in SOLVERS if not name.startswith("echo")])
def test_one_page_gets_the_whole_budget_and_identical_pages_share_it(solver: Solver) -> None:
    for size in (1, 7):
        plan = recrawl.plan(_columns(solver, size), 0.35 * size, solver=solver)
        assert plan.rates == pytest.approx(np.full(size, 0.35), rel=1e-9)


@pytest.mark.parametrize("solver", [name for name in SOLVERS if not name.startswith("echo")])
@pytest.mark.parametrize("budget", [1e-50, 1e-6, 1e6, 1e50])
def test_absurd_budgets_give_numbers(solver: Solver, budget: float) -> None:
    pages = {"importance": [1e-9, 1.0, 1e9, 0.0], "change_rate": [1e-9, 0.5, 0.9, 0.3]}
    plan = recrawl.plan(pages, budget, solver=solver)
    assert np.isfinite(plan.rates).all()
    assert (plan.rates >= 0).all()
    assert 0 <= plan.freshness <= 1
    assert plan.used + plan.surplus == pytest.approx(budget, rel=1e-9)
    assert not math.isnan(plan.costs.harmonic + plan.costs.binary)


@pytest.mark.parametrize("solver", ["even", "azar", "lambdacrawl", "signals"])
def test_pages_that_never_change_or_that_nobody_wants_are_never_crawled(solver: Solver) -> None:
    plan = recrawl.plan({"importance": [1.0, 0.0, 2.0], "change_rate": [0.0, 1.0, 1.0]}, 1.0, solver=solver)
    assert plan.rates[:2].tolist() == [0.0, 0.0]
    assert plan.rates[2] == pytest.approx(1.0)
    nothing = recrawl.plan({"importance": [1.0, 0.0], "change_rate": [0.0, 1.0]}, 1.0, solver=solver)
    assert (nothing.used, nothing.surplus, nothing.price, nothing.freshness) == (0.0, 1.0, 0.0, 1.0)


def test_budget_beyond_what_can_be_used_is_said() -> None:
    told = {**PAGES, "recall": [1, 1, 1], "precision": [1, 1, 1]}
    plan = recrawl.plan(told, 10.0, solver="lambdacrawl")
    assert plan.rates.tolist() == PAGES["change_rate"]
    assert plan.surplus == pytest.approx(6.5)
    assert (plan.price, plan.freshness) == (0.0, 1.0)
    capped = recrawl.plan({**PAGES, "max_rate": [1.0, 1.0, 1.0]}, 10.0)
    assert (capped.used, capped.surplus, capped.price) == (3.0, 7.0, 0.0)


def test_floors_above_a_host_cap_are_scaled_and_the_shortfall_is_said() -> None:
    pages = {**PAGES, "host": ["a", "a", "b"], "min_rate": [0.3, 0.1, 0.2]}
    plan = recrawl.plan(pages, 2.0, host_caps={"a": 0.2})
    assert plan.rates[:2] == pytest.approx([0.15, 0.05])
    assert plan.shortfall.pages.tolist() == [0, 1]
    assert plan.shortfall.missing == pytest.approx([0.15, 0.05])
    assert plan.shortfall.hosts == pytest.approx({"a": 0.2})
    assert plan.shortfall.budget == 0.0
    assert optimality_gap(plan) <= 1e-9


def test_floors_above_the_budget_are_scaled_and_the_shortfall_is_said() -> None:
    plan = recrawl.plan({**PAGES, "min_rate": [0.5, 0.5, 1.0]}, 1.0)
    assert plan.rates == pytest.approx([0.25, 0.25, 0.5])
    assert plan.shortfall.budget == pytest.approx(1.0)
    assert bool(plan.shortfall)
    assert not recrawl.plan({**PAGES, "min_rate": [0.1, 0.1, 0.1]}, 1.0).shortfall


def test_a_host_that_may_not_be_crawled_is_not() -> None:
    plan = recrawl.plan({**PAGES, "host": ["a", "a", "b"], "min_rate": [0.1, 0, 0]}, 1.0, host_caps={"a": 0.0})
    assert plan.rates.tolist() == pytest.approx([0.0, 0.0, 1.0])
    assert plan.shortfall.hosts == {"a": 0.1}


@pytest.mark.parametrize(
    ("caps", "sentence"),
    [({"z": 1.0}, "names the host 'z', which no page is on"), ({"a": -1.0}, r"host_caps\['a'\] is -1.0")],
)
def test_host_caps_that_cannot_be_used_are_named(caps: dict[Any, float], sentence: str) -> None:
    with pytest.raises(recrawl.InvalidInput, match=sentence):
        recrawl.plan({**PAGES, "host": ["a", "a", "b"]}, 1.0, host_caps=caps)
    with pytest.raises(recrawl.InvalidInput, match="need a column 'host'"):
        recrawl.plan(PAGES, 1.0, host_caps=caps)


def test_slots_need_chances() -> None:
    with pytest.raises(recrawl.InvalidInput, match=r"change_rate\[1\] is 2.0, but the solver azar-discrete"):
        recrawl.plan(PAGES, 1.0, solver="azar-discrete")


@pytest.mark.parametrize("column", ["min_rate", "cost"])
def test_the_closed_form_approximation_refuses_limits(column: str) -> None:
    with pytest.raises(recrawl.InvalidInput, match=f"{column} cannot be kept by the solver lambdacrawl-approx"):
        recrawl.plan({**PAGES, column: [0.1, 0.1, 0.1]}, 1.0, solver="lambdacrawl-approx")


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({}, "no column 'decay'"),
        ({"decay": [1, 0, 1]}, r"decay\[1\] is 0"),
        ({"decay": [1, 1, 1], "life": ["append", "lost", "append"]}, r"life\[1\] is 'lost', but must be one of append"),
        ({"life": ["window"] * 3}, "no column 'window'"),
        ({"life": ["window"] * 3, "window": [1, 0, 1]}, r"window\[1\] is 0"),
    ],
)
def test_captures_say_what_they_need(columns: dict[str, Any], sentence: str) -> None:
    with pytest.raises(recrawl.InvalidInput, match=sentence):
        recrawl.plan({**PAGES, **columns}, 1.0, objective="captures")


def test_importing_recrawl_loads_no_compiler() -> None:
    code = "import sys, recrawl; recrawl.plan; recrawl.Plan; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("column", ["importance", "host"])
def test_a_missing_value_in_an_encoded_arrow_column_is_named(column: str) -> None:
    values = pa.array([3.0, None, 2.0] if column == "importance" else ["a", None, "b"]).dictionary_encode()
    table = pa.table({**PAGES, column: values})
    with pytest.raises(recrawl.InvalidInput, match=rf"{column}\[1\] is missing"):
        recrawl.plan(table, 1.0)
