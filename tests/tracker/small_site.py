"""A small web on loopback that does as it is told and remembers who asked for what, and when."""

from __future__ import annotations

import asyncio
import re
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

from loopback_server import LoopbackServer

from recrawl.web.fetch.egress import EgressPolicy, egress_policy

Answer = str | bytes | int | tuple[int, dict[str, str], bytes]
Page = Answer | None
"""A body, a status, or both with headers; None closes the connection without an answer."""


@dataclass(slots=True)
class Asked:
    """One request as the server saw it."""

    host: str
    path: str
    headers: dict[str, str]
    at: float
    body: bytes = b""


@dataclass(slots=True)
class Site(LoopbackServer):
    """Answers by path, or by host and path; what is not named is 404."""

    answers: dict[str, Page | Callable[[Asked], Page]] = field(default_factory=dict)
    log: list[Asked] = field(default_factory=list)

    @property
    def egress(self) -> EgressPolicy:
        """What a crawler must set to reach it, as any user could."""
        return egress_policy(allow={"site": f"127.0.0.1/32:{self.port}"}, resolve={"*.site.test": "127.0.0.1"})

    def url(self, path: str, host: str = "a") -> str:
        return f"http://{host}.site.test:{self.port}{path}"

    def asked_for(self, path: str) -> list[Asked]:
        return [each for each in self.log if each.path == path]

    def gaps(self) -> dict[str, list[float]]:
        """Seconds between requests, by host."""
        times = defaultdict(list)
        for each in self.log:
            times[each.host].append(each.at)
        return {host: [later - sooner for sooner, later in pairwise(seen)] for host, seen in times.items()}

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                length = re.search(r"content-length: ([0-9]+)", head.lower())
                answer = self._answer(head, await reader.readexactly(int(length[1])) if length else b"")
                if answer is None:
                    return
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            self._open.discard(writer)
            writer.close()

    def _answer(self, head: str, body: bytes) -> bytes | None:
        first, *lines = head.split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}
        path = first.split(" ")[1]
        host = headers["host"].partition(".")[0]
        asked = Asked(host, path, headers, time.monotonic(), body)
        self.log.append(asked)
        found = self.answers.get(f"{host}{path}", self.answers.get(path, 404))
        page = found(asked) if callable(found) else found
        return None if page is None else _response(page)


def _response(page: Answer) -> bytes:
    if isinstance(page, tuple):
        status, headers, body = page
    elif isinstance(page, int):
        status, headers, body = page, {}, b"" if page == 304 else b"<p>nothing here</p>"
    else:
        body = page if isinstance(page, bytes) else page.encode()
        status, headers = 200, {"Content-Type": "text/html; charset=utf-8"}
    lines = [f"HTTP/1.1 {status} whatever", *(f"{name}: {value}" for name, value in headers.items())]
    lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
