"""Time that does not jump, and counts that add up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recrawl.tracker.clock import TrackerClock
from recrawl.tracker.usage import Accounts


class Hands:
    """A wall and a steady clock that are set by hand."""

    def __init__(self) -> None:
        self.wall, self.steady = 1_700_000_000.0, 50.0


def test_setting_the_wall_clock_moves_nothing() -> None:
    hands = Hands()
    clock = TrackerClock(0.0, lambda: hands.wall, lambda: hands.steady)
    for jump in (3600.0, -3600.0, 86_400.0, -10 * 365 * 86_400.0, 10 * 365 * 86_400.0):
        before = clock.now()
        hands.wall += jump
        hands.steady += 2.0
        assert clock.now() == before + 2.0


def test_time_goes_on_from_what_the_store_has_seen() -> None:
    hands = Hands()
    clock = TrackerClock(hands.wall + 500.0, lambda: hands.wall, lambda: hands.steady)
    assert clock.now() == hands.wall + 500.0
    assert clock.behind_s == 500.0


@given(st.lists(st.sampled_from(["take", "fetched", "deferred", "retired"])))
def test_what_was_taken_has_ended_or_is_in_flight(steps: list[str]) -> None:
    accounts, flying, written = Accounts(), 0, 0
    for step in steps:
        if step == "take":
            accounts.take(3)
            flying += 3
        elif flying:
            accounts.end(step, "why")  # type: ignore[arg-type]
            flying -= 1
        assert accounts.in_flight == flying
    counts = accounts.to_write()
    written = counts.get("taken", 0)
    assert written == accounts.taken
    assert accounts.to_write() == {}
    accounts.keep(counts)
    assert accounts.to_write() == counts
