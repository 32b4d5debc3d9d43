"""A web of plain pages for the group `web`: a process of its own that answers faster than any client can ask.

    python -m recrawl.bench.page_server    prints its port, serves until its input ends, prints what that took

The hosts are 127.0.1.1 to 127.0.1.64, all on one port, of this machine alone. Every path but `/robots.txt` is a page
of exactly `PAGE_BYTES` with `LINKS` links, half of it text, the rest markup, style and script. Answers are made
beforehand; all that is read of a request is its first line. It listens and never dials.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import cast

from recrawl.bench.web_cores import pin_to

PAGE_BYTES = 10_240
LINKS = 20
HOSTS = 64
_VARIANTS = 97  # pages that differ; a path has always the same one
_TRIES = 20
_WORDS = (  # noqa: SIM905  # a list of them would fill a page
    "water river market winter letter garden music paper island history village doctor summer engine bridge silver "
    "window forest captain teacher morning evening mountain library company station holiday kitchen journey science"
).split()
_RULES = b"User-agent: *\nDisallow: /private/\nDisallow: /*?sort=\nAllow: /private/open\n"


def page_path(number: int) -> str:
    """The path of a page on any host.

    >>> page_path(7)
    '/news/7/page.html'
    """
    return f"/news/{number}/page.html"


def page_url(port: int, number: int) -> str:
    """The address of a page; the hosts take turns.

    >>> page_url(8080, 66)
    'http://127.0.1.3:8080/news/66/page.html'
    """
    return f"http://127.0.1.{number % HOSTS + 1}:{port}{page_path(number)}"


def page_html(variant: int) -> bytes:
    """A page of exactly `PAGE_BYTES`: head, navigation, an article with paragraphs and links, an aside, a footer."""
    chance = random.Random(variant)
    links = _links(chance)
    head = (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{_words(chance, 6)}</title>'
        f'<meta name="description" content="{_words(chance, 20)}">'
        '<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="/main.css">'
        f"<style>{_styles(chance)}</style><script>{_script(chance)}</script></head>"
    )
    menu = "".join(f"<li>{next(links)}</li>" for _ in range(6))
    start = f'{head}<body class="page"><header><h1>{_words(chance, 5)}</h1></header><nav><ul>{menu}</ul></nav>'
    aside = "".join(f'<li class="more">{next(links)}</li>' for _ in range(4))
    end = f"</article></main><aside><ul>{aside}</ul></aside><footer><p>{next(links)} {next(links)}</p></footer>"
    text = start + '<main><article id="story">'
    paragraphs = [f"<p>{_words(chance, 20)} {link}, {_words(chance, 12)}.</p>\n" for link in links]
    text += "".join(paragraphs)
    room = PAGE_BYTES - len(text) - len(end) - len("<p></p></body></html>")
    return f"{text}<p>{_text(chance, room)}</p>{end}</body></html>".encode("ascii")


def _links(chance: random.Random) -> Iterator[str]:
    for number in range(LINKS):
        page = chance.randrange(100_000)
        elsewhere = f"https://www{page % 100}.example.org/{page}"
        href = (page_path(page), f"../{page}/page.html", f"page.html?part={number}", elsewhere)[number % 4]
        yield f'<a class="link" href="{href}">{_words(chance, 3)}</a>'


def _styles(chance: random.Random) -> str:
    return "".join(f".{word}{{margin:0 auto;padding:{number}px}}\n" for number, word in enumerate(_pick(chance, 30)))


def _script(chance: random.Random) -> str:
    names, values = _pick(chance, 90), _pick(chance, 90)
    pairs = (f'"{name}{number}":"{values[number]}"' for number, name in enumerate(names))
    return f"window.settings={{{','.join(pairs)}}};"


def _pick(chance: random.Random, count: int) -> list[str]:
    return chance.choices(_WORDS, k=count)


def _words(chance: random.Random, count: int) -> str:
    return " ".join(_pick(chance, count))


def _text(chance: random.Random, length: int) -> str:
    """Words of exactly so many characters, none of them white space at an end."""
    return _words(chance, length // 4)[: length - 1].ljust(length, "s")


def answer(body: bytes, kind: str, variant: int) -> bytes:
    """Head and body as they go over the wire."""
    head = (
        "HTTP/1.1 200 OK\r\nServer: pages\r\nDate: Mon, 01 Jun 2026 12:00:00 GMT\r\n"
        f"Content-Type: {kind}; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
        f'ETag: "v{variant}"\r\nLast-Modified: Mon, 01 Jun 2026 10:00:00 GMT\r\n'
        "Cache-Control: max-age=600\r\nVary: Accept-Encoding\r\nConnection: keep-alive\r\n\r\n"
    )
    return head.encode("ascii") + body


class _Pages(asyncio.Protocol):
    """One connection: a request is what ends with an empty line; several may come at once."""

    def __init__(self, answers: Sequence[bytes], robots: bytes, count: Counter[str]) -> None:
        self._answers = answers
        self._robots = robots
        self._waiting = b""
        self._count = count
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transports are of no class of asyncio

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        *requests, self._waiting = (self._waiting + data).split(b"\r\n\r\n")
        self._count["answers"] += len(requests)
        for request in requests:
            self._transport.write(self._answer(request))

    def _answer(self, request: bytes) -> bytes:
        if request.startswith(b"GET /robots.txt "):
            return self._robots
        return self._answers[hash_of(request[4 : request.find(b" ", 4)]) % len(self._answers)]


def hash_of(path: bytes) -> int:
    """A number for a path, the same in every process."""
    return int.from_bytes(path[-16:], "big")


async def listen(hosts: Sequence[str], count: Counter[str]) -> tuple[asyncio.Server, ...]:
    """Listen on all hosts at one port that is free on each of them, and count the answers."""
    loop = asyncio.get_running_loop()
    answers = [answer(page_html(variant), "text/html", variant) for variant in range(_VARIANTS)]
    robots = answer(_RULES, "text/plain", 0)

    def connection() -> _Pages:
        return _Pages(answers, robots, count)

    for _ in range(_TRIES):
        first = await loop.create_server(connection, hosts[0], 0, backlog=1024)
        port = first.sockets[0].getsockname()[1]
        try:
            rest = await loop.create_server(connection, hosts[1:], port, backlog=1024) if hosts[1:] else None
        except OSError:  # the port is taken on another host
            first.close()
            continue
        return (first,) if rest is None else (first, rest)
    raise OSError(f"no port is free on all of {hosts[0]} to {hosts[-1]}")


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    count: Counter[str] = Counter()
    servers = await listen([f"127.0.1.{number + 1}" for number in range(HOSTS)], count)
    cpu_s = time.process_time()
    sys.stdout.write(f"{servers[0].sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await loop.run_in_executor(None, sys.stdin.read)  # ends when whoever started it closes the pipe or is gone
    for server in servers:
        server.close()
    sys.stdout.write(json.dumps({"answers": count["answers"], "cpu_s": time.process_time() - cpu_s}) + "\n")


def _main(core: str = "-1") -> None:
    from recrawl._event_loop import run

    pin_to(int(core))
    run(_serve())


if __name__ == "__main__":
    _main(*sys.argv[1:])
