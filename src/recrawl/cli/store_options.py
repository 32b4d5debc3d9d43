"""Options that all commands on a store share: the settings file, and flags for settings of one value."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from recrawl.errors import InvalidInput

Command = TypeVar("Command", bound=Callable[..., Any])

SETTINGS_FILE = "recrawl.toml"
"""Read from the working folder if it is there and no other is named."""


def settings_option(command: Command) -> Command:
    """Add `--settings` and `--store`."""
    command = click.option("--store", metavar="WHERE", help="Folder of the data, or postgresql://… .")(command)
    return click.option(
        "--settings",
        "settings_path",
        metavar="FILE",
        type=click.Path(path_type=Path),
        help=f"TOML file of settings; {SETTINGS_FILE} in this folder if it is there.",
    )(command)


def chosen_settings(settings_path: Path | None, flags: dict[str, Any]) -> Any:
    """The settings of file and flags (`Chosen`); flags are named as settings are, those that are None were not given.

    The variable RECRAWL_STORE stands in for `--store`.
    """
    from recrawl.tracker.settings.file import read_settings

    if settings_path is None and Path(SETTINGS_FILE).is_file():
        settings_path = Path(SETTINGS_FILE)
    elif settings_path is not None and not settings_path.is_file():
        raise InvalidInput(f"is {str(settings_path)!r}, which is not a file", field="--settings")
    if flags.get("store") is None and os.environ.get("RECRAWL_STORE"):
        flags = {**flags, "store": os.environ["RECRAWL_STORE"]}
    return read_settings(settings_path, flags)
