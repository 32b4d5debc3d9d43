"""Compiled kernels are kept on disk as long as the contents of the files that they were made from stay the same."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from packaging.version import Version

import recrawl
from recrawl.jit.compiled import TRIED
from recrawl.jit.folders import is_portable, processor_of
from recrawl.jit.sources import GROUND, LAYERS, PACKAGE, layer_digest
from recrawl.jit.way import VARIABLE

CALLED = """
from recrawl.jit import exact

FACTOR = 2.0

@exact
def twice(x: float) -> float:
    return FACTOR * x
"""

PACKAGES = {
    "shown": "from recrawl.forms.called import twice",
    "shown_twice": "from ..shown import twice",
    "starred": "__all__ = ['inner']",
    "starred/inner": "from recrawl.forms.called import twice",
}

FORMS = (
    ("from recrawl.forms.called import twice", "twice(x)"),
    ("from recrawl.forms.called import (  # why\n    FACTOR,\n    twice,\n)", "twice(x)"),
    ("from recrawl.forms.called \\\n    import twice", "twice(x)"),
    ("import math; from recrawl.forms.called import FACTOR as factor", "factor * x"),
    ("from recrawl.forms import called", "called.twice(x)"),
    ("import recrawl.forms.called", "recrawl.forms.called.twice(x)"),
    ("import recrawl.forms.called as called", "called.twice(x)"),
    ("from . import called", "called.twice(x)"),
    ("from .called import twice", "twice(x)"),
    ("from ..forms.called import twice as other", "other(x)"),
    ("from .called import *", "twice(x)"),
    ("from .starred import *", "inner.twice(x)"),
    ("from recrawl.forms.shown import twice", "twice(x)"),
    ("from . import shown_twice", "shown_twice.twice(x)"),
    ("from typing import TYPE_CHECKING\nif not TYPE_CHECKING:\n    from .called import twice", "twice(x)"),
    ("try:\n    import no_such_module\nexcept ImportError:\n    from .called import twice", "twice(x)"),
    ("def found():\n    from .called import twice\n    return twice\nother = found()", "other(x)"),
)

ASK = """
import sys
from importlib import import_module
for number in range(int(sys.argv[1])):
    caller = import_module(f"recrawl.forms.caller_{number}")
    print(caller.answer(3.0))
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

SHARED = """
import numpy as np
from recrawl.jit import exact, kernel, running, shared

@shared
def table():
    print("read")
    return np.arange(200_000.0).reshape(2, 100_000)

@exact
def entry(i, j):
    return table()[i, j]

@kernel
def total(rows):
    found = 0.0
    for row in rows:
        found += entry(row, 7)
    return found

def answer(way):
    with running(way):
        print(total(np.array([0, 1])))
"""


def copy_of_package(root: Path) -> Path:
    """A copy whose files were all written just now."""
    shutil.copytree(
        Path(recrawl.__file__).parent,
        root / "recrawl",
        ignore=shutil.ignore_patterns("__pycache__"),
        copy_function=shutil.copyfile,
    )
    return root / "recrawl"


def run_in(root: Path, code: str, *arguments: str, **settings: str) -> list[str]:
    """The lines that a program prints which finds modules in a folder."""
    command = [sys.executable, "-c", code, *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"} | settings
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_change_in_a_kernel_that_is_called_makes_its_callers_compile_again(tmp_path: Path) -> None:
    """Whichever way a caller imports the kernel or a constant: all that the language has."""
    forms = copy_of_package(tmp_path) / "forms"
    for name, source in PACKAGES.items():
        path = forms / (f"{name}.py" if "/" in name else f"{name}/__init__.py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    (forms / "__init__.py").touch()
    (forms / "called.py").write_text(CALLED)
    for number, (statement, call) in enumerate(FORMS):
        kernel = f"@exact\ndef answer(x: float) -> float:\n    return {call}\n"
        (forms / f"caller_{number}.py").write_text(f"from recrawl.jit import exact\n{statement}\n\n{kernel}")
    count = str(len(FORMS))
    assert run_in(tmp_path, ASK, count) == ["6.0"] * len(FORMS)
    (forms / "called.py").write_text(CALLED.replace("2.0", "5.0"))
    answers = dict(zip(FORMS, run_in(tmp_path, ASK, count), strict=True))
    assert {form: answer for form, answer in answers.items() if answer != "15.0"} == {}


@pytest.mark.parametrize("layer", LAYERS)
def test_kernels_are_made_only_of_files_that_their_digest_covers(layer: str) -> None:
    covered = {name.removesuffix(".py") for name in (*GROUND, *LAYERS[layer])}
    imported = set()
    for path in (PACKAGE / layer).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            names = [each.name for each in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else names
            imported |= {name.split(".")[1] for name in modules if name.startswith(f"{PACKAGE.name}.")}
            assert PACKAGE.name not in modules, f"{path}: name the module"
            assert not isinstance(node, ast.ImportFrom) or not node.level, f"{path}: relative"
    assert imported <= covered


def test_a_layer_has_a_digest_of_its_files_and_of_those_below(tmp_path: Path) -> None:
    package = copy_of_package(tmp_path)
    ask = "from pathlib import Path; from recrawl.jit.sources import LAYERS, layer_digest\n"
    ask += "print(*(layer_digest(each, Path()) for each in LAYERS))"

    def digests() -> dict[str, str]:
        (line,) = run_in(tmp_path, ask)
        return dict(zip(LAYERS, line.split(), strict=True))

    before = digests()
    assert before == {layer: layer_digest(layer, Path()) for layer in LAYERS}
    changes = {
        "learning/prior.py": {"learning", "scheduling"},
        "scheduling/scheduler.py": {"scheduling"},
        "web/content/page.py": {"web"},
        "cli/main.py": set(),
        "pages.py": set(LAYERS),
    }
    for file, changed in changes.items():
        with (package / file).open("a") as opened:
            opened.write("# a remark\n")
        now = digests()
        assert {layer for layer in LAYERS if now[layer] != before[layer]} == changed
        before = now


FIRST = """
from recrawl.jit.folders import note_complete
from recrawl.planning.laws import inverse_h
print(inverse_h(3.0))
note_complete("laws")
"""

AGAIN = """
from recrawl.jit.folders import complete_parts
from recrawl.planning.laws import inverse_h
print(inverse_h(3.0), complete_parts())
"""


def test_a_copy_of_the_package_finds_everything_compiled(tmp_path: Path) -> None:
    """Such as a fresh clone, or an image: its files have other times, and it is in another folder."""
    kept = tmp_path / "kept"
    settings = {"NUMBA_CACHE_DIR": str(kept), VARIABLE: "compiled"}
    for name in ("first", "second"):
        copy_of_package(tmp_path / name)
    (answer,) = run_in(tmp_path / "first", FIRST, **settings)
    made = {path: path.stat().st_mtime_ns for path in kept.rglob("*.nb?")}
    assert made
    assert run_in(tmp_path / "second", AGAIN, **settings) == [f"{answer} {{'laws'}}"]
    assert {path: path.stat().st_mtime_ns for path in kept.rglob("*.nb?")} == made


def test_a_change_anywhere_in_the_package_makes_parts_incomplete(tmp_path: Path) -> None:
    """What a program calls kernels with may have changed, though the kernels have not."""
    package = copy_of_package(tmp_path)
    note = "from recrawl.jit.folders import note_complete; note_complete('laws')"
    ask = "from recrawl.jit.folders import complete_parts; print(sorted(complete_parts()))"
    run_in(tmp_path, note)
    assert run_in(tmp_path, ask) == ["['laws']"]
    with (package / "cli" / "main.py").open("a") as file:
        file.write("# a remark\n")
    assert run_in(tmp_path, ask) == ["[]"]
    run_in(tmp_path, note.replace("laws", "others"))
    assert run_in(tmp_path, ask) == ["['others']"]


USED = """
import sys
from pathlib import Path
from recrawl.jit.folders import complete_parts, module_folder, note_complete
print(module_folder("own", Path(sys.argv[1])).parent.name)
note_complete(sys.argv[2])
print(*sorted(complete_parts()))
"""


def test_a_part_is_complete_as_long_as_the_folders_with_its_code_are_there(tmp_path: Path) -> None:
    source, kept = tmp_path / "own.py", tmp_path / "kept"
    folders, complete = [], []
    for version in range(4):
        source.write_text(f"VERSION = {version}\n")
        folder, parts = run_in(tmp_path, USED, str(source), f"part-{version}", NUMBA_CACHE_DIR=str(kept))
        folders.append(folder)
        complete.append(parts.split())
    everything = [f"part-{version}" for version in range(4)]
    assert complete == [everything[:1], everything[:2], everything[:3], everything[1:]]  # the oldest is forgotten
    assert sorted(path.name for path in kept.iterdir() if path.is_dir()) == sorted(folders[1:])
    assert not list(kept.glob("*part-0"))
    shutil.rmtree(kept / folders[2])
    ask = "from recrawl.jit.folders import complete_parts; print(*sorted(complete_parts()))"
    assert run_in(tmp_path, ask, NUMBA_CACHE_DIR=str(kept)) == ["part-1 part-3"]


CPUINFO = """processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model\t\t: 106
model name\t: Intel(R) Xeon(R) Platinum 8370C CPU @ 2.80GHz
cpu MHz\t\t: 2793.4
flags\t\t: fpu sse sse2 ssse3 fma avx avx2 ibpb avx512f md_clear

processor\t: 1
"""


def test_code_is_of_use_on_every_processor_with_the_same_instructions() -> None:
    """Clock, name and what the operating system knows of the processor do not matter to compiled code."""
    other = CPUINFO.replace("8370C CPU @ 2.80", "8375C CPU @ 2.90").replace("2793.4", "2900.1")
    other = other.replace(" ibpb", "").replace("md_clear", "arch_capabilities")
    assert processor_of(CPUINFO) == processor_of(other)
    assert processor_of(CPUINFO) != processor_of(CPUINFO.replace("avx512f ", ""))
    assert processor_of(CPUINFO) != processor_of(CPUINFO.replace(": 106", ": 85"))
    assert processor_of("arm") == "arm"


def test_what_is_compiled_for_any_processor_is_complete_on_every_one() -> None:
    assert is_portable({"NUMBA_CPU_NAME": "generic"})
    assert is_portable({"NUMBA_CPU_NAME": "skylake", "NUMBA_CPU_FEATURES": ""})
    assert not is_portable({"NUMBA_CPU_NAME": "skylake"})  # numba adds the features of this one
    assert not is_portable({})


def test_kernels_compile_where_nothing_can_be_kept(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    code = "from recrawl.planning.laws import inverse_h; print(inverse_h(0.5))"
    settings = {**os.environ, "NUMBA_CACHE_DIR": str(blocked), VARIABLE: "compiled"}
    answer = subprocess.run([sys.executable, "-c", code], env=settings, check=True, capture_output=True, text=True)
    assert float(answer.stdout) > 0.0


older_numba = pytest.mark.skipif(
    Version(numba.__version__) < Version(f"{TRIED}0"), reason=f"parts were not tried with numba {numba.__version__}"
)


@older_numba
def test_parts_were_tried_with_this_numba() -> None:
    """Under another numba everything compiles as numba does, in twice the time: try parts with it, then name it."""
    assert numba.__version__.startswith(TRIED)


LEARNED = """
import json, sys
import numpy as np
import recrawl.jit.compiled as compiled
compiled.TRIED = sys.argv[1]
from recrawl.learning.filter import believe_many, law_of, update_many
from recrawl.learning.filter_state import Memory, empty_state
from recrawl.scheduling.learner import prior_around

law, states = law_of(prior_around(1.0), Memory(half_life=50.0)), empty_state(3)
pages, rng = np.arange(300) % 3, np.random.default_rng(1)
update_many(states, law, pages, rng.random(300) + 0.1, rng.random(300) < 0.1 + 0.3 * pages)
numbers = believe_many(states, law, np.arange(3), 0.05)
parts = [module for module in sys.modules if module == "recrawl.jit.parts"]
print(json.dumps([parts, numbers.tolist()]))
"""


@older_numba
def test_kernels_give_the_same_answers_without_parts(tmp_path: Path) -> None:
    """Under a numba that parts were not tried with, all is compiled as numba does, and no class of it is extended."""
    found = {}
    for tried in (TRIED, "0.0."):
        settings = {"NUMBA_CACHE_DIR": str(tmp_path / tried), VARIABLE: "compiled"}
        source = Path(recrawl.__file__).parent.parent
        (line,) = run_in(source, LEARNED, tried, **settings)
        parts, numbers = json.loads(line)
        assert parts == (["recrawl.jit.parts"] if tried == TRIED else [])
        found[tried] = np.array(numbers)
    np.testing.assert_allclose(found[TRIED], found["0.0."], rtol=1e-12)


def files_of_half(root: Path) -> dict[Path, int]:
    """The files in which a function of the module above is kept, and when each was written."""
    return {path: path.stat().st_mtime_ns for path in root.rglob("*.half-*.nbc")}


@older_numba
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


def test_kernels_refer_to_a_shared_array_and_hold_no_copy(tmp_path: Path) -> None:
    """Interpreted, compiled, and loaded from disk by another process, which reads the array for itself, once."""
    (tmp_path / "sharing.py").write_text(SHARED)
    kept = tmp_path / "kept"
    settings = {"NUMBA_CACHE_DIR": str(kept)}
    call = "from sharing import answer; answer('interpreted'); answer('compiled'); answer('compiled')"
    for _ in range(2):
        assert run_in(tmp_path, call, **settings) == ["read", *["100014.0"] * 3]
    files = list(kept.rglob("*.nbc"))
    assert len(files) == 2
    assert sum(path.stat().st_size for path in files) < 200_000  # of 1.6 MB
