"""How hosts answer for pages that do not exist, when they do not say 404: asked when a page first seems to change.

Two requests for a host in a week: a path that nobody has, and the home page to compare with. A host that shows the
same shell for everything tells nothing, and is not asked again for as long. A failure says nothing of the host: it is
asked again when a page seems to change ten minutes later.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from recrawl.outcomes import Outcome
from recrawl.web.address import Address
from recrawl.web.fetch_result import FetchResult
from recrawl.web.fetch_steps import FetchJob
from recrawl.web.page_text import Page, read_page
from recrawl.web.soft_404 import MissingPage, bogus_path, missing_page, tells_apart

_MOST_HOSTS = 10_000
_KEPT_S = 7 * 86_400.0
_UNSURE_S = 600.0
_TOKEN_BYTES = 8
_PASSING: frozenset[Outcome] = frozenset({"rate-limited", "server-error", "network-error", "truncated", "deferred"})


class _Answer(NamedTuple):
    """What was found out, and whether the host said it: else it is asked again soon."""

    missing: MissingPage | None
    sure: bool = True


_UNSURE = _Answer(None, sure=False)


class MissingPages:
    """Remembers the answers of the hosts asked last.

    Args:
        fetch: fetches one thing, within pacing and budget.
        now: Unix seconds.
        say: takes sentences for people.
    """

    def __init__(
        self,
        fetch: Callable[[FetchJob], Awaitable[FetchResult]],
        now: Callable[[], float],
        say: Callable[[str], None],
    ) -> None:
        self._fetch = fetch
        self._now = now
        self._say = say
        self._known: OrderedDict[str, tuple[float, asyncio.Task[_Answer]]] = OrderedDict()

    async def of(self, page: Address) -> MissingPage | None:
        """How the origin of a page answers for what it does not have; None if it says so, or tells nothing."""
        at, task = self._known.get(page.origin, (0.0, None))
        if task is None or self._now() - at > _kept_s(task):
            task = asyncio.create_task(self._ask(page))
            self._known.pop(page.origin, None)  # the place in the order is that of the last question
            self._known[page.origin] = self._now(), task
            if len(self._known) > _MOST_HOSTS:
                self._known.popitem(last=False)
        return (await asyncio.shield(task)).missing

    async def _ask(self, page: Address) -> _Answer:
        try:
            return await self._compare(page)
        except Exception as error:  # of the probe, not of the page that seems to have changed
            self._say(f"how {page.origin} answers for pages that it does not have could not be found out: {error!r}")
            return _UNSURE

    async def _compare(self, page: Address) -> _Answer:
        path = bogus_path(page.target.partition("?")[0], secrets.token_hex(_TOKEN_BYTES))
        answer = await self._fetch(FetchJob(page.with_target(path)))
        if not answer.has_page:
            return _UNSURE if answer.outcome in _PASSING else _Answer(None)
        missing = missing_page(_read(answer), path)
        home = await self._fetch(FetchJob(page.with_target("/")))
        if home.outcome in _PASSING:
            return _UNSURE
        return _Answer(missing if home.has_page and tells_apart(missing, _read(home)) else None)


def _kept_s(task: asyncio.Task[_Answer]) -> float:
    """How long an answer counts; one that is awaited counts until it comes."""
    return _KEPT_S if not task.done() or task.result().sure else _UNSURE_S


def _read(result: FetchResult) -> Page:
    return read_page(result.body, result.header(b"content-type").decode("latin-1") or None)
