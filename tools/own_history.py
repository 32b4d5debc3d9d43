"""Write the history of a git repository as a small trace in CSV; the tests replay the one of this project.

    python tools/own_history.py . tests/simulation/histories/recrawl

Files are pages, commits are their changes. The importance of a page is 1 plus the number of other files that name it.
The history ends at a fixed time, so that every run writes the same two files.
"""

from __future__ import annotations

import argparse
import csv
import io
import re
import subprocess
import tarfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from recrawl.files.history import open_history

UNTIL_S = 1_794_853_070
"""Commits up to this time count, in unix seconds."""
_NAME = re.compile(r"[\w./-]*\w")


def write_history(repository: Path, target: Path, until_s: int = UNTIL_S) -> None:
    """Write `TARGET.events.csv` and `TARGET.pages.csv`. O(events + bytes of the last revision)."""
    history = open_history(repository)
    kept = history.events.time <= until_s
    if not kept.any():
        raise SystemExit(f"The repository has no commit up to {until_s}: choose a later time.")
    page, time, kind = (column[kept].astype(int).tolist() for column in history.events)
    target.parent.mkdir(parents=True, exist_ok=True)
    _write(target, "events", ("page", "time", "kind"), zip(page, time, kind, strict=True))
    linked = _links(repository, until_s)
    names = history.page_names[: 1 + max(page)]  # pages are numbered as they come
    rows = ((number, name, 1 + linked[name]) for number, name in enumerate(names))
    _write(target, "pages", ("page", "path", "importance"), rows)


def _write(target: Path, part: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with target.with_name(f"{target.name}.{part}.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


def _links(repository: Path, until_s: int) -> Counter[str]:
    """How many other files of the last revision name each file: by its path, its name or its module."""
    revision = _git(repository, "rev-list", "-1", "--first-parent", f"--before={until_s}", "HEAD").decode().strip()
    with tarfile.open(fileobj=io.BytesIO(_git(repository, "archive", "--format=tar", revision))) as archive:
        files = {each.name: archive.extractfile(each) for each in archive if each.isfile()}
        texts = {name: file.read().decode("utf-8", "replace") for name, file in files.items() if file is not None}
    pages = {key: name for name in texts for key in _keys(name)}
    linked: Counter[str] = Counter()
    for name, text in texts.items():
        linked.update({pages[word] for word in _NAME.findall(text) if word in pages} - {name})
    return linked


def _keys(name: str) -> list[str]:
    """What a file is called in others; `__init__.py` and names without an ending say nothing alone."""
    path = Path(name)
    keys = [name, path.name] if path.suffix and path.name != "__init__.py" else [name]
    if path.suffix == ".py":
        parts = [part for part in path.with_suffix("").parts if part != "src"]
        keys.append(".".join(parts))
    return keys


def _git(repository: Path, *command: str) -> bytes:
    return subprocess.run(["git", "-C", str(repository), *command], capture_output=True, check=True).stdout


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("repository", type=Path)
    parser.add_argument("target", type=Path, help="folder and name of the two files, without an ending")
    parser.add_argument("--until", type=int, default=UNTIL_S, help="unix seconds of the last commit that counts")
    chosen = parser.parse_args()
    write_history(chosen.repository, chosen.target, chosen.until)
