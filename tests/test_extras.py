"""Extras: what needs a library that is not installed says in one sentence how to install it."""

from __future__ import annotations

import asyncio
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from recrawl.cli.terminal import check_figure
from recrawl.errors import MissingExtra
from recrawl.extras import Library, is_installed, missing
from recrawl.store.opening import open_store
from recrawl.web.main_text import extract

PROJECT = Path(__file__).parents[1] / "pyproject.toml"

FEATURES: dict[Library, Callable[[Path], object]] = {
    "asyncpg": lambda _: asyncio.run(open_store("postgresql://localhost/crawl", owner=False)),
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
