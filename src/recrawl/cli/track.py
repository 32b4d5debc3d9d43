"""`recrawl track` and `recrawl serve`: a tracker that runs until stopped, with everything kept in a store."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from recrawl.cli.log_options import Voice, log_options
from recrawl.cli.options import Function, Place, chosen_listening, store_command
from recrawl.cli.terminal import print_json
from recrawl.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recrawl.tracker.process import Companion
    from recrawl.tracker.settings.settings import Settings

_NOBODY = "nobody@fetches-nothing.invalid"


def running_options(command: Function) -> Function:
    """Add the options of every command that runs a tracker."""
    return click.option("--seconds", type=float, help="Stop by itself after this many seconds.")(log_options(command))


@store_command("track", json_help="Print one JSON line at the end.")
@click.argument("urls", nargs=-1, metavar="[URL]...")
@click.option("--budget", metavar="B", help="Crawls in a time, such as 2/s or 5000/day; every request counts.")
@click.option("--contact", metavar="WHO", help="Address or mail of whoever runs this crawler; sent with every request.")
@click.option("--objective", metavar="NAME", help="What is optimised: harmonic (default) or freshness.")
@click.option("--concurrency", metavar="N", help="Fetches at once.")
@click.option("--min-gap", metavar="TIME", help="Between two requests to one host, such as 1s.")
@click.option("--min-interval", metavar="TIME", help="Between two crawls of one page, such as 1min (default) or 0.")
@click.option("--discover", is_flag=True, default=None, help="Follow the sites of the pages to new pages.")
@click.option("--listen", metavar="WHERE", help="HOST:PORT of API and dashboard, or off.")
@running_options
def track(place: Place, urls: tuple[str, ...], seconds: float | None, voice: Voice, **flags: str | bool | None) -> None:
    """Track pages: fetch each when it is worth its price, tell what changed, lose nothing.

    Pages that were added before are tracked too. Ctrl-C ends it when fetches under way are done, twice at once.

    \b
    Example:
      recrawl track https://example.com/ --budget 2/s --contact you@example.com
      recrawl track https://example.com/ --discover --contact you@example.com
    """
    from recrawl.store.crash_points import plan_crash

    plan_crash(os.environ.get("RECRAWL_CRASH"))
    chosen = place.chosen(**flags)
    settings = chosen.settings
    if not settings.contact:
        raise InvalidInput(
            "is missing: whoever is crawled must be able to reach you, such as you@example.com", field="--contact"
        )
    beside: list[Companion] = []
    listening = chosen_listening(chosen)
    if listening is not None:
        from recrawl.service.server import service

        beside.append(service(listening, chosen.origins, link=voice.is_heard, token=not voice.in_log))
    _run(place, settings, voice, beside, seconds, wanted=urls)


@store_command("serve", json_help="Print one JSON line when it listens, and one at the end.")
@click.option("--budget", metavar="B", help="Crawls in a time, such as 2/s or 5000/day; every request counts.")
@click.option("--listen", metavar="WHERE", help="HOST:PORT of API and dashboard.")
@running_options
def serve(place: Place, seconds: float | None, voice: Voice, **flags: str | None) -> None:
    """Lease pages to outside fetchers over HTTP and take in what came; fetch nothing.

    Pages, budget, politeness and change detection are those of `recrawl track`; only the fetching is yours.

    \b
    Example:
      recrawl serve --budget 20/s --listen 127.0.0.1:8472
    """
    from recrawl.service.server import service

    chosen = place.chosen(**flags)
    listening = chosen_listening(chosen)
    if listening is None:
        raise InvalidInput("is off, but there is nothing to serve then", field="--listen")

    def told(address: str, _link: str) -> None:
        if place.as_json:
            print_json({"listening": address})
            sys.stdout.flush()

    beside = service(listening, chosen.origins, link=voice.is_heard, token=not voice.in_log, told=told, fetches=False)
    _run(place, _with_contact(chosen.settings), voice, [beside], seconds, wanted=None)


def _run(
    place: Place,
    settings: Settings,
    voice: Voice,
    beside: Sequence[Companion],
    seconds: float | None,
    *,
    wanted: tuple[str, ...] | None,
) -> None:
    """Run a tracker until stopped; it fetches unless `wanted` is None."""
    from recrawl._event_loop import run
    from recrawl.tracker.process import run_tracker, stop_after, tell_progress
    from recrawl.tracker.sinks.registry import check_sinks, run_sinks

    if seconds is not None and not seconds > 0:
        raise InvalidInput(f"is {seconds:g}, but must be above 0", field="--seconds")
    check_sinks(settings)
    companions = [run_sinks, *beside, *([] if seconds is None else [stop_after(seconds)])]
    if not voice.quiet:
        companions.append(tell_progress(voice.say))
    tracked = run_tracker(settings, voice.say, companions, wanted=wanted, fetch=wanted is not None)
    summary = run(tracked, freeze=True)
    if place.as_json:
        print_json(summary)


def _with_contact(settings: Settings) -> Settings:
    """Return settings with a contact: hubs and webhooks must know who calls; pages are fetched by others."""
    if settings.contact:
        return settings
    if settings.signals.callback or any(sink.kind == "webhook" for sink in settings.sinks):
        raise InvalidInput(
            "is missing in the settings: hubs and webhooks are told who calls, such as you@example.com", field="contact"
        )
    return replace(settings, contact=_NOBODY)
