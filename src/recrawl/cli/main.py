"""The `recrawl` command: finds the subcommand, and turns every failure into one sentence and an exit code.

A command's module is imported when the command is called, so `recrawl --help` answers at once. To add a command, write
its function and list it in `COMMANDS`.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

import click

from recrawl.errors import RecrawlError
from recrawl.version import __version__

BAD_INPUT = 2
INTERRUPTED = 130
READER_LEFT = 141
"""Exit codes: 128 plus the signal's number for the last two, as shells have it."""


class Entry(NamedTuple):
    """Where a command is, as `module:function`, and its summary in the list of commands and in its own help."""

    place: str
    summary: str


COMMANDS = {
    "track": Entry(
        "recrawl.cli.track:track",
        "Track pages: fetch each when it is worth its price, tell what changed, lose nothing.",
    ),
    "serve": Entry(
        "recrawl.cli.track:serve", "Lease pages to outside fetchers over HTTP and take in what came; fetch nothing."
    ),
    "add": Entry("recrawl.cli.pages:add", "Track pages from now on."),
    "import": Entry("recrawl.cli.importing:import_pages", "Track the pages of files, or of sitemaps on the web."),
    "remove": Entry("recrawl.cli.pages:remove", "Stop tracking pages."),
    "pause": Entry("recrawl.cli.pages:pause", "Hold back pages, groups or hosts until `recrawl resume`."),
    "resume": Entry("recrawl.cli.pages:resume", "Crawl again what was paused, or a page that was quarantined."),
    "signal": Entry("recrawl.cli.pages:signal", "Say that pages have changed."),
    "fetch": Entry("recrawl.cli.pages:fetch", "Fetch tracked pages before all others, as soon as their hosts allow."),
    "changes": Entry(
        "recrawl.cli.reports:changes", "Print what changed: each event once, in order, with a cursor to go on from."
    ),
    "status": Entry(
        "recrawl.cli.reports:status",
        "Say how it is: pages by state, how crawls ended, hosts in trouble, and whether a tracker runs.",
    ),
    "explain": Entry(
        "recrawl.cli.pages:explain",
        "Say why a page is, or is not, crawled now: what is known of it, believed, heard and waited for.",
    ),
    "sources": Entry(
        "recrawl.cli.reports:sources",
        "List hubs, feeds and sitemaps: what each brings, what is wrong with it, what it is worth and costs.",
    ),
    "hits": Entry(
        "recrawl.cli.importing:hits", "Learn from access logs how much new pages are asked for, and for how long."
    ),
    "export": Entry(
        "recrawl.cli.reports:export", "Write all pages, or all fetches that are kept, also while a tracker runs."
    ),
    "backup": Entry(
        "recrawl.cli.maintenance:backup",
        "Write a copy of the store into one file, as it is at one moment, also while a tracker runs.",
    ),
    "restore": Entry("recrawl.cli.maintenance:restore", "Make a store of a backup."),
    "doctor": Entry(
        "recrawl.cli.maintenance:doctor",
        "Say which versions run, which settings hold and who set them, and what is wrong with the store.",
    ),
    "token": Entry("recrawl.cli.maintenance:token", "Make, list or revoke tokens of the API."),
    "plan": Entry("recrawl.cli.plan:plan", "Find the crawl rates that make the most of a budget."),
    "backtest": Entry("recrawl.cli.backtest:backtest", "Find the policy that would have served your own history best."),
    "simulate": Entry("recrawl.cli.simulate:simulate", "Compare policies on a synthetic world."),
    "reproduce": Entry("recrawl.cli.lab:reproduce", "Run the papers' experiments and judge their claims."),
    "demo": Entry("recrawl.cli.lab:demo", "Track a web that changes as you watch, and compare with round robin."),
    "bench": Entry("recrawl.cli.lab:bench", "Measure speed against plain yardsticks."),
}


class Commands(click.Group):
    """A group that imports a subcommand when it is called and reports failures in one sentence."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Names of the commands, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module, _, function = entry.place.partition(":")
        command = getattr(import_module(module), function)
        assert isinstance(command, click.Command)
        command.short_help = entry.summary
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a reader that left early (`| head`) is no error."""
        try:
            result = super().invoke(ctx)
            if sys.stdout is not None:  # closed before Python started
                sys.stdout.flush()
        except BrokenPipeError:
            _forget_stdout()
            ctx.exit(READER_LEFT)
        return result

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> Any:
        """Run the command and exit: 0, 2 with one sentence on stderr, or 130 when interrupted."""
        extra["standalone_mode"] = False
        try:
            code = super().main(args, *rest, **extra)
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            code = BAD_INPUT
        except (click.Abort, KeyboardInterrupt):
            _say("interrupted")
            code = INTERRUPTED
        except (RecrawlError, click.ClickException, OSError, MemoryError) as error:
            _say(_sentence(error))
            code = BAD_INPUT
        sys.exit(code if isinstance(code, int) else 0)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="recrawl", message="%(prog)s %(version)s")
def cli() -> None:
    """Decide what to crawl next on a fixed budget.

    Rates are per day; a budget is written 2000/day, 2/s or 20% (of the pages, per day).

    Example: recrawl plan pages.csv --budget 2000/day
    """


def main() -> None:
    """Entry point of the installed command."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a letter shows a question mark, rather than the command failing at its end.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    cli(prog_name="recrawl")


def _sentence(error: BaseException) -> str:
    if isinstance(error, click.UsageError):
        place = error.ctx.command_path if error.ctx else "recrawl"
        return f"{error.format_message().rstrip('.')} (see {place} --help)"
    if isinstance(error, click.ClickException):
        return error.format_message()
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        return f"{error.filename}: {reason}" if error.filename else reason
    if isinstance(error, MemoryError):
        return "there is not enough memory for this many pages; plan them in parts or on a larger machine"
    return str(error)


def _say(sentence: str) -> None:
    click.echo(f"recrawl: {' '.join(sentence.split())}", err=True)


def _forget_stdout() -> None:
    """Point stdout at nothing, so that Python's own flush at exit does not complain again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
