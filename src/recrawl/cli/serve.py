"""`recrawl serve`: the API for outside fetchers; nothing is fetched here."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from recrawl.cli.service_options import chosen_listening, listen_flag
from recrawl.cli.store_options import chosen_settings, settings_option
from recrawl.cli.terminal import clean, is_terminal, print_json
from recrawl.errors import InvalidInput

if TYPE_CHECKING:
    from recrawl.tracker.settings.settings import Settings

_NOBODY = "nobody@fetches-nothing.invalid"


@click.command(name="serve")
@settings_option
@click.option("--budget", metavar="B", help="Crawls in a time, such as 2/s or 5000/day; every request counts.")
@click.option("--listen", metavar="WHERE", help="HOST:PORT of API and dashboard.")
@click.option("--seconds", type=float, help="Stop by itself after so many seconds.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line when it listens, and one at the end.")
def command(settings_path: Path | None, seconds: float | None, as_json: bool, **flags: str | None) -> None:
    """Lease pages to outside fetchers over HTTP and take in what came; fetch nothing.

    Pages, budget, politeness and change detection are those of `recrawl track`; only the fetching is yours.

    \b
    Example:
      recrawl serve --budget 20/s --listen 127.0.0.1:8472
    """
    from recrawl._event_loop import run
    from recrawl.service.server import service
    from recrawl.tracker.process import Companion, run_tracker, stop_after
    from recrawl.tracker.sinks.registry import check_sinks, run_sinks

    if seconds is not None and not seconds > 0:
        raise InvalidInput(f"is {seconds:g}, but must be above 0", field="--seconds")
    chosen = chosen_settings(settings_path, {**flags, "listen": listen_flag(flags["listen"])})
    listening = chosen_listening(chosen)
    if listening is None:
        raise InvalidInput("is off, but there is nothing to serve then", field="--listen")
    settings = _with_contact(chosen.settings)
    check_sinks(settings)

    def told(address: str, _link: str) -> None:
        if as_json:
            print_json({"listening": address})
            sys.stdout.flush()

    serve = service(listening, chosen.origins, link=is_terminal(sys.stderr), told=told, fetches=False)
    companions: list[Companion] = [run_sinks, serve]
    if seconds is not None:
        companions.append(stop_after(seconds))
    summary = run(run_tracker(settings, _say, companions, wanted=None, fetch=False))
    if as_json:
        print_json(summary)


def _with_contact(settings: Settings) -> Settings:
    """Settings with a contact: who is called from here must know whom to turn to; pages are fetched by others."""
    if settings.contact:
        return settings
    if settings.signals.callback or any(sink.kind == "webhook" for sink in settings.sinks):
        raise InvalidInput(
            "is missing in the settings: hubs and webhooks are told who calls, such as you@example.com", field="contact"
        )
    return replace(settings, contact=_NOBODY)


def _say(sentence: str) -> None:
    click.echo(clean(sentence), file=sys.stderr)
