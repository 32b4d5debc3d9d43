"""The main text of a page as Markdown, for models and indexes: made from the body when it is asked for.

It takes some milliseconds of a parse process, so that few are made at once, and is for pages whose bodies are kept
(`bodies` under `[retention]`).
"""

from __future__ import annotations

import asyncio
import weakref

from litestar.datastructures import State

from recrawl.extras import is_installed, missing
from recrawl.service.errors import Refusal
from recrawl.store.contract import HistoryStore
from recrawl.web.workers import ParseWorkers

AT_ONCE = 2
MOST_WAITING = 20
_STATE = "markdown"


class Makers:
    """The parse processes that make Markdown, and how many requests wait for one."""

    def __init__(self) -> None:
        self.turns = asyncio.Semaphore(AT_ONCE)
        self.workers = ParseWorkers(AT_ONCE)
        weakref.finalize(self, self.workers.close)
        self.asked = 0


async def markdown_of(state: State, store: HistoryStore, page_id: int, version: int | None) -> bytes | None:
    """The main text of a version, by default the last; None if its body is not kept.

    Raises:
        Refusal: if it cannot be made here, there are too many already, or this page has no main text.
    """
    if not is_installed("trafilatura"):
        raise Refusal(409, missing("trafilatura", "Markdown"), "form")
    makers: Makers = state.setdefault(_STATE, Makers())
    if makers.asked >= MOST_WAITING:
        raise Refusal(429, f"{MOST_WAITING} texts are being made already", headers={"Retry-After": "2"})
    makers.asked += 1
    try:
        async with makers.turns:
            body = await store.version_body(page_id, version)
            if body is None:
                return None
            made = await asyncio.to_thread(makers.workers.main_text, body)
    finally:
        makers.asked -= 1
    if made.problem:
        raise Refusal(404, made.problem)
    return made.text.encode()
