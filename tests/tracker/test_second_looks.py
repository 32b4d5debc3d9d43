"""Second fetches of a crowd of new pages stay within shares of the visits, and are only put off."""

from __future__ import annotations

from recrawl.tracker.pipeline.fetch import FIRST_SHARE, LATER_SHARE, RefetchQuota


def granted(looks: RefetchQuota, visits: int, *, first: bool) -> int:
    """How many second fetches are granted if every visit asks for one."""
    count = 0
    for _ in range(visits):
        looks.visited()
        count += looks.take(first=first)
    return count


def test_a_tracker_of_few_pages_may_look_whenever_that_is_worth_it() -> None:
    looks = RefetchQuota()
    assert granted(looks, 30, first=True) == granted(looks, 30, first=False) == 30


def test_in_a_crowd_the_first_look_at_a_page_comes_soon_and_others_are_few() -> None:
    looks = RefetchQuota()
    first, later = granted(looks, 10_000, first=True), granted(looks, 10_000, first=False)
    assert first / 10_000 < FIRST_SHARE + 0.02
    assert later / 10_000 < LATER_SHARE + 0.02
    assert first > 5 * later


def test_what_is_not_used_is_not_saved_without_end() -> None:
    looks = RefetchQuota()
    for _ in range(100_000):
        looks.visited()
    assert sum(looks.take(first=True) for _ in range(100_000)) == 100
