"""`make test-quick`: which tests a change touches."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from changed_tests import changed_files, imported, touched_tests

FILES = {
    "tests/conftest.py": "",
    "tests/patience.py": "",
    "tests/web/test_a.py": "from hostile_ground import fetch\nfrom recrawl.web.address import Address",
    "tests/web/test_b.py": "import recrawl.web.egress",
    "tests/web/hostile_ground.py": "from patience import PATIENCE_S",
    "tests/web/samples.csv": "x",
    "tests/store/test_c.py": "from recrawl.web import egress",
    "tests/test_units.py": "from recrawl.units import per_day",
    "tests/test_tool.py": "from build_docs import build",
    "tests/test_docs.py": "",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        ("tests/web/test_b.py", ["tests/web/test_b.py"]),
        ("tests/web/hostile_ground.py", ["tests/web/test_a.py"]),
        ("tests/patience.py", ["tests/web/test_a.py"]),
        ("tests/web/samples.csv", ["tests/web/test_a.py", "tests/web/test_b.py"]),
        ("src/recrawl/web/egress.py", ["tests/store/test_c.py", "tests/web/test_a.py", "tests/web/test_b.py"]),
        ("src/recrawl/web/address.py", ["tests/web/test_a.py", "tests/web/test_b.py"]),
        ("src/recrawl/units.py", ["tests/test_units.py"]),
        ("src/recrawl/store/rows.py", ["tests/store/test_c.py"]),
        ("tools/build_docs.py", ["tests/test_tool.py"]),
        ("docs/api.md", ["tests/test_docs.py"]),
        ("tests/gone/test_gone.py", []),
        ("tests/conftest.py", []),
    ],
)
def test_tests_of_a_change(project: Path, changed: str, tests: list[str]) -> None:
    assert touched_tests([changed], project) == tests


def test_imports_are_read_with_their_members() -> None:
    assert imported("from a.b import c as d, e\nimport f.g\n    from h import (\n") == {
        "a.b",
        "a.b.c",
        "a.b.e",
        "f.g",
        "h",
    }


def test_what_differs_from_the_main_branch_is_a_change(tmp_path: Path) -> None:
    def git(*command: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", tmp_path, *who, *command], check=True, capture_output=True)

    git("init", "--initial-branch", "main")
    for name in ("kept", "edited", "committed"):
        (tmp_path / name).write_text("before", encoding="utf-8")
    git("add", "--all")
    git("commit", "--message", "Begin")
    git("switch", "--create", "work")
    (tmp_path / "committed").write_text("after", encoding="utf-8")
    git("commit", "--all", "--message", "Go on")
    (tmp_path / "edited").write_text("after", encoding="utf-8")
    (tmp_path / "new").write_text("new", encoding="utf-8")
    assert changed_files(tmp_path) == ["committed", "edited", "new"]
