"""What was measured over time: bounded, coarser with age, and still there after a restart."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.service.monitor import timeline as timeline_module
from recrawl.service.monitor.activity import Recent
from recrawl.service.monitor.timeline import SPANS, STEPS, Sample, Timeline
from recrawl.store.rows import Change, NewChange, Observation


def filled(seconds: float, every_s: float = 2.0) -> Timeline:
    timeline = Timeline()
    for i in range(int(seconds / every_s)):
        timeline.add(Sample(1_000_000_000.0 + i * every_s, freshness=(i % 10) / 10, price=float(i)))
    return timeline


def test_every_span_is_bounded_and_in_order() -> None:
    """A day of samples takes no more room than it may, and times rise."""
    timeline = filled(90_000.0, 10.0)
    for span in SPANS:
        samples = timeline.samples(span)
        times = [sample.at for sample in samples]
        assert 2 < len(samples) <= STEPS[span][1]
        assert times == sorted(times)
        assert times[-1] > 1_000_000_000.0 + 80_000


def test_coarser_spans_hold_means() -> None:
    """Of what came in their intervals; what was not known does not count."""
    timeline = filled(3600.0)
    assert [sample.freshness for sample in timeline.samples("day")[1:-1]] == pytest.approx([0.45] * 11, abs=0.02)
    timeline = Timeline()
    timeline.add(Sample(0.0, freshness=0.5))
    timeline.add(Sample(1.0, freshness=math.nan))
    (sample,) = timeline.samples("day")
    assert sample.freshness == 0.5
    assert math.isnan(sample.price)


def test_times_that_run_faster_have_longer_steps() -> None:
    """As many samples, over as many times the time."""
    timeline = Timeline(pace=60.0)
    for i in range(100):
        timeline.add(Sample(i * 120.0, price=1.0))
    assert len(timeline.samples("minutes")) == 100
    assert timeline.covers_s("minutes") == 60 * Timeline().covers_s("minutes")


def test_it_outlives_a_restart_as_small_facts() -> None:
    """To single precision; only what grew is written again."""
    timeline = filled(7200.0)
    facts = timeline.to_facts(everything=True)
    assert set(facts) == {f"timeline.{span}" for span in SPANS}
    assert all(len(text) < 20_000 for text in facts.values())
    again = Timeline.from_facts(facts)
    for span in SPANS:
        kept, read = timeline.samples(span)[:-1], again.samples(span)
        assert [sample.at for sample in read][-len(kept) :] == [sample.at for sample in kept][-len(read) :]
        assert read[-1].freshness == pytest.approx(kept[-1].freshness, rel=1e-6)
    assert timeline.to_facts() == {}
    timeline.add(Sample(1_000_000_000.0 + 8000))
    timeline.add(Sample(1_000_000_000.0 + 8100))
    assert "timeline.hour" in timeline.to_facts()


@pytest.mark.parametrize("back_s", [20.0, 400.0])
def test_a_clock_that_is_set_back_costs_only_what_it_repeats(back_s: float) -> None:
    """After a restart too: all samples but those of the time that came twice."""
    timeline = filled(3000.0)
    before = 1_000_000_000.0 + 3000.0 - back_s
    for i in range(100):
        timeline.add(Sample(before + 2.0 * i, price=-1.0))
    for read in (timeline, Timeline.from_facts(timeline.to_facts(everything=True))):
        for span in ("minutes", "hour"):
            samples = read.samples(span)
            times = [sample.at for sample in samples]
            assert times == sorted(times)
            assert times[0] < before - 60.0
            assert [sample.price for sample in samples if sample.at > before + 15.0] == pytest.approx(
                [-1.0] * sum(at > before + 15.0 for at in times)
            )


def test_a_timeline_kept_with_a_step_back_is_read() -> None:
    """Of samples out of order the newest count."""
    times = [10.0, 20.0, 30.0, 25.0, 35.0]
    kept = timeline_module._packed([Sample(at, price=float(i)) for i, at in enumerate(times)])
    samples = Timeline.from_facts({"timeline.hour": kept}).samples("hour")
    assert [(sample.at, sample.price) for sample in samples] == [(10.0, 0.0), (20.0, 1.0), (25.0, 3.0), (35.0, 4.0)]


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda raw: raw.decode("latin-1")))
def test_facts_that_cannot_be_read_are_left_out(text: str) -> None:
    """Whatever they are."""
    timeline = Timeline.from_facts({"timeline.hour": text})
    assert all(math.isfinite(sample.at) for sample in timeline.samples("hour"))


def fetch(page: int, verdict: str | None, gap_s: float | None = 100.0, trigger: str = "schedule") -> Observation:
    return Observation(page, page, 1000.0 + page, "ok" if verdict else "missing", verdict, trigger, gap_s=gap_s)  # type: ignore[arg-type]


def test_waste_delay_and_signals_of_the_last_fetches() -> None:
    """First visits and failures are neither waste nor audits; found pages are no signal."""
    recent = Recent()
    assert recent.wasted is None
    assert recent.delays((0.5,)) == [None]
    recent.take(
        [
            fetch(1, "first", None, "found by https://example.com/"),
            fetch(2, "unchanged"),
            fetch(3, "changed", 50.0, "sitemap"),
            fetch(4, "unchanged", 50.0, "sitemap"),
            fetch(5, "changed", 200.0),
            fetch(6, None),
        ]
    )
    assert recent.wasted == pytest.approx(2 / 5)
    assert recent.delays((0.0, 0.9)) == [25.0, 100.0]
    (score,) = recent.scores()
    assert (score.kind, score.crawls, score.precision, score.recall) == ("sitemap", 2, 0.5, 0.5)
    assert recent.last_success_at == 1005.0


def test_movers_are_pages_that_changed_most_lately() -> None:
    """Within the hour, or the day if these are few, the latest first among equals; other events do not count."""
    recent = Recent()
    events = [NewChange("changed", 90_000.0 + i, f"https://a/{i % 3}", page_id=i % 3) for i in range(7)]
    events.append(NewChange("changed", 100.0, "https://a/old", page_id=9))
    events.append(NewChange("removed", 90_001.0, "https://a/0", page_id=0))
    assert recent.hear([Change(i + 1, str(i), event) for i, event in enumerate(events)]) == 8
    movers = recent.movers(90_010.0)
    assert [(mover.page_id, mover.changes) for mover in movers] == [(0, 3), (2, 2), (1, 2)]
    assert movers[0].last_at == 90_006.0
