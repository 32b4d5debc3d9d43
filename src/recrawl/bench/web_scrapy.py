"""The yardstick of the group `web`: Scrapy fetching the same pages and extracting their links, in its own process.

    python -m recrawl.bench.web_scrapy 40001 20000    prints what it took as one line of JSON

Robots and delays are switched off, 64 requests run at once, on one host as on all, and nothing is logged. Everything
else is Scrapy's default. A page's links are taken by its own `LinkExtractor`, which makes each of them an address;
no request follows from them. Only this file imports Scrapy, and nothing imports this file.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import AsyncIterator, Callable
from importlib import import_module
from typing import Any

from recrawl.bench.page_server import HOSTS, LINKS, PAGE_BYTES, page_url
from recrawl.bench.web_cores import pin_to

AT_ONCE = 64
SETTINGS = {
    "ROBOTSTXT_OBEY": False,
    "DOWNLOAD_DELAY": 0,
    "CONCURRENT_REQUESTS": AT_ONCE,
    "CONCURRENT_REQUESTS_PER_DOMAIN": AT_ONCE,
    "LOG_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
}


def crawl(port: int, pages: int) -> dict[str, Any]:
    """Fetch so many pages and take their links; as many pages as there are hosts come before, untimed."""
    scrapy: Any = import_module("scrapy")
    crawler: Any = import_module("scrapy.crawler")
    links_of = link_extractor()
    done, cpu_s, clock_s = 0, 0.0, 0.0

    async def start(_: Any) -> AsyncIterator[Any]:
        for number in range(HOSTS + pages):
            yield scrapy.Request(page_url(port, number))

    def parse(_: Any, response: Any) -> None:
        nonlocal done, cpu_s, clock_s
        if len(links_of(response)) != LINKS or len(response.body) != PAGE_BYTES:
            raise ValueError(f"{response.url} did not come whole")
        done += 1
        if done == HOSTS:
            cpu_s, clock_s = time.process_time(), time.monotonic()
        elif done == HOSTS + pages:
            cpu_s, clock_s = time.process_time() - cpu_s, time.monotonic() - clock_s

    spider = type("Pages", (scrapy.Spider,), {"name": "pages", "start": start, "parse": parse})
    process = crawler.CrawlerProcess(SETTINGS)
    process.crawl(spider)
    process.start()
    if done != HOSTS + pages:
        raise ValueError(f"{done} of {HOSTS + pages} pages came")
    return {"pages": pages, "cpu_s": cpu_s, "clock_s": clock_s}


def link_extractor() -> Callable[[Any], list[Any]]:
    """Scrapy's own way to the links of a page."""
    extract: Callable[[Any], list[Any]] = import_module("scrapy.linkextractors").LinkExtractor().extract_links
    return extract


def _main(port: str, pages: str, core: str = "-1") -> None:
    pin_to(int(core))
    sys.stdout.write(json.dumps(crawl(int(port), int(pages))) + "\n")


if __name__ == "__main__":
    _main(*sys.argv[1:])
