"""`recrawl track`: track real sites until stopped, with everything kept in a store."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from recrawl.cli.service_options import chosen_listening, listen_flag
from recrawl.cli.store_options import chosen_settings, settings_option
from recrawl.cli.terminal import clean, is_terminal, print_json
from recrawl.errors import InvalidInput


@click.command(name="track")
@click.argument("urls", nargs=-1, metavar="[URL]...")
@settings_option
@click.option("--budget", metavar="B", help="Crawls in a time, such as 2/s or 5000/day; every request counts.")
@click.option("--contact", metavar="WHO", help="Address or mail of whoever runs this crawler; sent with every request.")
@click.option("--objective", metavar="NAME", help="What is optimised: harmonic (default) or freshness.")
@click.option("--concurrency", metavar="N", help="Fetches at once.")
@click.option("--min-gap", metavar="TIME", help="Between two requests to one host, such as 1s.")
@click.option("--min-interval", metavar="TIME", help="Between two crawls of one page, such as 1min (default) or 0.")
@click.option("--discover", is_flag=True, default=None, help="Follow the sites of the pages to new pages.")
@click.option("--listen", metavar="WHERE", help="HOST:PORT of API and dashboard, or off.")
@click.option("--seconds", type=float, help="Stop by itself after so many seconds.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line at the end.")
def command(
    urls: tuple[str, ...], settings_path: Path | None, seconds: float | None, as_json: bool, **flags: str | bool | None
) -> None:
    """Track pages: fetch each when it is worth its price, tell what changed, lose nothing.

    Pages that were added before are tracked too. Ctrl-C ends it when fetches under way are done, twice at once.

    \b
    Example:
      recrawl track https://example.com/ --budget 2/s --contact you@example.com
      recrawl track https://example.com/ --discover --contact you@example.com
    """
    from recrawl._event_loop import run
    from recrawl.store.crash_points import plan_crash
    from recrawl.tracker.process import Companion, run_tracker, stop_after
    from recrawl.tracker.sinks.registry import check_sinks, run_sinks

    plan_crash(os.environ.get("RECRAWL_CRASH"))
    if seconds is not None and not seconds > 0:
        raise InvalidInput(f"is {seconds:g}, but must be above 0", field="--seconds")
    named = {name.replace("_", "-"): value for name, value in flags.items()}
    chosen = chosen_settings(settings_path, {**named, "listen": listen_flag(named["listen"])})
    settings = chosen.settings
    if not settings.contact:
        raise InvalidInput(
            "is missing: whoever is crawled must be able to reach you, such as you@example.com", field="--contact"
        )
    check_sinks(settings)
    companions: list[Companion] = [run_sinks]
    listening = chosen_listening(chosen)
    if listening is not None:
        from recrawl.service.server import service

        companions.append(service(listening, chosen.origins, link=is_terminal(sys.stderr)))
    if seconds is not None:
        companions.append(stop_after(seconds))
    summary = run(run_tracker(settings, _say, companions, wanted=urls))
    if as_json:
        print_json(summary)


def _say(sentence: str) -> None:
    click.echo(clean(sentence), file=sys.stderr)
