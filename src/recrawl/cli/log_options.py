"""Options of commands that run for long: what they log, and how; and their voice, which speaks to people."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import click

from recrawl.cli.terminal import clean, is_terminal
from recrawl.errors import InvalidInput

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Voice:
    """How a command speaks to people.

    Args:
        in_log: whether standard error is a log for programs: then sentences are lines of it, without secrets.
        quiet: whether only what needs an answer, or went wrong, is said.
    """

    in_log: bool = False
    quiet: bool = False

    def say(self, sentence: str) -> None:
        """Tell people a sentence."""
        if self.in_log:
            from recrawl.log import room_log

            room_log("cli").info("%s", sentence)
        else:
            click.echo(clean(sentence), file=sys.stderr)

    @property
    def is_heard(self) -> bool:
        """Whether someone sits at the terminal, to whom a link that signs in may be shown."""
        return not self.in_log and is_terminal(sys.stderr)


def log_options(command: Command) -> Command:
    """Add `--log-format`, `--verbose` and `--quiet`; the command gets a started log, and its `voice`."""

    @wraps(command)
    def logged(*args: Any, log_format: str, verbose: bool, quiet: bool, **kwargs: Any) -> Any:
        from recrawl.log import start_log

        if verbose and quiet:
            raise InvalidInput("and --quiet contradict each other: give one of them", field="--verbose")
        start_log(
            "json" if log_format == "json" else "text",
            logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO,
        )
        return command(*args, voice=Voice(log_format == "json", quiet), **kwargs)

    options = (
        click.option("--quiet", is_flag=True, help="Log warnings and errors only, and no line a minute."),
        click.option("--verbose", is_flag=True, help="Log every visit and request too."),
        click.option(
            "--log-format",
            type=click.Choice(["text", "json"]),
            default="text",
            show_default=True,
            help="Of the log on standard error: lines for people, or one JSON object a line.",
        ),
    )
    made: Any = logged
    for option in options:
        made = option(made)
    return made  # type: ignore[no-any-return]
