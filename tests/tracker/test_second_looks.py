"""Second fetches of a crowd of new pages stay within shares of the visits, and are only put off."""

from __future__ import annotations

from recrawl.tracker.pipeline.fetch import MOST_SAVED, RefetchQuota


def requests(looks: RefetchQuota, most: int) -> tuple[int, int]:
    """Visits and second fetches of so many requests if every visit asks for one."""
    visits = further = 0
    while visits + further < most:
        looks.visited()
        visits += 1
        further += looks.take()
    return visits, further


def test_a_tracker_of_few_pages_may_look_whenever_that_is_worth_it() -> None:
    visits, further = requests(RefetchQuota(), 60)
    assert visits == further


def test_a_crowd_of_noisy_pages_costs_few_further_requests_at_first_and_fewer_later() -> None:
    """Two requests a second, for five minutes and then for twenty-five."""
    looks = RefetchQuota()
    for most, share in ((600, 0.15), (3000, 0.05)):
        visits, further = requests(looks, most)
        assert further / (visits + further) <= share


def test_what_is_not_used_is_not_saved_without_end() -> None:
    looks = RefetchQuota()
    for _ in range(100_000):
        looks.visited()
    assert sum(looks.take() for _ in range(1000)) == MOST_SAVED
