"""The group `service`: small runs of each measure read what they should."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from recrawl.bench import service, service_dashboard, service_demo, service_index
from recrawl.bench.measure import CannotRun, run
from recrawl.bench.once import Once
from recrawl.bench.service_api import api_speeds
from recrawl.bench.service_decoding import BATCH, body_of, read_all, read_decoding, result_of
from recrawl.bench.store_opening import build
from recrawl.lab.demo.running import DemoResult
from recrawl.lab.demo.scene import Scene
from recrawl.service.errors import ApiError


def test_names_are_told_apart() -> None:
    names = [measure.name for measure in service.measures()]
    assert len(set(names)) == len(names)


def test_what_is_decoded_is_validated_too() -> None:
    good = [result_of(1), result_of(2, brings_text=True)]
    assert read_all([body_of(good), body_of(good[:1])]) == 3
    for wrong in ({"token": -1}, {"outcome": "fine"}, {"status": "200"}, {"colour": "red"}, {"elapsed_s": -1}):
        with pytest.raises(ApiError) as refused:
            read_all([body_of([good[0], good[1] | wrong])])
        assert refused.value.status == 422
        assert refused.value.row == 1


def test_decoding_reads_a_figure() -> None:
    assert read_decoding(2).value > BATCH


def test_every_result_that_is_handed_in_counts() -> None:
    """More than a batch of them, over HTTP; the measure ends if one does not count."""
    found = api_speeds(3 * BATCH)
    assert found.results > 0
    assert found.fetches > 0


def test_every_place_of_the_dashboard_is_asked_for(tmp_path: Path) -> None:
    sizes = service_dashboard.Sizes(pages=300, sights=20, requests=1)
    asyncio.run(build(tmp_path / "data", sizes.pages))
    found = service_dashboard.ask_all(tmp_path / "data", sizes)
    assert set(found.answer_ms) == set(service_dashboard.PLACES)
    assert min(found.answer_ms.values()) > 0
    assert found.file_ms > 0
    assert found.size["changes"] > 10_000  # it shows changes, with what changed


def test_a_demo_is_held_against_the_truth_and_ends_after_its_crawls() -> None:
    found = service_demo.run_scene(Scene(60, 100.0, "uniform"), 30.0, crawls=200)
    assert 200 <= found.result.crawls < 1500
    result = found.result
    assert (result.gap_closed is None) == (result.optimum <= result.round_robin)  # within seconds, chance decides
    assert 0 < found.estimated <= 1
    assert 0 <= found.true <= 1
    assert found.crawls_before > 0
    assert not service_demo.was_interrupted(found.result, 30.0, 200)


def test_a_demo_that_was_interrupted_is_no_measure() -> None:
    result = DemoResult(20.0, 1.0, 10, 1, 1.0, 50, 60, 5, 0.1, 0.5, 0.4, 0.6, 0.5, 0, "")
    assert service_demo.was_interrupted(result, 30.0, 60)
    assert service_demo.was_interrupted(result, 30.0, float("inf"))
    assert not service_demo.was_interrupted(result, 30.0, 50)
    assert not service_demo.was_interrupted(result, 20.0, float("inf"))


def test_the_index_needs_its_program(tmp_path: Path) -> None:
    for measure in service_index.index_measures(program=tmp_path / "search_index.py"):
        result = run(measure)
        assert not result.holds
        assert "checkout" in (result.reason or "")


def test_work_that_fails_is_not_done_again() -> None:
    tries: list[int] = []

    def work() -> int:
        tries.append(1)
        raise CannotRun("the snail is asleep")

    shared = Once(work)
    for _ in range(2):
        with pytest.raises(CannotRun, match="asleep"):
            shared()
    assert len(tries) == 1
