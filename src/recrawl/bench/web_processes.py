"""The processes of the group `web`: a page server on one core, and a crawler on the other that tells what it took."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, NamedTuple

from recrawl.bench.measure import CannotRun
from recrawl.bench.web_cores import cores

_LONGEST_S = 240


class Served(NamedTuple):
    """A page server that is running: its port, and the figures it gives when it has ended."""

    port: int
    figures: dict[str, float]


@contextmanager
def page_server() -> Iterator[Served]:
    """A page server in a process of its own; when the block ends, it tells its CPU seconds and answers."""
    command = [sys.executable, "-m", "recrawl.bench.page_server", str(cores()[1])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            first = _line(process.stdout)
            if not first:
                process.wait(timeout=10)
                raise CannotRun(f"the page server did not start: {_last(_all(process.stderr))}")
            served = Served(int(first), {})
            yield served
            assert process.stdin is not None
            process.stdin.close()
            served.figures.update(json.loads(_line(process.stdout)))
            process.wait(timeout=10)
        finally:
            process.kill()


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


def _line(stream: IO[bytes] | None) -> str:
    return "" if stream is None else stream.readline().decode().strip()


def _all(stream: IO[bytes] | None) -> bytes:
    return b"" if stream is None else stream.read()


def _last(said: bytes) -> str:
    lines = said.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"
