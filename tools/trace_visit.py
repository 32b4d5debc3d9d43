"""Print the files and records that one page passes from `recrawl add` to the commit of its change.

    python tools/trace_visit.py             the way to the commit
    python tools/trace_visit.py --sink      and on to the line of a JSONL sink
    python tools/trace_visit.py --discover  on a tracker that follows sites
    python tools/trace_visit.py --names     with the name of every file

Runs the command on a store without a tracker, then the same inside a running tracker on a page on loopback, until a
change of the page is committed. A file counts if one of its functions ran, in any thread; compiled kernels do not show.
Records are dataclasses that were built after the page was added: of the tracker, those that a visit is carried in.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import pkgutil
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import is_dataclass, replace
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType
from typing import Any

from click.testing import CliRunner

import recrawl
from recrawl.cli.main import cli
from recrawl.jit import force
from recrawl.store.store import open_store
from recrawl.tracker.admission import PageRequest
from recrawl.tracker.commands.commands import Add, CommandHandler
from recrawl.tracker.settings.settings import Settings, SinkRule
from recrawl.tracker.sinks.registry import run_sinks
from recrawl.tracker.tracker import open_tracker
from recrawl.web.fetch.egress import egress_policy

ROOMS = ("cli", "tracker", "web", "store", "scheduling", "learning")
_SOURCE = str(Path(recrawl.__file__).parent) + "/"
_LONGEST_S = 300.0


class Trace:
    """Files whose functions ran, and records that were built."""

    def __init__(self) -> None:
        self.files: dict[str, set[str]] = defaultdict(set)  # functions by file
        self.visiting = False  # whether records are noted too
        self._noting = False
        self._built: set[type] = set()

    def install(self) -> None:
        """See what this thread and all that start later call, while `on`."""
        threading.setprofile(self._see)
        sys.setprofile(self._see)

    @contextmanager
    def on(self) -> Iterator[None]:
        """Note what is seen meanwhile."""
        self._noting = True
        try:
            yield
        finally:
            self._noting = False

    def _see(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or not self._noting:
            return
        code = frame.f_code
        if code.co_filename.startswith("<string"):
            built = type(frame.f_locals.get("self"))
            if self.visiting and code.co_name == "__init__" and is_dataclass(built):
                self._built.add(built)
        elif code.co_filename.startswith(_SOURCE) and code.co_flags & CO_OPTIMIZED:
            self.files[code.co_filename.removeprefix(_SOURCE)].add(code.co_qualname)

    def records(self, room: str) -> list[str]:
        """Return the records of a room that were built for visits."""
        return sorted(kind.__name__ for kind in self._built if kind.__module__.startswith(f"recrawl.{room}."))

    def of(self, room: str) -> list[str]:
        """Return the files of a room."""
        return sorted(file for file in self.files if file.startswith(f"{room}/"))


class OnePage:
    """A page on loopback."""

    text = "alpha beta of many words and things"

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer requests of one connection; there is no robots.txt."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                found = b"/one " in head.partition(b"\r\n")[0]
                body = f"<title>t</title><p>Hello world, {self.text}</p>".encode() if found else b""
                status = b"200 OK" if found else b"404 Not Found"
                kind = b"Content-Type: text/html\r\n" if found else b""
                length = str(len(body)).encode()
                writer.write(b"HTTP/1.1 " + status + b"\r\n" + kind + b"Content-Length: " + length + b"\r\n\r\n" + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()


def trace(folder: Path, *, discover: bool = False, sink: bool = False) -> Trace:
    """Trace one page from `add` to the commit of its change, or to the sink."""
    for room in ROOMS:
        package = importlib.import_module(f"recrawl.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"recrawl.{room}."):
            importlib.import_module(module.name)
    force("compiled")
    found = Trace()
    found.install()
    with found.on():
        added = CliRunner().invoke(cli, ["add", "https://example.com/", "--store", str(folder / "alone")])
    if added.exit_code:
        raise SystemExit(added.output)
    asyncio.run(_visit(found, folder, discover=discover, sink=sink))
    return found


async def _visit(found: Trace, folder: Path, *, discover: bool, sink: bool) -> None:
    page, lines = OnePage(), folder / "out.jsonl"
    server = await asyncio.start_server(page.answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    settings = Settings(
        store=str(folder / "tracked"),
        contact="https://example.com/bot",
        min_gap_s=0.0,
        min_interval_s=0.0,
        again_after_s=0.0,
        discover=discover,
        egress=egress_policy(allow={"here": f"127.0.0.1/32:{port}"}, resolve={"page.test": "127.0.0.1"}),
    )
    if sink:
        settings = replace(settings, sinks=(SinkRule("lines", "jsonl", str(lines)),))
    store = await open_store(settings.store, owner=True)
    tracker = await open_tracker(settings, store, print)
    work = [asyncio.create_task(tracker.run())]
    work += [asyncio.create_task(run_sinks(tracker))] if sink else []

    async def happened(kind: str) -> None:
        def in_sink() -> bool:
            return f'"{kind}"' in lines.read_text() if lines.exists() else False

        async with asyncio.timeout(_LONGEST_S):
            while not (in_sink() if sink else await _committed(store, kind)):
                await asyncio.sleep(0.05)

    hand = CommandHandler(store, settings, tracker)
    with found.on():
        await hand.do(Add([PageRequest(f"http://page.test:{port}/one")]), tracker.clock.now())
        found.visiting = True
        await happened("discovered")
        page.text = "gamma delta epsilon, another sentence entirely for the reader"
        await happened("changed")
    tracker.stop()
    await asyncio.gather(*work)
    await store.close()
    server.close()


async def _committed(store: Any, kind: str) -> bool:
    return any(each.event.kind == kind for each in await store.changes(0, 100))


def lines_of(found: Trace, *, names: bool) -> Iterator[str]:
    """Yield what was found, line by line."""
    for room in ROOMS:
        files = found.of(room)
        yield f"{room:<11} {len(files):>3} files   {', '.join(found.records(room))}".rstrip()
        if names:
            yield from (f"                {file}" for file in files)
    yield f"{'all rooms':<11} {sum(len(found.of(room)) for room in ROOMS):>3} files"


def main(write: Callable[[str], None] = print) -> None:
    """Trace and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for flag in ("--sink", "--discover", "--names"):
        parser.add_argument(flag, action="store_true")
    said = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = trace(Path(folder), discover=said.discover, sink=said.sink)
    for line in lines_of(found, names=said.names):
        write(line)


if __name__ == "__main__":
    main()
