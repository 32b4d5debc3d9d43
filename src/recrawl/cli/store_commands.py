"""How the everyday commands do their work: through the tracker that runs, or on the store themselves; and say so."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from recrawl.cli.store_options import chosen_settings
from recrawl.cli.terminal import clean, print_json
from recrawl.errors import InvalidInput

if TYPE_CHECKING:
    from recrawl.tracker.commands.commands import Command, Reply


def do(command: Command, settings_path: Path | None, store: str | None, *, as_json: bool) -> None:
    """Carry out a command and print what was done; exit code 2 if nothing of it could be."""
    do_all([command], settings_path, store, as_json=as_json)


def do_all(commands: Sequence[Command], settings_path: Path | None, store: str | None, *, as_json: bool) -> None:
    """The same for commands of one kind, as if they were one."""
    from recrawl.tracker.commands.commands import Reply

    total = Reply()
    for command in commands:
        reply = ask(command, settings_path, store)
        for name, count in reply.done.items():
            total.done[name] = total.done.get(name, 0) + count
        total.rejected += reply.rejected
    _tell(total, as_json=as_json)


def ask(command: Command, settings_path: Path | None, store: str | None) -> Reply:
    """Carry out a command; its reply."""
    from recrawl._event_loop import run
    from recrawl.tracker.commands.client import carry_out

    settings = chosen_settings(settings_path, {"store": store}).settings
    reply = run(carry_out(command, settings, time.time))
    if reply.error:
        raise InvalidInput(reply.error)
    return reply


def _tell(reply: Reply, *, as_json: bool) -> None:
    if as_json:
        rejected = [{"url": each.url, "reason": each.reason} for each in reply.rejected]
        print_json({**reply.done, "refused": rejected})
    else:
        click.echo(", ".join(f"{count} {name}" for name, count in reply.done.items() if count) or "nothing to do")
        for each in reply.rejected:
            click.echo(clean(f"{each.url}: {each.reason}"), file=sys.stderr)
    if reply.rejected and not any(count for name, count in reply.done.items() if name != "rejected"):
        raise InvalidInput(f"none of it could be done: {reply.rejected[0].url!r} {reply.rejected[0].reason}")
