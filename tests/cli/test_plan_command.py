"""`recrawl plan`: the report says what the library says, and files are written as promised."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import recrawl
from recrawl.cli.main import cli
from recrawl.planning.solve import SOLVERS

EXAMPLE = Path(__file__).parents[2] / "examples" / "pages.csv"


def run(*arguments: object) -> Result:
    """Call `recrawl plan`."""
    return CliRunner().invoke(cli, ["plan", *map(str, arguments)], prog_name="recrawl")


def facts(*arguments: object) -> dict[str, Any]:
    """Call `recrawl plan … --json` and read its one line."""
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.count("\n") == 1
    read = json.loads(result.stdout)
    assert isinstance(read, dict)
    return read


def example() -> dict[str, Any]:
    """The example file as columns."""
    with EXAMPLE.open() as file:
        rows = list(csv.DictReader(file))
    numbers = ("importance", "change_rate", "recall", "precision")
    columns: dict[str, Any] = {name: np.array([float(row[name]) for row in rows]) for name in numbers}
    return columns | {"host": [row["host"] for row in rows], "url": [row["url"] for row in rows]}


def write(folder: Path, text: str, name: str = "pages.csv") -> Path:
    """A file of pages."""
    path = folder / name
    path.write_text(text)
    return path


def test_json_says_what_the_library_says() -> None:
    """The command adds nothing to the mathematics."""
    plan = recrawl.plan(example(), budget=40.0)
    read = facts(EXAMPLE, "--budget", "40/day")
    assert (read["pages"], read["hosts"], read["objective"], read["solver"]) == (60, 6, "harmonic", "even")
    for name in ("price", "used", "surplus", "starved", "freshness"):
        assert read[name] == pytest.approx(getattr(plan, name), rel=1e-12)
    costs = plan.costs.per_page()
    assert (read["harmonic"], read["binary"]) == pytest.approx((costs.harmonic, costs.binary), rel=1e-12)
    assert read["budget_per_day"] == 40
    assert read["seconds"] > 0


@pytest.mark.parametrize(("budget", "per_day"), [("40/day", 40.0), ("1/min", 1440.0), ("50%", 30.0), ("0/day", 0.0)])
def test_budgets_are_per_day_whatever_they_are_written_in(budget: str, per_day: float) -> None:
    """A percentage is of the pages, per day."""
    assert facts(EXAMPLE, "--budget", budget)["budget_per_day"] == per_day


def test_the_lists_name_the_most_and_least_crawled_pages() -> None:
    """Pages are named by their URL, with what explains their rate."""
    columns = example()
    rates = recrawl.plan(columns, budget=40.0).rates
    order = np.argsort(-rates)
    read = facts(EXAMPLE, "--budget", "40/day")
    assert [fact["page"] for fact in read["most_crawled"]] == [columns["url"][row] for row in order[:5]]
    assert [fact["page"] for fact in read["least_crawled"]] == [columns["url"][row] for row in order[:-6:-1]]
    first = read["most_crawled"][0]
    assert first["interval_days"] == pytest.approx(1 / rates[order[0]])
    assert first["importance"] == columns["importance"][order[0]]
    assert first["change_rate"] == columns["change_rate"][order[0]]


def test_ten_percent_more_budget_is_told() -> None:
    """The marginal value in points of freshness, from a plan of its own."""
    more, now = (recrawl.plan(example(), budget=budget) for budget in (44.0, 40.0))
    read = facts(EXAMPLE, "--budget", "40/day")["more_budget"]
    assert read["budget_per_day"] == pytest.approx(44)
    assert read["freshness_points"] == pytest.approx(100 * (more.freshness - now.freshness), rel=1e-9)


def test_who_is_starved_is_told() -> None:
    """How many, what share of the importance, and the most important of them."""
    columns = example()
    never = recrawl.plan(columns, budget=40.0, objective="freshness").rates == 0
    read = facts(EXAMPLE, "--budget", "40/day", "--objective", "freshness")
    starved = read["never_crawled"]
    assert starved["pages"] == np.count_nonzero(never) > 0
    assert read["starved"] == pytest.approx(never.mean())
    share = columns["importance"][never].sum() / columns["importance"].sum()
    assert starved["importance_share"] == pytest.approx(share)
    assert starved["most_important"][0]["importance"] == columns["importance"][never].max()
    assert starved["most_important"][0]["interval_days"] is None
    assert read["harmonic"] is None  # a starved page is infinitely stale, and JSON has no infinity


def test_the_table_tells_the_same_in_words() -> None:
    """Every question of the report has its line."""
    text = run(EXAMPLE, "--budget", "40/day", "--objective", "freshness").stdout
    names = ["budget", "price", "freshness", "staleness", "never crawled", "+10 % budget"]
    lines = text.splitlines()
    assert lines[0].endswith("60 pages on 6 hosts, objective freshness, solver even")
    for name in names:
        assert any(line.startswith(f"  {name} ") for line in lines), name
    for heading in ("most crawled", "least crawled", "most important never crawled"):
        assert f"  {heading}" in text
    assert "https://news.example.org/ " in text
    assert not any(line != line.rstrip() for line in lines)


def test_surplus_budget_is_said() -> None:
    """More than can be used is not an error."""
    capped = facts(EXAMPLE, "--budget", "40/day", *[f"--host-cap={host}=1/day" for host in set(example()["host"])])
    assert capped["used"] == pytest.approx(6)
    assert capped["surplus"] == pytest.approx(34)
    assert capped["price"] == 0


def test_host_caps_hold_and_full_hosts_are_told(tmp_path: Path) -> None:
    """Caps come from the command line or a file; the command line wins."""
    caps = write(tmp_path, "host,max_rate\nnews.example.org,3\nshop.example.com,9\nelsewhere.example,1\n", "caps.csv")
    read = facts(EXAMPLE, "--budget", "40/day", "--host-caps", caps, "--host-cap", "news.example.org=2/day")
    full = {host["host"]: host for host in read["dearest_hosts"]}
    assert full["news.example.org"]["used"] == pytest.approx(2)
    assert full["news.example.org"]["price"] > read["price"]
    assert read["hosts_at_cap"] == len(full)
    assert read["used"] == pytest.approx(40)
    text = run(EXAMPLE, "--budget", "40/day", "--host-cap", "news.example.org=2/day").stdout
    assert "hosts at their cap  1: news.example.org (2/day, price" in text


def test_floors_that_cannot_be_met_are_told_with_the_shortfall(tmp_path: Path) -> None:
    """By page, by host and for the whole budget; it is a report, not an error."""
    pages = write(
        tmp_path,
        "url,host,importance,change_rate,min_rate\n"
        "https://a.example/1,a.example,1,1,5\n"
        "https://a.example/2,a.example,1,1,0\n"
        "https://b.example/1,b.example,1,1,1\n",
    )
    read = facts(pages, "--budget", "10/day", "--host-cap", "a.example=2/day")["shortfall"]
    assert read["pages"] == 1
    assert read["missing"] == pytest.approx(3)
    assert read["worst_pages"][0]["page"] == "https://a.example/1"
    assert read["worst_hosts"] == {"a.example": pytest.approx(3)}
    assert facts(pages, "--budget", "4/day")["shortfall"]["missing_budget"] == pytest.approx(2)
    text = run(pages, "--budget", "4/day").stdout
    assert "floors need 2 crawls a day more" in text
    assert "below their min_rate" in text


def test_target_freshness_answers_with_the_budget() -> None:
    """The answer, put back in as the budget, gives the freshness that was asked for."""
    read = facts(EXAMPLE, "--target-freshness", "95%")
    needed = read["target"]["budget_per_day"]
    assert read["target"]["budget_per_second"] == pytest.approx(needed / 86400)
    assert read["budget_per_day"] == pytest.approx(needed)
    assert recrawl.plan(example(), budget=needed).freshness == pytest.approx(0.95, abs=1e-6)
    beside = facts(EXAMPLE, "--target-freshness", "0.95", "--budget", "40/day")
    assert beside["budget_per_day"] == 40
    assert beside["target"]["budget_per_day"] == pytest.approx(needed, rel=1e-6)
    assert run(EXAMPLE, "--target-freshness", "0.95").stdout.splitlines()[1].startswith("95.0 % freshness needs ")


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_out_writes_the_pages_with_rates_and_intervals(tmp_path: Path, ending: str) -> None:
    """All columns stay, and a page that is never crawled has no interval."""
    out = tmp_path / f"rates.{ending}"
    result = run(EXAMPLE, "--budget", "40/day", "--objective", "freshness", "--out", out)
    assert result.exit_code == 0, result.stderr
    written = read_table(out)
    plan = recrawl.plan(example(), budget=40.0, objective="freshness")
    assert written["url"] == example()["url"]
    assert [float(rate) for rate in written["crawl_rate"]] == pytest.approx(plan.rates.tolist(), rel=1e-12)
    for rate, interval in zip(plan.rates, written["interval"], strict=True):
        assert interval in (None, "") if rate == 0 else float(interval) == pytest.approx(1 / rate, rel=1e-12)


def read_table(path: Path) -> dict[str, list[Any]]:
    """A file of any format as columns."""
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        columns: dict[str, list[Any]] = pq.read_table(path).to_pydict()
        return columns
    if path.suffix == ".jsonl":
        rows = [json.loads(line) for line in path.read_text().splitlines()]
    else:
        with path.open() as file:
            rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in rows[0]}


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_plot_is_drawn(tmp_path: Path, ending: str) -> None:
    """The ending picks the format."""
    result = run(EXAMPLE, "--budget", "40/day", "--plot", tmp_path / f"plan.{ending}")
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / f"plan.{ending}").stat().st_size > 5_000


@pytest.mark.parametrize("solver", [name for name in SOLVERS if name not in ("echo", "echo-paper", "signals")])
def test_every_solver_can_be_called(tmp_path: Path, solver: str) -> None:
    """The name on the command line is the name in the library; the others have tests of their own."""
    rows = "".join(f"{1 + row},{0.05 * (1 + row)}\n" for row in range(9))
    pages = write(tmp_path, f"importance,change_rate\n{rows}")
    read = facts(pages, "--budget", "2/day", "--solver", solver)
    assert read["solver"] == solver
    assert read["used"] == pytest.approx(2)


def test_signals_buy_freshness() -> None:
    """The example's signals are worth having."""
    silent = facts(EXAMPLE, "--budget", "40/day", "--objective", "freshness")
    heard = facts(EXAMPLE, "--budget", "40/day", "--objective", "freshness", "--solver", "signals")
    assert heard["freshness"] > silent["freshness"]


@pytest.mark.parametrize("solver", ["even", "echo", "echo-paper"])
def test_news_is_planned_from_its_own_columns(tmp_path: Path, solver: str) -> None:
    """Sources have profit, new_page_rate and decay instead of importance and change_rate."""
    rows = "\n".join(f"s{i},{1 + i},{0.5 + i},{0.3 + 0.1 * i}" for i in range(6))
    sources = write(tmp_path, f"id,profit,new_page_rate,decay\n{rows}\n")
    read = facts(sources, "--budget", "30/day", "--objective", "news", "--solver", solver)
    assert 0 < read["gain_share"] <= 1
    text = run(sources, "--budget", "30/day", "--objective", "news", "--solver", solver).stdout
    assert "new page every" in text
    assert "is fresh" not in text


def test_captures_report_their_gain(tmp_path: Path) -> None:
    """What is captured per day, and of how much."""
    pages = write(tmp_path, "importance,change_rate,decay\n1,2,0.5\n2,1,0.5\n")
    read = facts(pages, "--budget", "3/day", "--objective", "captures")
    assert 0 < read["gain"] < 4
    assert read["gain_share"] == pytest.approx(read["gain"] / 4)


def test_costs_are_named_as_what_the_budget_counts(tmp_path: Path) -> None:
    """With a cost column the budget is no number of crawls."""
    pages = write(tmp_path, "importance,change_rate,cost\n1,2,2\n2,1,3\n")
    assert facts(pages, "--budget", "3/day")["budget_unit"] == "cost"
    assert "3 units of cost a day, all used" in run(pages, "--budget", "3/day").stdout


@pytest.mark.parametrize("rows", ["", "5,0.1\n", "5,0\n", "0,1\n", "1,1\n1,1\n1,1\n"])
def test_odd_files_are_planned_and_told(tmp_path: Path, rows: str) -> None:
    """No pages, one page, a page that never changes, a worthless page, equal pages."""
    pages = write(tmp_path, f"importance,change_rate\n{rows}")
    out, plot = tmp_path / "out.csv", tmp_path / "plot.svg"
    result = run(pages, "--budget", "1/day", "--out", out, "--plot", plot)
    assert result.exit_code == 0, result.stderr
    assert len(out.read_text().splitlines()) == 1 + rows.count("\n")
    assert plot.exists()
    assert facts(pages, "--budget", "0/day")["used"] == 0
    assert facts(pages, "--target-freshness", "0.5")["freshness"] >= 0.5 - 1e-9


@pytest.mark.parametrize("budget", ["0/day", "1e-60/day", "1e60/day"])
def test_budgets_at_the_ends_of_what_is_legal_can_be_drawn(tmp_path: Path, budget: str) -> None:
    """The curve around them stays within what is legal too."""
    assert facts(EXAMPLE, "--budget", budget, "--plot", tmp_path / "plan.svg")["plot"] == str(tmp_path / "plan.svg")


def test_hosts_that_are_numbers_can_be_capped(tmp_path: Path) -> None:
    """A host is what the file says it is."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"host": [1, 1, 2], "importance": [1.0, 2.0, 3.0], "change_rate": [1.0, 1.0, 1.0]})
    pq.write_table(table, tmp_path / "pages.parquet")
    read = facts(tmp_path / "pages.parquet", "--budget", "9/day", "--host-cap", "1=2/day")
    assert [host["host"] for host in read["dearest_hosts"]] == ["1"]
