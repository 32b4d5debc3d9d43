"""How hosts answer for pages that do not exist: asked once in a while, and a failure is no answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from tracker_harness import logged

from recrawl.outcomes import Outcome
from recrawl.tracker.pipeline.fetch import SoftNotFoundProbe
from recrawl.web.fetch.protocol import FetchJob, FetchResult
from recrawl.web.url.address import Address, address_or_raise

PAGE = address_or_raise("https://a.example/guides/lamp", field="url")
WEEK = 7 * 86_400.0
SHELL = "<title>Not found</title><p>We are sorry, the page that you look for is not here any more, or never was.</p>"
HOME = "<title>Lamps</title><p>Welcome to the house of lamps, which sells candles and oil to all of the town.</p>"
Reply = str | Outcome | Exception


class Host:
    """Answers probes and its main page as it is told, and counts what it is asked."""

    def __init__(self, probe: Reply, home: Reply = HOME) -> None:
        self.probe, self.home, self.time = probe, home, 0.0
        self.asked: list[str] = []
        self.missing = SoftNotFoundProbe(self.fetch, lambda: self.time)

    async def fetch(self, job: FetchJob) -> FetchResult:
        await asyncio.sleep(0)
        self.asked.append(job.address.target)
        reply = self.home if job.address.target == "/" else self.probe
        if isinstance(reply, Exception):
            raise reply
        if reply.startswith("<"):
            return FetchResult(job.address, "ok", "", job.address, status=200, body=reply.encode())
        return FetchResult(job.address, reply, "", job.address)  # type: ignore[arg-type]


def story(host: Host, tell: Callable[[Host], None], after: float, page: Address = PAGE) -> list[bool]:
    """Whether it is known how the host shows missing pages: at first, and a while after it was told otherwise."""

    async def ask() -> list[bool]:
        found = [await host.missing.of(page) is not None]
        tell(host)
        host.time += after
        return [*found, await host.missing.of(page) is not None]

    return asyncio.run(ask())


def _answers(host: Host) -> None:
    host.probe, host.home = SHELL, HOME


@pytest.mark.parametrize("failure", ["network-error", "server-error", "rate-limited", "truncated", "deferred"])
def test_a_failure_is_no_answer_and_the_host_is_asked_again_soon(failure: Outcome) -> None:
    assert story(Host(failure), _answers, 601.0) == [False, True]
    assert story(Host(SHELL, home=failure), _answers, 601.0) == [False, True]


def test_a_probe_that_breaks_is_said_and_fails_no_page() -> None:
    host = Host(RuntimeError("what a parser may do"))
    with logged() as said:
        assert story(host, _answers, 601.0) == [False, True]
    (sentence,) = said
    assert "https://a.example" in sentence
    assert "what a parser may do" in sentence


def test_a_host_that_fails_is_not_asked_for_every_page() -> None:
    host = Host("server-error")
    assert story(host, lambda _: None, 599.0) == [False, False]
    assert len(host.asked) == 1


@pytest.mark.parametrize("answer", ["missing", "gone", "forbidden", HOME])
def test_what_a_host_says_counts_for_a_week(answer: Outcome) -> None:
    host = Host(answer)
    assert story(host, _answers, WEEK - 1.0) == [False, False]
    assert story(host, _answers, WEEK + 1.0) == [False, True]


def test_pages_that_change_together_ask_once() -> None:
    host = Host(SHELL)

    async def ask() -> None:
        found = await asyncio.gather(*(host.missing.of(PAGE) for _ in range(5)))
        assert all(each is not None and each == found[0] for each in found)

    asyncio.run(ask())
    assert len(host.asked) == 2
