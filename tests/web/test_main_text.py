"""Main text and Markdown, bounded by a process of its own; a clear sentence where trafilatura is not installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from patience import PATIENCE_S
from recrawl.errors import InvalidInput
from recrawl.extras import is_installed
from recrawl.web.content.main_text import extract, guarded
from recrawl.web.workers import ParseWorkers

SENTENCE = "The lamp of brass has stood in the window of the shop since the first day of the war. "
PAGE = (
    "<html><head><title>Lamp</title></head><body><nav><a href=/>Home</a><a href=/all>All lamps</a></nav>"
    f"<article><h1>The lamp</h1><p>{SENTENCE * 4}</p><h2>Its price</h2><p>It costs 12 €, as it did. {SENTENCE * 3}</p>"
    f"<ul><li>brass and glass</li><li>two bulbs</li></ul><p>{SENTENCE * 3}</p></article>"
    "<footer>Imprint and cookies</footer></body></html>"
).encode()

installed = pytest.mark.skipif(not is_installed("trafilatura"), reason="trafilatura is not installed")


def test_without_trafilatura_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    assert not is_installed("trafilatura")
    with pytest.raises(
        InvalidInput,
        match=r"main text needs trafilatura, which is not installed; call pip install 'recrawl\[markdown\]'",
    ):
        ParseWorkers().main_text(PAGE)


@pytest.mark.parametrize("library", ["trafilatura", "numba", "aiohttp", "feedparser"])
def test_a_parse_process_starts_without_what_is_slow_to_load(library: str) -> None:
    """Most files need none of these."""
    code = f"import sys, recrawl.web.workers; sys.exit({library!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@installed
def test_markdown_keeps_headings_and_lists_and_leaves_the_frame_out() -> None:
    text = extract(PAGE)
    assert "# The lamp" in text
    assert "## Its price" in text
    assert "- brass and glass" in text
    assert "12 €" in text
    assert "Imprint" not in text
    assert "All lamps" not in text


@installed
def test_plain_text_has_no_markup() -> None:
    assert "#" not in extract(PAGE, "text")


@installed
def test_another_process_finds_the_same_text() -> None:
    with ParseWorkers(deadline_s=PATIENCE_S) as workers:
        found = workers.main_text(PAGE, "text/html; charset=utf-8")
        assert (found.text, found.problem) == (extract(guarded(PAGE)), "")
        assert "#" not in workers.main_text(PAGE, form="text").text


@installed
@pytest.mark.parametrize("body", [b"", b"\0\xff\xfe", b"<div>" * 50_000, b"<p>" + b"a" * 3_000_000])
def test_any_bytes_are_taken(body: bytes) -> None:
    """None of these has a main text."""
    assert extract(guarded(body)) == ""


@installed
def test_a_page_that_takes_too_long_is_a_problem_and_no_error() -> None:
    """The deadline is over before the process has even started."""
    with ParseWorkers(deadline_s=0.001) as workers:
        found = workers.main_text(PAGE)
    assert found == ("", "the main text could not be found within 0.001 s and the memory of a worker")


@installed
def test_another_form_is_refused() -> None:
    with pytest.raises(InvalidInput, match="form is 'pdf'"):
        ParseWorkers().main_text(PAGE, form="pdf")  # type: ignore[arg-type]
