"""Tokens: made, listed, revoked. A token is in the answer once, when it is made."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Router, delete, get, post
from litestar.params import JSONBody, PathParameter

from recrawl.service.api.json_body import JsonBody
from recrawl.service.api.schemas import Name
from recrawl.service.auth.tokens import Scope, TokenRecord
from recrawl.service.context import InService
from recrawl.service.errors import ApiError
from recrawl.tracker.clock import iso


class TokenWish(msgspec.Struct, forbid_unknown_fields=True):
    """What a token may do, and its name."""

    scopes: Annotated[list[Scope], msgspec.Meta(min_length=1, max_length=5)]
    name: Name


class Token(msgspec.Struct):
    """A token as it is known; `token` itself only in the answer to its making."""

    id: str
    name: str
    scopes: list[Scope]
    made_at: str | None
    revoked_at: str | None
    token: str | None = None


class TokenList(msgspec.Struct):
    """All tokens, revoked ones too."""

    tokens: list[Token]


@get("/tokens", opt={"scope": "admin"})
async def list_tokens(service: InService) -> TokenList:
    """All tokens; not what they are."""
    records = (await service.access.records()).values()
    return TokenList([_token(each) for each in sorted(records, key=lambda each: each.made_at)])


@post("/tokens", opt={"scope": "admin"}, dto=JsonBody[TokenWish], return_dto=None)
async def make_token(data: JSONBody[TokenWish], service: InService) -> Token:
    """A new token: keep it, it is not shown again."""
    token, record = await service.access.make(data.scopes, data.name)
    return _token(record, token)


@delete("/tokens/{token_id:str}", opt={"scope": "admin"}, status_code=200)
async def revoke_token(
    service: InService, token_id: Annotated[str, PathParameter(max_length=64, description="of the token")]
) -> Token:
    """End a token, and the sessions that it began."""
    record = await service.access.revoke(token_id)
    if record is None:
        raise ApiError(404, "there is no such token")
    return _token(record)


def _token(record: TokenRecord, token: str | None = None) -> Token:
    return Token(record.id, record.name, record.scopes, iso(record.made_at), iso(record.revoked_at), token)


ROUTES = Router("/api/v1", tags=["tokens"], route_handlers=[list_tokens, make_token, revoke_token])
