"""Claims are fixed, complete and judged by their own rule; experiments and pages are written whole."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

from recrawl.cli.main import cli
from recrawl.errors import InvalidInput
from recrawl.lab.papers.claims import Claim, load_claims
from recrawl.lab.papers.experiment import Experiment, Finding, Table, exact_finding, mean_finding
from recrawl.lab.papers.registry import PAPERS, check_paper
from recrawl.lab.papers.report import csv_text, read_results, results_page, write_experiment

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def claim(**fields: object) -> Claim:
    """A claim with the fields that matter."""
    return Claim(**{"id": "a.b.c", "statement": "s", "measured": "m", "kind": "claim", **fields})  # type: ignore[arg-type]


def test_every_paper_has_claims_and_every_claim_a_paper() -> None:
    """And every id is paper, experiment, comparison."""
    claims = load_claims()
    assert {one.paper for one in claims.values()} == set(PAPERS)
    assert all(len(name.split(".")) == 3 for name in claims)
    assert {"azar.fig1.edf", "echo.table1.newpages_share_010", "beyond.even.harmonic_saving"} <= set(claims)


@pytest.mark.parametrize(
    ("judged", "low", "value", "high", "holds"),
    [
        ("value", 0.8, 1.0, 1.2, True),
        ("value", 0.8, 0.99, 1.2, False),
        ("interval", 1.0, 1.1, 1.2, True),
        ("interval", 0.9, 1.1, 1.2, False),
        ("chance", 0.7, 0.9, 1.0, True),
        ("chance", 0.7, 0.8, 0.9, False),
    ],
)
def test_a_claim_is_judged_by_its_rule(judged: str, low: float, value: float, high: float, holds: bool) -> None:
    """The number, the whole interval, or any of it."""
    assert claim(at_least=1.0, judged=judged).holds(Finding("a.b.c", value, low, high)) is holds


def test_an_observation_has_no_verdict() -> None:
    """Whatever its number."""
    assert claim(kind="observation").holds(exact_finding("a.b.c", 0.0)) is None


@pytest.mark.parametrize("count", [2, 3, 4, 5, 10, 20, 100])
def test_intervals_are_students(count: int) -> None:
    """Against SciPy."""
    samples = np.random.default_rng(count).normal(3.0, 1.0, count)
    expected = stats.t.interval(0.95, count - 1, samples.mean(), stats.sem(samples))
    found = mean_finding("x", samples.tolist())
    assert (found.high - found.low) == pytest.approx(expected[1] - expected[0], rel=0.006)
    assert (found.high + found.low) / 2 == pytest.approx(samples.mean())


def test_an_unknown_paper_is_refused_with_the_nearest_name() -> None:
    """In one sentence."""
    with pytest.raises(InvalidInput, match="did you mean lambdacrawl"):
        check_paper("lamdacrawl")


def test_an_experiment_becomes_files(tmp_path: Path) -> None:
    """A CSV with all digits and a page with verdict and notes; the results page counts the verdicts."""
    claims = {"wic.x.y": claim(id="wic.x.y", at_least=1.0)}
    one = Experiment(
        "wic.x", "A title", Table(("a", "b"), [("p", 1 / 3)]), (exact_finding("wic.x.y", 0.5),), notes=("N.",)
    )
    written = write_experiment(one, tmp_path / "new", claims, "recrawl reproduce wic")
    assert [path.name for path in written] == ["wic.x.csv", "wic.x.md", "wic.x.json"]
    rows = list(csv.reader(io.StringIO(csv_text(one.table))))
    assert float(rows[1][1]) == 1 / 3
    assert "- N." in (tmp_path / "new" / "wic.x.md").read_text(encoding="utf-8")
    page = results_page(read_results(tmp_path / "new", ["wic.x"]))
    assert "Of 1 claims 0 hold and 1 do not" in page
    assert "**does not hold**" in page
    assert "`recrawl reproduce wic`" in page


def test_the_results_that_are_kept_answer_every_claim_as_it_was_worded() -> None:
    """Each once, with its bounds; with all files there, from full runs, and the page made from them."""
    kept = {path.name.removesuffix(".json"): json.loads(path.read_text("utf-8")) for path in RESULTS.glob("*.json")}
    told = {claim["id"]: claim for one in kept.values() for claim in one["claims"]}
    claims = load_claims()
    assert sorted(told) == sorted(claims)
    assert sum(len(one["claims"]) for one in kept.values()) == len(claims)
    for name, one in claims.items():
        same = {key: told[name][key] for key in ("statement", "measured", "kind", "at_least", "at_most")}
        assert same == {key: getattr(one, key) for key in same}, name
        finding = Finding(name, told[name]["value"], told[name]["low"], told[name]["high"])
        assert told[name]["holds"] is one.holds(finding), name
    for name, one in kept.items():
        assert one["figure"], name
        assert "--quick" not in one["command"], name
        assert all((RESULTS / f"{name}.{ending}").is_file() for ending in ("csv", "md", "png")), name
    assert (RESULTS / "results.md").read_text("utf-8") == results_page(read_results(RESULTS, kept))


def test_reproduce_prints_one_json_line_and_writes_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With every field that machines read; files of others in the folder do not matter."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    for foreign in ("tsconfig.app.json", "azar.other.json", "azar.fig1.json"):  # the last is written again
        (tmp_path / "out" / foreign).write_text("{", encoding="utf-8")
    result = CliRunner().invoke(cli, ["reproduce", "azar", "--quick", "--json", "--out", "out", "--workers", "1"])
    assert result.exit_code == 0, result.stderr
    claims = json.loads(result.stdout)["claims"]
    assert [one["id"] for one in claims] == [one.id for one in load_claims().values() if one.paper == "azar"]
    assert {"id", "paper", "experiment", "statement", "value", "low", "high", "kind", "holds"} <= set(claims[0])
    assert (tmp_path / "out" / "results.md").read_text(encoding="utf-8").startswith("# Results")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["wick"], "did you mean wic"),
        (["wic", "--workers", "0"], "must be from 1"),
        (["wic", "--out", "file/results"], "is a file"),
    ],
)
def test_bad_calls_end_in_one_sentence(
    arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And exit code 2."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    result = CliRunner().invoke(cli, ["reproduce", *arguments])
    assert result.exit_code == 2
    assert words in result.stderr


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"title": "T"}', '{"title":"","command":"","figure":1,"claims":[]}']
)
def test_verdicts_that_cannot_be_read_are_refused_before_any_work(
    content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is of another paper, which is on the page of results too."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "azar.fig1.json").write_text(content, encoding="utf-8")
    result = CliRunner().invoke(cli, ["reproduce", "wic", "--out", "."])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines() == [
        "recrawl: azar.fig1.json: does not hold the verdicts of an experiment; remove it or choose another --out"
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["azar.fig1.json"]
