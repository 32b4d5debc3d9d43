"""Clients that ask too often wait; wrong tokens are few; right ones pass at any time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from service_ground import Ground, Service

from recrawl.service.auth.access import MOST_CLIENTS, Buckets, Quota, Quotas
from recrawl.service.listening import read_listening

FEW = Quotas(Quota(5, 0.001), Quota(3, 0.001), Quota(2, 0.001))


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """A service with small quotas."""
    folder: Path = tmp_path_factory.mktemp("strict")
    service = Service(folder, quotas=Quotas(Quota(5, 0.001), Quota(30, 0.001), Quota(3, 0.001)))
    try:
        yield service.begin()
    finally:
        service.end()


def test_a_client_that_asks_too_often_is_told_to_wait(strict: Ground) -> None:
    """By its token: others are not held up."""
    answers = [strict.ask("GET", "/api/v1/status", "read") for _ in range(7)]
    assert [answer.status_code for answer in answers] == [200] * 5 + [429] * 2
    assert int(answers[-1].headers["retry-after"]) >= 1
    assert strict.ask("GET", "/api/v1/status", "admin").status_code == 200


def test_wrong_tokens_are_few_and_right_ones_still_pass(strict: Ground) -> None:
    """Whoever guesses waits; who knows does not."""
    wrong = {"Authorization": "Bearer recrawl-0123456789ab-" + "0" * 64}
    answers = [strict.ask("GET", "/api/v1/hosts", None, headers=wrong).status_code for _ in range(6)]
    assert answers == [401] * 3 + [429] * 3
    assert strict.ask("GET", "/api/v1/hosts", "write").status_code == 200


def test_strangers_wait_too(strict: Ground) -> None:
    """On routes that are open to all."""
    statuses = {strict.ask("GET", "/login", None).status_code for _ in range(40)}
    assert statuses == {200, 429}


def asked_from(ground: Ground, forwarded: str, times: int) -> list[int]:
    """Open a public page as a client that a proxy names in its header."""
    headers = {"X-Forwarded-For": forwarded}
    return [ground.ask("GET", "/login", None, headers=headers).status_code for _ in range(times)]


def test_a_client_that_is_no_trusted_proxy_cannot_choose_its_address(tmp_path: Path) -> None:
    service = Service(tmp_path, quotas=FEW)
    try:
        ground = service.begin()
        assert [asked_from(ground, f"198.51.100.{number}", 1)[0] for number in range(5)] == [200] * 3 + [429] * 2
    finally:
        service.end()


def test_clients_behind_a_trusted_proxy_have_a_quota_each(tmp_path: Path) -> None:
    """The last address that no trusted proxy has counts: what a client writes before it changes nothing."""
    proxied = read_listening("127.0.0.1:0", proxies=("203.0.113.9", "10.0.0.0/8"))
    assert proxied is not None
    service = Service(tmp_path, quotas=FEW, listening=proxied)
    try:
        ground = service.begin()
        assert asked_from(ground, "198.51.100.1", 5) == [200] * 3 + [429] * 2
        assert asked_from(ground, "198.51.100.2, 10.1.2.3", 3) == [200] * 3
        assert asked_from(ground, "9.9.9.9, 198.51.100.1", 1) == [429]
        assert asked_from(ground, "9.9.9.8, 198.51.100.2", 1) == [429]
        wrong = {"Authorization": "Bearer recrawl-0123456789ab-" + "0" * 64}
        guesses = [wrong | {"X-Forwarded-For": f"8.8.8.{number}, 198.51.100.3"} for number in range(5)]
        statuses = [ground.ask("GET", "/api/v1/hosts", None, headers=guess).status_code for guess in guesses]
        assert statuses == [401] * 2 + [429] * 3
    finally:
        service.end()


def test_addresses_of_one_ipv6_network_share_a_quota(tmp_path: Path) -> None:
    """A provider gives each client at least a /64, of which every address is as good as another."""
    proxied = read_listening("127.0.0.1:0", proxies=("203.0.113.9",))
    assert proxied is not None
    service = Service(tmp_path, quotas=FEW, listening=proxied)
    try:
        ground = service.begin()
        assert [asked_from(ground, f"2001:db8::{number}", 1)[0] for number in range(5)] == [200] * 3 + [429] * 2
        assert asked_from(ground, "2001:db8:0:1::1", 3) == [200] * 3
    finally:
        service.end()


def test_buckets_fill_with_time_and_are_bounded() -> None:
    buckets = Buckets(Quota(2, 1.0))
    assert [buckets.wait_s("a", 0.0) for _ in range(3)] == [0.0, 0.0, 1.0]
    assert buckets.wait_s("a", 1.0) == 0.0
    assert buckets.wait_s("a", 0.5) > 0.0  # a clock that went back gives nothing
    for number in range(MOST_CLIENTS + 5):
        buckets.wait_s(str(number), 2.0)
    assert len(buckets._held) == MOST_CLIENTS
