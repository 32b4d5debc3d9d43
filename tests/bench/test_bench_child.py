"""Processes beside a measure: whatever they write, they go on, and their last words are told."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from patience import PATIENCE_S
from recrawl.bench.child import child
from recrawl.bench.measure import CannotRun

CHATTY = "import sys; sys.stderr.write('chatter\\n' * 200_000); print(1, flush=True); "
ECHO = "[print(len(line), flush=True) for line in sys.stdin]; print(99)"
SERVED = "from recrawl.bench.web_processes import page_server\nwith page_server() as served: print(served.port > 0)"


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_a_child_that_fills_its_error_output_is_not_held_up() -> None:
    with child("it", python(CHATTY + ECHO), PATIENCE_S) as running:
        assert running.hear() == 1
        assert [running.ask("abc"), running.ask()] == [4, 1]
        running.end()
        assert running.hear() == 99
    assert running.process.returncode == 0


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no address 127.0.1.1")
def test_a_page_server_that_says_much_at_its_start_starts() -> None:
    """Python itself writes a megabyte to its error output here, as it finds its modules."""
    done = subprocess.run(
        python(SERVED),
        env={**os.environ, "PYTHONVERBOSE": "2"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=PATIENCE_S,
        check=True,
        text=True,
    )
    assert done.stdout == "True\n"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise SystemExit('no room left')", "no room left"),
        (CHATTY.replace("print(1, flush=True)", "sys.exit('at last')"), "at last"),
        ("pass", "it said nothing"),
    ],
)
def test_a_child_that_ends_is_told_with_its_last_words(code: str, said: str) -> None:
    with child("the child", python(code), PATIENCE_S) as running:
        running.process.wait(PATIENCE_S)
        with pytest.raises(CannotRun, match=f"^the child ended: {said}$"):
            running.ask("are you there?")


def test_a_child_is_ended_with_its_block() -> None:
    with pytest.raises(ZeroDivisionError), child("it", python("import time; time.sleep(3600)"), 1.0) as running:
        raise ZeroDivisionError
    assert running.process.returncode is not None
