"""Commands that must answer at once load nothing heavy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from patience import PATIENCE_S
from recrawl.cli.importing import import_pages
from recrawl.tracker.importers.formats import FORMATS

HEAVY = ("numba", "aiohttp", "litestar", "pyarrow", "matplotlib", "asyncpg", "scipy", "pandas", "polars", "yaml")
CODE = f"""
import sys
from recrawl.cli.main import main
try:
    main()
finally:
    print(*(name for name in {HEAVY!r} if name in sys.modules), file=sys.stderr)
"""


CALLS = [("--help",), ("add", "https://example.com/"), ("status",), ("signal", "https://example.com/")]


def heavy_of(folder: Path, call: tuple[str, ...]) -> str:
    """What a command that ends well has loaded."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, *call],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_a_short_command_loads_nothing_heavy(tmp_path: Path, call: tuple[str, ...]) -> None:
    """Neither the compiler nor a client or server of HTTP, nor any library of an extra."""
    heavy_of(tmp_path, ("add", "https://example.com/"))  # makes the store
    assert heavy_of(tmp_path, call) == ""


def test_help_of_import_names_every_format() -> None:
    """A format is a row of one table, and the help follows."""
    text = " ".join(CliRunner().invoke(import_pages, ["--help"]).stdout.split())
    assert f"{', '.join(list(FORMATS)[:-1])} or {list(FORMATS)[-1]}; by default told from name" in text
