"""Where sinks of each kind write to in the tests: what came there, how it breaks. A new kind of sink adds its own."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from xml.etree import ElementTree as ET

from small_site import Asked, Page, Site

from recrawl.tracker.settings.settings import Settings, SinkRule

_ATOM = "{http://www.w3.org/2005/Atom}"


class Target(Protocol):
    """Somewhere that a sink writes to."""

    rule: SinkRule
    settings: Settings

    def ids(self) -> list[str]:
        """Return the ids of events that came, in order, each as often as it came."""

    def set_broken(self, broken: bool) -> None:
        """Let nothing be written from now on, or everything again."""

    def tear(self) -> None:
        """Leave what a crash in the middle of a write leaves."""


@dataclass(slots=True)
class FileTarget:
    """A file; while it is broken, a folder is in its place."""

    rule: SinkRule
    read: Callable[[bytes], list[str]]
    torn: bytes
    settings: Settings = field(default_factory=lambda: Settings(contact="a@example.com"))
    _kept: bytes | None = None

    @property
    def path(self) -> Path:
        return Path(self.rule.target)

    def ids(self) -> list[str]:
        return self.read(self.path.read_bytes()) if self.path.exists() else []

    def set_broken(self, broken: bool) -> None:
        if broken:
            self._kept = self.path.read_bytes() if self.path.exists() else None
            self.path.unlink(missing_ok=True)
            self.path.mkdir()
        else:
            self.path.rmdir()
            if self._kept is not None:
                self.path.write_bytes(self._kept)

    def tear(self) -> None:
        self.path.write_bytes((self.path.read_bytes() if self.path.exists() else b"") + self.torn)


def _ids_of_lines(content: bytes) -> list[str]:
    """Ids of whole lines; one that was cut short is no line."""
    found = []
    for line in content.splitlines():
        try:
            found.append(str(json.loads(line)["id"]))
        except ValueError:
            assert line == b'{"cursor": 1, "ki', "only what a crash cut short may be broken"
    return found


def _ids_of_feed(content: bytes) -> list[str]:
    entries = ET.fromstring(content).findall(f"{_ATOM}entry")
    return [str(entry.findtext(f"{_ATOM}id")).rpartition(":")[2] for entry in reversed(entries)]


@asynccontextmanager
async def _jsonl(folder: Path) -> AsyncIterator[Target]:
    yield FileTarget(SinkRule("s", "jsonl", str(folder / "out.jsonl")), _ids_of_lines, b'{"cursor": 1, "ki')


@asynccontextmanager
async def _atom(folder: Path) -> AsyncIterator[Target]:
    yield FileTarget(SinkRule("s", "atom", str(folder / "out.atom")), _ids_of_feed, b"<entry")


@dataclass(slots=True)
class HookTarget:
    """A server; while it is broken, it answers 503."""

    rule: SinkRule
    settings: Settings
    taken: list[str] = field(default_factory=list)
    broken: bool = False

    def answer(self, asked: Asked) -> Page:
        if self.broken:
            return 503
        self.taken.append(str(json.loads(asked.body)["id"]))
        return 204, {}, b""

    def ids(self) -> list[str]:
        return self.taken

    def set_broken(self, broken: bool) -> None:
        self.broken = broken

    def tear(self) -> None:
        """Requests are whole or not there."""


@asynccontextmanager
async def _webhook(folder: Path) -> AsyncIterator[Target]:  # noqa: ARG001 - it writes no file
    async with Site() as site:
        rule = SinkRule("s", "webhook", site.url("/hook"), plain_http=True)
        target = HookTarget(rule, Settings(contact="a@example.com", egress=site.egress))
        site.answers["/hook"] = target.answer
        yield target


TARGETS: dict[str, Callable[[Path], AbstractAsyncContextManager[Target]]] = {
    "jsonl": _jsonl,
    "atom": _atom,
    "webhook": _webhook,
}
