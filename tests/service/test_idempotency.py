"""A POST with a key is done once and answered alike after that."""

from __future__ import annotations

import pytest
from service_ground import Ground

from recrawl.service.middleware import MOST_ANSWERS, Remembered


def add(ground: Ground, path: str, key: str, scope: str = "admin") -> tuple[int, dict[str, object], bool]:
    body = {"pages": [{"url": f"https://again.example/{path}"}]}
    answer = ground.ask("POST", "/api/v1/pages", scope, json=body, headers={"Idempotency-Key": key})
    return answer.status_code, answer.json(), "idempotency-replayed" in answer.headers


def test_the_same_key_gives_the_same_answer(ground: Ground) -> None:
    """Without it the second answer would say that the page is known."""
    first = add(ground, "one", "k-1")
    again = add(ground, "one", "k-1")
    assert first[1] == again[1]
    assert first[1]["done"]["added"] == 1  # type: ignore[index]
    assert (first[2], again[2]) == (False, True)


def test_a_key_with_another_body_is_refused(ground: Ground) -> None:
    add(ground, "two", "k-2")
    status, answer, _ = add(ground, "three", "k-2")
    assert status == 422
    assert answer["error"]["field"] == "Idempotency-Key"  # type: ignore[index]


def test_keys_of_others_are_others(ground: Ground) -> None:
    """Each token has its own."""
    add(ground, "four", "k-3")
    _, answer, replayed = add(ground, "four", "k-3", scope="write")
    assert not replayed
    assert answer["done"]["known"] == 1  # type: ignore[index]


@pytest.mark.parametrize("key", ["", "x" * 201, "a\x7fb"])
def test_odd_keys_are_refused(ground: Ground, key: str) -> None:
    assert add(ground, "five", key)[0] == 422


def test_a_refusal_is_remembered_too_but_no_error_of_ours(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """What went wrong here may be tried again."""

    async def broken(*_: object) -> list[tuple[int, bool]]:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(ground.tracker.store, "add_pages", broken)
        assert add(ground, "six", "k-6")[0] == 500
    assert add(ground, "six", "k-6")[0] == 200


def test_memory_is_bounded() -> None:
    memory = Remembered()
    for number in range(MOST_ANSWERS + 10):
        memory.begin(("a", "/", str(number)), b"", 0.0)
    assert len(memory.entries) == MOST_ANSWERS
    assert memory.find(("a", "/", "0"), 0.0) is None
