"""Tokens of the API: made once, shown once, kept as digests among the facts of the store. Pure.

A token is `recrawl-ID-SECRET`, letters, digits and hyphens only, so that one can serve as the key of an IndexNow ping.
The id is public and finds the record; the secret has 256 bits, so a plain digest is enough to keep it, and comparing
digests takes the same time however wrong it is.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Literal, get_args

import msgspec

from recrawl.errors import InvalidInput
from recrawl.tracker.commands.commands import KeepToken, token_records

Scope = Literal["read", "signal", "fetch", "write", "admin"]
"""`read` sees everything but secrets; `signal` says that pages changed; `fetch` leases pages and hands in what came;
`write` adds, changes and removes pages, reads and signals; `admin` may do all that and make tokens."""
SCOPES: tuple[Scope, ...] = get_args(Scope)

MOST_TOKENS = 1000
TOKEN_PREFIX = "recrawl-"
_ID_BYTES = 6
_IMPLIED: dict[Scope, frozenset[Scope]] = {
    "read": frozenset({"read"}),
    "signal": frozenset({"signal"}),
    "fetch": frozenset({"fetch"}),
    "write": frozenset({"read", "signal", "write"}),
    "admin": frozenset(SCOPES),
}


class TokenRecord(msgspec.Struct, frozen=True):
    """A token as it is kept; times are Unix seconds.

    Args:
        id: its public part.
        digest: SHA-256 of the whole token, in hexadecimal.
        scopes: as they were given.
        name: for people.
        made_at: when.
        revoked_at: None while it is good.
    """

    id: str
    digest: str
    scopes: list[Scope]
    name: str
    made_at: float
    revoked_at: float | None = None


def new_token(scopes: Iterable[str], name: str, now: float) -> tuple[str, TokenRecord]:
    """A token, to be shown once, and its record, to be kept."""
    wanted = list(dict.fromkeys(scopes))
    for scope in wanted:
        if scope not in SCOPES:
            raise InvalidInput(f"is {scope!r}, but must be one of {', '.join(SCOPES)}", field="scope")
    if not wanted:
        raise InvalidInput("is missing: name at least one", field="scope")
    if not name or len(name) > 100 or not name.isprintable():
        raise InvalidInput("must be 1 to 100 printable characters", field="name")
    number = secrets.token_hex(_ID_BYTES)
    token = f"{TOKEN_PREFIX}{number}-{secrets.token_hex(32)}"
    return token, TokenRecord(number, digest_of(token), [s for s in SCOPES if s in wanted], name, now)


def digest_of(secret: str) -> str:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def allowed(scopes: Iterable[Scope]) -> frozenset[Scope]:
    """All that scopes allow.

    >>> sorted(allowed(["write"]))
    ['read', 'signal', 'write']
    """
    return frozenset().union(*(_IMPLIED[scope] for scope in scopes))


def matching(token: str, records: Mapping[str, TokenRecord]) -> TokenRecord | None:
    """The record of a token that is good; None for one that is wrong or revoked."""
    number = token.removeprefix(TOKEN_PREFIX).partition("-")[0]
    record = records.get(number) if token.startswith(TOKEN_PREFIX) else None
    kept = record.digest if record is not None else "0" * 64
    same = hmac.compare_digest(digest_of(token), kept)
    return record if record is not None and same and record.revoked_at is None else None


def keeping(record: TokenRecord) -> KeepToken:
    """What keeps a record."""
    return KeepToken(record.id, msgspec.json.encode(record).decode())


def revoked(record: TokenRecord, now: float) -> TokenRecord:
    """The record of a token that is good no longer; once revoked it stays as it is."""
    return record if record.revoked_at is not None else msgspec.structs.replace(record, revoked_at=now)


def from_facts(facts: Mapping[str, str]) -> dict[str, TokenRecord]:
    """The records among the facts of a store, by id; what cannot be read opens nothing."""
    records = {}
    for value in token_records(facts):
        with suppress(msgspec.MsgspecError):
            record = msgspec.json.decode(value, type=TokenRecord)
            records[record.id] = record
    return records
