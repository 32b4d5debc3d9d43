"""What a result says: bounds, reasons, and the fields that machines read."""

from __future__ import annotations

import sys

import pytest

from recrawl.bench.groups import GROUPS, measures_of
from recrawl.bench.measure import RUNS, Bound, CannotRun, Measure, Reading, best_cpu_seconds, run
from recrawl.bench.memory import peak_memory
from recrawl.bench.plans import EVEN_HARMONIC

_UNTIMED = (
    "lambdacrawl_passes",
    "azar_passes",
    "kkt_residual_1m",
    "mixed_harmonic_cost",
    "uniform_harmonic_cost",
    "proportional_harmonic_cost",
)


def _measure(reading: Reading | Exception, bound: Bound) -> Measure:
    def read() -> Reading:
        if isinstance(reading, Exception):
            raise reading
        return reading

    return Measure("speed", "s", "a snail", bound, read)


@pytest.mark.parametrize(
    ("bound", "reading", "holds"),
    [
        (Bound("ratio", floor=10), Reading(1.0, ratio=10.0), True),
        (Bound("ratio", floor=10), Reading(100.0, ratio=9.9), False),
        (Bound("value", limit=12), Reading(12.0, ratio=99.0), True),
        (Bound("value", limit=12), Reading(13.0), False),
        (Bound("value", floor=3.9, limit=4.3), Reading(4.1), True),
        (Bound("value", floor=3.9, limit=4.3), Reading(4.4), False),
        (Bound("value", floor=3.9, limit=4.3), Reading(3.8), False),
        (Bound("value", limit=1e-9), Reading(float("nan")), False),
        (Bound("ratio", floor=10), Reading(1.0, ratio=None), False),
    ],
)
def test_bound_holds(bound: Bound, reading: Reading, holds: bool) -> None:
    """A bound looks at its own number, keeps its ends, and is not met by a number that is missing or NaN."""
    assert bound.holds(reading) is holds


def test_result_has_the_fields_of_the_contract() -> None:
    """One measure as JSON: a floor but no limit, the figure of the yardstick in its text, no reason."""
    document = run(_measure(Reading(0.5, 20.0, "10 s"), Bound("ratio", floor=10))).as_json()
    assert document.pop("seconds") >= 0
    assert document == {
        "name": "speed",
        "value": 0.5,
        "unit": "s",
        "yardstick": "a snail: 10 s",
        "ratio": 20.0,
        "bounds": "ratio",
        "floor": 10,
        "holds": True,
    }


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (CannotRun("the snail is asleep: wake it"), "the snail is asleep: wake it"),
        (MemoryError(), "MemoryError"),
        (ValueError("no\n  snail"), "ValueError: no snail"),
    ],
)
def test_measure_that_cannot_run_is_listed_with_a_reason(failure: Exception, reason: str) -> None:
    """A failure ends up in the result, as one line, and does not hold."""
    document = run(_measure(failure, Bound("value", limit=1))).as_json()
    assert document["reason"] == reason
    assert document["holds"] is False
    assert document["value"] is None
    assert document["ratio"] is None
    assert document["yardstick"] == "a snail"


def test_timed_work_runs_once_unseen_and_then_three_times() -> None:
    """Best of 3 after a warm-up."""
    calls = []
    assert best_cpu_seconds(lambda: calls.append(1)) >= 0
    assert len(calls) == RUNS + 1 == 4


def test_names_of_measures_are_unique() -> None:
    """A name stands for one measure in its group."""
    for group in GROUPS:
        names = [measure.name for measure in measures_of(group)]
        assert len(set(names)) == len(names)


def test_untimed_measures_of_planning_hold() -> None:
    """Passes, exactness and costs at a million pages do not depend on the machine, so they must hold here."""
    measures = {measure.name: measure for measure in measures_of("planning")}
    for name in _UNTIMED:
        result = run(measures[name])
        assert result.reason is None
        assert result.holds, result.as_json()


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
def test_peak_memory_counts_at_least_the_rates() -> None:
    """A plan of a million pages must hold a million rates beside the two input columns of 8 MB each."""
    peak = peak_memory(EVEN_HARMONIC, millions=1)
    assert peak.input_bytes == 16_000_000
    assert 7_900_000 <= peak.extra_bytes <= 200_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
def test_peak_memory_tells_why_its_process_failed() -> None:
    """A process that ends badly is a measure that cannot run, with the last thing the process said."""
    with pytest.raises(CannotRun, match="ended with code 1"):
        peak_memory(EVEN_HARMONIC, millions=-1)
