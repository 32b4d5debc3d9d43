"""Commands that look after a store: `backup`, `restore`, `doctor` and `token`."""

from __future__ import annotations

import os
import secrets
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recrawl.cli.options import Place, chosen_listening, json_option, read_store, store_command
from recrawl.cli.terminal import clean, print_json, progress
from recrawl.errors import InvalidInput, RecrawlError

if TYPE_CHECKING:
    from recrawl.service.auth.tokens import TokenRecord
    from recrawl.store.store import Store
    from recrawl.tracker.settings.file import Chosen


@store_command("backup")
@click.argument("path", type=click.Path(path_type=Path))
def backup(place: Place, path: Path) -> None:
    """Write a copy of the store into one file, as it is at one moment, also while a tracker runs.

    \b
    Example:
      recrawl backup monday.backup
    """
    if not path.parent.is_dir():
        problem = f"is {str(path)!r}, but there is no folder {str(path.parent)!r}: make it first"
        raise InvalidInput(problem, field="PATH")
    place.read(lambda store: store.backup(path))
    size = path.stat().st_size
    place.print({"backup": path, "bytes": size}, f"{path}: {size:,} bytes")


@click.command("restore")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--store", required=True, metavar="WHERE", help="A new folder, or postgresql://… without a store.")
@json_option
def restore(path: Path, store: str, as_json: bool) -> None:
    """Make a store of a backup. It is checked first; nothing that is there is overwritten.

    A backup goes back into the kind of store that it is of: SQLite or PostgreSQL.

    \b
    Example:
      recrawl restore monday.backup --store restored-data
    """
    from recrawl._event_loop import run

    pages, shown = run(_restore(path, store))
    Place(None, store, as_json).print({"store": shown, "pages": pages}, f"{pages} pages are back in {shown}")


async def _restore(path: Path, where: str) -> tuple[int, str]:
    from recrawl.store.store import restore_store

    await restore_store(path, where)

    async def look(store: Store) -> tuple[int, str]:
        return sum((await store.counts()).pages.values()), store.name

    return await read_store(where, look)


@store_command("doctor")
@click.option("--check", is_flag=True, help="Look through all data of the store for what is wrong with it.")
@click.option("--replay", "replays", is_flag=True, help="Learn from the fetches that are kept, and compare.")
@click.option(
    "--warm", is_flag=True, help="Compile all kernels for this machine, such as for an image, and do no more."
)
@click.option("--new-secret", is_flag=True, help="Print a new secret for the signatures of a webhook, and do no more.")
def doctor(place: Place, check: bool, replays: bool, warm: bool, new_secret: bool) -> None:
    """Say which versions run, which settings hold and who set them, and what is wrong with the store.

    \b
    Example:
      recrawl doctor --check
      recrawl doctor --warm
      recrawl doctor --new-secret
    """
    from recrawl.tracker.commands.doctor import effective, versions, warnings_of

    if warm:
        _warm(place)
        return
    if new_secret:
        from recrawl.web.push.webhook import new_secret as fresh_secret

        made = fresh_secret(secrets.token_bytes(32))
        place.print({"secret": made}, made)
        return
    found = versions()
    said: dict[str, Any] = {"versions": found, "warnings": warnings_of(found), "settings": [], "store": None}
    try:
        chosen = place.chosen()
        said["settings"] = effective(chosen)
        said["warnings"] += _unusable_service(chosen)
        budget_per_day = chosen.settings.budget_per_day
        said |= place.read(lambda store: _look(store, budget_per_day, check=check, replays=replays))
    except RecrawlError as error:
        said["warnings"].append(str(error))
    if place.as_json:
        print_json(said)
    else:
        _tell(said)


def _warm(place: Place) -> None:
    """Compile everything; ends with an error if a part cannot be compiled."""
    from recrawl.warming import PARTS, warm_all

    with progress("compiling") as report:
        failed = warm_all(os.cpu_count() or 1, lambda _name, done, total: report(done, total))
    place.print({"parts": list(PARTS), "failed": failed}, *(failed or ["all kernels are compiled"]))
    if failed:
        raise SystemExit(1)


def _unusable_service(chosen: Chosen) -> list[str]:
    """Return what `recrawl track` would refuse of the settings on where and how to listen."""
    try:
        chosen_listening(chosen)
    except RecrawlError as error:
        return [str(error)]
    return []


async def _look(store: Store, budget_per_day: float, *, check: bool, replays: bool) -> dict[str, Any]:
    said: dict[str, Any] = {"store": store.name}
    if check:
        said["problems"] = await store.check()
    if replays:
        from recrawl.tracker.commands.doctor import replay

        pages = sum((await store.counts()).pages.values())
        with progress("replaying") as report:
            said["replay"] = asdict(await replay(store, budget_per_day / max(pages, 1), report))
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


@store_command("token")
@click.argument("action", type=click.Choice(["new", "list", "revoke"]))
@click.argument("token_id", required=False, metavar="[ID]")
@click.option("--scope", multiple=True, metavar="SCOPE", help="Of a new one: read, signal, fetch, write or admin.")
@click.option("--name", default="token", show_default=True, metavar="TEXT", help="Of a new one, for people.")
def token(place: Place, action: str, token_id: str | None, scope: tuple[str, ...], name: str) -> None:
    """Make, list or revoke tokens of the API.

    A new token is printed once; only its digest is kept. A tracker that runs heeds a change within two seconds.

    \b
    Example:
      recrawl token new --scope read --name grafana
      recrawl token list
      recrawl token revoke 0123456789ab
    """
    if (action == "revoke") != (token_id is not None):
        raise InvalidInput("goes with revoke, and with nothing else", field="ID")
    if action != "new" and scope:
        raise InvalidInput("is of a new token only", field="--scope")
    if action == "list":
        _list_tokens(place)
    elif action == "new":
        _new_token(place, scope, name)
    else:
        _revoke_token(place, str(token_id))


def _new_token(place: Place, scope: tuple[str, ...], name: str) -> None:
    from recrawl.service.auth.tokens import keeping, new_token

    made, record = new_token(scope, name, time.time())
    place.ask(keeping(record))
    place.print({"token": made, "id": record.id, "scopes": record.scopes, "name": record.name}, made)


def _revoke_token(place: Place, token_id: str) -> None:
    from recrawl.service.auth.tokens import keeping, revoked

    record = _token_records(place).get(token_id)
    if record is None:
        raise InvalidInput(f"is {token_id!r}, but there is no such token", field="ID")
    place.ask(keeping(revoked(record, time.time())))
    place.print({"revoked": token_id}, f"{token_id} opens nothing from now on")


def _list_tokens(place: Place) -> None:
    from recrawl.tracker.clock import iso

    rows = [
        {"id": each.id, "name": each.name, "scopes": each.scopes, "made_at": iso(each.made_at),
         "revoked_at": iso(each.revoked_at)}
        for each in sorted(_token_records(place).values(), key=lambda each: each.made_at)
    ]  # fmt: skip
    place.print({"tokens": rows}, *(_token_line(row) for row in rows))


def _token_line(row: dict[str, Any]) -> str:
    ended = f", revoked {row['revoked_at']}" if row["revoked_at"] is not None else ""
    return f"{row['id']}  {' '.join(row['scopes'])}  {row['name']}, made {row['made_at']}{ended}"


def _token_records(place: Place) -> dict[str, TokenRecord]:
    from recrawl.service.auth.tokens import from_facts

    async def read(store: Store) -> dict[str, TokenRecord]:
        return from_facts(await store.facts())

    return place.read(read)
