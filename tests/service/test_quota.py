"""Clients that ask too often wait; wrong tokens are few; right ones pass at any time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from service_ground import Ground, Service

from recrawl.service.access import Quotas
from recrawl.service.quota import MOST_CLIENTS, Buckets, Quota


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


def test_buckets_fill_with_time_and_are_bounded() -> None:
    buckets = Buckets(Quota(2, 1.0))
    assert [buckets.wait_s("a", 0.0) for _ in range(3)] == [0.0, 0.0, 1.0]
    assert buckets.wait_s("a", 1.0) == 0.0
    assert buckets.wait_s("a", 0.5) > 0.0  # a clock that went back gives nothing
    for number in range(MOST_CLIENTS + 5):
        buckets.wait_s(str(number), 2.0)
    assert len(buckets._held) == MOST_CLIENTS
