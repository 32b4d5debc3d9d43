"""Reads hostile documents of one kind in a process of its own and prints the CPU seconds of each as a line of JSON.

    python hostile_documents.py page

Its memory is limited to what it has at first and `ROOM_BYTES`; what needs more dies, and prints nothing.
"""

from __future__ import annotations

import gzip
import json
import random
import resource
import sys
import time
from collections.abc import Callable
from itertools import islice

from patience import cpu_unit_s
from recrawl.lab.livingweb.hostile import gzip_bomb
from recrawl.web.change.digests import digest_page
from recrawl.web.content.charset import as_utf8, read_charset
from recrawl.web.content.links import addresses_of_links
from recrawl.web.content.page import read_page
from recrawl.web.feeds.feed import parse_feed
from recrawl.web.feeds.sitemap import parse_sitemap
from recrawl.web.robots.entry import robots_answer
from recrawl.web.url.address import Address, read_address

ROOM_BYTES = 400 << 20
NOW = 1_700_000_000.0
MB = 1_000_000
_RULES = b"User-agent: *\n"
_LAUGHS = b"<!DOCTYPE urlset [<!ENTITY a 'ha'>" + b"".join(
    b"<!ENTITY %c '%s'>" % (98 + level, b"&%c;" % (97 + level) * 10) for level in range(12)
)


def _letters(count: int) -> bytes:
    return bytes(random.Random(1).choices(range(97, 123), k=count))


PAGES: dict[str, Callable[[], bytes]] = {
    "nesting-of-200-thousand": lambda: b"<div>" * 200_000 + b"deep",
    "nesting-misplaced": lambda: b"<b><div></b>" * 100_000 + b"deep",
    "attribute-of-10-MB": lambda: b"<p title='" + b"x" * (10 * MB) + b"'>deep",
    "name-of-10-MB": lambda: b"<" + b"x" * (10 * MB) + b">deep",
    "comment-of-10-MB": lambda: b"<!--" + b"-" * (10 * MB) + b">deep",
    "script-of-10-MB": lambda: b"<script>" + b"</scrip" * 1_400_000 + b"</script>deep",
    "one-million-links": lambda: b"".join(b"<a href=/%d>" % number for number in range(MB)),
    "one-million-attributes": lambda: b"<p " + b" ".join(b"a%d" % number for number in range(MB)) + b">deep",
    "bait-of-blanks": lambda: b"<p>" + b" " * (5 * MB) + b"\n\t" * (2 * MB) + b"x",
    "bait-of-colons": lambda: b"<meta name=robots content='" + b"a:," * (2 * MB) + b"'>x",
    "bait-of-equals": lambda: b"<meta charset=" * 500_000,
    "bait-of-entities": lambda: b"&" * (5 * MB) + b"&#x110000;" * 100_000,
    "letters": lambda: _letters(10 * MB),
    "words": lambda: _letters(5 * MB).replace(b"e", b" "),
    "broken-utf-8": lambda: b"<p>" + b"\xff\xc0\x80\xed\xa0\x80\xf4\x90" * MB,
    "surrogates": lambda: b"<p>" + b"&#xD800;&#xDFFF;" * 500_000,
    "nul": lambda: b"<p>" + b"\0" * (5 * MB) + b"a\0b",
    "utf-16": lambda: b"\xff\xfe" + "<p>x".encode("utf-16-le") * MB,
    "headers-in-depth": lambda: b"<div>" * 500 + b"<header></header>" * 115_000 + b"deep",
    "images-with-titles": lambda: b"<svg>" + b"<g>" * 400 + b"<title>x</title>" * 100_000 + b"deep",
    "hiding-styles": lambda: b"<p style='display:none'>x</p>" * 70_000 + b"display:none " * 10_000,
    "tables": lambda: b"<table><tr><td>" * 100_000 + b"deep",
    "formatting": lambda: b"<p>" + b"".join(b"<b id=%d>" % n for n in range(5000)) + b"<p>x" * 50_000,
}
SITEMAPS: dict[str, Callable[[], bytes]] = {
    "billion-laughs": lambda: _LAUGHS + b"]><urlset><url><loc>&m;</loc></url></urlset>",
    "token-of-50-MB": lambda: b'<urlset x="' + b"a" * (50 * MB) + b'"></urlset>',
    "text-of-50-MB": lambda: b"<urlset><url><loc>" + b"a" * (50 * MB) + b"</loc></url></urlset>",
    "one-million-entries": lambda: b"<urlset>" + b"<url><loc>https://a.example/x</loc></url>" * MB + b"</urlset>",
    "one-million-lines": lambda: b"".join(b"https://a.example/%d\n" % number for number in range(MB)),
    "one-million-empty-entries": lambda: b"<urlset>" + b"<url/>" * MB,
    "one-million-attributes": lambda: b"<urlset " + b" ".join(b"a%d='1'" % n for n in range(MB)) + b"/>",
    "bomb": lambda: gzip_bomb(200),
    "empty-members": lambda: gzip.compress(b"") * 2_000_000,
    "references": lambda: b"<urlset><url><loc>" + b"&amp;" * (10 * MB),
}
FEEDS: dict[str, Callable[[], bytes]] = {
    "one-hundred-thousand-items": lambda: b"<rss><channel>" + b"<item><guid>a</guid></item>" * 100_000,
    "token-of-9-MB": lambda: b'<rss x="' + b"a" * (9 * MB) + b'"><channel></channel></rss>',
    "deep": lambda: b"<rss><channel>" + b"<a>" * MB,
    "words": lambda: _letters(9 * MB),
    "json-deep": lambda: b'{"version": "https://jsonfeed.org/version/1", "items": ' + b"[" * MB,
    "json-items": lambda: (
        b'{"version": "https://jsonfeed.org/version/1", "items": [' + b'{"id": "1"},' * 500_000 + b"0]}"
    ),
}
ROBOTS: dict[str, Callable[[], bytes]] = {
    "one-hundred-thousand-rules": lambda: _RULES + b"".join(b"Disallow: /%d\n" % n for n in range(100_000)),
    "short-rules": lambda: _RULES + b"Allow:/\n" * 64_000,
    "wildcards": lambda: _RULES + b"Disallow: /" + b"*a" * 240_000 + b"z\n",
    "many-wildcards": lambda: _RULES + b"".join(b"Disallow: /" + b"*a" * 20 + b"z%d$\n" % n for n in range(10_000)),
    "blanks": lambda: _RULES + b"Disallow: /" + b" " * 500_000 + b"x",
    "agents": lambda: b"User-agent: recrawl\n" * 25_000,
    "percent-signs": lambda: _RULES + b"Disallow: /" + b"%41%" * 120_000,
}


def _address(url: str) -> Address:
    read = read_address(url)
    assert isinstance(read, Address)
    return read


def read_hostile_page(body: bytes) -> None:
    """All that a page goes through before it is stored."""
    as_utf8(body, read_charset(body))
    page = read_page(body, "text/html")
    page.text.decode("utf-8")
    assert b"\0" not in page.text
    assert "\0" not in page.metadata.title
    digest_page(body, page)
    assert len(addresses_of_links(page.links, _address("https://a.example/"), page.metadata.base)) <= 10_000


def ask_hostile_robots(body: bytes) -> None:
    """Parse the rules, and ask twenty times."""
    answer = robots_answer(200, body, "recrawl", _address("https://a.example/robots.txt"))
    for number in range(20):
        answer.allows(_address("https://a.example/" + "a" * 2000 + str(number)))


def _sitemap(body: bytes) -> None:
    assert len(parse_sitemap(body, _address("https://a.example/s"), NOW).entries) <= 50_000


def _feed(body: bytes) -> None:
    assert len(parse_feed(body, _address("https://a.example/f"), NOW).entries) <= 5_000


KINDS: dict[str, tuple[dict[str, Callable[[], bytes]], Callable[[bytes], None]]] = {
    "page": (PAGES, read_hostile_page),
    "sitemap": (SITEMAPS, _sitemap),
    "feed": (FEEDS, _feed),
    "robots": (ROBOTS, ask_hostile_robots),
}


def _memory(place: int) -> int:
    with open("/proc/self/statm") as statm:  # noqa: PTH123
        return int(statm.read().split()[place]) * resource.getpagesize()


def _main(kind: str) -> None:
    documents, read = KINDS[kind]
    for _, make in islice(documents.items(), 1):
        read(make())  # imports and compiles
    most = _memory(0) + ROOM_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    unit_s = cpu_unit_s()
    for name, make in documents.items():
        body = make()
        began_s = time.process_time()
        read(body)
        sys.stdout.write(json.dumps([name, (time.process_time() - began_s) / unit_s]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _main(sys.argv[1])
