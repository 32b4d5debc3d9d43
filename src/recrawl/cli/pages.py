"""Commands on single pages: `add`, `remove`, `pause`, `resume`, `signal`, `fetch` and `explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from recrawl.cli.options import Function, Place, store_command
from recrawl.errors import InvalidInput

if TYPE_CHECKING:
    from recrawl.tracker.commands.commands import Pause, Resume

_urls = click.argument("urls", nargs=-1, required=True, metavar="URL...")


@store_command("add")
@_urls
@click.option("--importance", type=float, help="What the pages are worth, compared with others; 1 by default.")
@click.option("--group", help="A group of the settings; by default the first whose patterns fit.")
@click.option("--min-interval", metavar="TIME", help="Between two crawls of each page, at least, such as 10min or 0.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
def add(
    place: Place,
    urls: tuple[str, ...],
    importance: float | None,
    group: str | None,
    min_interval: str | None,
    dry_run: bool,
) -> None:
    """Track pages from now on. One that is tracked already stays as it is, but for --min-interval.

    \b
    Example:
      recrawl add https://example.com/news https://example.com/prices --importance 5
    """
    from recrawl.tracker.admission import PageRequest
    from recrawl.tracker.commands.commands import Add
    from recrawl.tracker.settings.settings import LONGEST_INTERVAL_S, seconds

    read = seconds(0, LONGEST_INTERVAL_S)
    min_interval_s = None if min_interval is None else read(min_interval, "--min-interval")
    place.do(Add([PageRequest(url, importance, group, min_interval_s) for url in urls], dry_run=dry_run))


@store_command("remove")
@_urls
def remove(place: Place, urls: tuple[str, ...]) -> None:
    """Stop tracking pages. Their history stays; added again, they go on from it.

    \b
    Example:
      recrawl remove https://example.com/old
    """
    from recrawl.tracker.commands.commands import Remove

    place.do(Remove(list(urls)))


def _names(command: Function) -> Function:
    """Add `--page`, `--group` and `--host`, each any number of times."""
    for name, metavar, means in (
        ("--host", "NAME", "All pages of a host."),
        ("--group", "NAME", "All pages of a group."),
        ("--page", "URL", "One page."),
    ):
        command = click.option(name, metavar=metavar, multiple=True, help=f"{means} May be repeated.")(command)
    return command


@store_command("pause")
@_names
def pause(place: Place, **names: tuple[str, ...]) -> None:
    """Hold back pages, groups or hosts until `recrawl resume`. Results of running fetches are discarded.

    \b
    Example:
      recrawl pause --host shop.example.com --group archive
    """
    from recrawl.tracker.commands.commands import Pause

    _do_each(Pause, place, names)


@store_command("resume")
@_names
def resume(place: Place, **names: tuple[str, ...]) -> None:
    """Crawl again what was paused, or a page that was quarantined.

    \b
    Example:
      recrawl resume --page https://example.com/news
    """
    from recrawl.tracker.commands.commands import Resume

    _do_each(Resume, place, names)


def _do_each(kind: type[Pause | Resume], place: Place, names: dict[str, tuple[str, ...]]) -> None:
    """Carry out a command for each kind of name that was given."""
    commands = [kind(of, list(given)) for of in ("page", "group", "host") if (given := names[of])]
    if not commands:
        raise InvalidInput("say what is meant: --page, --group or --host")
    place.do(*commands)


@store_command("signal")
@_urls
@click.option("--kind", default="manual", metavar="NAME", help="Who says so; default manual.")
def signal(place: Place, urls: tuple[str, ...], kind: str) -> None:
    """Say that pages have changed. A signal raises the odds of a crawl as far as its kind was found true on the host.

    Signals are kept with a page until its next fetch; `explain` shows them, and how far they are trusted. To have a
    page fetched whatever it is worth, use `recrawl fetch`.

    \b
    Example:
      recrawl signal https://example.com/news --kind cms
    """
    from recrawl.tracker.commands.commands import Signal
    from recrawl.tracker.kinds import OURS, check_kind

    check_kind(kind, "--kind")
    if kind in OURS:
        raise InvalidInput(f"is {kind!r}, which the tracker tells itself: use another name", field="--kind")
    place.do(Signal(list(urls), kind))


@store_command("fetch")
@_urls
def fetch(place: Place, urls: tuple[str, ...]) -> None:
    """Fetch tracked pages before all others, as soon as their hosts allow.

    Gaps hold, and the budget pays.

    The wish is kept until it is granted, also over a restart; without a tracker it waits for the next one.

    \b
    Example:
      recrawl fetch https://example.com/news
    """
    from recrawl.tracker.commands.commands import FetchNow

    place.do(FetchNow(list(urls)))


@store_command("explain")
@click.argument("url", metavar="URL")
def explain(place: Place, url: str) -> None:
    """Say why a page is, or is not, crawled now: what is known of it, believed, heard and waited for.

    \b
    Example:
      recrawl explain https://example.com/news
    """
    from recrawl.tracker.commands.commands import Explain
    from recrawl.tracker.commands.explain import sentences

    reply = place.ask(Explain(url))
    if reply.rejected:
        raise InvalidInput(f"{reply.rejected[0].url!r} {reply.rejected[0].reason}")
    facts = reply.facts
    unknown = [] if facts.get("tracker_runs") else ["no tracker runs on this store: what it would do next is not known"]
    place.print(facts, *sentences(facts), *unknown)
