"""Peak extra memory of a plan, measured in a process of its own.

    python -m recrawl.bench.memory lambdacrawl 20    prints the bytes as one line of JSON

The child draws the pages, plans a few of them so that compilers and libraries are loaded, notes how much memory it
holds, plans them all, and asks the kernel for the highest it ever held. The pages are drawn in parts, so that
drawing them does not set a peak of its own; what is left of that can only make the figure larger.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from recrawl.bench.measure import CannotRun
from recrawl.bench.plans import PLANS, PlanCase, draw_millions
from recrawl.lab.worlds.laws import web_population

_STATUS = Path("/proc/self/status")
_LONGEST_S = 240
# Enough pages for a plan to take every step that it takes for millions.
_WARM_UP_PAGES = 50_000

# Freed arrays go back to the system at once: memory kept for reuse would hide what the plan takes.
_GIVE_BACK = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}


class PeakMemory(NamedTuple):
    """Bytes: of the arrays handed to the plan, and of memory beyond what was held before."""

    input_bytes: int
    extra_bytes: int


def peak_memory(case: PlanCase, millions: int) -> PeakMemory:
    """Measure a plan of so many million pages in a fresh process."""
    if not _STATUS.exists():
        raise CannotRun(f"there is no {_STATUS} on this system to read the peak memory from")
    command = [sys.executable, "-m", "recrawl.bench.memory", case.name, str(millions)]
    try:
        child = subprocess.run(
            command, capture_output=True, text=True, timeout=_LONGEST_S, check=False, env=os.environ | _GIVE_BACK
        )
    except subprocess.TimeoutExpired:
        raise CannotRun(f"the plan took over {_LONGEST_S} s in a process of its own") from None
    if child.returncode != 0:
        last = (child.stderr.strip().splitlines() or ["it said nothing, perhaps for want of memory"])[-1]
        raise CannotRun(f"the process that plans ended with code {child.returncode}: {last}")
    return PeakMemory(**json.loads(child.stdout))


def plan_and_measure(case: PlanCase, millions: int) -> PeakMemory:
    """Plan in this process and read how far its memory rose; right only while nothing else ran in it."""
    case.plan(web_population(_WARM_UP_PAGES))
    columns = draw_millions(millions, case.columns)
    before = held_bytes("VmRSS")
    case.plan(columns)
    return PeakMemory(_size(columns), held_bytes("VmHWM") - before)


def held_bytes(field: str) -> int:
    """Memory of this process: `VmRSS` now, `VmHWM` at its peak."""
    for line in _STATUS.read_text().splitlines():
        name, _, rest = line.partition(":")
        if name == field:
            return int(rest.split()[0]) * 1024
    raise CannotRun(f"{_STATUS} does not tell {field} on this system")


def _size(columns: Mapping[str, object]) -> int:
    return sum(int(getattr(column, "nbytes", 0)) for column in columns.values())


def _main(name: str, millions: str) -> None:
    case = next(case for case in PLANS if case.name == name)
    sys.stdout.write(json.dumps(plan_and_measure(case, int(millions))._asdict()) + "\n")


if __name__ == "__main__":
    _main(*sys.argv[1:])
