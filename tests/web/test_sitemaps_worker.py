"""The parsing process: the same answers, and an end to what takes too long."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator

import pytest

from patience import PATIENCE_S
from recrawl.errors import InvalidInput
from recrawl.web import workers as sitemap_worker
from recrawl.web.feeds.feed import parse_feed
from recrawl.web.feeds.sitemap import parse_sitemap
from recrawl.web.url.address import Address, address_rules, read_address
from recrawl.web.workers import ParseWorkers, answer, receive, send, serve

NOW = 1_700_000_000.0
URL = "https://example.com/sitemap.xml"
SITEMAP = (
    b"<urlset><url><loc>https://example.com/a</loc><lastmod>2023-01-02</lastmod></url>"
    b"<url><loc>https://other.example/b</loc></url><url><loc>x</loc></url></urlset>"
)
FEED = b"<rss><channel><item><guid>1</guid><title>\xc3\xa9</title></item></channel></rss>"


@pytest.fixture(scope="module")
def workers() -> Iterator[ParseWorkers]:
    with ParseWorkers(size=1, deadline_s=PATIENCE_S) as pool:
        yield pool


def _base() -> Address:
    base = read_address(URL)
    assert isinstance(base, Address)
    return base


def test_a_worker_gives_the_answer_of_the_parser(workers: ParseWorkers) -> None:
    assert workers.sitemap(SITEMAP, URL, NOW) == parse_sitemap(SITEMAP, _base(), NOW)
    assert workers.feed(FEED, URL, NOW) == parse_feed(FEED, _base(), NOW)
    assert workers.sitemap(b"", URL, NOW).problem == "the sitemap is empty"


def test_one_process_serves_many_files(workers: ParseWorkers) -> None:
    workers.sitemap(SITEMAP, URL, NOW)
    first = workers._workers[0]._process
    workers.sitemap(SITEMAP, URL, NOW)
    assert first is not None
    assert workers._workers[0]._process is first


def test_a_process_that_died_is_replaced(workers: ParseWorkers) -> None:
    workers.sitemap(SITEMAP, URL, NOW)
    process = workers._workers[0]._process
    assert process is not None
    process.kill()
    process.wait()
    assert len(workers.sitemap(SITEMAP, URL, NOW).entries) == 2


def test_what_takes_longer_than_the_deadline_is_killed_and_the_next_file_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The worker's interpreter is one that never answers; afterwards it is the real one."""
    with ParseWorkers(size=1, deadline_s=0.2) as pool:
        monkeypatch.setattr(sitemap_worker, "_COMMAND", (sys.executable, "-c", "import time; time.sleep(600)"))
        sitemap = pool.sitemap(b"x" * 1_000_000, URL, NOW)
        assert sitemap.entries == ()
        assert sitemap.problem == "the file could not be parsed within 0.2 s and the memory of a worker"
        assert pool.feed(FEED, URL, NOW).problem == sitemap.problem
        monkeypatch.undo()
        pool._deadline_s = PATIENCE_S
        assert len(pool.sitemap(SITEMAP, URL, NOW).entries) == 2


def test_a_worker_that_answers_nonsense_is_a_problem_and_no_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    nonsense = (
        "import sys; sys.stdin.buffer.read(8); sys.stdout.buffer.write(bytes([0, 0, 0, 4, 0, 0, 0, 0]) + b'oops')"
    )
    monkeypatch.setattr(sitemap_worker, "_COMMAND", (sys.executable, "-c", nonsense))
    with ParseWorkers(size=1, deadline_s=PATIENCE_S) as pool:
        assert pool.sitemap(SITEMAP, URL, NOW).problem is not None


def test_the_life_of_a_worker_ends_with_its_input() -> None:
    requests, answers = io.BytesIO(), io.BytesIO()
    request = b'{"task": "sitemap", "url": "https://example.com/s", "now": 0, "local_names": []}'
    send(requests, request, SITEMAP)
    requests.seek(0)
    serve(requests, answers)
    answers.seek(0)
    reply, _ = receive(answers)
    assert reply == answer(request, SITEMAP)
    with pytest.raises(EOFError):
        receive(answers)


def test_a_pool_needs_a_size_and_a_deadline() -> None:
    with pytest.raises(InvalidInput, match="size is 0"):
        ParseWorkers(size=0)
    with pytest.raises(InvalidInput, match="deadline_s is 0"):
        ParseWorkers(deadline_s=0.0)


def test_a_worker_takes_local_names_that_are_listed() -> None:
    body = b"<urlset><url><loc>http://wiki/a</loc></url><url><loc>http://other/b</loc></url></urlset>"
    feed = b"<rss version='2.0'><channel><item><link>http://wiki/a</link></item></channel></rss>"
    with ParseWorkers(size=1, deadline_s=PATIENCE_S, rules=address_rules(["wiki"])) as pool:
        assert [entry.url for entry in pool.sitemap(body, "http://wiki/map.xml", NOW).entries] == ["http://wiki/a"]
        assert [entry.url for entry in pool.feed(feed, "http://wiki/feed", NOW).entries] == ["http://wiki/a"]
