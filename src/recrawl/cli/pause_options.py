"""What `pause` and `resume` share: which pages, groups and hosts are meant."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from recrawl.cli.store_commands import do_all
from recrawl.errors import InvalidInput

if TYPE_CHECKING:
    from recrawl.tracker.commands.commands import Pause, Resume

Function = TypeVar("Function", bound=Callable[..., Any])


def pause_options(command: Function) -> Function:
    """Add `--page`, `--group` and `--host`, each any number of times."""
    for name, metavar, means in (
        ("--host", "NAME", "All pages of a host."),
        ("--group", "NAME", "All pages of a group."),
        ("--page", "URL", "One page."),
    ):
        command = click.option(name, metavar=metavar, multiple=True, help=f"{means} May be repeated.")(command)
    return command


def do_each(
    kind: type[Pause | Resume],
    names: Mapping[str, tuple[str, ...]],
    settings_path: Path | None,
    store: str | None,
    *,
    as_json: bool,
) -> None:
    """Carry out the command for each kind of name that was given."""
    commands = [kind(of, list(given)) for of in ("page", "group", "host") if (given := names[of])]
    if not commands:
        raise InvalidInput("say what is meant: --page, --group or --host")
    do_all(commands, settings_path, store, as_json=as_json)
