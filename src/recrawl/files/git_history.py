"""A git repository as a history: files are pages, commits are changes. Read with the git command, nothing is written.

What counts is the line of first parents of HEAD, as a site published from a branch shows a change when it is merged.
A commit's time is its committer's; where clocks were wrong, no commit is before its parent or after HEAD. Renamed
files are a removal and a creation; submodules are left out.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from array import array
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import numpy as np

from recrawl.errors import InvalidFile, InvalidInput
from recrawl.files.formats import printable, reason
from recrawl.files.history import CHANGED, CREATED, REMOVED, ChangeHistory, PageEvents

_HEADER = b"commit "
_READ_BYTES = 1 << 16
_KINDS = {b"A": CREATED, b"M": CHANGED, b"T": CHANGED, b"D": REMOVED}
_LOG = (
    "log", "--reverse", "--first-parent", "-m", "--name-status", "--no-renames", "--relative", "-z",
    "--no-show-signature", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all", "--format=commit %ct",
    "HEAD", "--", ".",
)  # fmt: skip
# Those say which repository is meant: the path alone shall.
_FOREIGN_SETTINGS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")


def read_git_history(path: Path, since: float | str | None = None) -> ChangeHistory:
    """Read the files of a repository, or of one of its folders, and their changes. O(changes), memory for them.

    Args:
        path: the repository, or a folder in it: then only files in that folder are pages.
        since: unix seconds or an ISO 8601 date; the history begins there, with the files that exist at that time.
    """
    begin = _moment(since)
    tip = _tip(path)
    found = _Recorder(begin)
    for time, kind, name in _entries(path, tip):
        found.take(time, kind, name)
    if not found.page:
        what = "no file was ever committed there" if begin is None else "nothing changed since then: begin earlier"
        raise InvalidFile(str(path), f"has no history: {what}")
    events = PageEvents(
        np.array(found.page, dtype=np.int32),
        np.array(found.time, dtype=np.float64),
        np.array(found.kind, dtype=np.int8),
    )
    return ChangeHistory(
        name=path.resolve().name or "repository",
        page_names=tuple(printable(name.decode("utf-8", errors="replace"), 4096) for name in found.names),
        importance=None,
        events=events,
        start=float(events.time[0]),
        end=float(events.time[-1]),
    )


class _Recorder:
    """Takes what git tells, oldest first; what was before `since` is kept only as the set of files that exist."""

    def __init__(self, since: float | None) -> None:
        self.names: dict[bytes, int] = {}
        self.page, self.time, self.kind = array("i"), array("d"), array("b")
        self._since = since
        self._existing: dict[bytes, None] | None = None if since is None else {}

    def take(self, time: float, kind: int, name: bytes) -> None:
        """Take one file of one commit."""
        if self._existing is not None:
            assert self._since is not None
            if time < self._since:
                if kind == REMOVED:
                    self._existing.pop(name, None)
                else:
                    self._existing[name] = None
                return
            self._begin()
        self._add(time, kind, name)

    def _begin(self) -> None:
        assert self._since is not None
        for name in self._existing or ():
            self._add(self._since, CREATED, name)
        self._existing = None

    def _add(self, time: float, kind: int, name: bytes) -> None:
        self.page.append(self.names.setdefault(name, len(self.names)))
        self.time.append(time)
        self.kind.append(kind)


def _entries(path: Path, tip: float) -> Iterator[tuple[float, int, bytes]]:
    """Time, kind and name of each file of each commit, oldest first."""
    time = 0.0
    tokens = _tokens(path)
    for token in tokens:
        token = token.removeprefix(b"\n")  # noqa: PLW2901
        if token.startswith(_HEADER):
            time = max(time, min(float(token.removeprefix(_HEADER)), tip))
        elif token:
            name = next(tokens, b"")
            yield time, _KINDS.get(token[:1], CHANGED), name


def _tokens(path: Path) -> Iterator[bytes]:
    """What git log writes between its NULs, as it comes."""
    with tempfile.TemporaryFile() as complaints, _start(path, complaints, *_LOG) as process:
        assert process.stdout is not None
        rest = b""
        try:
            while chunk := process.stdout.read(_READ_BYTES):
                *whole, rest = (rest + chunk).split(b"\0")
                yield from whole
        except BaseException:
            process.kill()
            raise
        if process.wait():
            raise _complaint(path, complaints)


def _tip(path: Path) -> float:
    """The time of HEAD."""
    return float(_ask(path, "log", "-1", "--no-show-signature", "--format=%ct", "HEAD"))


def _ask(path: Path, *question: str) -> bytes:
    with tempfile.TemporaryFile() as complaints, _start(path, complaints, *question) as process:
        answer, _ = process.communicate()
        if process.returncode:
            raise _complaint(path, complaints)
    return answer.strip()


def _start(path: Path, complaints: IO[bytes], *command: str) -> subprocess.Popen[bytes]:
    settings = {name: value for name, value in os.environ.items() if name not in _FOREIGN_SETTINGS}
    settings |= {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1"}
    git = ("git", "-C", str(path), "--no-pager", *command)
    try:
        return subprocess.Popen(
            git, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=complaints, env=settings, bufsize=0
        )
    except FileNotFoundError:
        raise InvalidInput("the command git was not found: install it to read a repository") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise InvalidFile(str(path), f"cannot be read with git: {reason(error)}") from None


def _complaint(path: Path, complaints: IO[bytes]) -> InvalidFile:
    complaints.seek(0)
    text = complaints.read(10_000).decode("utf-8", errors="replace")
    if "not a git repository" in text or "cannot change to" in text:
        return InvalidFile(str(path), "is neither a git repository, or a folder in one, nor a folder with a trace")
    if "does not have any commits" in text or "bad revision 'HEAD'" in text or "ambiguous argument 'HEAD'" in text:
        return InvalidFile(str(path), "is a git repository without commits")
    if "dubious ownership" in text:
        return InvalidFile(str(path), "belongs to someone else: tell git that it is safe (safe.directory)")
    first = next((line for line in text.splitlines() if line.startswith(("fatal:", "error:"))), text)
    return InvalidFile(str(path), f"cannot be read with git: {reason(first)}")


def _moment(since: float | str | None) -> float | None:
    if since is None:
        return None
    try:
        if isinstance(since, str):
            moment = datetime.fromisoformat(since.strip())
            seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        else:
            seconds = float(since)
    except ValueError:
        raise InvalidInput(f"is {since!r}, but must be a date such as 2024-05-01", field="since") from None
    if not 0 <= seconds < float("inf"):
        raise InvalidInput(f"is {since!r}, but must be a time since 1970", field="since")
    return seconds
