"""Run the tests as a busy machine would, or a slow one.

    tools/busy_test            # the whole suite twice, each on a fresh clone, beside four busy loops
    tools/busy_test --tenth    # once at a tenth of the speed: tests that start trackers, servers or Hypothesis

A clone has its own `.venv` and no compiled kernels. At a tenth of the speed kernels are compiled first, at full speed;
then every process of the tests is stopped for 90 of every 100 ms. Each run has a limit in minutes and prints one line:
what passed, failed and was skipped. Processes that it started are ended, also after Ctrl-C, and no others. Needs Linux.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parent.parent
BUSY_LOOPS = 4
STOPPED_S, RUNNING_S = 0.09, 0.01
GRACE_S = 10.0
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of prctl(2)
_DEPENDS_ON_TIME = re.compile(
    r"\b(?:hypothesis|subprocess|create_subprocess_exec|open_tracker|run_tracker|Tracker|HostileWeb|LivingWeb"
    r"|start_server|aiohttp|uvicorn|postgres|ParseWorkers|page_server|recrawl\.(?:bench|demo))\b"
)
_IMPORT = re.compile(r"^\s*(?:from\s+(\w+)\s+import|import\s+(\w+))", re.MULTILINE)


class Listed(NamedTuple):
    """A process in the table of the system."""

    pid: int
    parent: int
    state: str


class Count(NamedTuple):
    """Tests of a run, by what came of them."""

    passed: int
    failed: int
    skipped: int


def listed() -> list[Listed]:
    """All processes of the machine."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has just ended
            state, parent = _state_and_parent(path)
            found.append(Listed(int(path.parent.name), int(parent), state))
    return found


def _state_and_parent(path: Path) -> list[str]:
    """The two fields after the name, which is in brackets and may hold anything."""
    return path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[:2]


def descendants(root: int, spared: Collection[int] = ()) -> list[Listed]:
    """Processes below one, but for those that are spared; daemons that left their parent are below us."""
    children: dict[int, list[Listed]] = {}
    for each in listed():
        children.setdefault(each.parent, []).append(each)
    found: list[Listed] = []
    waiting = [root]
    while waiting:
        below = [each for each in children.get(waiting.pop(), []) if each.pid not in spared]
        found += below
        waiting += [each.pid for each in below]
    return found


@contextmanager
def started(command: Sequence[str], folder: Path, spared: Collection[int] = ()) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command; at the end all of its processes are gone, wherever they went."""
    process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        yield process
    finally:
        end_all(process, spared)


def end_all(process: subprocess.Popen[bytes], spared: Collection[int] = ()) -> None:
    """End everything below us but what is spared: kindly at first, for certain after the grace."""
    killed_at = time.monotonic() + GRACE_S
    kinds = [signal.SIGCONT, signal.SIGTERM]
    while True:
        _reap(process, spared)
        left = [each.pid for each in descendants(os.getpid(), spared) if each.state != "Z" and _is_ours(each.pid)]
        if not left:
            process.wait()
            return
        for kind in kinds:
            _signal(left, kind)
        kinds = [signal.SIGKILL] if time.monotonic() > killed_at else []
        time.sleep(0.05)


def _reap(process: subprocess.Popen[bytes], spared: Collection[int]) -> None:
    """Take leave of daemons that ended below us."""
    process.poll()
    for each in descendants(os.getpid(), spared):
        if each.parent == os.getpid() and each.state == "Z" and each.pid != process.pid:
            with suppress(ChildProcessError):
                os.waitpid(each.pid, os.WNOHANG)


def _is_ours(pid: int) -> bool:
    """Whether a process is there, and may be ended: it has not become another user's."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _signal(pids: Sequence[int], kind: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):  # it has just ended, or belongs to somebody else
            os.kill(pid, kind)


@contextmanager
def busy_loops(count: int) -> Iterator[frozenset[int]]:
    """Keep cores busy; the ids of the loops."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True) for _ in range(count)]
    try:
        yield frozenset(loop.pid for loop in loops)
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@contextmanager
def slowed(first: int) -> Iterator[None]:
    """Stop everything below us for nine tenths of the time, what is below the first process before all else."""
    done = threading.Event()
    thread = threading.Thread(target=_slow_down, args=(done, first), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _slow_down(done: threading.Event, first: int) -> None:
    while not done.is_set():
        began_s, stopped = time.monotonic(), list[int]()
        # Parents before children, and tests before servers: whoever may stop others is stopped before we look at them.
        # What a test has stopped itself stays stopped.
        for root in (None, first, os.getpid()):
            for pid in [first] if root is None else [each.pid for each in descendants(root)]:
                if pid not in stopped and _runs(pid):
                    _signal([pid], signal.SIGSTOP)
                    stopped.append(pid)
        done.wait(max(0.0, began_s + STOPPED_S - time.monotonic()))
        # The other way round: a test that runs again must not stop a server that we have yet to continue.
        _signal(stopped[::-1], signal.SIGCONT)
        done.wait(RUNNING_S)


def _runs(pid: int) -> bool:
    try:
        return _state_and_parent(Path(f"/proc/{pid}/stat"))[0] not in "TtZX"
    except OSError:  # it has just ended
        return False


def files_that_depend_on_time(root: Path) -> list[str]:
    """Tests that start trackers, servers or processes or use Hypothesis, themselves or through helpers."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted((root / "tests").rglob("*.py"))}
    imports = {path: {name for pair in _IMPORT.findall(text) for name in pair if name} for path, text in texts.items()}
    found = {path for path, text in texts.items() if path.name != "conftest.py" and _DEPENDS_ON_TIME.search(text)}
    while more := {path for path, names in imports.items() if names & {each.stem for each in found}} - found:
        found |= more
    return [path.relative_to(root).as_posix() for path in sorted(found) if path.name.startswith("test_")]


def count_of(report: Path) -> Count | None:
    """What a report in the format of JUnit says; None if there is none."""
    try:
        suites = list(ET.parse(report).getroot().iter("testsuite"))
    except (OSError, ET.ParseError):
        return None
    tests, skipped, *wrong = (
        sum(int(suite.get(name, "0")) for suite in suites) for name in ("tests", "skipped", "failures", "errors")
    )
    return Count(tests - skipped - sum(wrong), sum(wrong), skipped)


class Run(NamedTuple):
    """A run of tests on a clone."""

    name: str
    command: list[str]
    clone: Path
    report: Path
    limit_s: float

    def go(self, *, tenth: bool = False, spared: Collection[int] = ()) -> bool:
        """Run to the end or the limit, and say what came of it."""
        began_s, code = time.monotonic(), None
        with started(self.command, self.clone, spared) as process, suppress(subprocess.TimeoutExpired):  # noqa: SIM117
            with slowed(process.pid) if tenth else nullcontext():
                code = process.wait(self.limit_s)
        count, seconds = count_of(self.report), time.monotonic() - began_s
        tests = "no report" if count is None else "{} passed, {} failed, {} skipped".format(*count)
        how = f"ended after {self.limit_s / 60:g} minutes" if code is None else f"exit code {code}"
        say(f"{self.name}: {tests}, {seconds:.0f} s, {how}")
        return code == 0


def fresh_clone(folder: Path) -> Path:
    """Clone the last commit of this repository."""
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
    return folder


def run_busy(folder: Path, number: int, limit_s: float, tests: Sequence[str]) -> bool:
    """The whole suite, as a newcomer runs it, beside busy loops."""
    report = folder / f"busy-{number}.xml"
    command = ["make", "test", f"ARGS={' '.join([f'--junitxml={report}', *tests])}"]
    with busy_loops(BUSY_LOOPS) as loops:
        return Run(f"busy {number}", command, fresh_clone(folder / f"busy-{number}"), report, limit_s).go(spared=loops)


def run_tenth(folder: Path, limit_s: float, tests: Sequence[str]) -> bool:
    """Tests that depend on time, at a tenth of the speed."""
    clone, report = fresh_clone(folder / "tenth"), folder / "tenth.xml"
    chosen = list(tests) or files_that_depend_on_time(clone)
    say(f"tenth: {len(chosen)} files and folders; setting up and compiling at full speed first")
    with started(["make", "dev", "warm"], clone) as process:
        if process.wait(limit_s):
            say(f"tenth: the set-up failed with exit code {process.returncode}")
            return False
    pytest = [".venv/bin/pytest", "-n", "auto", "--dist", "worksteal", "-vv", f"--junitxml={report}", *chosen]
    return Run("tenth", pytest, clone, report, limit_s).go(tenth=True)


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"busy_test: {line}\n")
    sys.stdout.flush()


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as asked; 0 if everything passed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tenth", action="store_true", help="run once at a tenth of the speed, without busy loops")
    parser.add_argument("--times", type=int, default=2, help="runs beside busy loops (default: 2)")
    parser.add_argument("--minutes", type=float, default=90.0, help="limit of each run (default: 90)")
    parser.add_argument("tests", nargs="*", help="files and folders to run instead of all")
    chosen = parser.parse_args(arguments)
    if sys.platform != "linux":
        sys.exit("busy_test needs Linux: it finds its processes in /proc.")
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)  # daemons that leave their parent come to us
    signal.signal(signal.SIGTERM, _interrupt)
    limit_s = 60.0 * chosen.minutes
    try:
        with tempfile.TemporaryDirectory(prefix="recrawl-busy-") as name:
            folder = Path(name)
            if chosen.tenth:
                return 0 if run_tenth(folder, limit_s, chosen.tests) else 1
            runs = [run_busy(folder, number, limit_s, chosen.tests) for number in range(1, chosen.times + 1)]
            return 0 if all(runs) else 1
    except KeyboardInterrupt:
        say("interrupted; what was started is ended")
        return 130


if __name__ == "__main__":
    sys.exit(main())
