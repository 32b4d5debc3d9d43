"""`tools/busy_test`: it finds, slows down and ends its own processes, and counts what came of the tests."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import busy_test
from patience import PATIENCE_S

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the tool is for Linux")

# A process that starts a daemon in a session of its own, says its id, and goes on or ends.
PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True)
print(child.pid, flush=True)
time.sleep(600 if sys.argv[1] == "stays" else 0)
"""
# What `busy_test` does, in a process that adopts daemons; the test looks on from outside.
RUNNER = """
import ctypes, os, subprocess, sys, time
from pathlib import Path
import busy_test

ctypes.CDLL(None).prctl(busy_test._SUBREAPER, 1, 0, 0, 0)
busy_test.GRACE_S = 0.5
bystander = subprocess.Popen(["sleep", "600"])
with busy_test.started([sys.executable, "-c", sys.argv[1], sys.argv[2]], Path("."), {bystander.pid}) as process:
    while sys.argv[2] == "ends" and process.poll() is None:
        time.sleep(0.01)
    while not (found := busy_test.descendants(os.getpid(), {bystander.pid})):
        time.sleep(0.01)
    while sys.argv[2] == "stays" and len(busy_test.descendants(os.getpid(), {bystander.pid})) < 2:
        time.sleep(0.01)
left = [each for each in busy_test.descendants(os.getpid()) if each.state != "Z"]
assert [each.pid for each in left] == [bystander.pid], left
bystander.kill()
print("alone")
"""


@pytest.mark.parametrize("parent", ["stays", "ends"])
def test_a_command_is_ended_with_its_daemons_and_nothing_else(parent: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUNNER, PARENT, parent],
        env={**os.environ, "PYTHONPATH": str(Path(busy_test.__file__).parent)},
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.stdout.split()[-1:] == ["alone"], done.stderr


SLOWED = """
import subprocess, sys, time
import busy_test

loop = subprocess.Popen([sys.executable, "-c", "while True: pass"])
def used():
    with open(f"/proc/{loop.pid}/stat") as stat:
        return sum(map(int, stat.read().rpartition(")")[2].split()[11:13])) / 100
while not used():
    time.sleep(0.01)
with busy_test.slowed(loop.pid):
    began, before = time.monotonic(), used()
    while used() < before + 0.1:
        time.sleep(0.01)
    took = time.monotonic() - began
for _ in range(2):
    before = used()
    while used() <= before:  # it runs again
        time.sleep(0.01)
loop.kill()
print(took)
"""


def test_processes_are_stopped_for_most_of_the_time() -> None:
    """A tenth of a second of CPU takes about a second; on a busy machine longer, never less than half of that."""
    done = subprocess.run(
        [sys.executable, "-c", SLOWED],
        env={**os.environ, "PYTHONPATH": str(Path(busy_test.__file__).parent)},
        capture_output=True, text=True, timeout=PATIENCE_S, check=True,
    )  # fmt: skip
    assert float(done.stdout) > 0.4


# A process that belongs to another user, until we end, is below us beside the one that is slowed and ended.
OTHERS = """
import ctypes, os, subprocess, time
from pathlib import Path
import busy_test

ctypes.CDLL(None).prctl(busy_test._SUBREAPER, 1, 0, 0, 0)
busy_test.GRACE_S = 0.5
others = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
os.setuid(65534)
with busy_test.started(["sleep", "600"], Path("/")) as process, busy_test.slowed(process.pid):
    for state in "TSTS":
        while busy_test._state_and_parent(Path(f"/proc/{process.pid}/stat"))[0] != state:
            time.sleep(0.001)
print(process.returncode, others.poll())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another user")
def test_a_process_that_may_not_be_signalled_neither_ends_the_slowing_nor_holds_up_the_end() -> None:
    done = subprocess.run(
        [sys.executable, "-c", OTHERS],
        env={**os.environ, "PYTHONPATH": str(Path(busy_test.__file__).parent)},
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["-15", "None"], done.stderr


def test_busy_loops_run_and_are_ended() -> None:
    with busy_test.busy_loops(2) as loops:
        assert len(loops) == 2
        assert loops <= {each.pid for each in busy_test.descendants(os.getpid())}
    assert not loops & {each.pid for each in busy_test.listed()}


def test_files_that_depend_on_time_are_found_through_their_helpers(tmp_path: Path) -> None:
    files = {
        "test_process.py": "import subprocess",
        "test_property.py": "from hypothesis import given",
        "test_pure.py": "from recrawl.units import per_day",
        "site.py": "from recrawl.lab.livingweb.hostile import HostileWeb",
        "ground.py": "from site import Site",
        "test_site.py": "from ground import Ground",
        "conftest.py": "from hypothesis import settings",
    }
    (tmp_path / "tests").mkdir()
    for name, text in files.items():
        (tmp_path / "tests" / name).write_text(text, encoding="utf-8")
    found = busy_test.files_that_depend_on_time(tmp_path)
    assert found == ["tests/test_process.py", "tests/test_property.py", "tests/test_site.py"]


def test_tests_are_counted_by_what_came_of_them(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    assert busy_test.count_of(report) is None
    suite = '<testsuites><testsuite tests="10" failures="1" errors="2" skipped="3"/></testsuites>'
    report.write_text(suite, encoding="utf-8")
    assert busy_test.count_of(report) == (4, 3, 3)


def test_a_run_that_is_not_done_in_time_is_ended_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # In this process, so that only a command without daemons is run.
    began = time.monotonic()
    run = busy_test.Run("late", ["sleep", "600"], tmp_path, tmp_path / "none.xml", 0.1)
    spared = [each.pid for each in busy_test.descendants(os.getpid())]
    assert not run.go(spared=spared)
    assert capsys.readouterr().out.startswith("busy_test: late: no report, ")
    assert time.monotonic() - began < PATIENCE_S
