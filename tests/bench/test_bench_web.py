"""The group `web`: its pages, its server, what a run counts, and its yardstick."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from patience import PATIENCE_S
from recrawl.bench import web
from recrawl.bench.measure import CannotRun, run
from recrawl.bench.page_server import LINKS, PAGE_BYTES, hash_of, page_html, page_path, page_url
from recrawl.bench.web_cores import cores
from recrawl.bench.web_processes import page_server, run_crawler
from recrawl.extras import is_installed
from recrawl.web.content.links import addresses_of_links
from recrawl.web.content.page import read_page
from recrawl.web.url.address import address_or_raise

needs_loopback = pytest.mark.skipif(sys.platform != "linux", reason="other systems have no address 127.0.1.1")
needs_scrapy = pytest.mark.skipif(not is_installed("scrapy"), reason="the yardstick is installed by make bench")


def our_links(variant: int, url: str) -> set[str]:
    page = read_page(page_html(variant), "text/html; charset=utf-8")
    return set(addresses_of_links(page.links, address_or_raise(url, field="url"), page.metadata.base))


@pytest.mark.parametrize("variant", [0, 1, 50, 96])
def test_a_page_has_its_size_its_links_and_text(variant: int) -> None:
    page = read_page(page_html(variant), "text/html; charset=utf-8")
    assert len(page_html(variant)) == PAGE_BYTES
    assert len(page.links) == LINKS
    assert len(our_links(variant, page_url(8080, 7))) == LINKS
    assert len(page.text) > PAGE_BYTES // 2


def test_pages_differ_and_stay_the_same() -> None:
    assert page_html(3) == page_html(3)
    assert page_html(3) != page_html(4)
    assert len({hash_of(page_path(number).encode()) for number in range(1000)}) == 1000


def test_client_and_server_never_share_a_core_that_was_chosen() -> None:
    client, server = cores()
    assert client != server or client == server == -1


@needs_loopback
def test_a_run_counts_its_pages_and_the_server_its_answers() -> None:
    """Answers are those of the timed pages, of the pages before them, and of one robots.txt for each host."""
    with page_server() as served:
        found = run_crawler(web.OURS, served.port, 100)
    assert found["pages"] == 100
    assert 0 < found["cpu_s"] < 60
    assert found["bytes_late"] > 10_000_000
    assert served.figures["answers"] == 100 + 640 + 64


@needs_loopback
def test_a_crawler_that_fails_is_a_measure_that_cannot_run() -> None:
    with pytest.raises(CannotRun, match="ended with code 1"):
        run_crawler(web.OURS, 1, 10)


@needs_loopback
@needs_scrapy
def test_every_measure_of_speed_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "RUNS", 1)
    for each in web.measures(web.Sizes(ours=128, scrapy=64, memory=300))[:4]:
        result = run(each)
        assert result.reason is None
        assert result.reading is not None
        assert result.reading.value > 0


@needs_loopback
def test_without_scrapy_the_race_is_listed_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "RUNS", 1)
    monkeypatch.setitem(sys.modules, "scrapy", None)
    speed, cost, *_ = web.measures(web.Sizes(ours=64, scrapy=64, memory=64))
    document = run(speed).as_json()
    assert document["holds"] is False
    assert "pip install 'recrawl[bench]'" in document["reason"]
    assert run(cost).reason is None


@needs_scrapy
def test_the_yardstick_finds_the_links_that_recrawl_finds() -> None:
    """In a process of its own: the warnings of other people's packages are no errors of ours."""
    url = page_url(8080, 7)
    script = (
        "import json; from scrapy.http import HtmlResponse; from recrawl.bench.page_server import page_html\n"
        "from recrawl.bench.web_scrapy import link_extractor\n"
        f"response = HtmlResponse({url!r}, body=page_html(5), encoding='utf-8')\n"
        "print(json.dumps([link.url for link in link_extractor()(response)]))"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, timeout=PATIENCE_S).stdout
    assert set(json.loads(said)) == our_links(5, url)
