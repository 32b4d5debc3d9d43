"""The warm-up compiles what programs need, part by part, and says what it could not compile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from patience import COMPILING_S
from recrawl.jit import BESIDE_PARTS
from recrawl.jit.way import VARIABLE
from recrawl.warming import PARTS, main, warm_all

TRACKED = """
import numpy as np
from recrawl.jit import kernels
from recrawl.scheduling.scheduler import Scheduler
from recrawl.warming import _tracked
scheduler = Scheduler(200.0, "freshness", burst=20.0)
scheduler.set_host(0, min_gap=1e-9, max_in_flight=8)
scheduler.add(**_tracked())
for turn in range(1, 30):
    taken = scheduler.take(0.1 * turn, 4).ids
    scheduler.crawled(taken, 0.1 * turn, changed=np.arange(len(taken)) % 2 == 0)
print([str(each.function) for each in kernels() if each.interpreted_s])
"""


ALL_BUT_ONE = """
from recrawl.jit.folders import note_complete
from recrawl.warming import PARTS
for part in PARTS:
    if part != "news":
        note_complete(part)
"""

DOCTOR = "from recrawl.cli.main import main; main()"


def test_the_doctor_compiles_what_is_missing_and_nothing_twice(tmp_path: Path) -> None:
    def run(code: str, *arguments: str) -> str:
        call, environment = [sys.executable, "-c", code, *arguments], {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        return subprocess.run(
            call, env=environment, capture_output=True, text=True, timeout=COMPILING_S, check=True
        ).stdout

    def kept() -> dict[str, int]:
        return {str(path): path.stat().st_mtime_ns for path in tmp_path.rglob("*.nbc")}

    run(ALL_BUT_ONE)
    assert not kept()
    said = {"parts": list(PARTS), "failed": []}
    assert json.loads(run(DOCTOR, "doctor", "--warm", "--json")) == said
    compiled = kept()
    assert any("discovery" in path for path in compiled)
    assert run("from recrawl.jit.folders import complete_parts; print(len(complete_parts()))") == f"{len(PARTS)}\n"
    assert json.loads(run(DOCTOR, "doctor", "--warm", "--json")) == said
    assert kept() == compiled


def test_what_the_process_beside_compiles_is_part_of_everything() -> None:
    assert set(BESIDE_PARTS) <= set(PARTS)


def test_a_part_that_cannot_be_compiled_is_named_and_counts() -> None:
    ended: list[tuple[str, int, int]] = []
    (failed,) = warm_all(2, lambda *each: ended.append(each), ["nothing"])
    assert failed == f"nothing: part is 'nothing', but must be one of {', '.join(PARTS)}"
    assert ended == [("nothing", 1, 1)]
    assert main(["nothing"]) == 2


def test_a_scheduler_of_a_tracker_interprets_nothing_after_the_warm_up(tmp_path: Path) -> None:
    kept = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    call = [sys.executable, "-m", "recrawl.warming", "market"]
    subprocess.run(call, env={**kept, VARIABLE: "compiled"}, timeout=COMPILING_S, check=True)
    call = [sys.executable, "-c", TRACKED]
    ran = subprocess.run(
        call, env={**kept, VARIABLE: "auto"}, capture_output=True, text=True, timeout=COMPILING_S, check=True
    )
    assert ran.stdout.strip() == "[]"
