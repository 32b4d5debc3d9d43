"""The processes of the group `web`: a page server on one core, and a crawler on the other that tells what it took."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from recrawl.bench.child import child
from recrawl.bench.measure import CannotRun
from recrawl.bench.web_cores import cores

_LONGEST_S = 240
_END_S = 60.0


class Served(NamedTuple):
    """A page server that is running: its port, and the figures it gives when it has ended."""

    port: int
    figures: dict[str, float]


@contextmanager
def page_server() -> Iterator[Served]:
    """A page server in a process of its own; when the block ends, it tells its CPU seconds and answers."""
    command = [sys.executable, "-m", "recrawl.bench.page_server", str(cores()[1])]
    with child("the page server", command, _END_S) as process:
        served = Served(process.hear(), {})
        yield served
        process.end()
        served.figures.update(process.hear())


def run_crawler(module: str, port: int, pages: int) -> dict[str, Any]:
    """Crawl so many pages with a module of this room, in a fresh process on one core; what it printed."""
    command = [sys.executable, "-m", module, str(port), str(pages), str(cores()[0])]
    try:
        child = subprocess.run(command, capture_output=True, timeout=_LONGEST_S, check=False)
    except subprocess.TimeoutExpired:
        raise CannotRun(f"{pages} pages took {module} over {_LONGEST_S} s") from None
    if child.returncode != 0:
        raise CannotRun(f"{module} ended with code {child.returncode}: {_last(child.stderr)}")
    document: dict[str, Any] = json.loads(child.stdout)
    return document


def _last(said: bytes) -> str:
    lines = said.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"
