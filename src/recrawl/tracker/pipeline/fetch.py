"""One page from lease to verdict: fetch, examine, look once more where that is asked for. The IO of a visit.

Beside the fetcher there are the parts that it asks: how many second looks may be made (`RefetchQuota`), how hosts
answer for pages that do not exist (`SoftNotFoundProbe`), and the crash points inside a fetch (`CrashWatch`).
"""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

from recrawl.log import room_log
from recrawl.outcomes import Outcome
from recrawl.store.crash_points import crash_planned, crash_point
from recrawl.store.rows import PageRow
from recrawl.store.store import Store
from recrawl.tracker.hosts import HostBook
from recrawl.tracker.pipeline.examine import (
    COMPARING,
    Given,
    Need,
    NeedMissing,
    NeedText,
    drive,
    kernels_for,
    published_text,
    validators_for,
)
from recrawl.tracker.settings.settings import Settings
from recrawl.tracker.visit import Visit
from recrawl.web.content.page import Page, read_page
from recrawl.web.content.soft_404 import MissingPage, bogus_path, missing_page, tells_apart
from recrawl.web.fetch.protocol import Channel, FetchJob, FetchResult, NeedRobots, Read, Send, Step
from recrawl.web.fetch.transport import Transport
from recrawl.web.refused import Refused
from recrawl.web.url.address import Address, read_address

_LOG = room_log("tracker")
_HALF_READ = 2


def crash_watch() -> Callable[[Step], None] | None:
    """What a transport tells its steps to, if a crash is planned."""
    return CrashWatch().see if crash_planned() else None


class CrashWatch:
    """Passes the points of a fetch; fetches that run at once are told apart by their tasks."""

    def __init__(self) -> None:
        self._reads: WeakKeyDictionary[asyncio.Task[Any], int] = WeakKeyDictionary()

    def see(self, step: Step) -> None:
        """A step is about to be answered."""
        task = asyncio.current_task()
        assert task is not None, "fetches run in tasks"
        match step:
            case NeedRobots():
                crash_point("robots")
            case Send():
                self._reads[task] = 0
                crash_point("connect")
            case Read():
                self._reads[task] = self._reads.get(task, 0) + 1
                if self._reads[task] == _HALF_READ:
                    crash_point("mid-body")


SHARE = 0.045
MOST_SAVED = 60.0  # second fetches that a tracker of few pages may make at once


class RefetchQuota:
    """Second fetches against visits: few of the requests, also where thousands of noisy pages are new at once."""

    def __init__(self) -> None:
        self._left = MOST_SAVED

    def visited(self) -> None:
        """A page was fetched."""
        self._left = min(self._left + SHARE, MOST_SAVED)

    def take(self) -> bool:
        """Whether a second fetch may be made now, which counts then."""
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


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


class SoftNotFoundProbe:
    """Remembers the answers of the hosts asked last.

    Args:
        fetch: fetches one thing, within pacing and budget.
        now: Unix seconds.
    """

    def __init__(self, fetch: Callable[[FetchJob], Awaitable[FetchResult]], now: Callable[[], float]) -> None:
        self._fetch = fetch
        self._now = now
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
        except Exception:  # of the probe, not of the page that seems to have changed
            _LOG.exception("how %s answers for pages that it does not have could not be found out", page.origin)
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


_SOON, _SOON_S = 20.0, 60.0  # from the start of a visit to a second look: this many times the wait, if there is one


class FetchStage(Protocol):
    """Brings a page and says what came of it."""

    async def fetch(self, visit: Visit) -> None:
        """Fetch a page, examine what came, and note both in the visit."""


class Fetcher:
    """Fetches and examines pages.

    Args:
        transport: sends requests.
        store: keeps the texts that were published.
        settings: what counts as a change, and when to look again.
        missing: knows how hosts answer for pages that do not exist.
        hosts: told when a request has ended, from when the gap to the next counts.
        channel_of: how a page is fetched: as a page, or by the bounds of sitemaps or feeds.
    """

    def __init__(
        self,
        transport: Transport,
        store: Store,
        settings: Settings,
        missing: SoftNotFoundProbe,
        hosts: HostBook,
        channel_of: Callable[[PageRow], Channel],
    ) -> None:
        self._transport = transport
        self._store = store
        self._settings = settings
        self._missing = missing
        self._hosts = hosts
        self._channel_of = channel_of
        self._groups = {group.name: group for group in settings.groups}
        self._second_looks = RefetchQuota()

    async def fetch(self, visit: Visit) -> None:
        """Fetch a page, examine what came, and note both in the visit."""
        page, now = visit.page, self._hosts.now()
        self._second_looks.visited()
        rules = self._settings.address_rules
        address = read_address(page.url, rules)
        if isinstance(address, Refused):
            visit.fetched = _refused(page, address)
            visit.examined("refused", None, address.reason, page.memory)
            return
        validated = None if page.validated_url is None else read_address(page.validated_url, rules)
        validated_at = validated if isinstance(validated, Address) else None
        job = FetchJob(address, validators_for(page), self._channel_of(page), validated_at=validated_at)
        visit.fetched, began_at = await self._fetch(job)
        if began_at is not None:
            visit.began_at = began_at
        group = self._groups.get(page.group)
        content = self._settings.content
        if group is not None and group.learn_noise is not None:
            content = replace(content, learn_noise=group.learn_noise)
        await drive(visit, now, content, partial(self._give, visit, now))
        crash_point("hashed")

    async def _give(self, visit: Visit, since: float, need: Need) -> Given:
        if isinstance(need, NeedText):
            return await published_text(self._store, visit.page)
        if isinstance(need, NeedMissing):
            return await self._missing.of(visit.answer.address)
        group = self._groups.get(visit.page.group)
        own_s = None if group is None else group.again_after_s
        wait_s = self._settings.again_after_s if own_s is None else own_s
        # What changes in the long time of a slow visit would be learned as noise.
        if self._hosts.now() - since > (_SOON * wait_s or _SOON_S) or not self._second_looks.take():
            return None
        await self._hosts.sleep(wait_s)
        again, _ = await self._fetch(FetchJob(visit.answer.address))
        await kernels_for(again, COMPARING)
        return again

    async def _fetch(self, job: FetchJob) -> tuple[FetchResult, float | None]:
        """The answer, and when the request for it began, None if there was none."""
        try:
            result = await self._transport.fetch(job)
        finally:
            began_at = self._hosts.done()
        self._hosts.heard(result)
        return result, began_at


def _refused(page: PageRow, why: Refused) -> FetchResult:
    nowhere = Address(page.url, "http", page.host, 80, "/")
    return FetchResult(nowhere, "refused", why.reason, nowhere)
