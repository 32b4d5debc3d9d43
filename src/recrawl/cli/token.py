"""`recrawl token`: tokens of the API, made, listed and revoked, also while a tracker runs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from recrawl.cli.store_commands import ask
from recrawl.cli.store_options import chosen_settings, settings_option
from recrawl.cli.terminal import clean, print_json
from recrawl.errors import InvalidInput

if TYPE_CHECKING:
    from recrawl.service.auth.tokens import TokenRecord


@click.command(name="token")
@click.argument("action", type=click.Choice(["new", "list", "revoke"]))
@click.argument("token_id", required=False, metavar="[ID]")
@settings_option
@click.option("--scope", multiple=True, metavar="SCOPE", help="Of a new one: read, signal, fetch, write or admin.")
@click.option("--name", default="token", show_default=True, metavar="TEXT", help="Of a new one, for people.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line.")
def command(
    action: str,
    token_id: str | None,
    settings_path: Path | None,
    store: str | None,
    scope: tuple[str, ...],
    name: str,
    as_json: bool,
) -> None:
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
        _list(settings_path, store, as_json=as_json)
    elif action == "new":
        _new(settings_path, store, scope, name, as_json=as_json)
    else:
        _revoke(settings_path, store, str(token_id), as_json=as_json)


def _new(settings_path: Path | None, store: str | None, scope: tuple[str, ...], name: str, *, as_json: bool) -> None:
    from recrawl.service.auth.tokens import keeping, new_token

    token, record = new_token(scope, name, time.time())
    ask(keeping(record), settings_path, store)
    if as_json:
        print_json({"token": token, "id": record.id, "scopes": record.scopes, "name": record.name})
    else:
        click.echo(token)


def _revoke(settings_path: Path | None, store: str | None, token_id: str, *, as_json: bool) -> None:
    from recrawl.service.auth.tokens import keeping, revoked

    record = _records(settings_path, store).get(token_id)
    if record is None:
        raise InvalidInput(f"is {token_id!r}, but there is no such token", field="ID")
    ask(keeping(revoked(record, time.time())), settings_path, store)
    if as_json:
        print_json({"revoked": token_id})
    else:
        click.echo(f"{token_id} opens nothing from now on")


def _list(settings_path: Path | None, store: str | None, *, as_json: bool) -> None:
    from recrawl.tracker.clock import iso

    records = sorted(_records(settings_path, store).values(), key=lambda each: each.made_at)
    if as_json:
        tokens = [
            {"id": each.id, "name": each.name, "scopes": each.scopes, "made_at": iso(each.made_at),
             "revoked_at": iso(each.revoked_at)}
            for each in records
        ]  # fmt: skip
        print_json({"tokens": tokens})
        return
    for each in records:
        ended = f", revoked {iso(each.revoked_at)}" if each.revoked_at is not None else ""
        click.echo(clean(f"{each.id}  {' '.join(each.scopes)}  {each.name}, made {iso(each.made_at)}{ended}"))


def _records(settings_path: Path | None, store: str | None) -> dict[str, TokenRecord]:
    from recrawl._event_loop import run

    return run(_read(chosen_settings(settings_path, {"store": store}).settings.store))


async def _read(where: str) -> dict[str, TokenRecord]:
    from recrawl.service.auth.tokens import from_facts
    from recrawl.store.opening import open_store

    store = await open_store(where, owner=False, create=False)
    try:
        return from_facts(await store.facts())
    finally:
        await store.close()
