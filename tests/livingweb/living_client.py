"""A plain HTTP client on asyncio streams for the tests of the living web, and small webs to ask."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from recrawl.lab.livingweb.clock import HandClock
from recrawl.lab.livingweb.server import LivingWeb
from recrawl.lab.livingweb.world import LivingWorld
from recrawl.lab.livingweb.world_settings import WorldSettings

DAY = 86_400.0
_PARAGRAPH = re.compile(rb'<p class="t">(.*?)</p>', re.DOTALL)


@dataclass
class Got:
    """An answer as the client read it."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def said(self) -> bytes:
        """The paragraphs of a page, which are what it says."""
        return b"\n".join(_PARAGRAPH.findall(self.body))


@dataclass
class Client:
    """One connection, kept alive."""

    web: LivingWeb
    clock: HandClock
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    sent: int = field(default=0)

    async def get(self, host: str, target: str, *lines: str, method: str = "GET") -> Got:
        """Ask a host for a target."""
        head = "".join(f"{line}\r\n" for line in (f"Host: {host}:{self.web.port}", *lines))
        self.writer.write(f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode())
        self.sent += 1
        return await self.read(with_body=method != "HEAD")

    async def read(self, *, with_body: bool = True) -> Got:
        first, *rest = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in rest) if name}
        length = int(headers.get("content-length", 0)) if with_body else 0
        return Got(int(first.split(" ")[1]), headers, await self.reader.readexactly(length))

    async def page(self, page: int, *lines: str) -> Got:
        """Ask for a page at the address it has now."""
        host, path = self.web.world.address(page, self.clock())
        return await self.get(self.web.world.hosts[host].name, path.decode(), *lines)

    async def old_page(self, page: int, *lines: str) -> Got:
        """Ask for a page at the address of its birth."""
        return await self.get(self.host_of(page), self.web.world.path(page), *lines)

    async def url(self, url: str) -> Got:
        """Ask for a URL of this web."""
        parts = urlsplit(url)
        assert parts.port == self.web.port
        return await self.get(parts.hostname or "", parts.path + (f"?{parts.query}" if parts.query else ""))

    async def truth(self, target: str) -> Any:
        """Ask the control host."""
        got = await self.get(self.web.answers.control_name, target)
        assert got.status == 200, got.body
        return got.json

    def host_of(self, page: int) -> str:
        host: int = self.web.world.pages.host[page]
        return self.web.world.hosts[host].name


def visit(settings: WorldSettings, talk: Callable[[Client], Awaitable[None]]) -> None:
    """Start a web on loopback with a clock moved by hand, talk to it over one connection, and stop it."""

    async def run() -> None:
        clock = HandClock(float(settings.epoch))
        async with LivingWeb(LivingWorld(settings), clock) as web:
            reader, writer = await asyncio.open_connection("127.0.0.1", web.port)
            try:
                await talk(Client(web, clock, reader, writer))
            finally:
                writer.close()
                await writer.wait_closed()

    asyncio.run(run())


def small(seed: int = 1, *, pages: int = 300, hosts: int = 30, **every_host: Any) -> WorldSettings:
    """A small web; hosts are calm unless said otherwise."""
    return WorldSettings(
        pages=pages, hosts=hosts, seed=seed, kilobytes=3.0, every_host={"trouble": "calm", **every_host}
    )


def host_with(web: LivingWeb, **wanted: Any) -> int:
    """The host with most pages among those of a kind."""
    fitting = [
        number
        for number, host in enumerate(web.world.hosts)
        if all(getattr(host, name) == value for name, value in wanted.items())
    ]
    return max(fitting, key=lambda number: len(web.world.pages_of(number)))
