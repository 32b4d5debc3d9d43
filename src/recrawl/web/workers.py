"""Parse foreign files in another process with a deadline: what takes too long is killed and costs nothing else.

    with ParseWorkers(size=1, deadline_s=20.0) as workers:
        sitemap = workers.sitemap(body, "https://example.com/sitemap.xml", now)
        feed = workers.feed(body, "https://example.com/feed", now)
        text = workers.main_text(body, "text/html", "markdown")

Calls block; from asyncio, run them in a thread. Each worker is a plain Python process that reads requests from its
standard input and answers on its standard output, with limited memory. Nothing but JSON of the expected type comes back
from it, so a parser that was taken over by its input still cannot reach into this process.
"""

from __future__ import annotations

import contextlib
import struct
import subprocess
import sys
import threading
from queue import LifoQueue
from types import TracebackType
from typing import IO, Literal, TypeVar

import msgspec

from recrawl.errors import InvalidInput
from recrawl.web.content.main_text import Form, MainText, check_form, extract, guarded
from recrawl.web.feeds.feed import Feed, parse_feed
from recrawl.web.feeds.sitemap import Sitemap, parse_sitemap
from recrawl.web.url.address import DEFAULT_RULES, STORED_RULES, AddressRules, address_or_raise

_MEMORY_BYTES = 1 << 30
_COMMAND: tuple[str, ...] = (sys.executable, "-m", "recrawl.web.workers")
_HEADER = struct.Struct(">II")
Result = TypeVar("Result")


class Request(msgspec.Struct):
    """What a worker is asked to do with the body that follows."""

    task: Literal["sitemap", "feed", "main-text"]
    url: str = ""
    now: float = 0.0
    local_names: tuple[str, ...] = ()
    form: Form = "markdown"


class ParseWorkers:
    """A pool of parsing processes, started when first needed and replaced when killed.

    Args:
        size: how many parse at once.
        deadline_s: the time one file may take, in seconds, the start of a process included.
        rules: which addresses may be named.
    """

    def __init__(self, size: int = 1, deadline_s: float = 20.0, rules: AddressRules = DEFAULT_RULES) -> None:
        if size < 1:
            raise InvalidInput(f"is {size}, but must be at least 1", field="size")
        if not deadline_s > 0:
            raise InvalidInput(f"is {deadline_s}, but must be above 0", field="deadline_s")
        self._deadline_s = deadline_s
        self._local_names = tuple(sorted(rules.local_names))
        self._idle: LifoQueue[_Worker] = LifoQueue()
        self._workers = [_Worker() for _ in range(size)]
        for worker in self._workers:
            self._idle.put(worker)

    def sitemap(self, body: bytes, url: str, now: float) -> Sitemap:
        """`parse_sitemap` within the deadline; a sitemap with a problem if it was not met."""
        found = self._run(Sitemap, Request("sitemap", url, now, self._local_names), body)
        return found or Sitemap("none", (), self._missed("the file could not be parsed"))

    def feed(self, body: bytes, url: str, now: float) -> Feed:
        """`parse_feed` within the deadline; a feed with a problem if it was not met."""
        found = self._run(Feed, Request("feed", url, now, self._local_names), body)
        return found or Feed((), self._missed("the file could not be parsed"))

    def main_text(self, body: bytes, content_type: str | None = None, form: Form = "markdown") -> MainText:
        """The main text of a page within the deadline.

        Args:
            body: the decoded body of the answer; at most 2 MiB are read.
            content_type: the `Content-Type` header, None if there was none.
            form: `markdown` keeps headings, lists, tables and links.

        Raises:
            InvalidInput: for another form, or if trafilatura is not installed.
        """
        check_form(form)
        found = self._run(str, Request("main-text", form=form), guarded(body, content_type))
        if found is None:
            return MainText("", self._missed("the main text could not be found"))
        return MainText(found, "" if found else "the page has no main text")

    def close(self) -> None:
        """Kill all processes; a caller that still waits for an answer gets a problem."""
        for worker in self._workers:
            worker.kill()

    def __enter__(self) -> ParseWorkers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _missed(self, what: str) -> str:
        return f"{what} within {self._deadline_s:g} s and the memory of a worker"

    def _run(self, kind: type[Result], request: Request, body: bytes) -> Result | None:
        worker = self._idle.get()
        try:
            return msgspec.json.decode(worker.ask(msgspec.json.encode(request), body, self._deadline_s), type=kind)
        except (OSError, EOFError, ValueError):  # killed, or no answer of this type
            worker.kill()
            return None
        finally:
            self._idle.put(worker)


class _Worker:
    """One process, or none yet."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, request: bytes, body: bytes, deadline_s: float) -> bytes:
        """Return the reply to one request; raise OSError or EOFError if there was none in time."""
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        # The timer kills the process, and with it every read and write that waits for it.
        timer = threading.Timer(deadline_s, process.kill)
        timer.start()
        try:
            send(process.stdin, request, body)
            return receive(process.stdout)[0]
        finally:
            timer.cancel()

    def kill(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self.kill()
        if self._process is None:
            self._process = subprocess.Popen(
                _COMMAND,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                close_fds=True,
            )
        return self._process


def send(stream: IO[bytes], header: bytes, body: bytes) -> None:
    """Write a JSON header and a body, each with its length before it."""
    stream.write(_HEADER.pack(len(header), len(body)))
    stream.write(header)
    stream.write(body)
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[bytes, bytes]:
    """Read what `send` wrote.

    Raises:
        EOFError: if the other side is gone.
    """
    header_bytes, body_bytes = _HEADER.unpack(_exactly(stream, _HEADER.size))
    return _exactly(stream, header_bytes), _exactly(stream, body_bytes)


def answer(request: bytes, body: bytes) -> bytes:
    """Return what a worker replies to one request: the parsed file as JSON."""
    asked = msgspec.json.decode(request, type=Request)
    if asked.task == "main-text":
        return msgspec.json.encode(extract(body, asked.form))
    base = address_or_raise(asked.url, field="url", rules=STORED_RULES)  # it was let in and fetched
    parse = parse_feed if asked.task == "feed" else parse_sitemap
    return msgspec.json.encode(parse(body, base, asked.now, AddressRules(local_names=frozenset(asked.local_names))))


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """The life of a worker: answer until the other side is gone."""
    while True:
        try:
            request, body = receive(requests)
        except EOFError:
            return
        send(answers, answer(request, body), b"")


def _exactly(stream: IO[bytes], count: int) -> bytes:
    data = stream.read(count)
    if len(data) != count:
        raise EOFError
    return data


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # no such limits on Windows; the deadline still holds
        return
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))


if __name__ == "__main__":
    _limit_memory()
    serve(sys.stdin.buffer, sys.stdout.buffer)
