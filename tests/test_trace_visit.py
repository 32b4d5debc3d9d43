"""The way of one page through the tracker stays short: files that it passes, and records that carry it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from patience import PATIENCE_S

TOOL = Path(__file__).parents[1] / "tools" / "trace_visit.py"
MOST_FILES = {"tracker": 20, "cli": 3}
CARRIERS = {"Visit"}
STEPS = {"NeedAgain", "NeedMissing", "NeedText", "DetectionState"}  # within one stage


def test_a_page_passes_few_files_and_is_carried_in_few_records() -> None:
    ran = subprocess.run([sys.executable, str(TOOL)], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    rooms = {match[1]: match for match in re.finditer(r"^(\w+) +([0-9]+) files *(.*)$", ran.stdout, re.MULTILINE)}
    for room, most in MOST_FILES.items():
        assert 0 < int(rooms[room][2]) <= most, ran.stdout
    assert set(rooms["tracker"][3].split(", ")) <= CARRIERS | STEPS, ran.stdout
