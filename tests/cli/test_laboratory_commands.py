"""`recrawl simulate` and `recrawl backtest`: tables, JSON, pictures, and one sentence for what cannot be."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from recrawl.cli.main import cli

SMALL = ("--pages", "60", "--days", "20", "--repetitions", "2", "--workers", "1")


def call(*arguments: str) -> Result:
    """Run a command as typed."""
    return CliRunner().invoke(cli, list(arguments), prog_name="recrawl")


@pytest.fixture
def crawl_log(tmp_path: Path) -> Path:
    """Forty pages crawled once a day for sixty days, a few of which change every other day."""
    random = np.random.default_rng(1)
    lines = ["url,time,changed"]
    for page in range(40):
        chance = 0.5 if page < 4 else 0.02
        lines += [
            f"https://site.example/{page},{1_700_000_000 + 86_400 * day},{int(random.random() < chance)}"
            for day in range(60)
        ]
    path = tmp_path / "crawls.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_simulate_ranks_policies_by_freshness() -> None:
    """The table has a row for each, the best first."""
    result = call("simulate", *SMALL, "--policy", "round-robin,recrawl-known")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.index("recrawl-known") < result.stdout.index("round-robin")
    assert "fresh, %" in result.stdout


def test_simulate_prints_the_same_json_each_time(tmp_path: Path) -> None:
    """To the bit, with every measure and its interval, and draws a picture when asked."""
    options = ("simulate", *SMALL, "--policy", "recrawl", "--policy", "round-robin", "--json")
    first, again = call(*options), call(*options, "--plot", str(tmp_path / "a.png"))
    document, other = json.loads(first.stdout), json.loads(again.stdout)
    assert document["policies"] == other["policies"]
    assert [policy["name"] for policy in document["policies"]] == ["recrawl", "round-robin"]
    freshness = document["policies"][0]["measures"]["freshness"]
    assert freshness["low"] <= freshness["value"] <= freshness["high"]
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


NEWS = ("--world", "news", "--pages", "40", "--days", "6", "--repetitions", "2", "--workers", "1")
AUCTIONS = ("--world", "auctions", "--pages", "150", "--days", "0.2", "--repetitions", "2", "--workers", "1")


def test_simulate_lists_worlds_and_policies() -> None:
    """Everything that can be named."""
    document = json.loads(call("simulate", "--list", "--json").stdout)
    assert {"web", "ncis", "bursty", "churn", "news", "auctions"} <= set(document["worlds"])
    assert {"recrawl", "round-robin", "nutch-adaptive", "stormcrawler-adaptive"} <= set(document["policies"])
    assert {"market", "echo-newpages", "bfs"} <= set(document["news_policies"])
    assert {"wic-1", "wic-0-known", "round-robin"} <= set(document["auctions_policies"])
    table = call("simulate", "--list").stdout
    assert "Policies of the world news" in table
    assert "wic-0.5" in table


@pytest.mark.parametrize(
    ("options", "best", "worst", "measure"),
    [(NEWS, "market", "frequency", "hits_captured"), (AUCTIONS, "wic-1-known", "round-robin", "completeness")],
)
def test_news_and_auctions_are_told_as_other_worlds_are(
    options: tuple[str, ...], best: str, worst: str, measure: str, tmp_path: Path
) -> None:
    """With policies and measures of their own: the same table, JSON and picture, and the same numbers each time."""
    asked = ("simulate", *options, "--policy", f"{worst},{best}")
    table = call(*asked, "--plot", str(tmp_path / "a.png"))
    assert table.exit_code == 0, table.stderr
    assert table.stdout.index(f" {best} ") < table.stdout.index(f" {worst} ")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    first, again = call(*asked, "--json").stdout, call(*asked, "--json").stdout
    assert first == again
    document = json.loads(first)
    assert document["best"] == best
    assert [policy["name"] for policy in document["policies"]] == [worst, best]
    numbers = [policy["measures"][measure]["value"] for policy in document["policies"]]
    assert 0 < numbers[0] < numbers[1] <= 1


def test_every_policy_of_news_and_auctions_can_be_run() -> None:
    """And those that are usual are among them."""
    for options, listed in ((NEWS, "news_policies"), (AUCTIONS, "auctions_policies")):
        names = list(json.loads(call("simulate", "--list", "--json").stdout)[listed])
        usual = json.loads(call("simulate", *options, "--repetitions", "1", "--json").stdout)["policies"]
        everyone = call("simulate", *options, "--repetitions", "1", "--json", "--policy", ",".join(names))
        assert everyone.exit_code == 0, everyone.stderr
        assert [policy["name"] for policy in json.loads(everyone.stdout)["policies"]] == names
        assert {policy["name"] for policy in usual} <= set(names)


def test_backtest_holds_today_against_the_rest(crawl_log: Path) -> None:
    """On a crawl log: its own schedule and budget, the winner, and the budget that would do as well."""
    result = call("backtest", str(crawl_log), "--policy", "recrawl,round-robin", "--workers", "1", "--json")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["today"] == "today"
    assert document["budget_per_day"] == pytest.approx(40 * 60 / 59)
    assert {policy["name"] for policy in document["policies"]} == {"recrawl", "round-robin", "today"}
    assert document["winner"] in {"recrawl", "round-robin"}
    assert document["summary"]


def test_backtest_says_what_part_of_the_crawls_would_do(crawl_log: Path) -> None:
    """In a sentence below the table."""
    result = call(
        "backtest", str(crawl_log), "--policy", "recrawl,round-robin", "--workers", "1", "--score", "harmonic"
    )
    assert result.exit_code == 0, result.stderr
    assert "wins by" in result.stdout


@pytest.mark.parametrize(("budget", "best"), [("5/day", "today"), ("160/day", "round-robin")])
def test_backtest_counts_crawls_by_those_of_today_whatever_the_budget(crawl_log: Path, budget: str, best: str) -> None:
    """With fewer crawls today's schedule wins, with more it loses; to equal it takes about what it takes itself."""
    options = ("backtest", str(crawl_log), "--budget", budget, "--policy", "round-robin", "--workers", "1")
    document = json.loads(call(*options, "--json").stdout)
    assert (document["best"], document["winner"], document["today"]) == (best, "round-robin", "today")
    assert document["equal_budget_reached"]
    assert document["equal_budget_share"] == pytest.approx(document["equal_budget_per_day"] / (40 * 60 / 59))
    assert document["equal_budget_share"] == pytest.approx(1.0, abs=0.25)
    first, second = ("today's schedule", "round-robin") if best == "today" else ("round-robin", "today's schedule")
    assert f"{first} wins by " in document["summary"]
    assert f" over {second}." in document["summary"]


def test_backtest_calls_nobody_the_winner_of_a_history_without_changes(tmp_path: Path) -> None:
    path = tmp_path / "calm.csv"
    path.write_text("url,time,changed\n" + "".join(f"a,{1_700_000_000 + 86_400 * day},0\n" for day in range(9)))
    result = call("backtest", str(path), "--policy", "round-robin", "--workers", "1")
    assert result.exit_code == 0, result.stderr
    assert "round-robin and today's schedule are equal." in result.stdout
    assert "needs less than 0.098 % of the crawls" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("simulate", "--policy", "RECRAWL"), "did you mean 'recrawl'"),
        (("simulate", "--policy", " , "), "names nobody"),
        (("simulate", "--world", "news", "--policy", "recrawl"), "use market, echo-newpages"),
        (("simulate", "--budget", "1e12/day"), "give less"),
        (("backtest", "log.csv", "--budget", "1e15/day"), "give less"),
        (("simulate", "--world", "wob"), "did you mean 'web'"),
        (("simulate", "--world", "newz"), "did you mean 'news'"),
        (("simulate", "--policy", "recrawll"), "did you mean 'recrawl'"),
        (("simulate", "--world", "news", "--policy", "makret"), "did you mean 'market'"),
        (("simulate", "--world", "auctions", "--policy", "wik-1"), "did you mean 'wic-1'"),
        (("simulate", "--world", "news", "--pages", "30"), "multiple"),
        (("simulate", "--world", "news", "--budget", "0%"), "more than 0"),
        (("simulate", "--world", "news", "--pages", "1000000"), "fewer pages or days"),
        (("simulate", "--world", "auctions", "--pages", "0"), "pages is 0"),
        (("simulate", "--world", "auctions", "--pages", "1000000"), "fewer pages or days"),
        (("simulate", "--world", "auctions", "--warm-up", "10%"), "leave it out"),
        (("simulate", "--budget", "0/day"), "more than 0"),
        (("simulate", "--pages", "0"), "pages is 0"),
        (("simulate", "--days", "-1"), "above 0"),
        (("simulate", "--days", "nan"), "above 0"),
        (("simulate", "--warm-up", "100%"), "share from 0"),
        (("simulate", "--repetitions", "0"), "from 1"),
        (("simulate", "--seed", "-1"), "from 0"),
        (("simulate", "--workers", "0"), "from 1"),
        (("simulate", "--plot", "picture.bmp"), ".png, .svg or .pdf"),
        (("backtest", "missing.csv", "--budget", "2/day"), "missing.csv"),
        (("backtest", ".", "--budget", "2/day"), "neither a git repository"),
        (("backtest", "log.csv", "--budget", "0%"), "more than 0"),
        (("backtest", "log.csv", "--budget", "2/day", "--policy", "round-robbin"), "did you mean 'round-robin'"),
        (("backtest", "bad.csv", "--budget", "2/day"), "bad.csv"),
        (("backtest", "empty.csv", "--budget", "2/day"), "empty.csv"),
    ],
)
def test_bad_input_ends_in_one_sentence(
    arguments: tuple[str, ...], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And exit code 2, nothing on stdout."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    Path("log.csv").write_text("url,time,changed\na,1700000000,0\na,1700090000,1\n", encoding="utf-8")
    Path("bad.csv").write_text("url,when\na,1\n", encoding="utf-8")
    Path("empty.csv").write_text("url,time,changed\n", encoding="utf-8")
    result = call(*arguments)
    assert (result.exit_code, result.stdout) == (2, ""), result.stdout
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
