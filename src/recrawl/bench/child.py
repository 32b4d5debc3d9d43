"""A process beside a measure: it is asked by lines and answers with lines of JSON.

What it writes to its error output goes to a file, so that nothing that it says can make it wait for a reader.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any, NamedTuple

from recrawl.bench.measure import CannotRun


class Child(NamedTuple):
    """A process that runs.

    Args:
        name: what it is, for people.
        process: itself.
        errors: what it wrote to its error output.
    """

    name: str
    process: subprocess.Popen[str]
    errors: IO[str]

    def ask(self, line: str = "") -> Any:
        """Say a line, and read the answer."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended: reading says so
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        return self.hear()

    def hear(self) -> Any:
        """Read the next line."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            self.errors.seek(0)
            last = (self.errors.read().strip().splitlines() or ["it said nothing"])[-1]
            raise CannotRun(f"{self.name} ended: {last}")
        return json.loads(line)

    def end(self) -> None:
        """Say that there is nothing more to ask."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()


@contextmanager
def child(name: str, command: Sequence[str], longest_s: float) -> Iterator[Child]:
    """Run a process for the length of a block.

    Args:
        name: what it is, for people.
        command: that starts it.
        longest_s: it may take to end after the block.
    """
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        running = Child(name, process, errors)
        try:
            yield running
            running.end()
            process.wait(timeout=longest_s)
        finally:
            running.end()
            process.kill()
