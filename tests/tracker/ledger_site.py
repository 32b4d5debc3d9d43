"""A small web on loopback that keeps a ledger: every request, and every event that was posted to it, by its id.

Pages change while it is not `frozen`. A body goes out in two halves, so that a crawler can die between them. Outside
fetchers say who they are, and under which lease they ask.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from loopback_server import LoopbackServer

HOOK = "/hook"
WORKER, TOKEN = "x-worker", "x-token"
"""Headers of outside fetchers."""
_WORDS = ("rain", "wind", "snow", "frost", "mist", "dew", "hail", "sun", "cloud", "storm", "river", "lake", "hill")


class Borrowed(NamedTuple):
    """A request of an outside fetcher."""

    worker: str
    token: int
    url: str


@dataclass(slots=True)
class LedgerSite(LoopbackServer):
    """Answers any page of any host with a text of its own, and robots.txt with rules that allow all.

    Args:
        fetches_a_change: a page changes after so many requests.
        frozen: nothing changes any more.
    """

    fetches_a_change: int = 2
    frozen: bool = False
    log: list[tuple[str, str, float]] = field(default_factory=list)
    asked: Counter[str] = field(default_factory=Counter)
    borrowed: list[Borrowed] = field(default_factory=list)
    delivered: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    _edition: Counter[str] = field(default_factory=Counter)

    def url(self, host: str, path: str) -> str:
        return f"http://{host}.site.test:{self.port}{path}"

    def smallest_gap_s(self, host: str) -> float:
        """Between two requests to a host, robots.txt and all."""
        times = defaultdict(list)
        for name, _, at in self.log:
            times[name].append(at)
        return min((later - sooner for sooner, later in pairwise(times[host])), default=float("inf"))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                first, *lines = head.split("\r\n")
                headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                answer = self._answer(first.split(" ")[1], headers, body)
                half = len(answer) - len(answer) // 4
                writer.write(answer[:half])
                await writer.drain()
                await asyncio.sleep(0)
                writer.write(answer[half:])
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            self._open.discard(writer)
            writer.close()

    def _answer(self, path: str, headers: dict[str, str], body: bytes) -> bytes:
        host = headers["host"].partition(".")[0]
        if path == HOOK:
            self.delivered.append((headers["webhook-id"], json.loads(body)))
            return _response(b"", "text/plain")
        self.log.append((host, path, time.monotonic()))
        if path == "/robots.txt":
            return _response(b"User-agent: *\nAllow: /\n", "text/plain")
        url = self.url(host, path)
        self.asked[url] += 1
        if WORKER in headers:
            self.borrowed.append(Borrowed(headers[WORKER], int(headers[TOKEN]), url))
        if not self.frozen and self.asked[url] % self.fetches_a_change == 0:
            self._edition[url] += 1
        return _response(_page(f"{host}{path}", self._edition[url]), "text/html; charset=utf-8")


def _page(name: str, edition: int) -> bytes:
    """A page whose words are others in every edition, the same for every run."""
    words = random.Random(f"{name} {edition}").choices(_WORDS, k=60)
    return f"<html><body><h1>{name} {edition}</h1><p>{' '.join(words)}</p></body></html>".encode()


def _response(body: bytes, content_type: str) -> bytes:
    lines = ["HTTP/1.1 200 OK", f"Content-Type: {content_type}", f"Content-Length: {len(body)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
