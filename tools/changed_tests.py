"""Name the tests that a change touches, for `make test-quick`.

A change is what differs from the main branch: commits of this branch, the working tree and new files. A test file
counts itself; a helper of the tests, those that import it; a room of `src`, the tests of the room and those that
import the changed module; documents and settings of the project, the tests of documents and deployment. What touches
every test, such as `tests/conftest.py`, is for `make test`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
_IMPORT = re.compile(r"^\s*(?:from\s+([\w.]+)\s+import\s+([^\n]+)|import\s+([\w.]+))", re.MULTILINE)
_OF_DOCUMENTS = ("tests/test_docs.py", "tests/test_docs_examples.py", "tests/test_docs_site.py", "tests/test_deploy.py")


def changed_files(root: Path = ROOT) -> list[str]:
    """Files that differ from the main branch, or are new."""
    try:
        base = _git(root, "merge-base", "HEAD", "main")[0]
    except subprocess.CalledProcessError:  # there is no branch of that name
        base = "HEAD"
    return sorted({*_git(root, "diff", "--name-only", base), *_git(root, "ls-files", "--others", "--exclude-standard")})


def touched_tests(changed: Iterable[str], root: Path = ROOT) -> list[str]:
    """The test files that a change of these files touches; O(bytes of the tests)."""
    imports = {
        path.relative_to(root).as_posix(): imported(path.read_text(encoding="utf-8"))
        for path in sorted((root / "tests").rglob("*.py"))
    }
    found: set[str] = set()
    for name in changed:
        found |= _touched(PurePosixPath(name), imports)
    return sorted(name for name in found if _is_test(name) and name in imports)


def imported(text: str) -> set[str]:
    """Dotted names of modules that a file imports: `from a import b` may mean `a` and `a.b`."""
    names: set[str] = set()
    for module, members, plain in _IMPORT.findall(text):
        names.add(module or plain)
        names.update(f"{module}.{member.split()[0]}" for member in members.strip("( ").split(",") if member.strip())
    return names


def _touched(path: PurePosixPath, imports: dict[str, set[str]]) -> set[str]:
    name = str(path)
    if path.parts[0] == "tests":
        if path.suffix != ".py":  # data of the tests beside it
            return {each for each in imports if each.startswith(f"{PurePosixPath(*path.parts[:2])}/")}
        return {name} if _is_test(name) else _importing(path.stem, imports)
    if path.parts[:2] == ("src", "recrawl") and len(path.parts) > 2:
        room = path.parts[2].removesuffix(".py")
        module = ".".join(path.with_suffix("").parts[1:]).removesuffix(".__init__")
        of_room = {each for each in imports if each.startswith((f"tests/{room}/", f"tests/test_{room}.py"))}
        return of_room | _importing(module, imports)
    if path.parts[0] == "tools" and path.suffix == ".py":
        return _importing(path.stem, imports)
    return set(_OF_DOCUMENTS)


def _importing(module: str, imports: dict[str, set[str]]) -> set[str]:
    """Test files that import a module, also through helpers."""
    found: set[str] = set()
    wanted = {module}
    while wanted:
        direct = {each for each, names in imports.items() if names & wanted} - found
        found |= direct
        wanted = {PurePosixPath(each).stem for each in direct if not _is_test(each)}
    return found


def _is_test(name: str) -> bool:
    return PurePosixPath(name).name.startswith("test_")


def _git(root: Path, *command: str) -> list[str]:
    asked = ["git", "-C", str(root), *command]
    return subprocess.run(asked, capture_output=True, check=True, text=True).stdout.splitlines()


if __name__ == "__main__":
    sys.stdout.writelines(f"{name}\n" for name in touched_tests(changed_files()))
