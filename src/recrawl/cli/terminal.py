"""What every command shares: one JSON line on stdout, a progress bar on stderr, checks of output paths."""

from __future__ import annotations

import json
import math
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from recrawl.errors import InvalidInput
from recrawl.extras import need

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import Progress

Report = Callable[[int, int | None], None]
"""How work tells of itself: so much done, of so much (None: unknown)."""

_SECONDS_BEFORE_THE_BAR = 1.0
_WIDTH_OFF_A_TERMINAL = 100


def print_json(value: Any) -> None:
    """Print one line of JSON; numbers that JSON does not have (nan, infinity) become null."""
    click.echo(json.dumps(_plain(value), allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    item = value.item() if hasattr(value, "item") else value
    return None if isinstance(item, float) and not math.isfinite(item) else item


def show(*parts: RenderableType, width: int = _WIDTH_OFF_A_TERMINAL) -> None:
    """Print texts and tables to stdout: in colour at the terminal's width, or plain and `width` wide elsewhere."""
    from rich.console import Console
    from rich.text import Text

    console = Console(width=None if is_terminal(sys.stdout) else width, markup=False, emoji=False, highlight=False)
    with console.capture() as captured:
        for part in parts:
            console.print(part, soft_wrap=isinstance(part, str | Text))  # a long path stays on one line
    # Tables pad their lines with blanks, which would be in the way where the output is copied.
    click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def clean(text: str) -> str:
    """Text from a file, safe to print: control characters could steer the terminal.

    >>> clean("a" + chr(27) + "[2Jb")
    'a�[2Jb'
    """
    return "".join(character if character.isprintable() else "�" for character in text)


def is_terminal(stream: TextIO | None) -> bool:
    """Whether someone looks at a stream; Python has None for one that was closed before it started."""
    return stream is not None and stream.isatty()


@contextmanager
def progress(doing: str) -> Iterator[Report]:
    """Show a bar on stderr while the block runs, on a terminal only and only if it takes over a second."""
    if not is_terminal(sys.stderr):
        yield _nobody_looks
        return
    bar = _Bar(doing)
    timer = threading.Timer(_SECONDS_BEFORE_THE_BAR, bar.show)
    timer.daemon = True
    timer.start()
    try:
        yield bar.report
    finally:
        timer.cancel()
        bar.close()


def _nobody_looks(done: int, total: int | None) -> None:
    """Take a report of progress and do nothing with it."""


class _Bar:
    """A bar that may never be shown; the timer's thread shows it, the worker's thread feeds and closes it."""

    def __init__(self, doing: str) -> None:
        self._doing = doing
        self._lock = threading.Lock()
        self._closed = False
        self._progress: Progress | None = None
        self._done: tuple[int, int | None] = (0, None)

    def show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        with self._lock:
            if self._closed:
                return
            columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
            self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
            self._progress.add_task(self._doing, total=None)
            self._progress.start()
            self._draw()

    def report(self, done: int, total: int | None) -> None:
        with self._lock:
            self._done = (done, total)
            self._draw()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._progress is not None:
                self._progress.stop()

    def _draw(self) -> None:
        if self._progress is not None:
            done, total = self._done
            self._progress.update(self._progress.task_ids[0], completed=done, total=total)


def check_figure(path: Path) -> None:
    """Refuse a figure that could not be written, before the work begins rather than after it."""
    from recrawl.plots.save import figure_format

    figure_format(path)
    need("matplotlib", "a figure")
    if path.is_dir():
        raise InvalidInput(f"is {str(path)!r}, a folder: name a file in it", field="plot")
    folder = path.parent
    if not folder.is_dir():
        raise InvalidInput(f"is {str(path)!r}, but there is no folder {str(folder)!r}: make it first", field="plot")
    if not os.access(folder, os.W_OK):
        raise InvalidInput(f"is {str(path)!r}, but its folder cannot be written to", field="plot")


def check_folder(path: Path, option: str) -> None:
    """Refuse a folder for output that could not be made or written to, before the work begins."""
    nearest = next((part for part in (path, *path.parents) if part.exists()), Path())
    if not nearest.is_dir():
        raise InvalidInput(f"is {str(path)!r}, but {str(nearest)!r} is a file: name a folder", field=option)
    if not os.access(nearest, os.W_OK):
        raise InvalidInput(f"is {str(path)!r}, but {str(nearest)!r} cannot be written to", field=option)
