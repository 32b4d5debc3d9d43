"""Options that the commands on a store share, and how such a command reaches its store or the tracker on it."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from recrawl.cli.terminal import clean, print_json
from recrawl.errors import InvalidInput

if TYPE_CHECKING:
    from recrawl.service.listening import Listening
    from recrawl.store.store import Store
    from recrawl.tracker.commands.commands import Command, Reply
    from recrawl.tracker.settings.file import Chosen
    from recrawl.tracker.settings.settings import Settings

Function = TypeVar("Function", bound=Callable[..., Any])
T = TypeVar("T")

SETTINGS_FILE = "recrawl.toml"
"""Read from the working folder if it is there and no other is named."""


@dataclass(frozen=True, slots=True)
class Place:
    """What `--settings`, `--store` and `--json` say.

    Args:
        settings_path: file of settings; None for the one in the working folder, if there is one.
        store: folder or address of the store; None as the settings have it.
        as_json: print JSON.
    """

    settings_path: Path | None
    store: str | None
    as_json: bool

    def chosen(self, **flags: str | bool | None) -> Chosen:
        """Return the settings of file and flags; a flag is named as its setting, and None if it was not given.

        The variable RECRAWL_STORE replaces `--store`, RECRAWL_LISTEN replaces `--listen`.
        """
        from recrawl.tracker.settings.file import read_settings

        path = self.settings_path
        if path is None and Path(SETTINGS_FILE).is_file():
            path = Path(SETTINGS_FILE)
        elif path is not None and not path.is_file():
            raise InvalidInput(f"is {str(path)!r}, which is not a file", field="--settings")
        named = {name.replace("_", "-"): value for name, value in flags.items()}
        named["store"] = self.store if self.store is not None else os.environ.get("RECRAWL_STORE") or None
        if "listen" in named and named["listen"] is None:
            named["listen"] = os.environ.get("RECRAWL_LISTEN") or None
        return read_settings(path, named)

    @property
    def settings(self) -> Settings:
        """The settings of file, store and environment."""
        return self.chosen().settings

    def read(self, work: Callable[[Store], Awaitable[T]]) -> T:
        """Open the store beside its tracker, do the work on it and close it."""
        from recrawl._event_loop import run

        return run(read_store(self.settings.store, work))

    def ask(self, command: Command) -> Reply:
        """Carry out a command in the tracker that runs, or on the store if none runs."""
        from recrawl._event_loop import run
        from recrawl.tracker.commands.commands import carry_out

        reply = run(carry_out(command, self.settings, time.time))
        if reply.error:
            raise InvalidInput(reply.error)
        return reply

    def do(self, *commands: Command) -> None:
        """Carry out commands of one kind and print what was done, as if they were one; refuse if all of it failed."""
        done: dict[str, int] = {}
        rejected = []
        for command in commands:
            reply = self.ask(command)
            for name, count in reply.done.items():
                done[name] = done.get(name, 0) + count
            rejected += reply.rejected
        if self.as_json:
            print_json({**done, "refused": [{"url": each.url, "reason": each.reason} for each in rejected]})
        else:
            click.echo(", ".join(f"{count} {name}" for name, count in done.items() if count) or "nothing to do")
            for each in rejected:
                say(f"{each.url}: {each.reason}")
        if rejected and not any(count for name, count in done.items() if name != "rejected"):
            raise InvalidInput(f"none of it could be done: {rejected[0].url!r} {rejected[0].reason}")

    def print(self, document: dict[str, Any], *lines: str) -> None:
        """Print a document as one JSON line, or else lines for people."""
        if self.as_json:
            print_json(document)
        else:
            for line in lines:
                click.echo(clean(line))


async def read_store(where: str, work: Callable[[Store], Awaitable[T]]) -> T:
    """Open a store without owning it, do the work on it and close it."""
    from recrawl.store.store import open_store

    store = await open_store(where, owner=False, create=False)
    try:
        return await work(store)
    finally:
        await store.close()


def store_command(name: str, json_help: str = "Print one JSON line.") -> Callable[[Callable[..., None]], click.Command]:
    """Make a function a command with `--settings`, `--store` and `--json`; its first argument is their `Place`."""

    def decorate(function: Callable[..., None]) -> click.Command:
        def callback(settings_path: Path | None, store: str | None, as_json: bool, **options: Any) -> None:
            function(Place(settings_path, store, as_json), **options)

        callback.__doc__ = function.__doc__
        json = click.Option(["--json", "as_json"], is_flag=True, help=json_help)
        callback.__click_params__ = [json, *getattr(function, "__click_params__", ())]  # type: ignore[attr-defined]
        return click.command(name)(_settings_options(callback))

    return decorate


def _settings_options(command: Function) -> Function:
    command = click.option("--store", metavar="WHERE", help="Folder of the data, or postgresql://… .")(command)
    return click.option(
        "--settings",
        "settings_path",
        metavar="FILE",
        type=click.Path(path_type=Path),
        help=f"TOML file of settings; {SETTINGS_FILE} in this folder if it is there.",
    )(command)


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON line.")
"""For commands without a store."""


def chosen_listening(chosen: Chosen) -> Listening | None:
    """Return where to listen by the settings; None for nowhere."""
    from recrawl.service.listening import read_listening

    settings, rules = chosen.settings, chosen.settings.service
    return read_listening(
        settings.listen,
        rules.names,
        behind_tls=rules.behind_tls,
        fixed="listen" in chosen.origins,
        proxies=rules.trusted_proxies,
    )


def parse_share(text: str, option: str, *, zero: bool) -> float:
    """Read a share below 1, as `0.95` or `95%`; `zero` says whether 0 is allowed.

    >>> parse_share("95%", "target", zero=False), parse_share("0", "warm-up", zero=True)
    (0.95, 0.0)
    """
    plain = text.strip()
    try:
        share = float(plain.removesuffix("%")) / (100 if plain.endswith("%") else 1)
    except ValueError:
        share = math.nan
    if not (0 <= share < 1 if zero else 0 < share < 1):
        allowed = "from 0 up to 1, such as 30% or 0.3" if zero else "between 0 and 1, such as 0.95 or 95%"
        raise InvalidInput(f"is {text!r}: write a share {allowed}", field=option)
    return share


def say(sentence: str) -> None:
    """Print a sentence to stderr, without control characters."""
    click.echo(clean(sentence), file=sys.stderr)
