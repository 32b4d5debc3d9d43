"""`recrawl backtest --repetitions`: intervals over the times at which a crawler may have started."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from recrawl.cli.main import cli


@pytest.fixture
def crawl_log(tmp_path: Path) -> Path:
    """Thirty pages crawled once a day for fifty days, some of which change every third day."""
    random = np.random.default_rng(2)
    lines = ["url,time,changed"]
    for day in range(50):
        for page in range(30):
            changed = int(random.random() < (0.33 if page < 10 else 0.02))
            lines.append(f"https://a.example/{page},{1_700_000_000 + 86_400 * day + 60 * page},{changed}")
    path = tmp_path / "crawls.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def backtest(log: Path, *options: str) -> dict[str, Any]:
    """The JSON of a backtest, freshness by policy."""
    arguments = ["backtest", str(log), "--budget", "10/day", "--policy", "round-robin,argmax-mle", "--workers", "1"]
    result = CliRunner().invoke(cli, [*arguments, *options, "--json"], prog_name="recrawl")
    assert result.exit_code == 0, result.stderr
    return {policy["name"]: policy["measures"]["freshness"] for policy in json.loads(result.stdout)["policies"]}


def test_one_repetition_replays_the_history_as_it_was(crawl_log: Path) -> None:
    fresh = backtest(crawl_log)["argmax-mle"]
    assert fresh["low"] == fresh["value"] == fresh["high"]


def test_repetitions_start_the_crawler_at_other_times(crawl_log: Path) -> None:
    """So a policy that does nothing by chance has an interval, and so has its difference to today's schedule."""
    fresh = backtest(crawl_log, "--repetitions", "3")["argmax-mle"]
    assert fresh["low"] < fresh["value"] < fresh["high"]
    assert fresh["more_low"] < fresh["more"] < fresh["more_high"]
    assert backtest(crawl_log, "--repetitions", "3")["argmax-mle"] == fresh
