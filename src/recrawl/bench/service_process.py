"""A service in a process of its own, for the measures of the group `service`, and requests to it over loopback."""

from __future__ import annotations

import http.client
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from recrawl.bench.child import Child, child
from recrawl.bench.measure import CannotRun

_ANSWER_S = 60.0
_END_S = 60.0


class Asking:
    """One connection to a service, kept open.

    Args:
        address: of the service.
        token: to show.
    """

    def __init__(self, address: str, token: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=_ANSWER_S)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def ask(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """The body of an answer; any but 200 ends the measure."""
        self._connection.request(method, path, body, self._headers)
        answer = self._connection.getresponse()
        said = answer.read()
        if answer.status != 200:
            raise CannotRun(f"{path} was answered with {answer.status}: {said[:200].decode('utf-8', 'replace')}")
        return said

    def close(self) -> None:
        """End the connection."""
        self._connection.close()


@dataclass(frozen=True, slots=True)
class Served:
    """A service that runs.

    Args:
        process: it.
        address: where it listens.
        token: that may read and fetch.
        page: the id of a page that has a history, if any has.
    """

    process: Child
    address: str
    token: str
    page: int

    def cpu_s(self) -> float:
        """CPU seconds that it took so far, all threads."""
        return float(self.process.ask()["cpu_s"])

    @contextmanager
    def asking(self) -> Iterator[Asking]:
        """A connection to it."""
        with closing(Asking(self.address, self.token)) as connection:
            yield connection


@contextmanager
def served(folder: Path, pages: int, sights: int) -> Iterator[Served]:
    """Serve a store for the length of a block; see `service_server.py`."""
    command = [sys.executable, "-m", "recrawl.bench.service_server", str(folder), str(pages), str(sights)]
    with child("the service", command, _END_S) as process:
        yield Served(process, **process.hear())
