"""`recrawl doctor`: versions, effective settings and the state of the store. Warns, and refuses nothing."""

from __future__ import annotations

import os
import secrets
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recrawl.cli.service_options import chosen_listening
from recrawl.cli.store_options import chosen_settings, settings_option
from recrawl.cli.terminal import clean, print_json, progress
from recrawl.errors import RecrawlError

if TYPE_CHECKING:
    from recrawl.tracker.settings.file import Chosen
    from recrawl.tracker.settings.settings import Settings


@click.command(name="doctor")
@settings_option
@click.option("--check", is_flag=True, help="Look through all data of the store for what is wrong with it.")
@click.option("--replay", "replays", is_flag=True, help="Learn from the fetches that are kept, and compare.")
@click.option(
    "--warm", is_flag=True, help="Compile all kernels for this machine, such as for an image, and do no more."
)
@click.option("--new-secret", is_flag=True, help="Print a new secret for the signatures of a webhook, and do no more.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line.")
def command(settings_path: Path | None, store: str | None, **flags: bool) -> None:
    """Say which versions run, which settings hold and who set them, and what is wrong with the store.

    \b
    Example:
      recrawl doctor --check
      recrawl doctor --warm
      recrawl doctor --new-secret
    """
    from recrawl._event_loop import run
    from recrawl.tracker.commands.doctor import effective, versions, warnings_of

    as_json = flags["as_json"]
    if flags["warm"]:
        _warm(as_json=as_json)
        return
    if flags["new_secret"]:
        from recrawl.web.push.webhook import new_secret as fresh_secret

        made = fresh_secret(secrets.token_bytes(32))
        if as_json:
            print_json({"secret": made})
        else:
            click.echo(made)
        return
    found = versions()
    said: dict[str, Any] = {"versions": found, "warnings": warnings_of(found), "settings": [], "store": None}
    try:
        chosen = chosen_settings(settings_path, {"store": store})
        said["settings"] = effective(chosen)
        said["warnings"] += _unusable_service(chosen)
        said |= run(_look(chosen.settings, check=flags["check"], replays=flags["replays"]))
    except RecrawlError as error:
        said["warnings"].append(str(error))
    if as_json:
        print_json(said)
    else:
        _tell(said)


def _warm(*, as_json: bool) -> None:
    """Compile everything; ends with an error if a part cannot be compiled."""
    from recrawl.warming import PARTS, warm_all

    with progress("compiling") as report:
        failed = warm_all(os.cpu_count() or 1, lambda _name, done, total: report(done, total))
    if as_json:
        print_json({"parts": list(PARTS), "failed": failed})
    else:
        click.echo("all kernels are compiled" if not failed else clean("\n".join(failed)))
    if failed:
        raise SystemExit(1)


def _unusable_service(chosen: Chosen) -> list[str]:
    """What `recrawl track` would refuse of the settings on where and how to listen."""
    try:
        chosen_listening(chosen)
    except RecrawlError as error:
        return [str(error)]
    return []


async def _look(settings: Settings, *, check: bool, replays: bool) -> dict[str, Any]:
    from recrawl.store.opening import open_store

    said: dict[str, Any] = {}
    store = await open_store(settings.store, owner=False, create=False)
    try:
        said["store"] = store.name
        if check:
            said["problems"] = await store.check()
        if replays:
            from recrawl.tracker.commands.doctor import replay

            pages = sum((await store.counts()).pages.values())
            with progress("replaying") as report:
                said["replay"] = asdict(await replay(store, settings.budget_per_day / max(pages, 1), report))
    finally:
        await store.close()
    return said


def _tell(said: dict[str, Any]) -> None:
    for name, version in said["versions"].items():
        click.echo(f"{name:<24} {version or 'not installed'}")
    click.echo("")
    for row in said["settings"]:
        click.echo(clean(f"{row['name']:<24} {_shown(row['value'], row['unit'])}  ({row['from']})"))
    click.echo("")
    if said["store"] is not None:
        click.echo(clean(f"{'store':<24} {said['store']}"))
    if "problems" in said:
        for problem in said["problems"] or ["nothing is wrong with the data"]:
            click.echo(clean(f"{'check':<24} {problem}"))
    if "replay" in said:
        replay = said["replay"]
        click.echo(
            f"{'replay':<24} of {replay['pages']:,} pages {replay['agree']:,} agree, {replay['differ']:,} differ, "
            f"{replay['partial']:,} have older crawls that are not kept"
        )
        for url in replay["differing"]:
            click.echo(clean(f"{'':<24} {url} differs"))
    for warning in said["warnings"]:
        click.echo(clean(f"{'warning':<24} {warning}"))


def _shown(value: Any, unit: str | None) -> str:
    if value is None or value == [] or value == "":
        return "none"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    text = (
        f"{value:,.12g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)
    )
    return f"{text} {unit}" if unit else text
