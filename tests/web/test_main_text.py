"""Main text and Markdown, bounded by a process of its own; a clear sentence where trafilatura is not installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from patience import PATIENCE_S
from recrawl.errors import InvalidInput
from recrawl.extras import is_installed
from recrawl.web.content.main_text import extract, main_text

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
        main_text(PAGE)


def test_importing_the_module_does_not_load_trafilatura() -> None:
    """It is slow to load, and most never need it."""
    code = "import sys, recrawl.web.content.main_text; sys.exit('trafilatura' in sys.modules)"
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
    found = main_text(PAGE, "text/html; charset=utf-8", deadline_s=PATIENCE_S)
    assert (found.text, found.problem) == (extract(PAGE), "")


@installed
@pytest.mark.parametrize("body", [b"", b"\0\xff\xfe", b"<div>" * 50_000, b"<p>" + b"a" * 3_000_000])
def test_any_bytes_are_taken(body: bytes) -> None:
    """None of these has a main text."""
    assert extract(body) == ""


@installed
def test_a_page_that_takes_too_long_is_a_problem_and_no_error() -> None:
    """The deadline is over before the process has even started."""
    found = main_text(PAGE, deadline_s=0.001)
    assert (found.text, found.problem) == ("", "the main text could not be found within 0.001 s")


@installed
@pytest.mark.parametrize(("form", "deadline_s", "field"), [("pdf", 1.0, "form"), ("text", 0.0, "deadline_s")])
def test_bad_arguments_are_refused(form: str, deadline_s: float, field: str) -> None:
    with pytest.raises(InvalidInput, match=field):
        main_text(PAGE, form=form, deadline_s=deadline_s)  # type: ignore[arg-type]
