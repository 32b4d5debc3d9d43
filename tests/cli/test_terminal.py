"""What commands share: JSON that is JSON, text that cannot steer a terminal, a bar that stays out of the way."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from recrawl.cli.terminal import clean, print_json, progress


def test_json_has_null_for_numbers_it_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    """NaN and Infinity are not JSON; strict readers fail on them."""
    print_json({"price": float("nan"), "hosts": {3: float("inf")}, "path": Path("a.png"), "list": (1, 2.5)})
    assert capsys.readouterr().out == '{"price": null, "hosts": {"3": null}, "path": "a.png", "list": [1, 2.5]}\n'


def test_text_from_files_cannot_steer_the_terminal() -> None:
    """An escape sequence in a URL could clear the screen or change the window's title."""
    assert clean("a\x1b]0;title\x07\nb") == "a�]0;title��b"
    assert clean("größe 页") == "größe 页"


def test_off_a_terminal_there_is_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    """Logs and pipes get no control characters."""
    with progress("reading") as report:
        report(1, 2)
        report(2, None)
    assert capsys.readouterr() == ("", "")


def on_a_terminal(code: str) -> str:
    """Run Python with a terminal as its stderr, and return what it wrote there."""
    ours, theirs = pty.openpty()
    done = subprocess.run([sys.executable, "-c", code], stderr=theirs, stdout=subprocess.PIPE, check=True)
    os.close(theirs)
    assert done.stdout == b""
    written = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # Linux: the other side is closed
            break
        if not part:
            break
        written += part
    os.close(ours)
    return written.decode()


def test_short_work_shows_no_bar_on_a_terminal() -> None:
    """A bar that flashes up tells nothing."""
    code = "from recrawl.cli.terminal import progress\nwith progress('reading') as report: report(1, 2)"
    assert on_a_terminal(code) == ""


def test_long_work_shows_what_is_being_done() -> None:
    """The bar is fed before and after it appears, and takes itself away at the end."""
    code = (
        "from recrawl.cli.terminal import _Bar\n"
        "bar = _Bar('reading pages.csv'); bar.report(1, 4); bar.show(); bar.report(2, None); bar.close(); bar.show()"
    )
    assert "reading pages.csv" in on_a_terminal(code)
