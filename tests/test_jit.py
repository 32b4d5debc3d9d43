"""Compiled kernels are kept on disk and never outlive the sources they were made from."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import recrawl

CODE = "import recrawl.planning.laws as m, recrawl.jit as j; print(j.cache_folder(m.__name__).name, m.inverse_h(3.0))"


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


def test_a_folder_that_cannot_be_made_is_left_to_the_compiler(tmp_path: Path) -> None:
    from recrawl.jit import cache_folder

    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert cache_folder("recrawl.planning.laws", str(blocked)).parent == blocked
