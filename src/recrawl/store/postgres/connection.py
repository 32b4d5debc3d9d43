"""Connections to a PostgreSQL server: how they are set up, and how long anything may take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import asyncpg

from recrawl.store.postgres.address import check_address, safe_name
from recrawl.store.postgres.errors import in_our_words
from recrawl.store.queries import load_queries

SQL = load_queries("postgres")
LOCK = (1919247218, 1)
"""Of the owner, among the advisory locks of a database: the letters `recr`, and what is locked."""


BY_INDEX = {"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off"}
"""For the owner, whose statements are all of some rows by their keys: plans that were made when tables were small, and
are kept, stay good when they have grown."""


Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record] | asyncpg.pool.PoolConnectionProxy[asyncpg.Record]"


@dataclass(frozen=True, slots=True)
class Limits:
    """How long to wait, in seconds.

    Args:
        connect_s: for a connection, new or from the pool.
        statement_s: for a statement; the server is told, and we wait a little longer than it does.
        lock_s: for a lock that another session holds.
        long_s: for a statement that reads everything: `load_schedule`, `counts`, `check`, `backup`.
        owner_s: for the place of an owner that has just died and whose last statement still runs.
        idle_s: the same if its session is idle, which it is for moments only when it has died.
        readers: connections to read with, at most.
    """

    connect_s: float = 10.0
    statement_s: float = 20.0
    lock_s: float = 5.0
    long_s: float = 600.0
    owner_s: float = 5.0
    idle_s: float = 0.3
    readers: int = 4


async def connect(dsn: str, limits: Limits, role: str) -> Connection:
    """A connection with our settings; `role` tells people who look at the server's sessions what it is for."""
    check_address(dsn)
    try:
        return await asyncpg.connect(
            dsn,
            timeout=limits.connect_s,
            command_timeout=limits.statement_s + 1.0,
            server_settings=settings(limits, role) | (BY_INDEX if role.startswith("owner") else {}),
        )
    except ValueError as error:
        raise in_our_words(error, safe_name(dsn)) from None


def settings(limits: Limits, role: str) -> dict[str, str]:
    """Of a session, as the server is to keep them."""
    return {
        "application_name": f"recrawl {role}",
        "search_path": "recrawl",
        "statement_timeout": str(int(limits.statement_s * 1000)),
        "lock_timeout": str(int(limits.lock_s * 1000)),
        # A session whose machine is gone holds its locks until the server notices.
        "idle_in_transaction_session_timeout": "60000",
        "tcp_keepalives_idle": "10",
        "tcp_keepalives_interval": "5",
        "tcp_keepalives_count": "3",
        # Compiling costs more than it brings for statements of milliseconds.
        "jit": "off",
    }


async def use_durable_commits(connection: Connection) -> None:
    """A call that returns is durable, also where the server's default is not."""
    if await connection.fetchval("SHOW synchronous_commit") == "off":
        await connection.execute("SET synchronous_commit = on")
