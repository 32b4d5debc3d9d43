"""What docs/api.md says of a request that is sent again after a restart, when its key is no longer known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from service_ground import Ground, Service

URL = "https://restarted.example/"
KEY = {"Idempotency-Key": "the same"}


class Lives:
    """A service that is ended and begun again on the same store."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._service = Service(folder)
        self.ground = self._service.begin()

    def restart(self) -> Ground:
        self.end()
        self._service = Service(self._folder)
        self.ground = self._service.begin()
        return self.ground

    def end(self) -> None:
        self._service.end()

    def post(self, path: str, body: dict[str, Any]) -> Any:
        answer = self.ground.ask("POST", f"/api/v1/{path}", json=body, headers=KEY)
        assert answer.status_code in (200, 201), answer.text
        assert "idempotency-replayed" not in answer.headers
        return answer.json()


@pytest.fixture
def lives(tmp_path: Path) -> Any:
    service = Lives(tmp_path)
    try:
        yield service
    finally:
        service.end()


def held(ground: Ground) -> tuple[object, ...]:
    """Pages, pauses and events."""

    async def reading() -> tuple[object, ...]:
        store = ground.tracker.store
        rows = [(row.url, row.state, row.visits) for row in await store.list_pages()]
        return rows, await store.paused(), await store.last_cursor()

    return ground.run(reading())


def test_commands_that_are_sent_again_change_nothing_more(lives: Lives) -> None:
    """The counts of the answer are those of the second time."""
    add = {"pages": [{"url": URL}]}
    assert lives.post("pages", add)["done"]["added"] == 1
    for path, body in (("pages", add), ("pause", {"kind": "page", "names": [URL]}), ("pages/remove", {"urls": [URL]})):
        lives.restart()
        lives.post(path, body)
        before = held(lives.ground)
        lives.restart()
        lives.post(path, body)
        assert held(lives.ground) == before, path


def test_a_result_is_a_duplicate_also_after_a_restart(lives: Lives) -> None:
    lives.post("pages", {"pages": [{"url": URL}]})
    (lease,) = lives.post("leases", {"n": 1, "worker": "w"})["leases"]
    result = {"results": [{"token": lease["token"], "outcome": "ok", "text": "<p>came</p>"}]}
    assert lives.post("leases/complete", result) == {"answers": ["applied"]}
    before = held(lives.ground)
    lives.restart()
    assert lives.post("leases/complete", result) == {"answers": ["duplicate"]}
    assert held(lives.ground) == before


def test_a_lease_that_was_asked_for_again_leaves_the_first_one_standing(lives: Lives) -> None:
    """Other pages are given, if there are any; the first is given out again when its lease ran out."""
    lives.post("pages", {"pages": [{"url": URL}]})
    assert len(lives.post("leases", {"n": 1, "worker": "w"})["leases"]) == 1
    lives.restart()
    assert lives.post("leases", {"n": 1, "worker": "w"})["leases"] == []


def test_a_signal_that_is_sent_again_joins_the_one_that_waits(lives: Lives) -> None:
    lives.post("pages", {"pages": [{"url": URL}]})
    for _ in range(2):
        lives.post("signals", {"urls": [URL], "kind": "cms"})
        lives.restart()
    waiting = lives.ground.run(lives.ground.tracker.store.pending_signals())
    assert [each.kind for each in waiting] == ["cms"]
