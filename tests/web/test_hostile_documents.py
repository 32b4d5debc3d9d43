"""Hostile pages, sitemaps, feeds and robots rules: each is read within its time and its memory."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hostile_documents import FEEDS, KINDS, PAGES, read_hostile_page
from webencodings import LABELS

from patience import ENVIRONMENT, PATIENCE_S, cpu_unit_s
from recrawl.jit import running
from recrawl.web.content.charset import read_charset
from recrawl.web.content.page import read_page
from recrawl.web.workers import ParseWorkers

NOW = 1_700_000_000.0
INTERPRETED_BYTES = 64 * 1024
# In units of CPU (`patience.cpu_unit_s`); most take a hundredth of that. What is not bounded takes ten thousands.
MOST_CPU_UNITS = {"page": 150, "sitemap": 500, "feed": 500, "robots": 500}


@pytest.mark.skipif(sys.platform != "linux", reason="the limit on memory is a Linux one")
@pytest.mark.parametrize("kind", KINDS)
def test_hostile_documents_are_read_in_bounded_time_and_memory(kind: str) -> None:
    done = subprocess.run(
        [sys.executable, "hostile_documents.py", kind],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        cwd=Path(__file__).parent,
        env=ENVIRONMENT,
    )
    took = dict(map(json.loads, done.stdout.splitlines()))
    assert took.keys() == KINDS[kind][0].keys(), done.stderr
    assert {name: units for name, units in took.items() if units > MOST_CPU_UNITS[kind]} == {}


@pytest.mark.parametrize("name", PAGES)
def test_hostile_pages_as_large_as_are_interpreted_are_read_in_bounded_time(name: str) -> None:
    """Larger bodies wait until kernels are compiled."""
    body, unit_s = PAGES[name]()[:INTERPRETED_BYTES], cpu_unit_s()
    with running("interpreted"):
        began_s = time.process_time()
        read_hostile_page(body)
        assert time.process_time() - began_s < MOST_CPU_UNITS["page"] * unit_s


def test_a_feed_that_would_take_minutes_is_ended_at_the_deadline_and_the_next_one_is_read() -> None:
    """Eighty thousand attributes, and no XML: feedparser compares each with each."""
    body = b"<rss " + b" ".join(b"a%d='1'" % number for number in range(80_000)) + b"><channel>&nbsp;</rss>"
    with ParseWorkers(size=1, deadline_s=1.0) as workers:
        assert "could not be parsed within 1 s" in (workers.feed(body, "https://a.example/f", NOW).problem or "")
        workers._deadline_s = PATIENCE_S
        assert workers.feed(FEEDS["one-hundred-thousand-items"](), "https://a.example/f", NOW).entries


NAMES = [
    "utf-7", "utf7", "unicode_escape", "raw_unicode_escape", "punycode", "idna", "zlib", "bz2", "base64", "hex",
    "rot13", "uu", "quopri", "mbcs", "undefined", "utf\0-8", "\0", "utf-8\r\nX: y", "../../etc/passwd", "os.system",
    "x" * 1000, "utf-8;" * 1000, "\u0131so-8859-1", "utf_8_sig", "cp65001", "hz", "iso-2022-kr",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("place", ["header", "meta", "http-equiv", "xml"])
def test_an_encoding_by_any_name_is_one_of_the_standard_or_none(name: str, place: str) -> None:
    text = {
        "header": "<p>grün",
        "meta": f"<meta charset='{name}'><p>grün",
        "http-equiv": f"<meta http-equiv=content-type content='text/html; charset={name}'><p>grün",
        "xml": f"<?xml version='1.0' encoding='{name}'?><p>grün",
    }[place]
    header = f"text/html; charset={name}" if place == "header" else "text/html"
    body = text.encode("utf-8", "replace")
    assert read_charset(body, header).name in set(LABELS.values())
    assert read_page(body, header).text.decode("utf-8") is not None
