"""The dashboard of a tracker whose time runs fast and that is compared with others: real seconds, and their lines."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from dashboard_samples import NOW, some_vitals
from selectolax.lexbor import LexborHTMLParser

from recrawl.scheduling.estimates import HostSums
from recrawl.service.dashboard import views
from recrawl.service.dashboard.views import Clocks, Frame
from recrawl.service.monitor.monitor import Vitals, sample_of
from recrawl.service.monitor.timeline import Sample, Timeline

PACE = 1800.0
REAL = 1_790_000_000.0


def text_of(html: str) -> str:
    return " ".join(LexborHTMLParser(html).text(separator=" ").split()).replace("\u202f", " ")


def overview(vitals: Vitals, pace: float = 1.0) -> str:
    return views.overview(Frame("Overview", "overview", NOW, pace=pace), vitals, Timeline(pace), [], "freshness")


def test_spans_and_rates_are_by_a_real_clock() -> None:
    """A web half an hour of which is a second: its budget of a crawl in nine seconds is 200 a second here."""
    vitals = replace(
        some_vitals("x"),
        budget_per_day=9600.0,
        crawls_per_minute=6.0,
        changes_per_minute=3.0,
        delays_s=(3600.0, 7200.0),
    )
    shown = text_of(overview(vitals, PACE))
    assert "of 200/s; 180/s fetched" in shown
    assert "90 /s" in shown
    assert "about 2 s late" in shown
    assert "1 s here is 30 min of the web's time" in shown
    assert "web's time" not in text_of(overview(vitals))


def test_pages_that_are_gone_are_counted_and_hosts_are_those_with_pages() -> None:
    vitals = some_vitals("x")
    sums = HostSums(np.array([3, 0, 5]), np.ones(3), np.ones(3))
    vitals = replace(vitals, gone=6, estimates=replace(vitals.estimates, pages=1000, hosts=sums))
    assert "1,006 pages on 2 hosts, 6 of them gone" in text_of(overview(vitals))


def test_others_are_shown_beside_the_tracker() -> None:
    vitals = replace(some_vitals("x"), references={"in truth": 0.68, "round robin": math.nan, "optimum": 0.735})
    html = overview(vitals)
    assert "in truth 68.0 %, round robin –, optimum 73.5 %" in text_of(html)
    chart = LexborHTMLParser(html).css_first("[data-chart^=freshness]")
    assert chart is not None
    assert chart.attributes["data-chart"] == "freshness reference_0 reference_1 reference_2"
    assert chart.attributes["data-names"] == "recrawl, estimated|in truth|round robin|optimum"
    alone = LexborHTMLParser(overview(some_vitals("x"))).css_first("[data-chart^=freshness]")
    assert alone is not None
    assert alone.attributes["data-chart"] == "freshness fresh_pages"


@pytest.mark.parametrize(
    ("between", "shown"), [((0.86, 0.89), "87.3 %"), ((0.80, 0.94), "87 ± 7 %"), ((0.4, 1.0), "40–100 %")]
)
def test_freshness_is_as_exact_as_it_is_known(between: tuple[float, float], shown: str) -> None:
    assert f"Fresh now {shown}" in text_of(overview(replace(some_vitals("x"), freshness_range=between)))


def test_a_price_before_anything_was_sold_is_not_shown() -> None:
    vitals = replace(some_vitals("x"), price=2.65e-151)
    assert vitals.known_price is None
    assert math.isnan(sample_of(vitals).price)
    assert "e-151" not in text_of(overview(vitals))
    assert replace(vitals, price=0.0).known_price == 0.0


def test_series_are_by_a_real_clock_and_references_end_with_the_timeline() -> None:
    """What was measured before there was a reference has none."""
    timeline, line = Timeline(PACE), Timeline(PACE)
    for second in range(0, 20, 2):
        at = NOW + second * PACE
        timeline.add(Sample(at, freshness=0.5, age_p50_s=3600.0, crawls=6.0, changes=math.nan))
        if second >= 10:
            line.add(Sample(at, freshness=second / 100))
    found = views.series(timeline, {"optimum": line}, "minutes", Clocks(NOW + 18 * PACE, REAL, PACE))
    assert found["at"] == pytest.approx([REAL - 18 + second for second in range(0, 20, 2)], abs=0.01)
    assert found["age_p50_s"] == [2.0] * 10
    assert found["crawls"] == [10_800.0] * 10
    assert found["changes"] == [None] * 10
    assert found["reference_0"] == [None] * 5 + [0.1, 0.12, 0.14, 0.16, 0.18]
