"""Compiled kernels are kept on disk and never outlive the sources they were made from."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba

import recrawl
from recrawl.jit.compiled import TRIED
from recrawl.jit.way import VARIABLE

CODE = """
import recrawl.planning.laws as laws
from recrawl.jit.folders import module_folder
print(module_folder(laws.__name__).name, laws.inverse_h(3.0))
"""

PARTS = """
import numpy as np
from recrawl.jit import borrowing, kernel

@borrowing
def half(number, at):
    return 0.5 * number[at]

@kernel
def first(number, order):
    return half(number, 0) + half(number, order[0]) + half(number, np.int64(order[1]))

@kernel
def second(number, order):
    return half(number, 1) + half(number, order[2])

NUMBERS, ORDER = np.array([2.0, 4.0, 6.0]), np.arange(3, dtype=np.int32)
"""


def ask(root: Path) -> list[str]:
    """Import a copy of the package and say where it keeps kernels and what one of them answers."""
    answer = subprocess.run([sys.executable, "-c", CODE], cwd=root, check=True, capture_output=True, text=True)
    return answer.stdout.split()


def test_a_change_in_a_kernel_that_is_called_makes_its_callers_compile_again(tmp_path: Path) -> None:
    package = Path(recrawl.__file__).parent
    shutil.copytree(package, tmp_path / "recrawl", ignore=shutil.ignore_patterns("__pycache__"))
    folder, answer = ask(tmp_path)
    assert ask(tmp_path) == [folder, answer]
    special = tmp_path / "recrawl" / "values" / "special.py"
    source = special.read_text(encoding="utf-8")
    changed = source.replace(
        "def inverse_h(c: float) -> float:\n", "def inverse_h(c: float) -> float:\n    c = c + 1.0\n"
    )
    assert changed != source
    special.write_text(changed, encoding="utf-8")
    other_folder, other_answer = ask(tmp_path)
    assert other_folder != folder
    assert other_answer != answer


def test_kernels_compile_where_nothing_can_be_kept(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    code = "from recrawl.planning.laws import inverse_h; print(inverse_h(0.5))"
    settings = {**os.environ, "NUMBA_CACHE_DIR": str(blocked), VARIABLE: "compiled"}
    answer = subprocess.run([sys.executable, "-c", code], env=settings, check=True, capture_output=True, text=True)
    assert float(answer.stdout) > 0.0


def test_parts_were_tried_with_this_numba() -> None:
    """Under another numba everything compiles as numba does, in twice the time: try parts with it, then name it."""
    assert numba.__version__.startswith(TRIED)


def files_of_half(root: Path) -> dict[Path, int]:
    """The files in which a function of the module above is kept, and when each was written."""
    return {path: path.stat().st_mtime_ns for path in root.rglob("*.half-*.nbc")}


def test_what_kernels_call_is_compiled_once_and_read_from_disk_by_other_kernels(tmp_path: Path) -> None:
    (tmp_path / "halves.py").write_text(PARTS)
    settings = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kept")}

    def run(code: str) -> str:
        command = [sys.executable, "-c", f"from halves import *; {code}"]
        return subprocess.run(
            command, cwd=tmp_path, env=settings, check=True, capture_output=True, text=True
        ).stdout.strip()

    assert run("print(first(NUMBERS, ORDER), half.compiled.signatures)") == "4.0 []"
    kept = files_of_half(tmp_path)
    assert len(kept) == 1  # whether a number has 32 bits, 64, or stands in the source
    assert run("print(second(NUMBERS, ORDER), half.compiled.signatures)") == "5.0 []"
    assert files_of_half(tmp_path) == kept
    assert run("print(half(NUMBERS, 2), len(half.compiled.signatures))") == "3.0 1"
