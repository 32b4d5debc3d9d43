"""Records of API tokens among the facts of a store: written here, read and understood by the service. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from recrawl.errors import InvalidInput

PREFIX = "token:"
_ID = re.compile(r"[0-9a-f]{1,64}")


class KeepToken(msgspec.Struct, tag="token"):
    """Keep the record of a token, new or revoked; the token itself is not in it."""

    id: str
    record: str


def token_fact(number: str, record: str) -> dict[str, str]:
    """The fact to save."""
    if not _ID.fullmatch(number) or len(record) > 4096:
        raise InvalidInput("is no record of a token", field="token")
    return {PREFIX + number: record}


def token_records(facts: Mapping[str, str]) -> list[str]:
    """All records among facts."""
    return [value for name, value in facts.items() if name.startswith(PREFIX)]
