"""Sees every IP socket that this process makes, by the interpreter's own audit events."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_made: list[int] = []
_watching: list[bool] = []


def _see(event: str, arguments: tuple[Any, ...]) -> None:
    if _watching and event == "socket.__new__" and arguments[1] in (socket.AF_INET, socket.AF_INET6):
        _made.append(int(arguments[1]))


@contextmanager
def sockets_made() -> Iterator[list[int]]:
    """The families of the IP sockets made inside the block."""
    if not hasattr(sys, "_recrawl_watch"):  # a hook cannot be taken away again, so one must do
        sys._recrawl_watch = True  # type: ignore[attr-defined]
        sys.addaudithook(_see)
    _made.clear()
    _watching.append(True)
    try:
        yield _made
    finally:
        _watching.pop()
