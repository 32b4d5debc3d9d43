"""Real change histories: that of this project, which `tools/own_history.py` makes, and two public ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from recrawl.files.history import ChangeHistory, open_history

OWN = "recrawl"
PUBLIC = ("k8s", "hass")
_FOLDER = os.environ.get("RECRAWL_TRACES", "")
_needs_public = pytest.mark.skipif(not _FOLDER, reason="set RECRAWL_TRACES to a folder with the two public histories")
every_history = pytest.mark.parametrize("name", [OWN, *(pytest.param(name, marks=_needs_public) for name in PUBLIC)])


def opened(name: str) -> ChangeHistory:
    """Read one of them."""
    return open_history(Path(__file__).parent / "histories" / name if name == OWN else Path(_FOLDER) / name)
