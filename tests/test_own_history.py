"""The history of this project as a trace: the script writes the same whenever it is run."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from own_history import write_history
from recrawl.files.history import open_history

FIRST_S = 1_700_000_000
HISTORIES = Path(__file__).parent / "simulation" / "histories"


def commit(repository: Path, number: int, files: dict[str, str | None]) -> None:
    """Commit these files, or their removal, an hour after the last commit."""
    for name, text in files.items():
        path = repository / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink() if text is None else path.write_text(text, encoding="utf-8")
    date = f"{FIRST_S + 3600 * number} +0000"
    who = {f"GIT_{role}_{part}": "a@example.com" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
    dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    for command in (["add", "--all"], ["commit", "--quiet", "--no-gpg-sign", "--message", "Change"]):
        subprocess.run(["git", "-C", repository, *command], check=True, env={**os.environ, **who, **dates})


@pytest.mark.skipif(shutil.which("git") is None, reason="the command git is not installed")
def test_files_are_pages_commits_are_events_and_links_are_importance(tmp_path: Path) -> None:
    repository, target = tmp_path / "repository", tmp_path / "out" / "own"
    subprocess.run(["git", "init", "--quiet", repository], check=True)
    commit(repository, 0, {"src/a.py": "x = 1", "README.md": "Read src/a.py and b.md."})
    commit(repository, 1, {"src/a.py": "x = 2", "b.md": "See a.py; nobody names this file but README.md does."})
    until_s = FIRST_S + 3600
    write_history(repository, target, until_s)
    events, pages = (Path(f"{target}.{part}.csv") for part in ("events", "pages"))
    written = [events.read_bytes(), pages.read_bytes()]
    assert events.read_text(encoding="utf-8").splitlines() == [
        "page,time,kind", "0,1700000000,0", "1,1700000000,0", "2,1700003600,0", "1,1700003600,1",
    ]  # fmt: skip
    assert pages.read_text(encoding="utf-8").splitlines() == [
        "page,path,importance", "0,README.md,2", "1,src/a.py,3", "2,b.md,2",
    ]  # fmt: skip
    commit(repository, 2, {"b.md": None, "later.md": "a.py"})
    write_history(repository, target, until_s)
    assert [events.read_bytes(), pages.read_bytes()] == written
    with pytest.raises(SystemExit, match="no commit up to 5"):
        write_history(repository, target, 5)


def test_the_history_in_the_repository_names_files_by_their_relative_path() -> None:
    history = open_history(HISTORIES)
    assert history.name == "recrawl"
    assert "README.md" in history.page_names
    assert not [name for name in history.page_names if name.startswith("/") or ".." in name]
