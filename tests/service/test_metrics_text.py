"""The exposition for Prometheus: valid, complete, and without a label for each page."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from dashboard_samples import some_vitals
from service_ground import Ground

from recrawl.service.monitor.metrics import CONTENT_TYPE, exposition, families

SAMPLE = re.compile(
    r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)"
    r'(?:\{(?P<labels>(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)*)\})?'
    r" (?P<value>[-+]?(?:\d+(?:\.\d+)?(?:e[-+]?\d+)?|Inf)|NaN)"
)


def parsed(text: str) -> dict[str, dict[str, float]]:
    """Samples by name and labels; whatever the format does not allow fails."""
    assert text.endswith("\n")
    found: dict[str, dict[str, float]] = {}
    kinds: dict[str, str] = {}
    current = ""
    for line in text.removesuffix("\n").split("\n"):
        if line.startswith("# HELP "):
            current = line.split(" ", 3)[2]
            assert current not in found, "a metric must come in one piece"
            found[current] = {}
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == current
            kinds[name] = kind
        else:
            match = SAMPLE.fullmatch(line)
            assert match, line
            assert match["name"] == current, line
            labels = match["labels"] or ""
            assert labels not in found[current], line
            found[current][labels] = float(match["value"])
    assert set(kinds.values()) <= {"gauge", "counter"}
    assert all(name.endswith("_total") == (kind == "counter") for name, kind in kinds.items())
    return found


@pytest.mark.parametrize("text", ["plain", 'a"b\\c\nd', "<x>{}", "ü\u2028"])
def test_the_format_is_valid_whatever_the_names(text: str) -> None:
    """Names of sinks and kinds of signals are escaped."""
    found = parsed(exposition(some_vitals(text)))
    assert found["recrawl_freshness"] == {'by="believed"': 0.9, 'by="audited"': 0.873}
    assert len(found["recrawl_sink_lag_events"]) == 1


def test_all_that_was_promised_is_there() -> None:
    """Freshness, ages, delay, outcomes, hosts, budget, waste, signals, backlog, lag of events."""
    found = parsed(exposition(some_vitals("plain")))
    promised = (
        "freshness", "fresh_pages", "changes_found_by_expected", "copy_age_seconds", "detection_delay_seconds",
        "fetches_total", "hosts", "price", "budget_per_second", "budget_used", "budget_usable", "wasted_fetches",
        "signal_precision", "signal_recall", "signal_trust", "backlog_pages", "longest_due_seconds",
        "last_success_age_seconds", "sink_lag_events", "events_total", "requests_total", "pages", "network_down",
    )  # fmt: skip
    assert {f"recrawl_{name}" for name in promised} <= set(found)
    assert found["recrawl_copy_age_seconds"].keys() == {f'quantile="{share}"' for share in (0.5, 0.9, 0.99)}


def test_what_is_not_known_is_left_out() -> None:
    """Rather than a zero that is not one."""
    vitals = replace(some_vitals("plain"), budget_used=None, wasted=None, delays_s=(None, None), last_success_at=None)
    found = parsed(exposition(vitals))
    for name in ("budget_used", "wasted_fetches", "detection_delay_seconds", "last_success_age_seconds"):
        assert f"recrawl_{name}" not in found


def test_no_label_grows_with_pages_or_hosts() -> None:
    """Only these, each with few values."""
    allowed = {"by", "quantile", "of", "kind", "outcome", "reason", "at", "state", "class", "sink", "version"}
    for family in families(some_vitals("plain")):
        for labels, _ in family.samples:
            assert set(labels) <= allowed, family.name


def test_every_metric_is_documented(documents: str) -> None:
    """In the table of the documentation, and no other."""
    named = set(re.findall(r"^\| `(recrawl_\w+)`", documents, re.MULTILINE))
    assert named == {family.name for family in families(some_vitals("plain"))}


@pytest.fixture
def documents() -> str:
    from pathlib import Path

    return (Path(__file__).parents[2] / "docs" / "dashboard.md").read_text(encoding="utf-8")


def test_the_service_answers_with_it(ground: Ground) -> None:
    """A token that may read is enough, and needed."""
    ground.add("https://metrics.example/a")
    answer = ground.ask("GET", "/metrics", scope="read")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == f"{CONTENT_TYPE}; charset=utf-8"
    assert parsed(answer.text)["recrawl_pages_without_copy"][""] >= 1
    assert "metrics.example" not in answer.text
    assert ground.ask("GET", "/metrics", scope=None).status_code == 401
