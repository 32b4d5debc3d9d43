"""Extras: what needs a library that is not installed says in one sentence how to install it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from patience import PATIENCE_S
from recrawl.cli.terminal import check_figure
from recrawl.errors import MissingExtra
from recrawl.extras import Library, is_installed, missing
from recrawl.files.page_file import check_output, open_pages
from recrawl.store.store import open_store
from recrawl.web.content.main_text import extract

PROJECT = Path(__file__).parents[1] / "pyproject.toml"

FEATURES: dict[Library, Callable[[Path], object]] = {
    "asyncpg": lambda _: asyncio.run(open_store("postgresql://localhost/crawl", owner=False)),
    "pyarrow": lambda folder: check_output(folder / "rates.parquet", folder / "pages.csv"),
    "matplotlib": lambda folder: check_figure(folder / "plan.png"),
    "trafilatura": lambda _: extract(b"<p>text</p>"),
}


@pytest.mark.parametrize("library", FEATURES)
def test_what_needs_a_missing_library_names_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: Library
) -> None:
    """One sentence, with the command that installs it, before any work is done."""
    monkeypatch.setitem(sys.modules, library, None)
    assert not is_installed(library)
    with pytest.raises(MissingExtra, match=rf"needs {library}, which is not installed; call pip install 'recrawl\["):
        FEATURES[library](tmp_path)


@pytest.mark.parametrize("library", ["asyncpg", "matplotlib", "pyarrow", "scipy", "scrapy", "trafilatura"])
def test_the_extra_that_is_named_brings_the_library(library: Library) -> None:
    """The command in the sentence does what it says, and no extra is needed for what is always there."""
    project = tomllib.loads(PROJECT.read_text())["project"]
    extra = missing(library, "it").partition("recrawl[")[2].removesuffix("]'")
    assert any(line.startswith(f"{library}>=") for line in project["optional-dependencies"][extra])


def test_a_parquet_file_is_refused_where_pyarrow_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before its content matters."""
    (tmp_path / "pages.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"a Parquet file needs pyarrow"):
        open_pages(tmp_path / "pages.parquet")


WITHOUT = """
    import sys
    for library in ("asyncpg", "matplotlib", "pyarrow", "scipy", "scrapy", "trafilatura", "pandas", "polars", "lxml"):
        sys.modules[library] = None  # as if it were not installed
    from recrawl.cli.main import cli
    cli(sys.argv[1:], prog_name="recrawl")
"""


def run_without(folder: Path, *call: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process that has no library of any extra."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(WITHOUT), *call],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_files_of_text_need_no_extra(tmp_path: Path) -> None:
    """A plan from CSV to JSONL and from JSONL to CSV, and pages imported and exported."""
    examples = PROJECT.parent / "examples" / "pages.csv"
    calls = [
        ("plan", str(examples), "--budget", "40/day", "--out", "rates.jsonl", "--json"),
        ("plan", "rates.jsonl", "--budget", "40/day", "--out", "rates.csv", "--json"),
        ("import", str(examples), "--json"),
        ("export", "--out", "pages.csv"),
        ("status", "--json"),
        ("doctor", "--json"),
    ]
    for call in calls:
        done = run_without(tmp_path, *call)
        assert done.returncode == 0, (call, done.stderr)
    assert len((tmp_path / "rates.csv").read_text().splitlines()) == 61
    assert len((tmp_path / "pages.csv").read_text().splitlines()) == 61
    refused = run_without(tmp_path, "plan", "rates.csv", "--budget", "40/day", "--plot", "plan.png")
    assert (refused.returncode, refused.stderr) == (2, f"recrawl: {missing('matplotlib', 'a figure')}\n")


FRAMES = """
    import sys
    sys.modules["pyarrow"] = None
    import pandas, polars
    import recrawl
    from recrawl.learning.histories import read_histories
    columns = {"importance": [1.0, 2.0], "change_rate": [0.5, 1.0], "host": ["a", "b"]}
    makers = (dict, pandas.DataFrame, polars.DataFrame)
    plans = [recrawl.plan(make(columns), budget=2.0).rates.tolist() for make in makers]
    assert plans[0] == plans[1] == plans[2], plans
    gaps, changed = [[1.0, 2.0], [3.0]], [[True, False], [True]]
    plain = read_histories(gaps, changed)
    framed = read_histories(polars.Series(gaps), polars.Series(changed))
    assert plain.offsets.tolist() == framed.offsets.tolist() and plain.gaps.tolist() == framed.gaps.tolist()
"""


def test_frames_of_pandas_and_polars_need_no_extra(tmp_path: Path) -> None:
    """They bring their own libraries, of which pyarrow need not be one."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FRAMES)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
