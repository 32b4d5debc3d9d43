"""A host, or the network, that is ill is told from pages that fail."""

from __future__ import annotations

from recrawl.outcomes import Outcome
from recrawl.tracker.hosts import HostHealth, NetworkHealth


def test_a_host_most_of_whose_good_pages_fail_is_ill_until_most_come_again() -> None:
    health = HostHealth()
    assert [health.hear(page, "ok", known_good=True) for page in range(8)] == [None] * 8
    turns = [health.hear(page, "server-error", known_good=True) for page in range(6)]
    assert turns.count("fell-ill") == 1
    assert health.degraded
    turns = [health.hear(page, "ok", known_good=True) for page in range(8)]
    assert turns.count("recovered") == 1
    assert not health.degraded


def test_pages_that_never_came_say_nothing_of_their_host() -> None:
    health = HostHealth()
    assert not any(health.hear(page, "missing", known_good=False) for page in range(100))


def test_one_page_that_fails_again_and_again_is_one_page() -> None:
    health = HostHealth()
    assert not any(health.hear(7, "server-error", known_good=True) for _ in range(100))


def test_what_was_not_asked_says_nothing() -> None:
    health = HostHealth()
    assert not any(health.hear(page, "robots-denied", known_good=True) for page in range(100))


def test_the_network_is_down_when_no_host_can_be_reached_and_up_with_the_first_answer() -> None:
    network = NetworkHealth()
    turns = [network.hear(f"host{n}", "network-error", "unreachable", known_good=True) for n in range(10)]
    assert turns.count("fell-ill") == 1
    assert network.down
    assert network.hear("host3", "server-error", None, known_good=True) == "recovered"
    assert not network.down


def test_one_host_that_cannot_be_reached_is_not_the_network() -> None:
    network = NetworkHealth()
    for n in range(50):
        network.hear(f"host{n % 6}", "ok", None, known_good=True)
        assert network.hear("away", "network-error", "connect-timeout", known_good=True) is None


def test_answers_that_are_broken_still_came_over_the_network() -> None:
    network = NetworkHealth()
    assert not any(network.hear(f"host{n}", "network-error", "protocol", known_good=True) for n in range(50))


def test_hosts_that_were_never_reached_say_nothing_of_the_network() -> None:
    network = NetworkHealth()
    assert not any(network.hear(f"host{n}", "network-error", "unreachable", known_good=False) for n in range(100))


def test_a_host_that_is_ill_needs_the_same_to_recover_after_a_restart() -> None:
    """What its pages remember of their last answers is all that it takes."""
    before, after = HostHealth(), HostHealth()
    last: dict[int, tuple[int, Outcome, bool]] = {}
    answers: list[tuple[int, Outcome]] = [(n, "ok") for n in range(30)]
    answers += [(n, "server-error") for n in range(12)]
    for page, outcome in answers:
        before.hear(page, outcome, known_good=True)
        last.pop(page, None)
        last[page] = (page, outcome, True)
    assert before.degraded
    after.restore(last.values())
    assert after.degraded
    turns = [(before.hear(page, "ok", known_good=True), after.hear(page, "ok", known_good=True)) for page in range(20)]
    assert all(one == other for one, other in turns)
    assert turns.index(("recovered", "recovered")) > 3
